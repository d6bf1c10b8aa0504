"""Memory that outlives its process is a line of its own: nobody inherits it, and it is said whose it was."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from calibration.domain.attribution import attribute
from calibration.domain.left_behind import Left, Pool, after
from calibration.domain.samples import Attribution, Claim, Identity, PoolSample, PoolState, ProcessSample, Reading
from tests.builders import MIB

CARD = "GPU-0"
JOB_7 = Claim("job:7", roots=(Identity("boot", 500, 100),))
JOB_8 = Claim("job:8", roots=(Identity("boot", 600, 100),))


def look(used: int, *compute: tuple[int, int]) -> Attribution:
    listed = tuple((pid, size * MIB) for pid, size in compute)
    card = PoolSample(
        CARD, "vram", "gpu0", PoolState.OK, total=24000 * MIB, free=(24000 - used) * MIB, used=used * MIB,
        processes=listed,
    )  # fmt: skip
    table = {pid: ProcessSample(pid, 1, 100, ram=0) for pid, _ in compute}
    return attribute(Reading("atlas", "boot", 1.0, 1.0, {CARD: card}, table), [JOB_7, JOB_8])


def next_one(pool: Pool, was: Attribution, now: Attribution, at: float) -> Pool:
    owners = [(owner, was.owners[owner][CARD], now.owners[owner][CARD]) for owner in now.owners]
    return after(pool, (was.unexplained[CARD], now.unexplained[CARD]), owners, at)


def test_what_a_job_left_is_told_and_not_given_to_the_next_one() -> None:
    looks = [look(12000, (500, 11500))]
    looks += [look(12000) for _ in range(4)]  # t1 to t4
    looks += [look(15000, (600, 3000)) for _ in range(16)]  # t5 to t20
    looks.append(look(3500, (600, 3000)))  # t21
    pool, told = Pool(), []
    for at in range(1, len(looks)):
        pool = next_one(pool, looks[at - 1], looks[at], float(at))
        told.append(pool.told)
    assert told[0] == (), "one look is no news: it may be on its way back"
    assert set(told[1:20]) == {(Left("job:7", 11500 * MIB, 1.0),)}
    assert told[20] == ()
    assert looks[5].owners["job:8"][CARD] == 3000 * MIB
    assert looks[5].unexplained[CARD] == 12000 * MIB, "with the 500 that were there before"
    assert (looks[21].unexplained[CARD], pool.left) == (500 * MIB, ())


def test_what_comes_back_at_once_is_never_told() -> None:
    first, between, last = look(12000, (500, 11500)), look(12000), look(500)
    pool = next_one(Pool(), first, between, 1.0)
    assert pool.left
    pool = next_one(pool, between, last, 2.0)
    assert (pool.left, pool.told) == ((), ())


def test_of_two_who_left_something_the_last_goes_first() -> None:
    pool = after(Pool(), (0, 300 * MIB), [("job:1", 300 * MIB, 0)], 1.0)
    pool = after(pool, (300 * MIB, 500 * MIB), [("job:1", 0, 0), ("job:2", 200 * MIB, 0)], 2.0)
    pool = after(pool, (500 * MIB, 400 * MIB), [], 3.0)
    assert pool.told == (Left("job:1", 300 * MIB, 1.0), Left("job:2", 100 * MIB, 2.0))


def test_an_unknown_figure_says_nothing() -> None:
    kept = Pool(0, (Left("job:1", 300 * MIB, 1.0),))
    assert after(kept, (300 * MIB, None), [], 2.0) is kept
    assert after(Pool(), (0, 300 * MIB), [("job:1", None, 0)], 1.0).left == ()


_mib = st.integers(0, 2000).map(lambda n: n * MIB)


@given(looks=st.lists(st.tuples(_mib, _mib, _mib), min_size=2, max_size=12))
def test_no_more_is_ever_told_than_is_unexplained(looks: list[tuple[int, int, int]]) -> None:
    pool = Pool()
    for at, (was, now) in enumerate(pairwise(looks)):
        owners = [("job:1", was[1], now[1]), ("job:2", was[2], now[2])]
        pool = after(pool, (was[0], now[0]), owners, float(at))
        assert sum(one.bytes for one in pool.left) <= now[0]
        assert all(one.bytes > 0 for one in pool.left)
