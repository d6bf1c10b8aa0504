"""The page of one pool: what it shows, to whom, and the same as files."""

from __future__ import annotations

import csv
import io
import re
import time

import pytest

from calibration.models import Point
from placement.models import Device, Role
from placement.services import nodes
from tests.integration.rows import GIB, UUIDS, a_job, a_machine, a_pool, a_running, a_user

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def card():
    a_machine()
    return Device.objects.select_related("node").get(uuid=UUIDS[1])


@pytest.fixture
def viewer(client):
    client.force_login(a_user("vic", Role.VIEWER))
    return client


def text_of(answer) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def address(card) -> str:
    return f"/devices/{card.node.name}/{card.uuid}"


def test_both_sums_show_each_term_and_who_holds_what(card, viewer):
    job = a_running(a_user("ada"))
    a_pool("atlas", card.uuid, "gpu1", 24 * GIB, 11 * GIB, free=12 * GIB, owners={f"job:{job.pk}": 11 * GIB})
    shown = text_of(viewer.get(address(card)))
    assert f"#{job.pk} train-vit ada 11.0 GiB 2.0 GiB 13.0 GiB 18.0 GiB" in shown
    assert "there is 24.0 GiB in use − 11.0 GiB the driver&#x27;s, or not given back yet − 1.0 GiB" in shown
    assert "running jobs may still take − 2.0 GiB kept back − 246 MiB left 9.8 GiB" in shown
    assert "booked by running jobs − 13.0 GiB left 11.0 GiB" in shown
    assert card.uuid in shown


def test_the_part_that_changes_says_when_it_did_not(card, viewer):
    page = viewer.get(address(card)).content.decode()
    version = re.search(r"fragment\?v=(\w+)", page)[1]
    assert viewer.get(f"{address(card)}/fragment?v={version}", headers=HTMX).status_code == 204
    answer = viewer.get(f"{address(card)}/fragment?v=old", headers=HTMX)
    assert answer.status_code == 200
    assert 'id="pool"' in answer.content.decode()


def test_a_job_that_asks_for_the_device_waits_on_its_page(card, viewer):
    job = a_job(a_user("ada"), name="wants-it", gpu="one", device_wanted=card.uuid, headline="Waits for room.")
    assert f"#{job.pk} wants-it" in text_of(viewer.get(address(card)))
    assert "wants-it" not in text_of(viewer.get(f"/devices/{card.node.name}/ram"))


def test_declaring_is_for_admins_holding_for_operators_and_a_viewer_only_looks(card, client):
    nodes.hold(a_user("op", Role.OPERATOR), "device", card.pk, why="new fan")
    seen = {}
    for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN):
        client.force_login(a_user(f"one-{role.value}", role))
        page = client.get(address(card)).content.decode()
        seen[role] = ("Declared capacity" in page, "/release" in page, "What was done to it" in page)
        assert "new fan" in page
    assert seen == {
        Role.VIEWER: (False, False, False),
        Role.OPERATOR: (False, True, True),
        Role.ADMIN: (True, True, True),
    }


def test_a_form_that_is_wrong_comes_back_on_the_page_with_what_was_typed(card, client):
    client.force_login(a_user("root", Role.ADMIN))
    prefix = f"device-{card.pk}-"
    seen = re.search(rf'name="{prefix}seen" value="([^"]*)"', client.get(address(card)).content.decode())[1]
    sent = {f"{prefix}seen": seen.replace("&quot;", '"'), f"{prefix}declared": "lots", f"{prefix}name": card.name}
    answer = client.post(f"/declarations/device/{card.pk}/edit", sent)
    assert answer.status_code == 422
    assert 'value="lots"' in answer.content.decode()
    assert "Use over time" in answer.content.decode()


def test_the_page_of_one_device_is_below_devices(card, viewer):
    page = viewer.get(address(card)).content.decode()
    assert re.search(r'<a href="/devices" aria-current="true"', page)
    assert re.search(r'<a href="/devices" aria-current="page"', viewer.get("/devices").content.decode())


def test_unknown_pools_and_ranges_are_not_there(card, viewer):
    for path in ("/devices/none/ram", f"{address(card)}x", f"{address(card)}/series.csv?range=1y"):
        assert viewer.get(path).status_code == 404, path
    assert viewer.get(f"{address(card)}?range=1y").status_code == 200


def test_a_range_as_csv_has_all_points_each_owner_and_no_formula(card, viewer):
    job = a_job(a_user("ada"), name="=cmd()")
    now = int(time.time())
    Point.objects.bulk_create(
        Point(
            node=card.node.name, pool=card.uuid, step=1, at=now - n, total=GIB, used=n, free=None, booked=7, kept=1,
            owners={f"job:{job.pk}": n} if n else {},
        )
        for n in range(900)
    )  # fmt: skip
    answer = viewer.get(f"{address(card)}/series.csv?range=1h")
    assert answer["Content-Disposition"].endswith('-1h.csv"')
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))
    assert len(rows) == 900
    assert (rows[0]["used"], rows[0]["free"], rows[0]["booked"], rows[0][f"#{job.pk} =cmd()"]) == (
        "899",
        "",
        "7",
        "899",
    )
    assert rows[-1][f"#{job.pk} =cmd()"] == "0"


def test_the_chart_as_a_page_needs_nothing_from_elsewhere_and_takes_names_as_text(card, viewer):
    job = a_job(a_user("ada"), name="</script><b>x")
    now = int(time.time())
    Point.objects.create(
        node=card.node.name, pool=card.uuid, step=1, at=now, total=GIB, used=9, owners={f"job:{job.pk}": 9}
    )
    page = viewer.get(f"{address(card)}/chart.html").content.decode()
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", page)
    assert "plotly.js (basic - minified)" in page
    assert "Plotly.newPlot(" in page
    assert page.count("</script>") == page.count("<script")
    assert "<b>x" not in page
