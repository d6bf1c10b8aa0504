from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.probes.nvml_device import Entry, merged

NONE = (0xFFFFFFFF, 0xFFFFFFFF)


@pytest.mark.parametrize(
    "lists, expected",
    [
        pytest.param(
            [[(500, 3000, NONE)], [(500, 3000, NONE), (501, 200, NONE)]],
            ((500, 3000), (501, 200)),
            id="a process in both lists counts once",
        ),
        pytest.param([[(500, 3000, NONE)], [(500, 3500, NONE)]], ((500, 3500),), id="the larger of two lists"),
        pytest.param([[(500, None, NONE)], [(500, 3000, NONE)]], ((500, 3000),), id="a figure beats none"),
        pytest.param([[(500, 3000, NONE)], [(500, None, NONE)]], ((500, 3000),), id="in either order"),
        pytest.param([[(79, None, NONE)], []], ((79, None),), id="not told stays unknown and is never zero"),
        pytest.param([[(500, 0, NONE)], []], ((500, 0),), id="zero stays zero"),
        pytest.param([[(500, 1000, (1, 0)), (500, 1000, (2, 0))]], ((500, 2000),), id="two instances are added up"),
        pytest.param([[(500, 1000, NONE), (500, 1000, NONE)]], ((500, 1000),), id="a repeat is not"),
        pytest.param(
            [[(500, 1000, (1, 0)), (500, None, (2, 0))]],
            ((500, None),),
            id="a sum with an unknown",
        ),
    ],
)
def test_each_pid_comes_once(lists: list[list[Entry]], expected: tuple[tuple[int, int | None], ...]) -> None:
    assert merged(lists) == expected


_entry = st.tuples(st.integers(1, 4), st.none() | st.integers(0, 100), st.integers(0, 1))


@given(lists=st.lists(st.lists(_entry, max_size=5), max_size=3))
def test_a_merge_invents_no_pid_and_no_byte(lists: list[list[Entry]]) -> None:
    result = dict(merged(lists))
    flat = [entry for entries in lists for entry in entries]
    assert set(result) == {pid for pid, _, _ in flat}
    for pid, size in result.items():
        told = [s for p, s, _ in flat if p == pid and s is not None]
        assert (size or 0) <= sum(told)
        if not told:
            assert size is None
