"""Culprit or victim: whose growth took the memory that a run lacked."""

from __future__ import annotations

import pytest

from placement.domain.ending.postmortem import Blame, Case, Look, find
from tests.builders import GIB, MIB

EVE = ((81, "eve", "train", 12 * GIB),)


def looks(mine: list[float], other: list[float], used: list[float]) -> tuple[Look, ...]:
    """Return a look each ten seconds; GiB of job 7, of job 12 and of all."""
    return tuple(
        Look(1000.0 + 10 * n, int(all_ * GIB), {"job:7": int(a * GIB), "job:12": int(b * GIB)})
        for n, (a, b, all_) in enumerate(zip(mine, other, used, strict=True))
    )


def a_case(seen: tuple[Look, ...], **more: object) -> Case:
    fields: dict[str, object] = {"granted": 10 * GIB, "used": None, "granted_to": {"job:12": 5 * GIB}, **more}
    return Case("job:7", looks=seen, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("case", "blame", "told"),
    [
        pytest.param(
            Case("job:7", 20 * GIB, 31 * GIB), Blame.OWN, "Own over-use: 31.0 GiB of 20.0 GiB.", id="past its grant"
        ),
        pytest.param(
            a_case(looks([9, 9.9], [3, 3], [13, 13]), asked=3 * GIB),
            Blame.OWN,
            "Own over-use: 3.0 GiB more asked on top of 9.9 GiB, of 10.0 GiB granted.",
            id="would have been past it",
        ),
        pytest.param(
            a_case(looks([9, 9], [5, 14], [14, 23]), asked=GIB),
            Blame.VICTIM,
            "#12 grew by 9.0 GiB in the minute before, to 14.0 GiB of 5.0 GiB granted; "
            "this one used 9.0 GiB of 10.0 GiB.",
            id="a neighbour",
        ),
        pytest.param(
            a_case(looks([9, 9], [5, 5], [14, 23]), outsiders=EVE),
            Blame.VICTIM,
            "An outsider (pid 81, user eve) grew by 9.0 GiB in the minute before; this one used 9.0 GiB of 10.0 GiB.",
            id="an outsider",
        ),
        pytest.param(
            a_case(looks([9, 9], [5, 5], [14, 23]), outsiders=EVE, main=24 * GIB),
            Blame.VICTIM,
            "An outsider (pid 81, user eve) grew by 9.0 GiB in the minute before; this one used 9.0 GiB of 10.0 GiB.",
            id="an outsider, and the machine was full",
        ),
        pytest.param(
            a_case(looks([9, 9], [5, 5], [14, 23]), outsiders=EVE, main=32 * GIB),
            Blame.CROWDED,
            "Nobody was past what they were granted; this one used 9.0 GiB of 10.0 GiB.",
            id="an outsider, but the machine had room: it was the limit of all jobs together",
        ),
        pytest.param(
            a_case(looks([9, 9], [5, 14], [14, 23]), outsiders=EVE, main=64 * GIB),
            Blame.VICTIM,
            "#12 grew by 9.0 GiB in the minute before, to 14.0 GiB of 5.0 GiB granted; "
            "this one used 9.0 GiB of 10.0 GiB.",
            id="a neighbour, at the limit of all jobs together",
        ),
        pytest.param(
            a_case(looks([9, 9], [5, 5], [14, 23]), outsiders=(*EVE, (82, "eve", "load", GIB))),
            Blame.VICTIM,
            "What is not ours (most of it: pid 81, user eve) grew by 9.0 GiB in the minute before; "
            "this one used 9.0 GiB of 10.0 GiB.",
            id="several outsiders: the growth is that of all of them",
        ),
        pytest.param(
            a_case(looks([9, 9], [5, 5], [14, 23])),
            Blame.VICTIM,
            "Somebody who is no job of ours grew by 9.0 GiB in the minute before; this one used 9.0 GiB of 10.0 GiB.",
            id="an outsider that no process list names",
        ),
        pytest.param(
            a_case(looks([9, 13], [5, 5], [14, 23]), outsiders=EVE),
            Blame.OWN,
            "Own over-use: 13.0 GiB of 10.0 GiB. Meanwhile an outsider (pid 81, user eve) grew by 5.0 GiB "
            "in the minute before.",
            id="both: whoever is past its own is to blame, and the other is told",
        ),
        pytest.param(
            a_case(looks([9, 9], [2, 4.9], [11, 13.9])),
            Blame.CROWDED,
            "Nobody was past what they were granted; this one used 9.0 GiB of 10.0 GiB; "
            "#12 grew by 2.9 GiB in the minute before, within its grant.",
            id="all within their own",
        ),
        pytest.param(
            a_case(looks([9, 9], [14, 14], [23, 23])),
            Blame.CROWDED,
            "Nobody was past what they were granted; this one used 9.0 GiB of 10.0 GiB.",
            id="a neighbour that did not grow is not blamed",
        ),
        pytest.param(
            a_case(looks([9, 9], [5, 5], [14, 14]), at_cap=True),
            Blame.OWN,
            "Own over-use: it met its own cap.",
            id="its cap, whoever else",
        ),
        pytest.param(Case("job:7", 10 * GIB, None), Blame.UNKNOWN, "", id="nothing was seen"),
        pytest.param(Case("job:7", None, 9 * GIB), Blame.UNKNOWN, "", id="nothing was granted there"),
    ],
)
def test_who_is_to_blame(case: Case, blame: Blame, told: str) -> None:
    found = find(case)
    assert (found.blame, found.told) == (blame, told)


def test_growth_counts_for_a_minute() -> None:
    old = Look(900.0, 6 * GIB, {"job:7": 5 * GIB, "job:12": GIB})
    seen = (old, *looks([9, 9], [14, 14], [23, 23]))
    assert find(a_case(seen)).blame is Blame.CROWDED


def test_a_small_growth_and_an_unknown_size_blame_nobody() -> None:
    small = looks([9, 9], [5.3, 5.5], [14.3, 14.5])
    assert find(a_case(small)).blame is Blame.CROWDED
    unknown = (
        Look(1000.0, 14 * GIB, {"job:7": 9 * GIB, "job:12": None}),
        Look(1001.0, 23 * GIB, {"job:7": 9 * GIB, "job:12": 14 * GIB}),
    )
    assert find(a_case(unknown)).blame is Blame.CROWDED
    assert find(a_case(unknown[:1])).who == ""


def test_who_was_not_there_before_grew_by_all_it_has() -> None:
    seen = (
        Look(1000.0, 9 * GIB, {"job:7": 9 * GIB}),
        Look(1002.0, 17 * GIB, {"job:7": 9 * GIB, "job:12": 8 * GIB}),
    )
    found = find(a_case(seen))
    assert (found.blame, found.who, found.grew) == (Blame.VICTIM, "#12", 8 * GIB)


def test_the_finding_carries_the_figures() -> None:
    found = find(a_case(looks([9, 9], [5, 14], [14, 23]), used=9 * GIB + MIB))
    assert (found.used, found.granted, found.who, found.grew) == (9 * GIB + MIB, 10 * GIB, "#12", 9 * GIB)
