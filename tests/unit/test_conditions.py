"""Jobs that wait for other jobs, a time, their array's turn or a quota: what the gate says, and what never happens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.domain.estimate import Basis
from placement.domain.admission.decision import Code, Decision, Verdict
from placement.domain.admission.gate import decide
from placement.domain.admission.prerequisites import never_under
from placement.domain.jobs import Outcome, State
from placement.domain.planning.plan import plan
from placement.domain.world.conditions import After, Conditions, Quota, Tie, never_met
from placement.domain.world.requests import Gpu, Request
from placement.domain.world.snapshot import Snapshot, Waiting
from tests.builders import GIB, a_device, a_node, a_running, a_snapshot, a_waiting, an_estimate
from tests.examples import examples

ONE = Request(Gpu.ONE)


WALL = 1_700_000_000.0
ENDS = [(state, None) for state in (State.QUEUED, State.ADMITTED, State.RUNNING)]
ENDED = [(State.FINISHED, outcome) for outcome in Outcome]


def waiting(job: int = 9, vram: int | None = GIB, **conditions: Any) -> Waiting:
    return a_waiting(job, vram, conditions=Conditions(**conditions))


def said(decision: Decision, code: Code) -> str:
    return next(check.sentence for check in decision.whole if check.code is code)


@pytest.mark.parametrize(
    ("when", "good"),
    [
        (After.OK, {Outcome.COMPLETED}),
        (After.ANY, set(Outcome)),
        (After.FAILED, set(Outcome) - {Outcome.COMPLETED, Outcome.CANCELLED}),
    ],
)
@pytest.mark.parametrize("outcome", list(Outcome))
def test_an_end_meets_a_tie_or_breaks_it(when: After, good: set[Outcome], outcome: Outcome) -> None:
    tie = Tie(3, when, State.FINISHED, outcome)
    assert (tie.met, tie.never) == (outcome in good, outcome not in good)


def test_the_reason_names_whom_it_waits_for_and_what_they_have_to_do() -> None:
    ties = (
        Tie(3, After.OK, State.RUNNING),
        Tie(4, After.OK, State.QUEUED),
        Tie(5, After.FAILED, State.ADMITTED),
        Tie(6, After.ANY, State.FINISHED, Outcome.LOST),
    )
    decision = decide(a_snapshot(), waiting(after=ties))
    assert (decision.verdict, decision.code, decision.grant) == (Verdict.WAIT, Code.DEPENDS, None)
    assert decision.headline == "Waits for #3 (running) and #4 (waiting) to complete; for #5 (starting) to fail."
    ready = decide(a_snapshot(), waiting(after=ties[3:]))
    assert ready.verdict is Verdict.START
    assert said(ready, Code.DEPENDS) == "All that it waits for has ended as asked."


def test_what_can_never_be_met_is_told_with_the_end_that_broke_it() -> None:
    ties = (Tie(3, After.OK, State.FINISHED, Outcome.FAILED), Tie(4, After.OK, State.RUNNING))
    told = "#9 can never start: it waits for #3 to complete, and #3 failed."
    assert never_met(9, ties) == told
    assert decide(a_snapshot(), waiting(after=ties)).headline == told
    assert never_met(9, ties[1:]) == ""


def test_a_time_holds_until_the_very_second_and_says_how_long() -> None:
    early = decide(a_snapshot(), waiting(not_before=WALL + 90))
    assert early.code is Code.NOT_BEFORE
    assert early.headline == "Not before 2023-11-14 22:14:50 UTC, in 90 s."
    assert decide(a_snapshot(), waiting(not_before=WALL)).verdict is Verdict.START


def test_an_array_starts_no_more_than_its_limit_in_one_cycle_and_in_all() -> None:
    running = (replace(a_running(1, GIB), array=7),)
    queue = tuple(waiting(job, array=7, array_limit=3) for job in (11, 12, 13, 14))
    made = plan(a_snapshot(running=running, waiting=queue))
    assert [d.job for d in made.starts] == [11, 12]
    refused = made.explain(13)
    assert (refused.code, refused.verdict) == (Code.ARRAY_LIMIT, Verdict.WAIT)
    assert refused.headline == "Array 7 runs 3 of at most 3 at once: #1, #11 and #12."


def test_a_quota_names_holders_limit_and_need() -> None:
    running = (a_running(3, 8 * GIB), a_running(4, 4 * GIB, device=1))
    quota = Quota("alice", vram=16 * GIB)
    machine = a_node(a_device(), a_device(index=1))
    asked = a_snapshot(machine, running=running)
    decision = decide(asked, waiting(vram=6 * GIB, quota=quota))
    assert decision.code is Code.QUOTA
    assert decision.headline == (
        "12.0 GiB of alice's 16.0 GiB of device memory are held by #3 and #4; this needs 6.0 GiB."
    )
    assert decide(asked, waiting(vram=4 * GIB, quota=quota)).verdict is Verdict.START
    many = decide(asked, waiting(quota=Quota("alice", jobs=2)))
    assert many.headline == "alice runs 2 of 2 jobs allowed at once: #3 and #4."
    other = replace(waiting(vram=6 * GIB, quota=replace(quota, user="bob")), user="bob")
    assert decide(asked, other).verdict is Verdict.START


def test_more_than_the_whole_quota_can_never_start_and_says_so() -> None:
    quota = Quota("alice", vram=16 * GIB)
    check = never_under(quota, ONE, an_estimate(20 * GIB))
    assert check is not None
    assert check.sentence.startswith("Can never start under alice's quota of 16.0 GiB of device memory: it needs 20.0")
    assert decide(a_snapshot(), waiting(vram=20 * GIB, quota=quota)).headline == check.sentence
    assert never_under(quota, ONE, an_estimate(16 * GIB)) is None
    assert never_under(quota, ONE, an_estimate(None)) is None
    assert never_under(None, ONE, an_estimate(20 * GIB)) is None


def test_equal_jobs_under_one_quota_share_an_answer_and_those_of_others_do_not() -> None:
    """Two users, one quota each of the same size: whose it is belongs to the answer."""
    running = tuple(replace(a_running(n, GIB, GIB), user=user) for n, user in ((90, "ann"), (91, "bob")))
    one = waiting(1, quota=Quota("them", jobs=1))
    alike = [replace(one, job=n, arrival=n, user=user) for n, user in ((1, "ann"), (2, "ann"), (3, "bob"))]
    made = plan(a_snapshot(a_node(a_device()), running=running, waiting=tuple(alike)))
    first, second, other = made.decisions()
    assert second.whole is first.whole
    assert (first.job, second.job) == (1, 2)
    assert ("#90" in first.headline, "#91" in other.headline) == (True, True)
    assert made.uses(alike[0]) == made.uses(alike[1]) != made.uses(alike[2])
    assert made.uses(a_waiting(4)) is None


def test_a_first_run_is_held_to_the_quota_by_what_it_would_take() -> None:
    unknown = waiting(vram=None, quota=Quota("alice", vram=16 * GIB))
    decision = decide(a_snapshot(), unknown)
    assert decision.code is Code.QUOTA
    assert "this would take 24.0 GiB as a first run. Declare what it needs" in decision.headline
    assert decide(a_snapshot(a_node(a_device(12 * GIB))), unknown).verdict is Verdict.START
    full = a_snapshot(a_node(a_device(), a_device(index=1)), running=(a_running(3, 16 * GIB, device=1),))
    assert decide(full, unknown).code is Code.QUOTA


def test_conditions_refuse_before_room_does_and_after_a_hold_of_the_queue() -> None:
    full = a_snapshot(running=(a_running(1, 24 * GIB),))
    decision = decide(full, waiting(vram=2 * GIB, not_before=WALL + 5, array=7, array_limit=0))
    assert decision.code is Code.NOT_BEFORE
    assert [c.code for c in decision.whole if not c.ok] == [Code.NOT_BEFORE, Code.ARRAY_LIMIT]
    assert decision.candidates[0].checks != ()


def test_a_job_that_waits_for_something_makes_no_plan_and_holds_nobody_up() -> None:
    large = waiting(1, 24 * GIB, not_before=WALL + 60)
    made = plan(a_snapshot(running=(a_running(5, GIB),), waiting=(large, a_waiting(2, 23 * GIB))))
    assert [d.job for d in made.starts] == [2]
    assert made.bar is None


sizes = st.integers(0, 8).map(lambda gib: gib * GIB)
ties = st.builds(
    lambda on, when, end: Tie(on, when, *end), st.integers(1, 5), st.sampled_from(After), st.sampled_from(ENDS + ENDED)
)


@st.composite
def queues(draw: st.DrawFn) -> Snapshot:
    quotas = {
        user: draw(
            st.none()
            | st.builds(
                Quota, st.just(user), st.none() | st.integers(1, 4), st.none() | sizes.map(lambda n: n * 2), st.none()
            )
        )
        for user in ("alice", "bob")
    }
    limits = {array: draw(st.none() | st.integers(1, 3)) for array in (0, 7, 8)}
    running = tuple(
        replace(a_running(job, draw(sizes), device=job % 2), user=user, array=draw(st.sampled_from((0, 7, 8))))
        for job, user in enumerate(draw(st.lists(st.sampled_from(("alice", "bob")), max_size=3)), 1)
    )
    queue = []
    for job in range(20, 20 + draw(st.integers(1, 8))):
        user, array = draw(st.sampled_from(("alice", "bob"))), draw(st.sampled_from((0, 7, 8)))
        conditions = Conditions(
            after=tuple(draw(st.lists(ties, max_size=2))),
            not_before=draw(st.none() | st.floats(WALL - 5, WALL + 5)),
            array=array,
            array_limit=limits[array] if array else None,
            quota=quotas[user],
        )
        known = draw(st.none() | sizes)
        basis = Basis.COLD_START if known is None else Basis.MEASURED
        queue.append(replace(a_waiting(job, known, basis=basis, conditions=conditions), user=user))
    return a_snapshot(a_node(a_device(), a_device(index=1)), running=running, waiting=tuple(queue))


@settings(max_examples=examples(300), deadline=None)
@given(queues())
def test_no_cycle_ever_starts_past_a_limit_a_quota_a_time_or_a_tie(snapshot: Snapshot) -> None:
    made = plan(snapshot)
    queue = {w.job: w for w in snapshot.waiting}
    held: dict[str, list[int]] = {"alice": [], "bob": []}
    jobs = {user: sum(r.user == user for r in snapshot.running) for user in held}
    arrays = {array: sum(r.array == array for r in snapshot.running) for array in (7, 8)}
    for r in snapshot.running:
        held[r.user].append(r.charges[r.device].held if r.device else 0)
    for decision in made.starts:
        one, grant = queue[decision.job], decision.grant
        assert grant is not None
        conditions = one.conditions
        assert conditions is not None
        assert all(tie.met for tie in conditions.after)
        assert conditions.not_before is None or conditions.not_before <= snapshot.wall
        held[one.user].append(grant.charges[grant.device or ""])
        jobs[one.user] += 1
        if conditions.array:
            arrays[conditions.array] += 1
            assert conditions.array_limit is None or arrays[conditions.array] <= conditions.array_limit
        quota = conditions.quota
        if quota is not None:
            assert quota.jobs is None or jobs[one.user] <= quota.jobs
            assert quota.vram is None or sum(held[one.user]) <= quota.vram
    for decision in made.decisions():
        assert decision.verdict is Verdict.START or any(not c.ok for c in decision.whole) or decision.candidates
