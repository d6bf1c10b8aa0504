"""The watchdog's choice: who grew past what it was granted, and nobody else."""

from __future__ import annotations

import pytest

from placement.domain.knobs import Knobs
from placement.domain.snapshot import Running
from placement.domain.watchdog import choose, mark
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
        "watchdog: used 10.0 GiB, granted 4.0 GiB, cap 5.0 GiB; 100 MiB was free on gpu0, below the mark of 246 MiB."
    )


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


def test_a_short_excess_waits_where_the_knob_asks_for_more_readings() -> None:
    knobs = Knobs.with_overrides({"watch_samples": 3})
    running = (a_running(1, 4 * GIB, 12 * GIB),)
    early, late = choose(SHORT, running, knobs, {1: 2}), choose(SHORT, running, knobs, {1: 3})
    assert early is not None
    assert late is not None
    assert (early.job, late.job) == (None, 1)
