"""The page "Memory": who holds each pool, process by process, and by which rule."""

from __future__ import annotations

import re

import pytest

from calibration.models import PoolNow, PoolProcesses
from placement.models import Role
from placement.selectors import attribution
from tests.integration.rows import GIB, UUIDS, a_machine, a_pool, a_running, a_user

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def text_of(answer) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


@pytest.fixture
def job():
    a_machine()
    job = a_running(a_user("ada"))
    owners = {f"job:{job.pk}": 11 * GIB, "tidegate": GIB // 8}
    a_pool("atlas", UUIDS[1], "gpu1", 24 * GIB, 16 * GIB, free=7 * GIB, reserved=GIB, owners=owners,
           external=3 * GIB, unexplained=GIB)  # fmt: skip
    PoolProcesses.objects.create(
        node="atlas",
        pool=UUIDS[1],
        rows=[
            [101, f"job:{job.pk}", "root", "ada", "python", 8 * GIB],
            [102, f"job:{job.pk}", "known", "ada", "loader", None],
            [77, "tidegate", "supervisor", "root", "runner", GIB // 8],
            [9, "", "", "bob", "secret-tool", 3 * GIB],
        ],
        more=[[f"job:{job.pk}", 12, 2 * GIB]],
    )
    return job


def look(viewer: int = 0, *, operates: bool) -> attribution.Filled:
    (machine,) = attribution.page(viewer, sees_commands=operates)
    return next(pool for pool in machine.pools if pool.tank.pool == UUIDS[1])


def test_every_byte_has_an_owner_or_says_that_it_has_none(job):
    parts = {part.who: (part.used, part.share) for part in look(operates=True).parts}
    assert parts == {
        f"#{job.pk} train-vit": ("11.0 GiB", "46 %"),
        "Tidegate itself": ("128 MiB", "1 %"),
        "not ours": ("3.0 GiB", "12 %"),
        "not explained": ("1.0 GiB", "4 %"),
        "the driver's own": ("1.0 GiB", "4 %"),
    }


def test_each_process_says_by_which_rule_it_belongs_and_those_not_listed_are_summed(job):
    part = look(operates=True).parts[0]
    assert [(p.pid, p.name, p.used) for p in part.processes] == [
        (101, "python", "8.0 GiB"),
        (102, "loader", "unknown"),
    ]
    assert [p.why for p in part.processes] == [attribution.RULES["root"], attribution.RULES["known"]]
    assert part.more == "and 12 more with 2.0 GiB"


def test_names_of_processes_are_for_operators_and_the_jobs_owner(job, client):
    seen = {}
    for who, role in (("op", Role.OPERATOR), ("eve", Role.VIEWER)):
        client.force_login(a_user(who, role))
        page = client.get("/attribution").content.decode()
        seen[who] = ("loader" in page, "secret-tool" in page, "101" in page)
    client.force_login(job.user)
    page = client.get("/attribution").content.decode()
    seen["ada"] = ("loader" in page, "secret-tool" in page, "101" in page)
    assert seen == {"op": (True, True, True), "eve": (False, False, True), "ada": (True, False, True)}


def test_the_drawing_stays_inside_itself(job):
    blocks = look(operates=True).blocks
    owners = [b for b in blocks if b.level == 1]
    assert sum(b.width for b in owners) <= 100.1
    assert owners[0].width == pytest.approx(11 / 24 * 100, abs=0.1)
    inside = [b for b in blocks if b.level == 2 and "train-vit" in b.title]
    assert max(b.x + b.width for b in inside) <= owners[0].x + owners[0].width + 0.1
    assert [b.title for b in inside] == [
        f"pid 101 of #{job.pk} train-vit: 8.0 GiB",
        f"others of #{job.pk} train-vit: 2.0 GiB",
    ]


def test_a_node_that_was_not_read_yet_and_no_node_say_so(client):
    client.force_login(a_user("vic", Role.VIEWER))
    assert "No node has reported yet." in text_of(client.get("/attribution"))
    a_machine()
    PoolNow.objects.filter(pool=UUIDS[0]).update(total=None, used=None, free=None, read_at=None)
    assert "Not read yet" in text_of(client.get("/attribution"))


def test_the_part_answers_204_while_it_reads_the_same(job, client):
    client.force_login(a_user("vic", Role.VIEWER))
    version = re.search(r"fragment\?v=(\w+)", client.get("/attribution").content.decode())[1]
    assert client.get(f"/attribution/fragment?v={version}", headers=HTMX).status_code == 204
    assert client.get("/attribution/fragment?v=x", headers=HTMX).status_code == 200


@pytest.mark.parametrize(
    "count, rest, said",
    [(0, 0, ""), (3, None, "and 3 more, whose size is unknown"), (2, 5 * GIB, "and 2 more with 5.0 GiB")],
)
def test_what_is_not_listed_is_told_with_its_size_or_that_nobody_knows_it(
    count: int, rest: int | None, said: str
) -> None:
    assert attribution._more(count, rest) == said


@pytest.mark.parametrize(
    "count, rest, said",
    [(1, 0, "1 process, less than 1 MiB"), (3, 0, "3 processes, less than 1 MiB"), (2, GIB, "2 processes, 1.0 GiB"),
     (1, None, "1 process, of unknown size")],
)  # fmt: skip
def test_where_nobody_is_listed_there_is_nobody_to_whom_others_are_added(count, rest, said) -> None:
    assert attribution._more(count, rest, listed=0) == said
