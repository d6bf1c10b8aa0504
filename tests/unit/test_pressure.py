"""RAM pressure: entered high, left low, and never from what is unknown."""

from __future__ import annotations

import pytest

from placement.domain.knobs import Knobs
from placement.domain.world.pressure import limit_of, marks_of, under_pressure

REFERENCE = (0.85, 0.75)


def played(samples: list[dict[str, int | None]], marks: tuple[float, float] = REFERENCE) -> list[bool]:
    """Return the state after each sample."""
    now, seen = False, []
    for s in samples:
        now = under_pressure(
            now,
            s.get("capacity"),
            s.get("available"),
            *marks,
            limit=s.get("limit"),
            used_of_limit=s.get("used_of_limit"),
        )
        seen.append(now)
    return seen


@pytest.mark.parametrize(
    ("samples", "want"),
    [
        pytest.param(
            [{"capacity": 1000, "available": a} for a in (160, 150, 200, 240, 250, 151)],
            [False, True, True, True, False, False],
            id="the machine's own memory",
        ),
        pytest.param(
            [{"capacity": 1000, "available": 900, "limit": 100, "used_of_limit": u} for u in (84, 85, 76, 75, 84)],
            [False, True, True, False, False],
            id="a declared limit on an idle machine",
        ),
        pytest.param(
            [{"limit": 100, "used_of_limit": 85}, {"limit": 100, "used_of_limit": 75}],
            [True, False],
            id="a limit alone",
        ),
        pytest.param([{}], [False], id="nothing known"),
        pytest.param(
            [{"capacity": 100, "available": 14, "limit": 100, "used_of_limit": 1}],
            [True],
            id="the machine presses though the limit is far",
        ),
        pytest.param(
            [
                {"capacity": 100, "available": 10, "limit": 100, "used_of_limit": 10},
                {"capacity": 100, "available": 60, "limit": 100, "used_of_limit": 80},
                {"capacity": 100, "available": 60, "limit": 100, "used_of_limit": 70},
            ],
            [True, True, False],
            id="both have to recover",
        ),
    ],
)
def test_vectors(samples: list[dict[str, int | None]], want: list[bool]) -> None:
    assert played(samples) == want


def test_own_marks() -> None:
    used = [{"capacity": 1000, "available": 1000 - n} for n in (924, 925, 900, 851, 850, 900)]
    assert played(used, (0.925, 0.85)) == [False, True, True, True, False, False]


def test_a_node_has_its_own_marks_or_the_knobs() -> None:
    assert marks_of(None, Knobs()) == (0.925, 0.85)
    assert marks_of(REFERENCE, Knobs()) == REFERENCE


@pytest.mark.parametrize(
    ("declared", "total", "want"),
    [(None, 100, None), (100, 100, None), (120, 100, None), (60, 100, 60), (60, None, 60)],
)
def test_a_declaration_is_a_limit_where_it_is_less_than_all_there_is(
    declared: int | None, total: int | None, want: int | None
) -> None:
    assert limit_of(declared, total) == want
