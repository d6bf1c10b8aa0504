"""What a decision costs: verdicts of a whole queue, one explanation, and a bare loop of comparisons beside them.

``python -m bench.gate --queue 10,100,1000,10000 --devices 1,8,64 --demands 1,40,all``. Milliseconds of CPU of this
process, medians; floor: for each job and device one subtraction and two comparisons of numbers in plain lists.
"told" is one start's decision, read after the verdicts, with the figures of its turn. ``--forecast`` adds what it
costs to play the queue forward once it has been decided.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

from calibration.domain.estimate import Basis, Estimate, PoolEstimate
from placement.domain.forecasting.told import predicted
from placement.domain.knobs import Knobs
from placement.domain.planning.plan import plan
from placement.domain.world.requests import Exclusive, Gpu, shared
from placement.domain.world.snapshot import Charge, Device, Node, Pool, Running, Snapshot, Waiting

GIB = 1 << 30
CARD, HELD, RAM = 80 * GIB, 60 * GIB, 2048 * GIB


def main() -> None:
    """Print one line per queue length, number of devices, number of demands and share that fits."""
    parser = argparse.ArgumentParser(prog="python -m bench.gate", description=__doc__)
    parser.add_argument("--queue", default="10,100,1000,10000", help="jobs that wait")
    parser.add_argument("--devices", default="1,8,64", help="devices of the node")
    parser.add_argument("--demands", default="1,40,all", help="different demands among them; all: each its own")
    parser.add_argument("--running", type=int, default=4, help="jobs on each device")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--fits", default="0,10", help="0: nothing, else one in so many")
    parser.add_argument("--forecast", action="store_true", help="also play the queue forward")
    args = parser.parse_args()
    print("fits     queue devices demands | verdicts   floor  ratio | one explanation | starts   told | forecast")
    for fits in _numbers(args.fits):
        for length in _numbers(args.queue):
            for devices in _numbers(args.devices):
                for demands in dict.fromkeys(
                    length if d == "all" else min(length, int(d)) for d in args.demands.split(",")
                ):
                    snapshot = world(length, devices, demands, args.running, fits)
                    _line(snapshot, fits, args.rounds, args.forecast, (length, devices, demands))


def _line(snapshot: Snapshot, fits: int, rounds: int, play: bool, sizes: tuple[int, int, int]) -> None:
    verdicts, floors, tolds, plays = [], [], [], []
    for _ in range(rounds):  # by turns, so that whatever else the machine does slows all
        verdicts.append(_cost(lambda: plan(snapshot)))
        floors.append(_cost(lambda: bare(snapshot)))
        made = plan(snapshot)
        tolds.append(_cost(lambda made=made: made.starts) / max(1, len(made.grants)))  # type: ignore[misc]
        if play:
            plays.append(_cost(lambda made=made: predicted(made)))  # type: ignore[misc]
    asked = [waiting.job for waiting in made.waits()][:: max(1, sizes[0] // 50)][:50]
    why = _cost(lambda: [made.explain(job) for job in asked]) / max(1, len(asked))
    ours, floor = statistics.median(verdicts), statistics.median(floors)
    length, devices, demands = sizes
    print(
        f"{f'1 in {fits}' if fits else 'nothing':8} {length:5} {devices:7} {demands:7} | {ours:8.2f} {floor:7.2f} "
        f"{ours / floor:6.1f} | {why:15.3f} | {len(made.grants):6} {statistics.median(tolds):6.3f} | "
        f"{statistics.median(plays) if plays else 0.0:8.1f}"
    )


def _cost(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def bare(snapshot: Snapshot) -> int:
    """Count the jobs that have room somewhere, by a loop over plain numbers: no ledger, no order, no reason."""
    node = snapshot.nodes[0]
    growth = {d.uuid: 0 for d in node.devices}
    for run in snapshot.running:
        if run.device is not None:
            growth[run.device] += run.charges[run.device].growth
    rooms = [(d.pool.free or 0) - growth[d.uuid] for d in node.devices]
    ram = node.ram.free or 0
    needs = [(w.estimate.pools["vram"].need or 0, w.estimate.pools["ram"].need or 0) for w in snapshot.waiting]
    found = 0
    for vram, main_memory in needs:
        for index, room in enumerate(rooms):
            left = room - vram
            if left >= 0 and main_memory <= ram:
                rooms[index] = left
                ram -= main_memory
                found += 1
                break
    return found


def world(length: int, devices: int, demands: int, running: int, fits: int) -> Snapshot:
    """Return one node whose devices are three quarters full, and a queue of which one in ``fits`` is small."""
    cards, runs = [], []
    for index in range(devices):
        uuid = f"GPU-{index}"
        pool = Pool("atlas", uuid, "vram", f"gpu{index}", CARD, CARD, CARD - HELD, HELD)
        cards.append(Device(uuid, "atlas", "card", index, pool))
        part = HELD // running
        for number in range(running):
            charges = {uuid: Charge(part, part, part - GIB // 8, part), "ram": Charge(GIB, GIB, GIB, GIB)}
            job = 1_000_000 + index * running + number
            runs.append(
                Running(job, "run", "ann", "atlas", charges, (uuid,), elapsed=60.0, limit=3600.0 + 60.0 * number)
            )
    used = GIB * len(runs)
    ram = Pool("atlas", "ram", "ram", "RAM", RAM, RAM, RAM - used, used)
    request = shared(Gpu.ONE, Exclusive.NO, None, None)
    large = [_estimate((25 + n % 50) * GIB + n * 4096, (n % 7) * GIB) for n in range(demands)]
    small = _estimate(GIB // 8, GIB // 8)
    waiting = []
    for n in range(length):
        estimate = small if fits and n % fits == fits - 1 else large[n % demands]
        limit = 600.0 + n % 50  # the small ones end before the plan of the head, and so may pass it
        waiting.append(Waiting(n + 1, "job", "ann", n + 1, request, estimate, limit=limit))
    knobs = Knobs()
    return Snapshot(
        1000.0, 1_700_000_000.0, (Node("atlas", ram, tuple(cards)),), tuple(runs), tuple(waiting), knobs=knobs
    )


def _estimate(vram: int, ram: int) -> Estimate:
    pools = {
        "vram": PoolEstimate("vram", vram, Basis.MEASURED, GIB // 16, ()),
        "ram": PoolEstimate("ram", ram, Basis.MEASURED, GIB // 16, ()),
    }
    return Estimate(pools, Basis.MEASURED, vram + ram, vram + ram)


if __name__ == "__main__":
    main()
