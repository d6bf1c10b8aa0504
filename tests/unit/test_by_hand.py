"""Devices that nobody measures: who is put there, on which terms, and which of them are a group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from placement.domain.admission.decision import Code, Decision, Verdict
from placement.domain.admission.device_sets import allows, device_sets, most_together
from placement.domain.admission.gate import decide, started
from placement.domain.admission.inside import could_serve, read
from placement.domain.admission.places import Board
from placement.domain.forecasting.forecast import forecast
from placement.domain.planning.feasibility import could_ever
from placement.domain.planning.plan import plan
from placement.domain.planning.soonest_sets import kept_set
from placement.domain.unblocking.remedies import remedies
from placement.domain.world.requests import Exclusive, Gpu, Request
from placement.domain.world.snapshot import Device, KeptPlan, Snapshot
from tests.builders import GIB, a_device, a_node, a_running, a_snapshot, a_waiting, an_estimate
from tests.examples import examples
from tests.unit.test_verdicts import worlds


def unread(index: int = 0, kind: str = "TPU", backend: str = "XLA", declared: int = 16, **more: Any) -> Device:
    """Return a device without readings, called gpu<index> like all of the builders'."""
    told = {"measurable": False, "kind": kind, "backend": backend, "declared": declared * GIB, "age": None}
    return a_device(None, None, index=index, **told, **more)


def asked(*devices: Device, running: Any = (), **request: Any) -> Decision:
    return decide(a_snapshot(a_node(*devices), running=running), a_waiting(1, request.pop("vram", 4 * GIB), **request))


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        pytest.param({}, {0, 3}, id="nothing named: what is measured, and the GPU that is open"),
        pytest.param({"kind": "GPU"}, {0, 2, 3}, id="kind"),
        pytest.param({"kind": "TPU"}, {1, 4}, id="the other kind"),
        pytest.param({"backend": "ROCM"}, {2, 3}, id="backend"),
        pytest.param({"backend": "OPENCL"}, {0, 3}, id="the second of several backends"),
        pytest.param({"backend": "OPENCL", "kind": "TPU"}, set(), id="both"),
        pytest.param({"device": "GPU-1"}, {1}, id="by name"),
        pytest.param({"device": "GPU-1", "backend": "CUDA"}, set(), id="by name, of another backend"),
        pytest.param({"among": frozenset({"GPU-2", "GPU-0"})}, {0, 2}, id="what a running job asks for"),
    ],
)
def test_a_request_means_what_is_measured_unless_it_names_kind_backend_or_device(
    words: dict[str, Any], meant: set[int]
) -> None:
    devices = (
        a_device(index=0, more_backends=("OPENCL",)),
        unread(1),
        unread(2, "GPU", "ROCM"),
        unread(3, "GPU", "ROCM", any_gpu=True, more_backends=("OPENCL",)),
        unread(4, "TPU", "XLA", any_gpu=True),
    )
    request = Request(Gpu.ONE, **words)
    assert {device.index for device in devices if allows(device, request)} == meant
    assert [p.devices[0].index for p in Board(a_snapshot(a_node(*devices))).places(request)] == sorted(meant)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds())
def test_a_plain_request_never_lands_on_a_device_that_is_not_open_to_it(snapshot: Snapshot) -> None:
    devices = {(node.name, d.uuid): d for node in snapshot.nodes for d in node.devices}
    waiting = {w.job: w for w in snapshot.waiting}
    decisions = [d for d in plan(snapshot).starts if not waiting[d.job].request.names]
    for told in (*decisions, *(decide(snapshot, w) for w in waiting.values() if not w.request.names)):
        taken = told.grant.devices if told.grant else ()
        assert all(devices[told.grant.node, uuid].open for uuid in taken if told.grant)
    made = plan(snapshot)
    for number, found in forecast(made.board, made.waits(), made.bar).items():
        if number in waiting and not waiting[number].request.names and found.node:
            assert all(devices[found.node, uuid].open for uuid in found.devices)


def test_what_is_not_meant_is_named_where_nothing_else_can_serve() -> None:
    alone = asked(unread())
    assert alone.headline == (
        "Can never start: it needs a GPU that Tidegate measures, and there is none. "
        "gpu0 is only for requests that name its kind or backend."
    )
    beside = asked(a_device(2 * GIB), unread(1), unread(2))
    assert beside.headline.endswith("gpu1 and gpu2 are only for requests that name their kind or backend.")
    assert "only for requests" in asked(a_device(), unread(1), group=(2, 2)).headline
    assert "only for requests" not in asked(a_device(2 * GIB), unread(1), kind="GPU").headline


