"""The watchdog's choice: who grew past what it was granted, and nobody else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placement.domain.ending.watch_policy import Policy
from placement.domain.ending.watchdog import choose, mark, near_its_cap
from placement.domain.knobs import Knobs
from placement.domain.world.snapshot import Charge, Running
from tests.builders import GIB, MIB, PoolState, a_device, a_node, a_pool, a_ram, a_running

KNOBS = Knobs()
SHORT = a_node(a_device(24 * GIB, 24 * GIB - 100 * MIB))


@pytest.mark.parametrize(
    ("pool", "want"),
    [
        pytest.param(a_pool(24 * GIB), 24 * GIB // 100, id="VRAM: the floor"),
        pytest.param(a_pool(80 * GIB), 256 * MIB, id="VRAM: at most 256 MiB"),
        pytest.param(a_ram(16 * GIB), GIB, id="RAM: at least 1 GiB"),
        pytest.param(a_ram(100 * GIB), 2 * GIB, id="RAM: two per cent"),
        pytest.param(a_ram(512 * GIB), 4 * GIB, id="RAM: at most 4 GiB"),
    ],
)
def test_marks(pool: object, want: int) -> None:
    assert mark(pool, KNOBS) == want  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("running", "job"),
    [
        pytest.param((a_running(1, 4 * GIB, 12 * GIB), a_running(2, 12 * GIB, 12 * GIB)), 1, id="the grower"),
        pytest.param((a_running(1, 10 * GIB, 12 * GIB), a_running(2, GIB, 2 * GIB)), 2, id="by share before bytes"),
        pytest.param((a_running(1, 2 * GIB, 4 * GIB), a_running(2, 4 * GIB, 8 * GIB)), 2, id="then by bytes"),
        pytest.param((a_running(1, 4 * GIB, 4 * GIB + 256 * MIB),), None, id="256 MiB above is not above"),
        pytest.param((a_running(1, 4 * GIB, 4 * GIB + 257 * MIB),), 1, id="more than 256 MiB is"),
        pytest.param(
            (a_running(1, 4 * GIB, 5 * GIB, margins={"GPU-0": GIB}),), None, id="within the margin of its rung"
        ),
        pytest.param((a_running(1, 4 * GIB, None),), None, id="unknown use is never a reason"),
        pytest.param((a_running(1, 4 * GIB, 12 * GIB, finishing=True),), None, id="one that ends already"),
        pytest.param((a_running(1, 4 * GIB, 12 * GIB, device=1),), None, id="on another device"),
        pytest.param((a_running(1, 4 * GIB, 12 * GIB, node="borea"),), None, id="on another node"),
    ],
)
def test_who_is_stopped(running: tuple[Running, ...], job: int | None) -> None:
    found = choose(SHORT, running, KNOBS)
    assert found is not None
    assert found.job == job


def test_the_evidence_carries_used_granted_cap_mark_and_the_next_charge() -> None:
    running = (a_running(1, 4 * GIB, 10 * GIB, cap=5 * GIB),)
    found = choose(SHORT, running, KNOBS)
    assert found is not None
    assert (found.used, found.granted, found.cap, found.free) == (10 * GIB, 4 * GIB, 5 * GIB, 100 * MIB)
    assert found.next_charge == 12 * GIB
    assert found.sentence == (
        "Killed by the watchdog: used 10.0 GiB of 4.0 GiB granted, cap 5.0 GiB; "
        "100 MiB was free on gpu0, below the mark of 246 MiB."
    )


def test_the_last_figures_stand_in_the_sentence() -> None:
    figures = {(1, "GPU-0"): [GIB, 9 * GIB, 9 * GIB + 512 * MIB, 10 * GIB]}
    found = choose(SHORT, (a_running(1, 4 * GIB, 10 * GIB, cap=5 * GIB),), KNOBS, figures)
    assert found is not None
    assert found.samples == (9 * GIB, 9 * GIB + 512 * MIB, 10 * GIB)
    assert "; 9.0, 9.5, 10.0 GiB in its last looks; 100 MiB was free" in found.sentence


def test_an_outsider_that_grew_stops_nobody_and_is_named() -> None:
    who = ((900, "eve", "train", 14 * GIB),)
    node = a_node(a_device(24 * GIB, 24 * GIB - MIB, external=14 * GIB, external_who=who))
    found = choose(node, (a_running(1, 10 * GIB, 10 * GIB),), KNOBS)
    assert found is not None
    assert found.job is None
    assert "14.0 GiB held by pid 900 (user eve), not a job of ours. Nothing is stopped." in found.sentence


@pytest.mark.parametrize(
    "device",
    [
        pytest.param(a_device(24 * GIB, 20 * GIB), id="enough is free"),
        pytest.param(a_device(24 * GIB, 24 * GIB, age=9.0), id="the reading is old"),
        pytest.param(a_device(24 * GIB, None, state=PoolState.NOT_READY, age=None), id="nothing is known"),
    ],
)
def test_nothing_happens(device: object) -> None:
    assert choose(a_node(device), (a_running(1, 4 * GIB, 12 * GIB),), KNOBS) is None  # type: ignore[arg-type]


def test_ram_runs_short_by_its_own_mark() -> None:
    node = a_node(ram=a_ram(16 * GIB, 16 * GIB - 512 * MIB))
    running = (a_running(1, device=None, ram=2 * GIB, ram_used=8 * GIB),)
    found = choose(node, running, KNOBS)
    assert found is not None
    assert (found.job, found.pool) == (1, "ram")


def test_a_pool_in_which_somebody_grew_comes_before_one_in_which_nobody_did() -> None:
    node = a_node(a_device(24 * GIB, 24 * GIB), ram=a_ram(16 * GIB, 16 * GIB))
    found = choose(node, (a_running(1, 4 * GIB, 12 * GIB),), KNOBS)
    assert found is not None
    assert (found.job, found.pool) == (1, "GPU-0")


def test_under_the_mark_one_look_is_enough() -> None:
    found = choose(SHORT, (a_running(1, 4 * GIB, 12 * GIB),), KNOBS, {(1, "GPU-0"): [12 * GIB]})
    assert found is not None
    assert found.job == 1


ROOMY = a_node(a_device(24 * GIB, 14 * GIB))
ABOVE = (12 * GIB + 205 * MIB, 12 * GIB + 820 * MIB, 13 * GIB + 102 * MIB)


@pytest.mark.parametrize(
    ("node", "workload", "figures", "job"),
    [
        pytest.param("cap", "", ABOVE, 1, id="the node's policy"),
        pytest.param("", "cap", ABOVE, 1, id="the workload's"),
        pytest.param("warn", "cap", ABOVE, 1, id="a workload asks for more than its node"),
        pytest.param("cap", "warn", ABOVE, 1, id="and never for less"),
        pytest.param("", "", ABOVE, None, id="nobody is at risk"),
        pytest.param("cap", "", ABOVE[1:], None, id="two looks are not three"),
        pytest.param("cap", "", (*ABOVE, 12 * GIB), None, id="it went back"),
        pytest.param("cap", "", (*ABOVE[:2], 12 * GIB, ABOVE[2]), None, id="three that are not in a row"),
        pytest.param("cap", "", (), None, id="nothing that can be relied on was seen"),
    ],
)
def test_at_the_cap_by_policy(node: str, workload: str, figures: tuple[int, ...], job: int | None) -> None:
    running = a_running(1, 9 * GIB, 13 * GIB + 102 * MIB, cap=12 * GIB, watch_policy=workload)
    found = choose(replace(ROOMY, watch_policy=node), (running,), KNOBS, {(1, "GPU-0"): figures})
    assert (found.job if found else None) == job
    if found:
        assert found.sentence == (
            "Killed by the watchdog: used 13.1 GiB of 12.0 GiB, its cap on gpu0; "
            "12.2, 12.8, 13.1 GiB in its last looks; its policy is to stop at the cap."
        )
        assert (found.used, found.samples, found.policy) == (ABOVE[2], ABOVE, Policy.CAP)


def test_where_the_policy_is_to_warn_nobody_is_stopped_and_it_is_said_who_is_above() -> None:
    node = replace(SHORT, watch_policy="warn")
    found = choose(node, (a_running(1, 4 * GIB, 12 * GIB),), KNOBS)
    assert found is not None
    assert found.job is None
    assert found.sentence == (
        "Gpu0 has 100 MiB free, below the mark of 246 MiB, and #1 is above its charge; "
        "the policy is to warn only. Nothing is stopped."
    )
    other = a_running(2, 2 * GIB, 4 * GIB, watch_policy="risk")  # furthest of those that may be stopped
    chosen = choose(node, (a_running(1, GIB, 12 * GIB), other), KNOBS)
    assert chosen is not None
    assert chosen.job == 2


@pytest.mark.parametrize(
    ("policy", "used", "free", "near"),
    [
        pytest.param(Policy.CAP, 9 * GIB, 40 * GIB, True, id="above four fifths of its cap"),
        pytest.param(Policy.CAP, 8 * GIB, 2 * GIB, False, id="not above them"),
        pytest.param(Policy.RISK, 9 * GIB, 40 * GIB, False, id="plenty is free for everybody"),
        pytest.param(Policy.RISK, 9 * GIB, 4 * GIB, True, id="others come near"),
        pytest.param(Policy.WARN, 9 * GIB, GIB, False, id="nobody would be stopped"),
        pytest.param(Policy.CAP, None, 40 * GIB, False, id="unknown"),
    ],
)
def test_who_is_looked_at_more_often(policy: Policy, used: int | None, free: int, near: bool) -> None:
    charge = Charge(7 * GIB, 7 * GIB, used, 7 * GIB, cap=10 * GIB)
    running = replace(a_running(1, device=None), charges={"ram": charge})
    assert near_its_cap(running, policy, a_ram(64 * GIB, 64 * GIB - free), KNOBS) is near
