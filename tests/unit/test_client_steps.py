"""Restartable steps inside a job: the same calls again, or the step is at an end (L3, L4, L5)."""

from __future__ import annotations

import contextvars
import gc
import threading
import weakref
from collections.abc import Iterator

import pytest
import tidegate

from tests.inside import WAITS, Fake, Row, in_a_job
from tests.wait import until

REVOKED = {
    "state": "revoked",
    "revocation": {"sentence": "Job 9 waits for what this step holds.", "seconds_left": 30, "final": False},
}


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Fake:
    return in_a_job(monkeypatch)


def revokes_first(fake: Fake, index: int = 1) -> None:
    """Have the service take the first run's leases back while call ``index`` waits."""

    def decide(row: Row) -> Row:
        if row["session"] and row["session"]["execution"] == 1 and row["index"] == index:
            return WAITS if row["looks"] == 1 else REVOKED
        return fake.grant(row)

    fake.decide = decide


def ends(fake: Fake) -> list[tuple[int, str]]:
    return [(body["execution"], body["outcome"]) for body in fake.paths("/end")]


def test_a_victim_runs_again_from_its_first_line(job: Fake) -> None:
    revokes_first(job)
    begun: list[int] = []
    payloads: list[weakref.ref[tidegate.Data]] = []

    @tidegate.session
    def train(size: float) -> tidegate.Placement:
        begun.append(len(begun))
        if payloads:
            assert payloads[0]() is None  # what the first run made is gone before the second begins
        data = tidegate.Data(bytearray(10), tidegate.cuda(size, device_id=0))
        payloads.append(weakref.ref(data))
        return tidegate.cuda(size, device_id=1)

    place = train(6)
    assert begun == [0, 1]
    assert place.reserved
    assert place.device_id == 1
    rows = job.asks()
    assert [(row["session"]["execution"], row["index"]) for row in rows] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert {row["session"]["key"] for row in rows} == {rows[0]["session"]["key"]}
    assert [row["key"] for row in rows][2] == f"{rows[0]['session']['key']}:2:0"
    assert rows[0]["session"]["step"].endswith("train")
    assert rows[0]["session"]["restartable"] is True
    assert ends(job) == [(1, "restarts"), (2, "finished")]
    until(lambda: "leases/101/release" in [b["path"] for b in job.paths("/release")], 5, "what the first run held")
    train(1)
    assert [row["session"]["iteration"] for row in job.asks()][-1] == 1


def test_another_sequence_is_no_second_run(job: Fake) -> None:
    """L3: the second run asks for 5 in place of 6."""
    revokes_first(job)
    sizes = iter([6, 5])

    @tidegate.session
    def step() -> None:
        kept = tidegate.cuda(next(sizes)), tidegate.cuda(1)
        raise AssertionError(kept)

    with pytest.raises(tidegate.SequenceChanged, match=r"Call 1 of .*step asks for 5.00 GB .* asked for 6.00 GB"):
        step()
    assert ends(job) == [(1, "restarts"), (2, "sequence_changed")]
    assert len(job.asks()) == 2  # the changed call was never sent


def test_a_shorter_sequence_gives_its_grants_back(job: Fake) -> None:
    """L4: the end is told to the service, which gives back what it had parked for the calls that never came."""
    revokes_first(job)
    rounds = iter([2, 1])

    @tidegate.session(name="load")
    def step() -> list[tidegate.Placement]:
        return [tidegate.cuda(1) for _ in range(next(rounds))]

    with pytest.raises(tidegate.SequenceChanged, match="load ended after 1 of 2 calls"):
        step()
    assert ends(job) == [(1, "restarts"), (2, "sequence_changed")]
    gc.collect()
    until(lambda: "leases/103/release" in [b["path"] for b in job.paths("/release")], 5, "the second run's own")


def test_more_calls_than_before_are_fine(job: Fake) -> None:
    revokes_first(job, index=0)
    rounds = iter([1, 3])

    @tidegate.session
    def step() -> int:
        return len([tidegate.cuda(1) for _ in range(next(rounds))])

    assert step() == 3


