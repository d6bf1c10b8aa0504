"""The chart of a pool: owners stacked, and lines for what there is, what may be given, what is booked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibration.domain.lineage import SERVICE
from calibration.domain.resources import GIB
from calibration.selectors import Series
from placement.charts import traces
from placement.selectors.tanks import tone

EXTERNAL = "external"
OTHERS = "others"
MOST = 14
"""Owners that a chart names; a month has hundreds, and who held least and left first is summed."""


def external(series: Series) -> list[int | None]:
    """Return what nobody of ours holds at each point, None where use is unknown, never below zero."""
    return [
        None if used is None else max(0, used - sum(amounts[i] for amounts in series.owners.values()))
        for i, used in enumerate(series.used)
    ]


def giveable(series: Series) -> list[int | None]:
    """Return what there is less what is kept back, at each point; None where one of the two is unknown."""
    kept = series.kept or (None,) * len(series.total)
    return [
        None if total is None or back is None else total - back for total, back in zip(series.total, kept, strict=True)
    ]


def figure(
    series: Series,
    names: Mapping[str, str],
    declared: int | None,
    *,
    shown: tuple[int, int] | None = None,
    whole: bool = True,
    most: int = MOST,
    marks: Sequence[tuple[int, str]] = (),
) -> dict[str, Any]:
    """Return everything a chart draws, bytes as GiB; ``names`` maps owner to what to call it.

    ``shown`` is the stretch of time that the chart spans, in unix seconds. The lines of what is booked and kept are
    left out of a small chart (``whole`` False). ``most`` is how many owners are told apart. ``marks`` are (unix second,
    sentence) of moments from which figures count in another way.
    """
    x = traces.millis(series.at)
    named, summed = _told_apart(series, most)
    stack = [
        traces.area(
            names.get(owner, owner), _tone(owner), x, traces.gib(series.owners[owner]), key=owner, **_link(owner)
        )
        for owner in named
    ]
    if summed:
        rest = [sum(amounts) for amounts in zip(*(series.owners[owner] for owner in summed), strict=True)]
        stack.insert(0, traces.area(f"{len(summed)} others", "faint", x, traces.gib(rest), key=OTHERS, of=summed))
    stack.append(traces.area("not ours", "ext", x, traces.gib(external(series)), key=EXTERNAL, alpha=0.6))
    lines = [traces.line("capacity", "ink", x, traces.gib(series.total), key="total")]
    if whole:
        lines += [
            traces.line("less the cushion", "soft", x, traces.gib(giveable(series)), key="kept", dash="dash"),
            traces.line("booked", "run", x, traces.gib(series.booked or (None,) * len(x)), key="booked", stepped=True),
        ]
    if declared is not None:
        lines.append(traces.line("declared", "wait", x, traces.gib([declared for _ in x]), key="declared", dash="dot"))
    reach = max((amount for amount in (*series.total, *series.booked, declared) if amount is not None), default=None)
    for number, (at, said) in enumerate(marks if whole and reach else ()):
        ends = [at * 1000] * 2
        lines.append(traces.line(said, "soft", ends, [0, (reach or 0) / GIB], key=f"mark{number}", dash="dot"))
    layout = {
        "xaxis": traces.times(**({"range": traces.millis(shown)} if shown else {})),
        "yaxis": traces.amounts(**({"range": [0, reach / GIB * 1.04]} if reach else {})),
    }
    return traces.figure([*stack, *lines], layout, step=series.step, last=series.at[-1] if series.at else None)


def _told_apart(series: Series, most: int) -> tuple[list[str], list[str]]:
    """Return which owners have an area of their own, and which are summed: who is there last, then who held most."""

    def rank(owner: str) -> tuple[int, int, str]:
        held = series.owners[owner]
        return -max((i for i, amount in enumerate(held) if amount), default=-1), -max(held, default=0), owner

    ranked = sorted(series.owners, key=rank)
    if len(ranked) <= most + 1:
        return list(series.owners), []
    named = set(ranked[:most])
    return [o for o in series.owners if o in named], [o for o in series.owners if o not in named]


def _tone(owner: str) -> str:
    number = owner.removeprefix("job:")
    return tone(int(number)) if number.isdecimal() else "self" if owner == SERVICE else "faint"


def _link(owner: str) -> dict[str, str]:
    number = owner.removeprefix("job:")
    return {"href": f"/jobs/{number}"} if owner != number and number.isdecimal() else {}
