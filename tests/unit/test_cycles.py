"""Wait cycles: vectors I and L7 to L9 as they should end, and what must hold of every resolution."""

from __future__ import annotations

import dataclasses
from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.domain.leasing.cycles import Cycle, refused_at_once, resolve
from placement.domain.leasing.cycles_text import told
from placement.domain.leasing.leases import Part
from placement.domain.leasing.slots import Slot
from placement.domain.leasing.waits import Held, Scene, Wanted, could_serve, scene, stuck
from placement.domain.world.devices import Backend
from tests.slots import GB, a_slot, an_ask, slots

NOW = 100.0
A, B, C = 7, 9, 11


def held(job: int, *on: tuple[Slot, float], session: str = "train", since: float = 0, alone: bool = False) -> Held:
    return Held(job, tuple(Part(slot.device, int(gb * GB), alone) for slot, gb in on), session, since)


def wanted(id: int, job: int, gb: float, session: str = "train", restartable: bool = True, **more: object) -> Wanted:
    return Wanted(id, job, an_ask(gb, **more), id, session, restartable and bool(session))


def done(found: tuple[Cycle, ...]) -> tuple[list[int], list[int]]:
    """Return the jobs of which a step is run again, and those of which a request is refused."""
    links = {n.request: n.job for c in found for n in c.links}
    return [v.job for c in found for v in c.revoked], [links[n] for c in found for n in c.refused]


def test_i1_l6_two_jobs_each_want_what_the_other_holds() -> None:
    gpu0, gpu1 = both = slots(8, 8)
    here = scene(
        both,
        [held(A, (gpu0, 6)), held(B, (gpu1, 6))],
        [wanted(1, A, 6, device_id=1), wanted(2, B, 6, device_id=0)],
    )
    (cycle,) = resolve(here, NOW)
    assert done((cycle,)) == ([B], [])  # the same loss: who came last
    assert (cycle.revoked[0].bytes, cycle.revoked[0].loss) == (6 * GB, 600 * GB)
    assert cycle.ring == (2, 1)
    assert told(cycle) == (
        "job 9 holds 5.6 GiB on gpu1 and waits for 5.6 GiB on gpu0; job 7 holds 5.6 GiB on gpu0 and waits for 5.6 GiB "
        "on gpu1. “train” of job 9 is run again: that loses the least."
    )
    assert [(n.holds[0].device, n.devices, n.waits_for) for n in cycle.links] == [
        (gpu0.device, (gpu1.device,), (2,)),
        (gpu1.device, (gpu0.device,), (1,)),
    ]


def test_the_least_loss_is_bytes_times_seconds() -> None:
    gpu0, gpu1 = both = slots(8, 8)
    asks = [wanted(1, A, 6, device_id=1), wanted(2, B, 6, device_id=0)]
    here = scene(both, [held(A, (gpu0, 6), since=95), held(B, (gpu1, 6))], asks)
    assert done(resolve(here, NOW)) == ([A], [])


def test_i2_three_in_a_round() -> None:
    three = slots(8, 8, 8)
    here = scene(
        three,
        [held(job, (slot, 6)) for job, slot in zip((A, B, C), three, strict=True)],
        [wanted(n, job, 6, device_id=n % 3) for n, job in ((1, A), (2, B), (3, C))],
    )
    (cycle,) = resolve(here, NOW)
    assert done((cycle,)) == ([C], [])
    assert cycle.ring == (3, 1, 2)


@pytest.mark.parametrize("waits_too", [False, True])
def test_i4_a_holder_that_goes_on_is_no_cycle(waits_too: bool) -> None:
    gpu0, gpu1, gpu2 = all3 = slots(8, 8, 8)
    asks = [wanted(1, A, 6, device_id=1)] + [wanted(2, B, 6, device_id=2)] * waits_too
    here = scene(all3, [held(A, (gpu0, 6)), held(B, (gpu1, 6)), held(C, (gpu2, 6), session="")], asks)
    assert stuck(here) == ()
    assert resolve(here, NOW) == ()


@pytest.mark.parametrize("session", ["train", ""])
def test_i5_l7_l9_a_wait_for_oneself_is_refused_at_once(session: str) -> None:
    """L9 is the same with 5 GB left by an earlier step: whether a step or its job holds it."""
    (gpu0,) = slots(8)
    request = wanted(1, A, 6)
    here = scene([gpu0], [held(A, (gpu0, 6), session=session)], [request])
    cycle = refused_at_once(here, request)
    assert cycle is not None
    assert cycle.refusal == "waits_for_itself"
    assert told(cycle) == ("job 7 holds 5.6 GiB on gpu0 and asks for 5.6 GiB on gpu0: it would wait for itself.")
    assert done(resolve(here, NOW)) == ([], [A])