@pytest.mark.parametrize("swallowed", [Exception, BaseException])
def test_no_step_goes_on_without_its_lease(job: Fake, swallowed: type[BaseException]) -> None:
    """L5: ``except Exception`` does not see the signal; who swallows even that has the step run again all the same."""
    revokes_first(job)
    begun = []

    @tidegate.session
    def step() -> str:
        begun.append(1)
        first = tidegate.cuda(1)
        try:
            second = tidegate.cuda(2)
        except swallowed:
            return "without a lease"
        return f"{first.reserved} {second.reserved}"

    assert step() == "True True"
    assert len(begun) == 2


def test_the_time_to_free_the_memory_is_over(job: Fake) -> None:
    revocation = REVOKED["revocation"] | {"final": True}
    job.decide = lambda row: job.grant(row) if row["index"] == 0 else {"state": "revoked", "revocation": revocation}

    @tidegate.session
    def step() -> None:
        first = tidegate.cuda(1)
        try:
            tidegate.cuda(2)
        finally:
            assert not first.reserved

    with pytest.raises(tidegate.Revoked, match="Job 9 waits"):
        step()
    assert ends(job) == [(1, "failed")]


def test_outside_a_step_a_revocation_is_final(job: Fake) -> None:
    job.decide = lambda row: REVOKED
    with pytest.raises(tidegate.Revoked, match="Job 9 waits"):
        tidegate.cuda(1)


def test_a_notice_of_an_earlier_run_changes_nothing(job: Fake) -> None:
    begun = []

    @tidegate.session
    def step() -> None:
        begun.append(1)
        kept = tidegate.cuda(1)
        key = job.asks()[0]["session"]["key"]
        job.notices = [{"session": key, "execution": 1, "sentence": "Taken.", "seconds_left": 30, "final": False}]
        tidegate.check()
        assert kept.reserved

    step()
    assert len(begun) == 2


def test_a_step_whose_lease_an_operator_took_runs_again(job: Fake) -> None:
    begun = []

    @tidegate.session
    def step() -> int | None:
        begun.append(1)
        kept = tidegate.cuda(1)
        job.notices = [{"session": None, "lease": 101, "execution": 1, "sentence": "Taken back.", "final": False}]
        tidegate.check()
        return kept.lease_id

    assert step() == 102
    assert len(begun) == 2
    until(lambda: "leases/101/release" in [b["path"] for b in job.paths("/release")], 5, "what was taken back")


def test_a_step_that_fails_is_not_run_again(job: Fake) -> None:
    @tidegate.session
    def step() -> None:
        tidegate.cuda(1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        step()
    assert ends(job) == [(1, "failed")]

    @tidegate.session
    def quiet() -> str:
        return "no calls"

    assert quiet() == "no calls"
    assert len(ends(job)) == 1  # nothing was asked for, so nobody needs to know


def test_steps_within_a_step_and_threads_beside_it(job: Fake) -> None:
    @tidegate.session
    def inner() -> tidegate.Placement:
        return tidegate.cuda(2)

    @tidegate.session
    def outer() -> list[tidegate.Placement]:
        found = [tidegate.cuda(1), inner()]
        beside = threading.Thread(target=lambda: found.append(tidegate.cuda(3)), name="beside")
        beside.start()
        beside.join(20)
        return found

    kept = outer()
    assert len(kept) == 3
    one, two, three = job.asks()
    assert one["session"]["key"] == two["session"]["key"]
    assert (one["index"], two["index"]) == (0, 1)
    assert three["session"] is None
    assert contextvars.copy_context().get(tidegate.steps._current) is None


@pytest.mark.parametrize("kind", ["coroutine", "generator"])
def test_what_cannot_run_again_is_no_session(kind: str) -> None:
    async def coroutine() -> None: ...

    def generator() -> Iterator[int]:
        yield 1

    with pytest.raises(TypeError, match="plain function"):
        tidegate.session({"coroutine": coroutine, "generator": generator}[kind])
