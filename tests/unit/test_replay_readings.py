"""The few readings that the replay feeds a window leave the window that one reading a second would leave."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.world.busy import Busy
from bench.world.readings import decisive, every, patient
from bench.world.runs import Stretch
from calibration.domain.knobs import DEFAULTS
from calibration.domain.windows import Level, Window, observe

MIB = 1 << 20
lengths = st.one_of(st.integers(1, 90).map(float), st.floats(0.01, 90))
levels = st.one_of(st.sampled_from([0.0, 300.0, 364.0, 500.0]), st.floats(0, 20000))
pieces = st.lists(st.tuples(lengths, levels, st.one_of(st.none(), levels)), min_size=1, max_size=7)
changes = st.lists(st.tuples(lengths, st.sampled_from([0.0, 0.1, 0.11, 0.6])), max_size=8)


def drawn(shape: list[tuple[float, float, float | None]], start: float) -> list[Stretch]:
    found, at = [], start
    for length, low, high in shape:
        found.append(Stretch(at, at + length, low, low if high is None else high))
        at += length
    return found


def busy_of(steps: list[tuple[float, float]], start: float) -> Busy:
    busy, at = Busy(), start
    for length, share in steps:
        busy.becomes(share, at)
        at += length
    return busy


def told(level: Level) -> Level:
    """Return what of a level is to be the same; how many readings there were is not."""
    return replace(level, samples=min(level.samples, 2), longest_gap=0.0)


def cut(held: list[Stretch], at: float) -> tuple[list[Stretch], list[Stretch]]:
    """Return the stretches before and after a second at which somebody looks."""
    before = [replace(one, end=min(one.end, at), high=one.level(min(one.end, at))) for one in held if one.begin < at]
    after = [replace(one, begin=max(one.begin, at), low=one.level(max(one.begin, at))) for one in held if one.end > at]
    now = [Stretch(at, at, after[0].low, after[0].low)] if before and after else []  # a step at this second is done
    return [*before, *now], after


@settings(deadline=None)
@given(pieces, changes, st.integers(0, 50).map(float), st.integers(1, 200).map(float))
def test_decisive_readings_leave_the_window_of_all_readings(
    shape: list[tuple[float, float, float | None]], steps: list[tuple[float, float]], start: float, look: float
) -> None:
    held, busy = drawn(shape, start), busy_of(steps, start)
    knobs = patient(DEFAULTS)
    all_of_them = few = Window(started_at=start)
    read = 0
    for second, level, share in every(held, start, busy):
        all_of_them = observe(all_of_them, second, {"vram": int(level * MIB)}, share)
    last = start
    for part in cut(held, start + look):
        for second, level, share in decisive(part, last, busy):
            few = observe(few, second, {"vram": int(level * MIB)}, share, knobs)
            last, read = second, read + 1

    assert {kind: told(level) for kind, level in few.levels.items()} == {
        kind: told(level) for kind, level in all_of_them.levels.items()
    }
    assert few.last_at == all_of_them.last_at


def test_a_long_level_takes_few_readings() -> None:
    busy = Busy()
    busy.becomes(0.9, 0.0)

    assert len(list(decisive([Stretch(0.0, 20000.0, 5000.0, 5000.0)], 0.0, busy))) == 4
