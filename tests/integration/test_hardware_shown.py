"""What pages say of devices that are no plain cards, and of memory that no process explains."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.utils import timezone

from calibration import contexts
from calibration.models import Point, PoolNow, PoolProcesses
from placement.models import AuditEntry, Device, Node, Role
from placement.selectors import device, devices, hardware
from tests.builders import MIB
from tests.figures import check
from tests.integration.rows import GIB, UUIDS, a_machine, a_pool, a_running, a_user

pytestmark = pytest.mark.django_db
CARD = UUIDS[0]


@pytest.fixture
def node() -> Node:
    return a_machine()


@pytest.fixture
def viewer(client: Any) -> Any:
    client.force_login(a_user("vic", Role.VIEWER))
    return client


def text_of(answer: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def facts(uuid: str) -> dict[str, str]:
    row = Device.objects.select_related("node").get(uuid=uuid)
    found = device.page(row, 0, sees_commands=False)
    assert found
    return dict(found.facts)


def test_what_outlived_its_process_is_a_line_of_its_own_on_each_page(node: Node, viewer: Any) -> None:
    until = timezone.localtime() - timedelta(seconds=30)
    left = [["job:7", 11500 * MIB, until.timestamp()]]
    a_pool("atlas", CARD, "gpu0", 24000 * MIB, 15000 * MIB, unexplained=12000 * MIB, left=left)
    line = f"held, no process; was #7 until {until:%H:%M}"
    for page in (f"/devices/atlas/{CARD}", "/attribution", "/"):
        shown = text_of(viewer.get(page))
        assert f"{line} 11.2 GiB" in shown or f"{line} " in shown, page
    assert hardware.unexplained(PoolNow.objects.get(pool=CARD)) == 500 * MIB
    assert "not explained by any process 496 MiB" in text_of(viewer.get(f"/devices/atlas/{CARD}"))


def test_what_the_driver_keeps_is_shown_where_it_tells(node: Node) -> None:
    a_pool("atlas", CARD, "gpu0", 24576 * MIB, 8 * MIB, reserved=904 * MIB, free=23664 * MIB)
    assert facts(CARD)["Kept by the driver"] == "reserved 904 MiB: neither free nor in use"
    assert facts(UUIDS[1])["Kept by the driver"] == "not told apart: it counts as use"
    page = device.page(Device.objects.select_related("node").get(uuid=CARD), 0, sees_commands=False)
    assert page
    assert ("reserved by the driver", "− 904 MiB") in page.measured.terms


def test_what_contexts_cost_on_the_model_is_shown_with_the_runs_it_stands_on(node: Node) -> None:
    assert facts(CARD)["A process's context"] == "512 MiB by the knob: no run told yet"
    for number in range(4):
        contexts.keep("RTX 4090", "ann", f"job:{number}", 438 * MIB, timezone.now())
    contexts.keep("RTX 4090", "bob", "job:9", 300 * MIB, timezone.now())
    assert facts(CARD)["A process's context"] == "438 MiB in ann's runs (learned from 4); 512 MiB for everybody else"


def test_an_instance_names_its_card_and_the_card_is_no_place_of_its_own(node: Node, viewer: Any) -> None:
    Device.objects.filter(uuid=CARD).update(heading=True, declared=0)
    a_pool("atlas", CARD, "gpu0", 40960 * MIB, 5013 * MIB, state="heading", message="MIG on, 1 instance", model="A100")
    assert next(t.state for t in devices.all_tanks(sees_commands=False)) == "no instance"
    PoolNow.objects.filter(pool=CARD).update(total=None)
    assert "MIG on, 1 instance." in text_of(viewer.get("/attribution"))
    PoolNow.objects.filter(pool=CARD).update(total=40960 * MIB)
    Device.objects.create(uuid="MIG-a", node=node, name="gpu0.0", model="MIG 1g", declared=19968 * MIB, parent=CARD)
    a_pool("atlas", "MIG-a", "gpu0.0", 19968 * MIB, 5000 * MIB)
    tanks = {t.pool: t for t in devices.all_tanks(sees_commands=False)}
    assert (CARD in tanks, tanks["MIG-a"].notes) == (False, ("a MIG instance of gpu0",))
    assert facts("MIG-a")["Part of"] == "gpu0 (A100): MIG on, 1 instance; 4.9 GiB of 40.0 GiB in use in all"
    assert viewer.get(f"/devices/atlas/{CARD}").status_code == 404
    assert "gpu0.0" in text_of(viewer.get("/devices/atlas/MIG-a"))


def test_a_device_that_shares_main_memory_shows_who_uses_it_and_the_room_of_ram(node: Node) -> None:
    Device.objects.filter(uuid=CARD).update(shares=True)
    job = a_running(a_user("ada"), device=CARD, charges={"ram": {"granted": 30 * GIB, "held": 30 * GIB}})
    a_pool("atlas", CARD, "gpu0", 64 * GIB, 20 * GIB, free=56 * GIB, owners={f"job:{job.pk}": 20 * GIB})
    tanks = {t.pool: t for t in devices.all_tanks(sees_commands=False)}
    assert tanks[CARD].left == tanks["ram"].left
    assert "shares the machine's memory: one pool with RAM" in tanks[CARD].notes
    row = Device.objects.select_related("node").get(uuid=CARD)
    page = device.page(row, 0, sees_commands=False)
    assert page
    assert [(one.used, one.booked) for one in page.inmates] == [("20.0 GiB", "in RAM")]
    assert page.booked.terms[1] == ("booked by running jobs", "− 30.0 GiB")


def test_a_size_that_is_not_told_is_guessed_and_called_a_guess(node: Node) -> None:
    job = a_running(a_user("ada"), used={UUIDS[1]: None})
    owner = f"job:{job.pk}"
    a_pool("atlas", UUIDS[1], "gpu1", 24 * GIB, 10 * GIB, owners={owner: None}, external=None, unexplained=None)
    rows = [[1, owner, "root", "ada", "", None], [2, "", "", "bob", "", None], [3, "", "", "bob", "", 4 * GIB]]
    PoolProcesses.objects.create(node="atlas", pool=UUIDS[1], rows=rows)
    row = Device.objects.select_related("node").get(uuid=UUIDS[1])
    page = device.page(row, 0, sees_commands=False)
    assert page
    assert page.inmates[0].used == "about 3.0 GiB (a guess: sizes are not told)"


def test_files_in_shared_memory_are_named_where_nothing_else_explains_them(node: Node, viewer: Any) -> None:
    a_pool("atlas", "ram", "RAM", 64 * GIB, 8 * GIB, unexplained=GIB, files=828 * MIB)
    said = "816 MiB are files in shared memory (/dev/shm and the like): they stay until somebody removes them"
    assert said in text_of(viewer.get("/devices/atlas/ram"))
    a_pool("atlas", "ram", "RAM", 64 * GIB, 8 * GIB, unexplained=0, files=828 * MIB)
    assert hardware.files(PoolNow.objects.get(pool="ram")) == ""


def test_a_chart_shows_from_when_on_use_counts_in_another_way(node: Node, viewer: Any) -> None:
    AuditEntry.objects.create(
        who="tidegate", action="memory_call", subject=f"device {CARD}", detail={"said": "From here"}
    )
    at = int(timezone.now().timestamp()) - 20
    Point.objects.create(node="atlas", pool=CARD, step=10, at=at, total=24 * GIB, used=GIB, free=23 * GIB)
    figure = viewer.get(f"/devices/atlas/{CARD}/series?range=1h").json()
    check({key: figure[key] for key in ("data", "layout")})
    assert "From here" in {trace["name"] for trace in figure["data"]}


def test_an_admin_declares_that_a_device_shares_main_memory_on_its_form(node: Node, client: Any) -> None:
    client.force_login(a_user("root", Role.ADMIN))
    page = client.get(f"/devices/atlas/{CARD}").content.decode()
    assert "Shares the machine&#x27;s memory" in page or "Shares the machine's memory" in page
    row = Device.objects.get(uuid=CARD)
    seen = re.search(r'name="device-\d+-seen" value="([^"]+)"', page)
    assert seen
    answer = client.post(
        f"/declarations/device/{row.pk}/edit",
        {f"device-{row.pk}-{name}": value for name, value in
         {"seen": unescape(seen[1]), "name": row.name, "declared": "24 GiB", "one_pool": "on"}.items()},
    )  # fmt: skip
    assert answer.status_code in (200, 302)
    row.refresh_from_db()
    assert row.one_pool
