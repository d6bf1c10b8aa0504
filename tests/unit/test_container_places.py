"""Where a job in a container may run, and why it may not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placement.domain.admission.decision import Code, Verdict
from placement.domain.admission.gate import decide
from placement.domain.ending.outcomes import Evidence, decide_outcome
from placement.domain.planning.feasibility import could_ever
from placement.domain.world.requests import Gpu, Request
from placement.domain.world.snapshot import Waiting
from tests.builders import GIB, a_device, a_node, a_snapshot, a_waiting

DOCKER = a_node(name="atlas", engines=("docker",))
NONE = a_node(name="bare", engines=(), engines_why="containers are switched off there (TIDEGATE_CONTAINERS)")


def asking(request: Request) -> Waiting:
    return replace(a_waiting(1, GIB, 1 << 20, gpu=request.gpu is Gpu.ONE), request=request)


def test_only_nodes_with_the_engine_are_places() -> None:
    snapshot = a_snapshot(DOCKER, NONE)
    asked = asking(Request(engine="any"))
    found = decide(snapshot, asked)
    assert (found.verdict, [c.node for c in found.candidates]) == (Verdict.START, ["atlas"])
    assert len(decide(snapshot, asking(Request())).candidates) == 2
    other = decide(snapshot, asking(Request(engine="podman")))
    assert other.code is Code.INFEASIBLE
    assert other.headline == (
        "Can never start: it runs in a container. atlas: no podman. "
        "bare: containers are switched off there (TIDEGATE_CONTAINERS)."
    )
    (why,) = could_ever(snapshot, Request(engine="podman"), asked.estimate)
    assert (why.ok, why.sentence) == (False, other.headline)


def test_a_node_that_nobody_looked_at_may_have_one() -> None:
    assert decide(a_snapshot(a_node(name="new")), asking(Request(engine="docker"))).candidates


def test_a_device_that_no_container_is_given_is_no_place() -> None:
    card = a_device(backend="ROCM")
    snapshot = a_snapshot(replace(DOCKER, devices=(card,)))
    found = decide(snapshot, asking(Request(Gpu.ONE, engine="docker")))
    assert found.headline == "Can never start: it runs in a container, and containers are given NVIDIA devices alone."
    assert decide(snapshot, asking(Request(Gpu.ONE))).candidates


def test_a_group_in_a_container_takes_such_devices_alone() -> None:
    cards = [a_device(index=number) for number in range(2)]
    other = a_device(index=2, backend="ROCM")
    pair = a_waiting(1, GIB, 1 << 20, group=(2, 2), engine="docker")
    found = decide(a_snapshot(replace(DOCKER, devices=(*cards, other))), pair)
    assert [candidate.devices for candidate in found.candidates] == [("GPU-0", "GPU-1")]
    assert found.verdict is Verdict.START
    short = decide(a_snapshot(replace(DOCKER, devices=(cards[0], other))), pair)
    assert short.headline == "Can never start: it needs 2 devices of one node, and there is 1 on atlas."


@pytest.mark.parametrize(
    "container, code, outcome",
    [
        ({"oom_killed": True, "limit": 6 * GIB}, 137, "cap_exceeded"),
        ({"oom_killed": True, "limit": None}, 137, "out_of_memory"),
        ({"oom_killed": True, "limit": 6 * GIB}, 0, "completed"),
        ({"oom_killed": False, "limit": 6 * GIB}, 137, "failed"),
        ({}, 1, "failed"),
    ],
)
def test_what_its_engine_says_of_its_memory_decides(container: dict[str, object], code: int, outcome: str) -> None:
    found = decide_outcome(Evidence(code=code, container=container))
    assert found.outcome == outcome
    if outcome == "cap_exceeded":
        assert found.sentence == "RAM limit exceeded: its container was killed at its own limit of 6.0 GiB."
        assert (found.memory, found.feeds) == ("ram", "lower_bound")
