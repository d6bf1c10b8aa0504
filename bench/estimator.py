"""How good the estimates are: each run of a trace is asked about before it, in order of arrival.

    python -m bench.estimator --trace FILE|synthetic:SEED [--device GIB] [--after 3]
    python -m bench.estimator --trace FILE --other measured|edited|similar

The first prints the product beside rules that know only earlier peaks of the same key: for keys as they are, for keys
merged to the script, and with the script edited before 30 % and all of the submissions; and the product by rung. The
second prints what a rung would be with other rules. Shares of what each run needed; "surplus" is what was asked for in
vain, as a share of all that was needed. Goal: median <= 10 %, too low <= 13 %, by more than 10 % <= 4 %.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from bench import other_rules
from bench.guesses import OTHERS, OWN, PRODUCT, RUNGS, Asked, Guess, asked_of, figures, row_of, walk
from bench.world.setting import load
from bench.world.submissions import Submission
from calibration.domain.sediment import Row

CASES: dict[str, tuple[float, float, bool]] = {
    "keys as they are": (0.0, 0.0, False),
    "keys merged to the script": (0.0, 0.0, True),
    "edited before 30 %": (0.3, 0.0, False),
    "edited before all": (1.0, 0.0, False),
    "edited before 30 %, one edit in five changes the need": (0.3, 0.2, False),
    "edited before all, one edit in five changes the need": (1.0, 0.2, False),
}
"""Share of submissions before which the script is edited, share of edits that change its need, and merged keys."""
OTHER = {
    "measured": (other_rules.measured, list(CASES)[:2]),
    "edited": (other_rules.edited, list(CASES)[2:]),
    "similar": (other_rules.similar, list(CASES)[:1]),
}

Walked = Mapping[str, Sequence[Guess]]


def main() -> int:
    options = _options()
    rows = load(options.trace, options.device * 1024)
    names, rules = list(CASES), OWN | OTHERS
    if options.other:
        alternatives, names = OTHER[options.other]
        rules = OWN | alternatives()
    found: dict[str, object] = {}
    for name in names:
        guesses = walk(submissions(rows, name, options.seed), rules)
        table = by_rule(guesses, 0 if options.other == "similar" else options.after)
        if options.other == "similar":
            table["first runs alone"] = None
            table |= {f"{rule}, first run": line for rule, line in _first_runs(guesses).items()}
        elif not options.other:
            table["of these, by rung"] = None
            table |= by_rung(guesses[PRODUCT])
        found[name] = table
        if not options.json:
            show(name, table)
    if options.json:
        print(json.dumps(found, indent=2))
    return 0


Table = dict[str, dict[str, float] | None]


def submissions(rows: Sequence[Submission], case: str, seed: int) -> list[tuple[Asked, Row | None]]:
    """Return each submission of a case with the row that its run leaves."""
    edits, moves, merged = CASES[case]
    asked = asked_of(rows, seed, edits, moves, merged)
    return [(one, row_of(one, drawn, wall=one.row.arrival)) for one, drawn in asked]


def by_rule(guesses: Walked, after: int) -> Table:
    """Return the figures of each rule for runs with at least ``after`` runs of the key before them."""
    return {
        name: asdict(found)
        for name, made in guesses.items()
        if (found := figures(guess for guess in made if guess.runs >= after)) is not None
    }


def by_rung(made: Sequence[Guess]) -> Table:
    """Return the figures of the product's guesses of all runs, rung by rung."""
    found: Table = {}
    for word in RUNGS:
        of_rung = [guess for guess in made if guess.basis == word]
        if (line := figures(of_rung)) is not None:
            found[f"  {word}"] = asdict(line)
        elif of_rung:
            found[f"  {word}: nothing said of {len(of_rung)}"] = None
    return found


def _first_runs(guesses: Walked) -> Table:
    return by_rule({name: [one for one in made if one.runs == 0] for name, made in guesses.items()}, 0)


def show(case: str, table: Table) -> None:
    print(f"\n{case}\n{'':58} {'runs':>6} {'median':>8} {'too low':>8} {'by >10%':>8} {'surplus':>8}")
    for name, line in table.items():
        if line is None:
            print(name)
            continue
        shares = " ".join(f"{line[column]:8.1%}" for column in ("median", "low", "far_low", "surplus"))
        print(f"{name:58} {line['count']:6} {shares}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trace", required=True, help="a file, synthetic:SEED or synthetic-shares:SEED")
    parser.add_argument("--device", type=float, default=24.0, help="GiB of one device; peaks are cut to it (24)")
    parser.add_argument("--seed", type=int, default=0, help="of the edits (0)")
    parser.add_argument("--after", type=int, default=3, help="runs of the key before a run that counts (3)")
    parser.add_argument("--other", choices=sorted(OTHER), help="show other rules for one rung")
    parser.add_argument("--json", action="store_true", help="print figures alone")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