def test_another_step_of_the_same_job_lets_go_by_itself() -> None:
    (gpu0,) = slots(8)
    request = wanted(1, A, 6)
    here = scene([gpu0], [held(A, (gpu0, 6), session="load")], [request])
    assert refused_at_once(here, request) is None
    assert resolve(here, NOW) == ()


def test_a_process_keeps_what_its_finished_steps_left_and_another_process_lets_go() -> None:
    (gpu0,) = slots(8)
    request = Wanted(1, A, an_ask(6), 1, "train", True, process="rank 0")
    other = scene([gpu0], [held(A, (gpu0, 6), session="rank 1")], [request])
    assert resolve(other, NOW) == ()
    own = scene([gpu0], [held(A, (gpu0, 6), session="rank 0")], [request])
    assert done(resolve(own, NOW)) == ([], [A])
    both = scene(
        slots(8, 8),
        [held(A, (slots(8)[0], 6), session="rank 0"), held(A, (slots(8, 8)[1], 6), session="rank 1")],
        [
            Wanted(1, A, an_ask(6, device_id=1), 1, "rank 0", process="rank 0"),
            Wanted(2, A, an_ask(6, device_id=0), 2, "rank 1", process="rank 1"),
        ],
    )
    (cycle,) = resolve(both, NOW)  # two processes of one job, each with what the other wants
    assert (cycle.ring, cycle.refused) == ((2, 1), (2,))


def test_i6_each_holds_half_and_wants_the_other() -> None:
    (gpu0,) = slots(8)
    here = scene([gpu0], [held(A, (gpu0, 4)), held(B, (gpu0, 4))], [wanted(1, A, 4), wanted(2, B, 4)])
    assert done(resolve(here, NOW)) == ([B], [])


def test_i7_l8_what_earlier_steps_hold_cannot_be_run_again() -> None:
    (gpu0,) = slots(8)
    here = scene(
        [gpu0],
        [held(A, (gpu0, 4), session=""), held(B, (gpu0, 4), session="")],
        [wanted(1, A, 4), wanted(2, B, 4)],
    )
    (cycle,) = resolve(here, NOW)
    assert done((cycle,)) == ([], [B])
    assert cycle.refusal == "cycle"
    assert told(cycle).endswith("the youngest request is refused, that of job 9.")


def test_i8_only_y_is_run_again() -> None:
    gpu0, gpu1 = slots(8, 5)
    other = a_slot(3, 8, backends=(Backend.ROCM,))
    w, x, y = 1, 2, 3
    here = scene(
        [gpu0, gpu1, other],
        [held(w, (other, 6)), held(x, (gpu1, 5)), held(y, (gpu0, 4))],
        [wanted(1, w, 6), wanted(2, x, 6, backend=Backend.ROCM), wanted(3, y, 5, device_id=1)],
    )
    assert done(resolve(here, NOW)) == ([y], [])
    assert could_serve(here.wanted[0].ask, here.slots) == {gpu0.device}  # gpu1 is too small to help


def test_every_device_set_that_could_serve_is_an_edge() -> None:
    """The first plan is gpu0 and gpu1; that gpu2 comes free is enough, so nobody is stuck."""
    gpu0, gpu1, gpu2 = all3 = slots(8, 8, 8)
    asks = [wanted(1, A, 12, count=2), wanted(2, B, 6, device_id=0)]
    here = scene(all3, [held(A, (gpu0, 6)), held(B, (gpu1, 6)), held(C, (gpu2, 6))], asks[:1])
    assert resolve(here, NOW) == ()  # B and C do not wait
    here = scene(all3, [held(A, (gpu0, 6)), held(B, (gpu1, 6)), held(C, (gpu2, 6))], asks)
    assert done(resolve(here, NOW)) == ([B], [])
    free = scene(all3, [held(A, (gpu0, 2)), held(B, (gpu1, 6)), held(C, (gpu2, 6))], asks)
    assert resolve(free, NOW) == ()


def test_exclusive_holders_of_nothing_are_in_the_way() -> None:
    gpu0, gpu1 = both = slots(8, 8)
    here = scene(
        both,
        [held(A, (gpu0, 0), alone=True), held(B, (gpu1, 0), alone=True)],
        [wanted(1, A, 1, device_id=1), wanted(2, B, 1, device_id=0)],
    )
    assert done(resolve(here, NOW)) == ([B], [])


def test_who_waits_behind_a_cycle_is_left_alone() -> None:
    gpu0, gpu1 = both = slots(8, 8)
    asks = [wanted(1, C, 8, session="", device_id=0), wanted(2, A, 6, device_id=1), wanted(3, B, 6, device_id=0)]
    here = scene(both, [held(A, (gpu0, 6)), held(B, (gpu1, 6)), held(C, session="")], asks)
    (cycle,) = resolve(here, NOW)
    assert done((cycle,)) == ([B], [])
    assert {n.job for n in cycle.links} == {A, B}