def test_the_bookings_decide_alone_and_every_answer_says_so() -> None:
    start = asked(unread(), backend="XLA")
    assert start.verdict is Verdict.START
    assert (
        start.headline == "Starts on gpu0: needs 4.0 GiB, room is 16.0 GiB, by the bookings alone: nothing measures it."
    )
    assert start.grant is not None
    assert "GPU-0" not in start.grant.caps  # nobody could keep it
    told = {check.code: check.sentence for check in start.candidates[0].checks}
    assert told[Code.NO_READING] == "No probe can read gpu0: declared capacity alone decides there."
    full = asked(unread(), backend="XLA", running=(a_running(9, 13 * GIB, None),))
    assert (full.verdict, full.code) == (Verdict.WAIT, Code.BOOKED)


def test_without_bytes_it_is_asked_for_them_or_takes_the_whole_alone() -> None:
    unsaid = asked(unread(), vram=None, kind="TPU")
    assert unsaid.code is Code.INFEASIBLE
    assert "Nothing measures gpu0, so what a run needs there is never learned: say how much device memory" in (
        unsaid.headline
    )
    both = asked(unread(), unread(1), vram=None, kind="TPU").headline
    assert both.startswith("Can never start. Nothing measures gpu0 and gpu1, so")
    assert both.count("Nothing measures") == 1
    snapshot = a_snapshot(a_node(unread()))
    job = a_waiting(1, None, kind="TPU")
    assert not could_ever(snapshot, job.request, job.estimate)[0].ok
    for whole in (
        asked(unread(), vram=None, kind="TPU", exclusive=Exclusive.DEVICE),
        asked(unread(exclusive_only=True), vram=None, kind="TPU"),
    ):
        assert whole.grant is not None
        assert whole.grant.charges["GPU-0"] == 16 * GIB
        assert whole.grant.basis == "declared"


@pytest.mark.parametrize(
    ("learned", "said", "booked"),
    [(0, 8, 8), (2, 8, 8), (10, 8, 10), (None, 8, 8), (4, None, 4), (0, None, None), (0, 0, None)],
)
def test_what_was_learned_elsewhere_takes_nothing_from_what_a_person_said(
    learned: int | None, said: int | None, booked: int | None
) -> None:
    estimate = an_estimate(None if learned is None else learned * GIB)
    word = replace(estimate.pools["vram"], said=None if said is None else said * GIB)
    estimate = replace(estimate, pools={**estimate.pools, "vram": word})
    told = decide(a_snapshot(a_node(unread())), a_waiting(1, kind="TPU", estimate=estimate))
    if booked is None:
        assert "say how much device memory it takes" in told.headline
        return
    assert told.grant is not None
    assert told.grant.charges["GPU-0"] == booked * GIB
    measured = decide(a_snapshot(a_node(a_device())), a_waiting(1, estimate=estimate))
    assert measured.grant is not None
    assert (measured.grant.charges["GPU-0"] == (learned or 0) * GIB) is (learned is not None)


@pytest.mark.parametrize(
    ("left", "exclusive", "said"),
    [
        (1, Exclusive.NO, "gpu0 takes one job at a time; #9 uses some of it without a lease."),
        (2, Exclusive.NO, "gpu0 takes one job at a time; #8 and #9 use some of it without a lease."),
        (1, Exclusive.DEVICE, "Wants gpu0 alone; #9 uses some of it without a lease."),
        (0, Exclusive.NO, "#9 has gpu0 alone."),
    ],
)
def test_nobody_has_a_device_alone_who_only_uses_it(left: int, exclusive: Exclusive, said: str) -> None:
    running = tuple(a_running(9 - n, 0, GIB, more=True) for n in reversed(range(left))) or (a_running(9, GIB, GIB),)
    told = asked(a_device(exclusive_only=True), running=running, exclusive=exclusive)
    assert (told.code, told.headline) == (Code.EXCLUSIVE_DEVICE, said)


def test_who_has_the_whole_is_no_first_run_that_settles() -> None:
    snapshot = a_snapshot(a_node(unread()))
    job = a_waiting(1, None, kind="TPU", exclusive=Exclusive.DEVICE)
    grant = decide(snapshot, job).grant
    assert grant is not None
    assert not started(Board(snapshot), job, grant).cold


