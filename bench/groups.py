"""What a queue of groups costs that all differ: the verdicts of one cycle, the forecast, and a hundred explanations.

``python -m bench.groups --queue 1000 --devices 8,64``. Milliseconds of CPU of this process, medians; "full": a job on
each device leaves 4 of 24 GiB, "free": nobody runs. Each group takes from 2 up to 10 devices.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

from calibration.domain.estimate import Basis, Estimate, PoolEstimate
from placement.domain.admission.demands import promised
from placement.domain.forecasting.forecast import forecast
from placement.domain.knobs import Knobs
from placement.domain.planning.plan import Plan, plan
from placement.domain.world.requests import Exclusive, Gpu, shared
from placement.domain.world.snapshot import Charge, Device, Node, Pool, Running, Snapshot, Waiting

GIB = 1 << 30
CARD, RAM = 24 * GIB, 4096 * GIB
HOW = ("expected", "of each", "together", "by room")  # what is asked of the devices' memory
EXPLAINED = 100


def main() -> None:
    """Print one line per number of devices, way of asking and state of the machine."""
    parser = argparse.ArgumentParser(prog="python -m bench.groups", description=__doc__)
    parser.add_argument("--queue", type=int, default=1000, help="groups that wait")
    parser.add_argument("--devices", default="8,64", help="devices of the node")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    print("devices asked     machine | verdicts starts | forecast   told | 100 explanations")
    for devices in map(int, args.devices.split(",")):
        for how in HOW:
            for full in (True, False):
                row = _measured(_world(devices, args.queue, how, full), args.rounds)
                print(f"{devices:>7} {how:<9} {'full' if full else 'free':<7} | {row}", flush=True)


def _measured(snapshot: Snapshot, rounds: int) -> str:
    cycle, made = _median(lambda: plan(snapshot), rounds)
    queue = tuple(made.waits())
    playing, told = _median(lambda: forecast(made.board, queue, made.bar), rounds)
    said, _ = _median(lambda: _explained(snapshot), 1)
    known = sum(one.in_s is not None for one in told.values())
    return f"{cycle:>8.0f} {len(made.starts):>6} | {playing:>8.0f} {known:>6} | {max(0.0, said - cycle):>8.0f}"


def _explained(snapshot: Snapshot) -> Plan:
    made = plan(snapshot)
    for waiting in list(made.waits())[:EXPLAINED]:
        made.explain(waiting.job)
    return made


def _median(act: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    taken, found = [], None
    for _ in range(rounds):
        begun = time.process_time()
        found = act()
        taken.append(1000 * (time.process_time() - begun))
    return statistics.median(taken), found


def _world(devices: int, queue: int, how: str, full: bool) -> Snapshot:
    cards = tuple(_card(number, 20 * GIB if full else 2 * GIB) for number in range(devices))
    running = tuple(_running(number) for number in range(devices)) if full else ()
    waiting = tuple(_group(job, how) for job in range(1, queue + 1))
    ram = Pool("node", "ram", "ram", "RAM", RAM, RAM, RAM, 0)
    nodes = (Node("node", ram, cards),)
    return Snapshot(at=1000.0, wall=1.7e9, nodes=nodes, running=running, waiting=waiting, knobs=Knobs())


def _card(number: int, used: int) -> Device:
    pool = Pool("node", f"GPU-{number}", "vram", f"gpu{number}", CARD, CARD, CARD - used, used)
    return Device(pool.pool, "node", "card", number, pool)


def _running(number: int) -> Running:
    held = Charge(20 * GIB, 20 * GIB, 20 * GIB, 20 * GIB)
    charges = {f"GPU-{number}": held, "ram": Charge(0, 0, 0, 0)}
    return Running(100_000 + number, "job", "ada", "node", charges, (f"GPU-{number}",), limit=50.0 + number)


def _group(job: int, how: str) -> Waiting:
    least = 2 + job % 7
    amount = 5 * GIB + job * (1 << 20)
    each, together = (amount, None) if how == "of each" else (None, amount + least * 5 * GIB)
    if how == "expected":
        together = None
    where = (Gpu.GROUP, Exclusive.NO, None, None)
    request = shared(*where, least, least + job % 3, False, each, together, how != "by room")
    vram = PoolEstimate("vram", amount, Basis.MEASURED, 0, ())
    pools = {"ram": PoolEstimate("ram", GIB, Basis.MEASURED, 0, ()), "vram": vram}
    estimate = promised(request, Estimate(pools, Basis.MEASURED, amount + GIB, amount + GIB))
    return Waiting(job, "group", "ada", job, request, estimate, learned=60.0 + job % 50)


if __name__ == "__main__":
    main()
