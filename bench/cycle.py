"""What one cycle costs that changes nothing, by the length of the queue and by part.

    python -m bench.cycle [--queue 10,100,1000,10000] [--running 20] [--rounds 7] [--kinds 50] [--json]

A database of its own (SQLite, in a temporary directory) holds a node with eight devices, jobs that run on them, and so
many that wait: of --kinds workloads with past runs, all too large for what is free. The first cycle decides on
everybody and is told apart ("first"); then each round takes a fresh reading and runs a cycle in which nothing has
changed but the time. Medians in ms. "refresh" is the mean over a refresh of every waiting row's ages, which the
product does each ten seconds, spread over ten cycles.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

GIB = 1 << 30
PARTS = ("lock", "snapshot", "plan", "claim", "all")


def prepare(folder: str) -> None:
    """Set Django up on an empty database below the folder."""
    os.environ |= {
        "TIDEGATE_DATA": folder,
        "TIDEGATE_NODE": "bench",
        "DJANGO_SETTINGS_MODULE": "scheduler_site.settings",
    }
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def machine(running: int, kinds: int) -> Any:
    """Make a node with eight devices, past runs of each kind, and jobs that run; return their user."""
    from django.utils import timezone

    from calibration import clock
    from calibration.models import Sediment
    from placement.models import Device, Job, Lease, Node, Role
    from placement.services import cycle_row
    from tests.integration.rows import a_pool, a_user

    cycle_row.ensure()
    node = Node.objects.create(name="bench", epoch=clock.epoch(), tick_clock=clock.now())
    user = a_user("ann", Role.ADMIN)
    a_pool("bench", "ram", "RAM", 256 * GIB, 8 * GIB)
    for index in range(8):
        uuid = f"GPU-{index}"
        Device.objects.create(uuid=uuid, node=node, name=f"gpu{index}", index=index, declared=24 * GIB)
        a_pool("bench", uuid, f"gpu{index}", 24 * GIB, 23 * GIB)
    Sediment.objects.bulk_create(
        Sediment(
            owner=f"job:{n}", workload=f"kind-{n % kinds}", user="ann", completed=True, outcome="completed",
            peaks={"ram": GIB, "vram": (3 + n % 7) * GIB}, duration=600.0, samples={"ram": 99, "vram": 99},
            seconds_to_peak={"ram": 5.0, "vram": 9.0}, at=timezone.now(),
        )
        for n in range(kinds * 3)
    )  # fmt: skip
    for n in range(running):
        uuid = f"GPU-{n % 8}"
        amounts = {uuid: 8 * GIB, "ram": GIB}
        charge = {"margin": 0, "settled": True, "cap": None, "basis": "measured", "note": ""}
        job = Job.objects.create(
            name=f"runs {n}", user=user, command="true", cwd="/tmp", gpu="one", key_workload=f"kind-{n % kinds}",
            state="running", node="bench", device=uuid, basis="measured", admitted_at=timezone.now(),
            admitted_clock=clock.now(), started_at=timezone.now(), started_clock=clock.now(),
            charges={p: {"granted": a, "held": a, "at_start": a, **charge} for p, a in amounts.items()},
            used=amounts,
        )  # fmt: skip
        for pool, amount in amounts.items():
            Lease.objects.create(
                job=job, node="bench", pool=pool, kind="ram" if pool == "ram" else "vram", bytes=amount
            )
    return user


def waiting(user: Any, count: int, kinds: int) -> None:
    """Let so many jobs wait, and nobody else."""
    from placement.models import Job

    Job.objects.filter(state="queued").delete()
    Job.objects.bulk_create(
        [
            Job(
                name=f"waits {n}", user=user, command="true", cwd="/tmp", gpu="one",
                key_workload=f"kind-{n % kinds}", priority=n % 3,
            )
            for n in range(count)
        ],
        batch_size=500,
    )  # fmt: skip


def fresh() -> None:
    """Take a reading: what was read a while ago lets nothing start, and that is not what is measured."""
    from calibration import clock
    from calibration.models import PoolNow
    from placement.models import Node

    PoolNow.objects.update(read_at=clock.now(), epoch=clock.epoch())
    Node.objects.update(tick_clock=clock.now(), epoch=clock.epoch())


@contextmanager
def timed(spent: dict[str, float]) -> Iterator[None]:
    """Add up what each part of a cycle takes while this lasts."""
    from placement import snapshots
    from placement.services import admission

    def around(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*args: Any, **more: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*args, **more)
            finally:
                spent[name] = spent.get(name, 0.0) + (time.perf_counter() - began) * 1000

        return measured

    places = {"lock": (admission, "_lock"), "snapshot": (snapshots, "take"), "plan": (admission, "plan")}
    places |= {"claim": (admission, "_claim")}
    before = {name: getattr(*place) for name, place in places.items()}
    for name, (module, call) in places.items():
        setattr(module, call, around(name, before[name]))
    try:
        yield
    finally:
        for name, (module, call) in places.items():
            setattr(module, call, before[name])


def once() -> dict[str, float]:
    """Run one cycle and return ms by part and the number of queries."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from placement.services import admission

    fresh()
    spent: dict[str, float] = {}
    with timed(spent):
        began = time.perf_counter()
        admission.run()
        spent["all"] = (time.perf_counter() - began) * 1000
    fresh()
    with CaptureQueriesContext(connection) as asked:  # apart, because to note a query costs more than to ask it
        admission.run()
    return {**spent, "queries": len(asked)}


def measure(user: Any, count: int, kinds: int, rounds: int) -> dict[str, float]:
    """Return medians of quiet cycles with so many jobs waiting, and what the first one took."""
    from placement.models import Job
    from placement.services import admission

    waiting(user, count, kinds)
    fresh()
    began = time.perf_counter()
    admission.run()
    first = (time.perf_counter() - began) * 1000
    assert Job.objects.filter(state="queued").count() == count, "a job started that was to wait"
    seen = [once() for _ in range(rounds)]
    quiet = {name: statistics.median(row.get(name, 0.0) for row in seen) for name in (*PARTS, "queries")}
    return {**quiet, "first": first, "refresh": _refresh(quiet["all"])}


def _refresh(quiet: float) -> float:
    """Return the mean of ten cycles in one of which every row is brought up to date."""
    from datetime import timedelta

    from django.db.models import F

    from placement.models import Job
    from placement.services import admission

    Job.objects.filter(state="queued").update(decided_at=F("decided_at") - timedelta(seconds=20))
    fresh()
    began = time.perf_counter()
    admission.run()
    return ((time.perf_counter() - began) * 1000 + 9 * quiet) / 10


def main() -> None:
    """Print one row a length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queue", default="10,100,1000,10000")
    parser.add_argument("--running", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--kinds", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cycle-") as folder:
        prepare(folder)
        user = machine(options.running, options.kinds)
        rows = {int(n): measure(user, int(n), options.kinds, options.rounds) for n in options.queue.split(",")}
    if options.json:
        print(json.dumps(rows))
        return
    print("waiting  queries" + "".join(f"{name:>10}" for name in (*PARTS, "refresh", "first")))
    for count, row in rows.items():
        figures = "".join(f"{row[name]:10.1f}" for name in (*PARTS, "refresh", "first"))
        print(f"{count:7} {row['queries']:8.0f}{figures}")


if __name__ == "__main__":
    main()