def test_a_victim_whose_job_keeps_what_blocks_is_none() -> None:
    """Running B's step again frees 1 GB; the 5 GB that its job keeps are what A waits for."""
    gpu0, gpu1 = both = slots(8, 8)
    here = scene(
        both,
        [held(A, (gpu0, 6), session=""), held(B, (gpu1, 1)), held(B, (gpu1, 5), session="")],
        [wanted(1, A, 6, device_id=1), wanted(2, B, 6, device_id=0)],
    )
    assert done(resolve(here, NOW)) == ([], [B])


def test_two_cycles_at_once_and_many_steps() -> None:
    four = slots(8, 8, 8, 8)
    halves = [held(n, (four[n], 6)) for n in range(4)]
    asks = [wanted(n + 1, n, 6, device_id=n ^ 1) for n in range(4)]
    assert done(resolve(scene(four, halves, asks), NOW)) == ([1, 3], [])
    (gpu0,) = slots(80)
    crowd = scene([gpu0], [held(n, (gpu0, 5)) for n in range(16)], [wanted(n + 1, n, 10) for n in range(16)])
    jobs, refused = done(resolve(crowd, NOW))
    assert (len(jobs), refused) == (2, [])


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Draw up to three devices, and jobs that hold and want; never more held than declared."""
    there = slots(*draw(st.lists(st.integers(2, 6), min_size=1, max_size=3)))
    room = {slot.device: slot.declared // GB for slot in there}
    holds, asks = [], []
    for job in range(draw(st.integers(1, 4))):
        session = draw(st.sampled_from(["train", "train", ""]))
        for step in {session, draw(st.sampled_from([session, ""]))}:
            slot = draw(st.sampled_from(there))
            size = draw(st.integers(0, room[slot.device]))
            room[slot.device] -= size
            holds.append(held(job, (slot, size), session=step, since=draw(st.integers(0, 90))))
        if draw(st.integers(0, 4)):
            count = draw(st.integers(1, len(there)))
            which = draw(st.sampled_from([None, *range(len(there))])) if count == 1 else None
            restartable = draw(st.integers(0, 3)) > 0
            ask = wanted(job + 1, job, draw(st.integers(1, 8)), session, restartable, count=count, device_id=which)
            asks.append(ask)
    return scene(there, holds, asks)


@given(scenes())
@settings(max_examples=150, deadline=None)
def test_nothing_is_stuck_afterwards_and_nobody_was_ended_in_vain(here: Scene) -> None:
    found = resolve(here, NOW)
    assert bool(found) == bool(stuck(here))
    steps = [v.step for c in found for v in c.revoked]
    refused = [n for c in found for n in c.refused]
    assert not stuck(here.without(steps, refused))
    for step in steps:
        assert stuck(here.without([s for s in steps if s != step], refused))
    for number in refused:
        assert stuck(here.without(steps, [n for n in refused if n != number]))
    assert {w.id for w in here.wanted if w.restartable} >= {v.request for c in found for v in c.revoked}
    for cycle in found:
        assert told(cycle)
        assert set(cycle.ring) <= {link.request for link in cycle.links}
    # Brute force: where runs can be repeated at all, one cycle never costs more than the cheapest set of them.
    if len(found) == 1 and not refused:
        losses = {v.step: v.loss for c in found for v in c.revoked}
        every = {w.step for w in here.wanted if w.restartable}
        sets = chain.from_iterable(combinations(sorted(every), n) for n in range(1, len(every) + 1))
        works = [some for some in sets if not stuck(here.without(some))]
        assert sum(losses.values()) <= min(sum(_loss(here, step) for step in some) for some in works)


def _loss(here: Scene, step: tuple[int, str]) -> float:
    """Return bytes times seconds, on whatever device: never less than what was counted."""
    return sum(p.bytes * (NOW - h.since) for h in here.held if h.step == step for p in h.parts)


@given(scenes())
@settings(max_examples=60, deadline=None)
def test_the_same_scene_in_another_order_ends_the_same(here: Scene) -> None:
    turned = dataclasses.replace(here, held=here.held[::-1], slots=here.slots[::-1])
    assert done(resolve(turned, NOW)) == done(resolve(here, NOW))


@given(scenes())
@settings(max_examples=60, deadline=None)
def test_a_wait_for_oneself_is_for_ever(here: Scene) -> None:
    """Refused at once only where even an otherwise empty world would never grant it."""
    for request in here.wanted:
        if refused_at_once(here, request) is not None:
            mine = [h for h in here.held if h.job == request.job]
            alone = Scene(here.slots, tuple(mine), (request,))
            assert stuck(alone) == (request,)