def test_who_waits_there_is_told_when_the_bookings_leave_room() -> None:
    waiting = a_waiting(1, 4 * GIB, kind="TPU", limit=60.0)
    running = a_running(9, 13 * GIB, None, limit=100.0, elapsed=40.0)
    made = plan(a_snapshot(a_node(unread()), running=(running,), waiting=(waiting,)))
    found = forecast(made.board, made.waits(), made.bar)[1]
    assert (found.node, found.devices, found.waits_for) == ("atlas", ("GPU-0",), (9,))


def test_a_measured_device_is_taken_where_nobody_said_how_much() -> None:
    found = asked(a_device(), unread(1, "GPU", "ROCM", any_gpu=True), vram=None)
    assert found.grant is not None
    assert found.grant.devices == ("GPU-0",)


def sets_of(*devices: Device, count: int, **words: Any) -> set[tuple[int, ...]]:
    request = Request(Gpu.GROUP, min_devices=count, max_devices=count, **words)
    found = [tuple(d.index for d in one) for one in device_sets(a_node(*devices), request)]
    assert len(found) == len(set(found))
    return set(found)


def test_members_of_a_group_share_a_kind_and_a_backend_and_all_or_none_is_measured() -> None:
    both = ("OPENCL",)
    mixed = (
        a_device(index=0, more_backends=both),
        a_device(index=1, more_backends=both),
        a_device(index=2, backend="OPENCL"),
        unread(3, "GPU", "OPENCL", any_gpu=True),
        unread(4, "GPU", "OPENCL", any_gpu=True),
    )
    assert sets_of(*mixed, count=2) == {(0, 1), (0, 2), (1, 2), (3, 4)}
    assert sets_of(*mixed, count=2, backend="CUDA") == {(0, 1)}
    assert sets_of(*mixed, count=3, backend="OPENCL") == {(0, 1, 2)}
    request = Request(Gpu.GROUP, min_devices=2, max_devices=5, backend="OPENCL")
    assert most_together(a_node(*mixed), request) == 3


def test_two_backends_in_common_make_no_set_twice_and_one_each_makes_none() -> None:
    assert sets_of(*(a_device(index=n, more_backends=("OPENCL", "XLA")) for n in range(3)), count=2) == {
        (0, 1), (0, 2), (1, 2)
    }  # fmt: skip
    assert sets_of(a_device(index=0), a_device(index=1, backend="ROCM"), count=2) == set()
    chain = (a_device(index=0), a_device(index=1, more_backends=("ROCM",)), a_device(index=2, backend="ROCM"))
    assert sets_of(*chain, count=2) == {(0, 1), (1, 2)}
    assert sets_of(*chain, count=3) == set()


def test_of_many_devices_a_plan_keeps_its_set_for_who_may_still_have_it() -> None:
    node = a_node(*(a_device(index=n, more_backends=("OPENCL",) if n % 2 else ()) for n in range(20)))
    board, kept = Board(a_snapshot(node)), KeptPlan("atlas", ("GPU-3", "GPU-8"), 0.0)
    pair = Request(Gpu.GROUP, min_devices=2, max_devices=2)
    assert [place.uuids for place in kept_set(board, pair, kept)] == [("GPU-3", "GPU-8")]
    assert not kept_set(board, replace(pair, backend="OPENCL"), kept)
    assert not kept_set(board, replace(pair, min_devices=3, max_devices=3), kept)


def test_a_running_jobs_ask_matches_any_of_a_devices_backends() -> None:
    there = (a_device(index=0, more_backends=("OPENCL",)), unread(1), unread(2, "GPU", "OPENCL"))
    ask = read({"kind": "gpu", "backend": "opencl", "group_bytes": GIB})
    assert [d.index for d in could_serve(ask, there)] == [0, 2]
    assert [d.index for d in could_serve(read({"kind": "tpu", "backend": "xla", "group_bytes": 1}), there)] == [1]


def test_no_remedy_sends_a_plain_job_to_a_device_that_is_not_open() -> None:
    node = a_node(a_device(), unread(1, "GPU", "ROCM"))
    snapshot = a_snapshot(node, running=(a_running(7, 23 * GIB, 23 * GIB),), waiting=(a_waiting(1, 8 * GIB),))
    told = " ".join(str(one) for one in remedies(snapshot, 1))
    assert "GPU-1" not in told
