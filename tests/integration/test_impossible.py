"""Amounts with their units, and jobs that can never start: said at once, or once the machine changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from placement.domain.errors import Infeasible
from placement.domain.jobs import State
from placement.models import Job
from tests.integration.loop_here import GIB, MIB, Here, here

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    """A node with a card of 8 GiB and one of 24 GiB of which nothing is kept free."""
    with here(settings, tmp_path, simulate="1x8GiB,1x24GiB", floor_vram_mib=0) as made:
        made.tick()
        yield made


def with_need(node: Here, need: int, command: str = "exit 0", **more: Any) -> Job:
    return node.submit(command, gpu="one", declared_vram=need, **more)


def test_what_no_card_can_ever_give_is_refused_and_the_small_one_behind_it_runs(node: Here) -> None:
    with pytest.raises(Infeasible) as refused:
        with_need(node, 30000 * MIB)
    assert refused.value.sentence.startswith("Can never start. Needs 29.3 GiB; gpu1 can give at most ")
    assert not Job.objects.exists()
    assert node.end(with_need(node, GIB)).outcome == "completed"


def test_a_card_that_is_taken_out_makes_who_needed_it_impossible_and_stops_nobody_else(
    node: Here, settings: Any
) -> None:
    blocker = node.reach(with_need(node, 20 * GIB, "sleep 60"), State.RUNNING)
    large = with_need(node, 20000 * MIB)
    node.tick()
    large.refresh_from_db()
    assert large.code in ("booked", "no_room")

    settings.SIMULATE = "1x8GiB"
    node.new_worker()
    node.tick()
    large.refresh_from_db()
    assert (large.state, large.code) == (State.QUEUED, "infeasible")
    assert large.headline.startswith("Can never start. Needs 19.5 GiB; gpu0 can give at most ")
    assert node.end(with_need(node, GIB)).outcome == "completed"
    blocker.refresh_from_db()
    assert blocker.state == State.RUNNING

    settings.SIMULATE = "1x8GiB,1x24GiB"
    node.new_worker()
    node.tick()
    large.refresh_from_db()
    assert large.code in ("booked", "no_room"), "it waits for room again, and for nothing else"


@pytest.mark.parametrize(
    ("typed", "stored"),
    [("24 GB", 24 * 10**9), ("24GB", 24 * 10**9), ("24 GiB", 24 * GIB), ("24576", 24 * GIB), ("8e3", 8000 * MIB),
     ("1,5 GB", 1_500_000_000)],
)  # fmt: skip
def test_an_amount_is_stored_in_bytes_and_shown_back(node: Here, client: Client, typed: str, stored: int) -> None:
    client.force_login(node.user)
    body = {"command": "exit 0", "cwd": "/tmp", "gpu": "one", "exclusive": "device", "declared_vram": typed}
    made = client.post("/api/v1/jobs", json.dumps(body), content_type="application/json")
    assert made.status_code == 201, made.content
    assert made.json()["job"]["declared_vram"] == stored


@pytest.mark.parametrize("typed", ["0", "-1", "NaN", "inf", "1e30", "", [], 0, -1, 10**30, "1,500 MB"])
def test_an_amount_that_is_none_is_an_error_at_its_field(node: Here, client: Client, typed: object) -> None:
    client.force_login(node.user)
    body = {"command": "exit 0", "cwd": "/tmp", "gpu": "one", "declared_vram": typed}
    made = client.post("/api/v1/jobs", json.dumps(body), content_type="application/json")
    assert made.status_code == 400, made.content
    assert made.json()["error"]["fields"]["declared_vram"].endswith(".")
    assert not Job.objects.exists()
