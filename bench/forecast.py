"""How good the forecasts are: the product's own queue replayed, and each start compared with what was foretold for it.

    python -m bench.forecast --trace FILE.csv|synthetic:SEED [--devices 4] [--cap 24576] [--stretch 1.4] [--limit N]

At each cycle that follows a submission the queue is played forward, as the service does, and whoever is new gets a
forecast. The record of those that have started by then corrects later ones, as in the service. "late" is the second by
which nine of ten are to start; a job that had not started by then counts against it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterable
from dataclasses import replace

from bench.world.engine import World
from bench.world.product import Product
from bench.world.setting import Setting, knobs
from placement.domain.forecasting.accuracy import Figures, Past, Record, by_ahead, figures, learned
from placement.domain.forecasting.told import predicted
from placement.domain.planning.plan import plan


class Foretelling(Product):
    """The product, with a forecast for each job in the first cycle that leaves it waiting."""

    def prepare(self, correct: bool) -> Foretelling:
        """Empty the record; ``correct``: later forecasts learn from it."""
        self.correct = correct
        self.told: dict[int, tuple[float, Past]] = {}
        self.costs: list[tuple[int, float]] = []
        self.untold = 0
        self.record, self.record_at = Record(), 0
        self.known: set[int] = set()
        return self

    def gate(self, world: World) -> None:
        """Run one cycle, and foretell for whoever is new."""
        super().gate(world)
        new = {job.row.id for job in world.queue} - self.known
        self.known |= {job.row.id for job in world.jobs if job.row.arrival <= world.t}
        if not new:
            return
        made = plan(self.snapshot(world))
        began = time.perf_counter()
        found = predicted(made)
        self.costs.append((len(found), time.perf_counter() - began))
        record = self._record(world) if self.correct else Record()
        for ident in new:
            told = found.get(ident + 1)
            if told is None:
                continue
            shown = record.corrected(told)
            if told.in_s is None or shown.in_s is None:
                self.untold += 1
                continue
            self.told[ident] = (world.t, Past(told.sure, told.in_s, told.late_s, shown.in_s, shown.late_s, None))

    def _record(self, world: World) -> Record:
        """Return what is learned from the newest forecasts; looked at again after each ten."""
        if len(self.told) >= self.record_at + 10:
            self.record_at = len(self.told)
            self.record = learned(list(self.past(world))[::-1])
        return self.record

    def past(self, world: World) -> Iterable[Past]:
        """Yield all forecasts, oldest first, with what has become of them by now."""
        started = {job.row.id: job.first_start for job in world.jobs if job.first_start is not None}
        for ident, (at, past) in self.told.items():
            start = started.get(ident)
            yield replace(past, waited_s=None if start is None else start - at, age_s=world.t - at)


def replay(setting: Setting, *, correct: bool = True) -> tuple[list[Past], Foretelling]:
    """Return the forecasts of one replay with what became of them, and the policy that made them."""
    ours, theirs = knobs(setting.knobs)
    policy = Foretelling(ours, theirs).prepare(correct)
    world = World(setting.jobs(), policy, setting.devices, setting.cap, interference=setting.interference)
    world.play()
    return list(policy.past(world)), policy


def line(name: str, found: Figures) -> str:
    """Return one row of the table."""
    half, late = (
        f"{100 * share:.0f} %" if share is not None else "-" for share in (found.within_half, found.within_late)
    )
    error = "-" if found.error_s is None else f"{found.error_s / 60:.1f}"
    relative = "-" if found.relative is None else f"{100 * found.relative:.0f} %"
    return f"{name:16} {found.count:6} {half:>10} {late:>10} {error:>12} {relative:>10}"


def report(past: list[Past], policy: Foretelling) -> None:
    """Print the tables."""
    print("group             count  by middle    by late   error, min   relative")
    print(line("all", figures(past)))
    for sure in ("limit", "learned", "guess"):
        some = [p for p in past if p.sure == sure]
        if some:
            print(line(sure, figures(some)))
    for name, found in by_ahead(past):
        print(line(name, found))
    costs = [1000 * seconds for _, seconds in policy.costs]
    most, longest = max(policy.costs, default=(0, 0.0))
    print(f"{policy.untold} could not be told; the queue was played {len(costs)} times,")
    print(f"median {statistics.median(costs):.1f} ms, {1000 * longest:.1f} ms with {most} jobs")


def main() -> None:
    """Replay one trace and print how good its forecasts were."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", default="synthetic:0")
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--cap", type=float, default=24576.0)
    parser.add_argument("--stretch", type=float, default=1.0)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--shape", default="trace")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wrong", type=float, default=1.0, help="by what factor predicted lengths are wrong at most")
    parser.add_argument("--uncorrected", action="store_true", help="what the plays say, without the record")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    setting = Setting(
        options.trace,
        options.devices,
        options.cap,
        options.stretch,
        options.limit,
        options.shape,
        options.seed,
        wrong=options.wrong,
    )
    past, policy = replay(setting, correct=not options.uncorrected)
    if options.json:
        found = figures(past)
        print(json.dumps({name: getattr(found, name) for name in Figures.__slots__}))
    else:
        report(past, policy)


if __name__ == "__main__":
    main()
