"""Which figure of the gate is best: every value of a knob's ladder replayed over many scenes, the rest as it stands.

    python -m bench.search [--trace PATH:MIB:STRETCH ...] [--seeds 10] [--jobs 400] [--shapes trace,quiet,...]
        [--knob NAME=VALUE,VALUE ...] [--base NAME=VALUE ...] [--workers 2] [--keep FILE] [--scenes]

Without ``--knob`` every ladder of ``bench/world/ladders.py`` is tried. A scene is one trace under one shape of memory;
its oracles do not depend on knobs and are replayed once. ``--keep`` holds what was replayed, so that a search that was
stopped goes on. ``--scenes`` tries nothing and prints each scene as it stands. The score weighs what people feel,
smaller is better: see ``score``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from bench.world.ladders import LADDERS
from bench.world.setting import Setting

ORACLES = ("oracle-easy", "oracle-lpt", "oracle-big")
Figures = dict[str, float]
Changes = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Means over scenes. Ratios to the best clairvoyant makespan and to clairvoyant EASY; kills per 1,000 jobs."""

    span: float
    jct: float
    longest: float
    oom: float
    worst_oom: float
    cap: float
    lost: float  # percent of the GPU-hours of the work itself

    @property
    def score(self) -> float:
        """Return one number: a percent of makespan weighs as much as 2.5 % of turnaround, or one OOM per 1,000."""
        late = max(0.0, self.longest - 1.25)
        return 100 * (self.span - 1) + 40 * (self.jct - 1) + 20 * late + self.oom + 0.3 * self.cap + 2 * self.lost


def scenes(options: argparse.Namespace) -> dict[str, Setting]:
    """Return what is replayed, by name."""
    found = {}
    traces = [text.rsplit(":", 2) for text in options.trace]
    traces += [[f"synthetic:{seed}", "24576", "1.4"] for seed in range(1, options.seeds + 1)]
    traces += [[f"synthetic-shares:{seed}", "16384", "1.5"] for seed in range(1, options.seeds // 2 + 1)]
    for path, cap, stretch in traces:
        for shape in options.shapes.split(","):
            name = f"{Path(path).stem}/{shape}"
            found[name] = Setting(path, cap=float(cap), stretch=float(stretch), limit=options.jobs, shape=shape)
    return found


def figures(setting: Setting, policy: str) -> Figures:
    """Replay one policy and return what is compared."""
    tally = setting.play(policy)
    rows = setting.rows()
    hours = sum(row.duration * row.devices for row in rows) / 3600
    return {
        "span": tally.makespan,
        "jct": tally.mean_jct,
        "longest": tally.longest_wait,
        "oom": 1000 * tally.oom_kills / len(rows),
        "cap": 1000 * (tally.cap_kills + tally.watchdog_kills) / len(rows),
        "lost": 100 * tally.lost_gpu_hours / hours,
    }


class Kept:
    """What was replayed before, by scene, policy and changed knobs."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[str, Figures] = json.loads(path.read_text()) if path is not None and path.exists() else {}

    def add(self, name: str, found: Figures) -> None:
        """Keep one more."""
        self.known[name] = found
        if self.path is not None:
            self.path.write_text(json.dumps(self.known))


def name_of(scene: str, policy: str, changes: Changes) -> str:
    """Return under which name a replay is kept."""
    return " ".join([scene, policy, *(f"{name}={value}" for name, value in changes)])


def replay(wanted: Mapping[str, tuple[Setting, str]], kept: Kept, workers: int) -> None:
    """Replay everything that is not known yet."""
    missing = {name: what for name, what in wanted.items() if name not in kept.known}
    with ProcessPoolExecutor(workers) as pool:
        running = {pool.submit(figures, *what): name for name, what in missing.items()}
        for count, done in enumerate(as_completed(running), 1):
            kept.add(running[done], done.result())
            print(f"\r{count} of {len(running)} replayed", end="", file=sys.stderr, flush=True)
    if missing:
        print(file=sys.stderr)


def outcome(all_scenes: Iterable[str], changes: Changes, kept: Kept) -> Outcome:
    """Return the means over the scenes under these changes."""
    ours, spans, jcts, longs = [], [], [], []
    for scene in all_scenes:
        mine = kept.known[name_of(scene, "product", changes)]
        oracles = {policy: kept.known[name_of(scene, policy, ())] for policy in ORACLES}
        ours.append(mine)
        spans.append(mine["span"] / min(one["span"] for one in oracles.values()))
        jcts.append(mine["jct"] / oracles["oracle-easy"]["jct"])
        longs.append(mine["longest"] / max(600.0, oracles["oracle-easy"]["longest"]))
    mean = {name: statistics.fmean(one[name] for one in ours) for name in ("oom", "cap", "lost")}
    return Outcome(
        statistics.fmean(spans),
        statistics.fmean(jcts),
        statistics.fmean(longs),
        mean["oom"],
        max(one["oom"] for one in ours),
        mean["cap"],
        mean["lost"],
    )


def row(label: str, found: Outcome, base: Outcome) -> str:
    """Return one line of the table."""
    cells = [
        label, f"{found.span:.3f}", f"{found.jct:.3f}", f"{found.longest:.2f}", f"{found.oom:.2f}",
        f"{found.worst_oom:.1f}", f"{found.cap:.1f}", f"{found.lost:.2f}", f"{found.score:.2f}",
        f"{found.score - base.score:+.2f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def arguments() -> argparse.ArgumentParser:
    """Return the parser."""
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trace", action="append", default=[], metavar="PATH:MIB:STRETCH")
    parser.add_argument("--seeds", type=int, default=4, help="synthetic traces, and half as many of shares")
    parser.add_argument("--jobs", type=int, default=400, help="the first so many rows of each, 0 for all")
    parser.add_argument("--shapes", default="trace,quiet,staged,second")
    parser.add_argument("--knob", action="append", default=[], metavar="NAME=VALUE,...")
    parser.add_argument("--base", action="append", default=[], metavar="NAME=VALUE", help="changed in every replay")
    parser.add_argument("--scenes", action="store_true", help="each scene as it stands, nothing else")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path)
    return parser


def main() -> None:
    """Replay and print the table."""
    options = arguments().parse_args()
    pairs = [text.partition("=") for text in options.knob]
    ladders = {name: tuple(values.split(",")) for name, _, values in pairs} or ({} if options.scenes else LADDERS)
    base: Changes = tuple((name, value) for name, _, value in (text.partition("=") for text in options.base))
    tried = [base, *((*base, (name, value)) for name, values in ladders.items() for value in values)]
    found, kept = scenes(options), Kept(options.keep)
    wanted = {name_of(scene, one, ()): (what, one) for scene, what in found.items() for one in ORACLES}
    for changes in tried:
        for scene, what in found.items():
            changed = replace(what, knobs=dict(changes))
            wanted[name_of(scene, "product", changes)] = (changed, "product")
    replay(wanted, kept, options.workers)
    stands = outcome(found, base, kept)
    print(f"{len(found)} scenes: {', '.join(found)}.")
    head = "knob", "makespan x", "JCT x", "longest x", "OOM/1,000", "worst", "cap+watch", "lost %", "score", "against"
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    print(row("as it stands", stands, stands))
    if options.scenes:
        for scene in found:
            print(row(scene, outcome([scene], base, kept), stands))
    for changes in tried[1:]:
        name, value = changes[-1]
        print(row(f"{name}={value}", outcome(found, changes, kept), stands))


if __name__ == "__main__":
    main()
