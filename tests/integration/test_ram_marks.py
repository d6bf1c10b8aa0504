"""Each node may have its own marks of RAM pressure; a declared limit presses by what jobs use of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from placement import snapshots
from placement.domain.admission.decision import Code
from placement.domain.admission.gate import decide
from placement.models import Node, Role
from placement.services import node_tick
from tests.builders import a_waiting
from tests.integration.rows import GIB, a_machine, a_running, a_user

pytestmark = pytest.mark.django_db


def ticked(jobs: list[Any], free: int) -> bool:
    """Return whether RAM is short after a tick that found so many GiB of 64 free."""
    reading: Any = SimpleNamespace(
        pools={"ram": SimpleNamespace(total=64 * GIB, free=free * GIB)},
        boot_id="", processes=(), capacity_note="", notes=(),
    )  # fmt: skip
    agent: Any = SimpleNamespace(node="atlas", began=0.0, engines=SimpleNamespace(told={}, notes=[]))
    node_tick._store_node(agent, jobs, reading, 0.0, snapshots.knobs_now()[0])
    return Node.objects.get().ram_pressure


def test_a_node_s_own_marks_count_and_are_told() -> None:
    a_machine()
    assert not ticked([], 8)  # 87.5 % used, below the knobs' 92.5 %
    Node.objects.update(ram_high=0.85, ram_low=0.75)
    assert ticked([], 8)
    assert ticked([], 15)
    snapshot = snapshots.take()
    told = decide(snapshot, a_waiting(1, GIB))
    said = next(c for c in told.candidates[0].checks if c.code is Code.RAM_PRESSURE)
    assert "above 85.0% nothing starts until it is below 75.0%" in said.sentence
    assert (said.figures["high"], said.figures["low"]) == (0.85, 0.75)
    assert not ticked([], 16)  # equality leaves


def test_a_declared_limit_presses_by_what_jobs_use_of_it() -> None:
    a_machine()
    job = a_running(a_user("ada"), used={"ram": 10 * GIB})
    assert not ticked([job], 50)
    Node.objects.update(ram_declared=10 * GIB)
    assert ticked([job], 50)  # the machine is idle, the declared limit is not
    told = decide(snapshots.take(), a_waiting(1, GIB))
    said = next(c for c in told.candidates[0].checks if c.code is Code.RAM_PRESSURE)
    assert "100% of what is declared is used by jobs" in said.sentence
    job.used = {"ram": 8 * GIB}
    assert not ticked([job], 50)


def test_an_admin_sets_the_marks_on_the_page_of_the_node(client: Client) -> None:
    node = a_machine()
    client.force_login(a_user("root", Role.ADMIN))
    assert "RAM is short above" in client.get("/devices/atlas/ram").content.decode()
    name = f"node-{node.pk}"
    seen = {f"{name}-seen": "{}", f"{name}-watch_policy": ""}
    client.post(f"/declarations/node/{node.pk}/edit", {**seen, f"{name}-ram_high": "0.9", f"{name}-ram_low": "0.8"})
    node.refresh_from_db()
    assert (node.ram_high, node.ram_low) == (0.9, 0.8)
    low = {**seen, f"{name}-ram_high": "0.7", f"{name}-ram_low": "0.8"}
    wrong = client.post(f"/declarations/node/{node.pk}/edit", low, follow=True)
    assert "must lie below the high mark" in wrong.content.decode()
    client.post(f"/declarations/node/{node.pk}/edit", {**seen, f"{name}-ram_high": "", f"{name}-ram_low": ""})
    node.refresh_from_db()
    assert (node.ram_high, node.ram_low) == (None, None)


def test_a_job_whose_use_is_not_known_yet_ends_no_pressure_and_is_not_told_as_nothing() -> None:
    a_machine()
    known, starts = a_running(a_user("ada"), used={"ram": 10 * GIB}), a_running(a_user("ben"), used={})
    Node.objects.update(ram_declared=10 * GIB)
    assert ticked([known], 50)
    assert ticked([known, starts], 50)
    said = next(
        c for c in decide(snapshots.take(), a_waiting(1, GIB)).candidates[0].checks if c.code is Code.RAM_PRESSURE
    )
    assert "at least 100% of what is declared is used by jobs" in said.sentence
    assert said.figures["jobs_use"] is None
