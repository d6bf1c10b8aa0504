"""A trace of jobs replayed on simulated devices: the product's own gate beside other rules, oracles and bounds.

    python -m bench.replay --trace PATH|synthetic:SEED|synthetic-shares:SEED [--devices 4] [--cap 24576]
        [--stretch 1.4] [--policies product,exclusive-fifo,...] [--shape trace|ramp|quiet|staged|second|prealloc]
        [--external 1,2,3] [--interference] [--wrong-durations 3] [--edits 30] [--merge-keys script]
        [--knob NAME=VALUE ...] [--goals] [--compare SIMULATOR] [--json]

Sizes are MiB (what traces call MB is taken as that), times seconds. The gate sees what a sampler that looks once a
second would have seen. A row of n devices is n jobs of one for every policy, as the product has no groups yet;
``--gangs`` starts them together, for policies of the bench alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from bench.world import compare, goals, report
from bench.world.policies import POLICIES
from bench.world.setting import PRODUCT, Setting
from bench.world.shapes import SHAPES
from bench.world.tally import Tally

USUAL = (
    "product",
    "exclusive-fifo",
    "declared-skip",
    "carma",
    "gate-reference",
    "gate-fifo",
    "oracle-easy",
    "oracle-big",
)


def arguments() -> argparse.ArgumentParser:
    """Return the parser."""
    parser = argparse.ArgumentParser(prog="python -m bench.replay", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trace", default="synthetic:1", help="a file, synthetic:SEED or synthetic-shares:SEED")
    parser.add_argument("--jobs", type=int, default=0, help="replay the first so many rows")
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--cap", type=float, default=24576.0, metavar="MIB", help="memory of a device")
    parser.add_argument("--stretch", type=float, default=1.0, help="arrivals over so many times the span")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="trace")
    parser.add_argument("--gate", choices=[PRODUCT], default=PRODUCT, help="what is judged")
    parser.add_argument("--policies", default=",".join(USUAL))
    parser.add_argument("--seed", type=int, default=0, help="of shapes, wrong durations and edits")
    parser.add_argument("--external", default="", metavar="SEED,...", help="once more with outsiders of each seed")
    parser.add_argument("--interference", action="store_true")
    parser.add_argument("--both-die", action="store_true", help="an OOM takes a neighbour along")
    parser.add_argument("--wrong-durations", type=float, default=1.0, metavar="F")
    parser.add_argument("--edits", type=float, default=0.0, metavar="PERCENT")
    parser.add_argument("--merge-keys", choices=["script"], help="arguments do not matter")
    parser.add_argument("--process-busy", action="store_true", help="the driver tells how busy each process is")
    parser.add_argument("--gangs", action="store_true", help="rows of several devices start together")
    parser.add_argument("--knob", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--goals", action="store_true", help="say which goals are met, with the policies they need")
    parser.add_argument("--compare", type=Path, metavar="SIMULATOR", help="run another simulator on the same rows")
    parser.add_argument("--json", action="store_true")
    return parser


def setting_of(options: argparse.Namespace) -> Setting:
    """Return the conditions that the options ask for."""
    pairs = [text.partition("=") for text in options.knob]
    return Setting(
        trace=options.trace,
        devices=options.devices,
        cap=options.cap,
        stretch=options.stretch,
        limit=options.jobs,
        shape=options.shape,
        seed=options.seed,
        gangs=options.gangs,
        interference=options.interference,
        both_die=options.both_die,
        wrong=options.wrong_durations,
        edits=options.edits,
        merged=options.merge_keys == "script",
        per_process=options.process_busy,
        knobs={name: value for name, _, value in pairs},
    )


def play(setting: Setting, names: list[str], quiet: bool) -> list[Tally]:
    """Replay each policy, and print the table unless ``quiet``."""
    bound = setting.bounds()
    tallies = []
    if not quiet:
        print(report.heading(setting, len(setting.rows()), bound), file=sys.stderr)
    for name in names:
        tallies.append(setting.play(name))
        if not quiet:
            print(f"  {name}: {tallies[-1].cpu:.1f} s", file=sys.stderr)
    if not quiet:
        print(report.heading(setting, len(setting.rows()), bound))
        print(report.table(tallies, bound))
    return tallies


def main() -> int:
    """Replay, print, and return 1 when a goal that was asked for is missed."""
    options = arguments().parse_args()
    setting = setting_of(options)
    if options.compare is not None:
        told_apart, near = compare.table(setting, options.compare, list(POLICIES))
        print(told_apart)
        return 0 if near else 1
    names = [name for name in options.policies.split(",") if name]
    if options.goals:
        names = list(dict.fromkeys([*goals.NEEDED, *names]))
    names.sort(key=lambda name: (name == PRODUCT, list(POLICIES).index(name) if name in POLICIES else 0))
    tallies = play(setting, names, options.json)
    told = report.as_data(setting, tallies, setting.bounds())
    visited = []
    for seed in [int(text) for text in options.external.split(",") if text]:
        beside = replace(setting, outsiders=seed)
        wanted = ["declared-skip", PRODUCT] if options.goals else names
        visited.append({one.policy: one for one in play(beside, wanted, options.json)})
        told.setdefault("outsiders", {})[seed] = report.as_data(beside, list(visited[-1].values()), setting.bounds())
    judged = []
    if options.goals:
        by_name = {one.policy: one for one in tallies}
        judged = goals.goals(by_name, len(setting.rows()))
        judged += goals.with_outsiders(by_name[PRODUCT], visited) if visited else []
        told["goals"] = [{"goal": g.name, "what": g.what, "got": g.got, "limit": g.limit, "met": g.met} for g in judged]
        if not options.json:
            print("\n".join(goal.line() for goal in judged))
    if options.json:
        print(json.dumps(told, indent=1))
    return 0 if all(goal.met for goal in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
