"""Figures and names as pages say them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from calibration.domain.resources import GIB, KIB, MIB
from calibration.domain.sediment import Key
from calibration.models import Known
from placement.selectors import wording
from tests.integration.learned import a_run
from tests.integration.rows import UUIDS, a_decision, a_finished, a_job, a_machine, a_user

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("figure", [{"elapsed_s": 76.5}, {"since": 76.5}])  # "since": as earlier versions kept it
def test_how_long_a_first_run_lasts_is_no_date(client: Client, figure: dict[str, float]) -> None:
    ada = a_user("ada")
    client.force_login(ada)
    a_machine()
    sentence = "#12 has been on its first run on gpu0; nobody joins it before its use has settled."
    asked = {"code": "cold_start", "ok": False, "sentence": sentence, "figures": {"who": "#12", **figure}}
    place: dict[str, Any] = {"node": "atlas", "device": UUIDS[0], "label": "gpu0", "checks": [asked]}
    job = a_job(ada, decision={**a_decision(), "code": "cold_start", "candidates": [place]}, code="cold_start")
    (row,) = client.get(f"/jobs/{job.pk}").context["page"].verdict.places[0].objections
    assert [one.text for one in row.figures] == ["76 s"]


@pytest.mark.parametrize(
    "used, granted, told",
    [
        (11 * GIB, 13 * GIB, "11.0 of 13.0 GiB"),
        (512 * MIB, 2 * GIB, "512 MiB of 2.0 GiB"),
        (103 * MIB, 103 * MIB + 4 * KIB, "103 of 103 MiB"),
        (None, GIB, "unknown of 1.0 GiB"),
    ],
)
def test_two_that_are_all_but_equal_are_not_told_in_bytes(used: int | None, granted: int, told: str) -> None:
    assert wording.of(used, granted) == told


def test_a_command_without_a_script_is_called_by_itself_for_who_may_see_it(client: Client) -> None:
    bob, cleo = a_user("bob"), a_user("cleo")
    a_machine()
    a_run(bob, Key("bob: shell", "", '["in: /home/bob", "#!/bin/sh\\necho secret | sort\\nsleep 2"]', ""))
    where = f"/workloads/{Known.objects.get().subject}"
    for user, sees in ((bob, True), (cleo, False)):
        client.force_login(user)
        for address in ("/workloads", where):
            shown = client.get(address).content.decode()
            assert (">echo secret | sort<" in shown, ">bob: shell<" in shown) == (sees, not sees)
            assert ("secret" in shown) == sees


@pytest.mark.parametrize("outcome, offered", [("failed", True), ("out_of_memory", True), ("completed", False)])
def test_the_first_error_is_one_click_from_where_it_is_said_that_it_failed(
    client: Client, outcome: str, offered: bool
) -> None:
    ada = a_user("ada")
    a_machine()
    job = a_finished(ada, outcome)
    address = f'href="/jobs/{job.pk}/log?error=1"'
    for user, theirs in ((ada, offered), (a_user("bob"), False)):
        client.force_login(user)
        assert (address in client.get(f"/jobs/{job.pk}").content.decode()) == theirs


def test_the_second_field_of_a_password_says_what_it_is_for(client: Client) -> None:
    client.force_login(a_user("ada"))
    shown = client.get("/password").content.decode()
    assert 'id_new_password2">The same again</label>' in shown
    assert "confirmation" not in shown
