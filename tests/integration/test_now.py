"""The page Now: what the address asks for, bounded lists, parts that are sent only when they change."""

from __future__ import annotations

import gzip
import re
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from calibration.domain.resources import GIB
from calibration.domain.samples import PASSING
from calibration.models import PoolNow
from placement.models import Job, JobArray, JobProgress, Node, Role, Workload
from placement.selectors import devices, kept, now_lists, queue, rows, tanks, wire
from placement.selectors.asked import Asked, read
from tests.integration.rows import UUIDS, a_finished, a_forecast, a_job, a_machine, a_running, a_user

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
TO_LISTS = {**HTMX, "HX-Target": "lists"}


@pytest.fixture
def ada(client: Client, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(kept, "POLLED", 0.0)
    a_machine()
    user = a_user("ada")
    client.force_login(user)
    return user


def shown(answer: Any) -> list[int]:
    return [int(number) for number in re.findall(r'data-job="(\d+)"', answer.content.decode())]


def version(answer: Any) -> str:
    return re.findall(r"fragments/queue\?v=(\w+)", answer.content.decode())[0]


@pytest.mark.parametrize(
    "given, asked",
    [
        ({}, Asked()),
        ({"whose": "mine", "q": " a\0b ", "state": "running", "sort": "name", "page": "3"},
         Asked(whose="mine", q="ab", state="running", sort="name", page=3)),
        ({"whose": "x", "state": "x", "sort": "x", "reason": "x", "page": "-1"}, Asked()),
        ({"page": "0"}, Asked()),
        ({"page": "²"}, Asked()),
        ({"page": "9" * 99}, Asked(page=1000)),
        ({"q": "x" * 500, "reason": "no_room"}, Asked(q="x" * 100, reason="no_room")),
    ],
)  # fmt: skip
def test_an_address_is_read_and_what_means_nothing_asks_for_nothing(given: dict[str, str], asked: Asked) -> None:
    assert read(given) == asked
    assert read(dict(pair.split("=") for pair in asked.query().split("&") if pair)) == asked


def test_each_filter_finds_what_it_says_and_stays_in_the_address_of_the_next_look(client: Client, ada: Any) -> None:
    bob = a_user("bob")
    work = Workload.objects.create(name="vision", command="true")
    mine, theirs = a_job(ada, name="train-vit"), a_job(bob, name="eval", code="quota", key_workload="eval")
    runs = a_running(bob, name="long", workload=work)
    ended = a_finished(ada, name="short", key_workload="x", device=UUIDS[0])
    alone = a_job(ada, name="cpu", gpu="none", code="depends")
    a_forecast(theirs, device=UUIDS[0])
    for query, found in {
        "": [mine, theirs, alone, runs, ended],
        "whose=mine": [mine, alone, ended],
        "state=waiting": [mine, theirs, alone],
        "state=running": [runs],
        "user=bob": [theirs, runs],
        "workload=vision": [runs],
        "workload=eval": [theirs],
        f"device={UUIDS[1]}": [runs],
        f"device={UUIDS[0]}": [theirs, ended],
        "device=none": [alone],
        "reason=quota": [theirs],
        "reason=quota&state=running": [],
        "q=TRAIN": [mine],
        "q=bob": [theirs, runs],
        f"q=%23{ended.pk}": [ended],
        f"q={mine.pk}": [mine],
        "sort=name": [alone, theirs, mine, runs, ended],
        "sort=newest": [alone, theirs, mine, runs, ended],
        "sort=start&state=waiting": [theirs, mine, alone],
        "sort=owner&state=waiting": [mine, alone, theirs],
        "q=nothing-like-it": [],
    }.items():
        answer = client.get(f"/?{query}")
        assert shown(answer) == [job.pk for job in found], query
        (again,) = re.findall(r'hx-get="(/fragments/queue[^"]*)"', answer.content.decode())
        assert read(dict(parse_qsl(urlsplit(unescape(again)).query))) == read(dict(parse_qsl(query))), query
        poll = client.get(unescape(again), headers=HTMX)
        assert poll.status_code == 204, query
    assert "Show all jobs" in client.get("/?q=nothing-like-it").content.decode()


def test_the_form_of_filters_gets_the_lists_alone_and_the_address_to_show(client: Client, ada: Any) -> None:
    job, _ = a_job(ada), a_running(ada)
    answer = client.get("/?whose=&q=&state=waiting&sort=", headers=TO_LISTS)
    assert answer["HX-Push-Url"] == "/?state=waiting"
    assert shown(answer) == [job.pk]
    assert b"<html" not in answer.content
    assert b'id="now-devices"' not in answer.content
    behind = client.get(f"/fragments/queue?state=waiting&v={version(answer)}", headers=HTMX)
    assert b'id="now-devices"' in behind.content  # what stands above the lists is brought up to date by the next look
    assert b'id="now-waiting"' not in behind.content


def test_a_look_brings_only_the_parts_that_changed(client: Client, ada: Any) -> None:
    job, _ = a_job(ada), a_finished(ada)
    before = version(client.get("/"))
    Job.objects.filter(pk=job.pk).update(headline="Needs 9.9 GiB.")
    answer = client.get(f"/fragments/queue?v={before}", headers=HTMX)
    assert re.findall(r'<section id="([\w-]+)"', answer.content.decode()) == ["now-waiting"]
    assert re.findall(r'hx-select-oob="([^"]*)"', answer.content.decode()) == [
        ",".join(f"#now-{name}" for name in queue.PARTS)
    ]
    assert client.get(f"/fragments/queue?v={version(answer)}", headers=HTMX).status_code == 204


def test_a_thousand_waiting_jobs_make_a_page_of_fifty_and_all_can_be_reached(client: Client, ada: Any) -> None:
    first = a_job(ada)
    fields = {"user": ada, "cwd": "/tmp", "key_workload": "w", "headline": "Waits.", "code": "no_room"}
    Job.objects.bulk_create(Job(name=f"run-{n}", **fields) for n in range(999))
    page = client.get("/")
    assert len(shown(page)) == now_lists.PAGE
    assert b">1000" in page.content
    assert len(page.content) < 160_000
    seen, path = [], "/?state=waiting"
    while path:
        page = client.get(path)
        seen += shown(page)
        older = re.search(r'rel="next" href="([^"]+)"', page.content.decode())
        path = older[1].replace("&amp;", "&") if older else ""
    assert seen == list(range(first.pk, first.pk + 1000))
    assert b"no more rows" in client.get("/?state=waiting&page=900").content


def test_an_array_is_one_row_that_says_how_many_wait_behind_it(client: Client, ada: Any) -> None:
    array = JobArray.objects.create(name="sweep", user=ada, size=100)
    members = [a_job(ada, name="sweep", array=array, array_index=n) for n in range(100)]
    single = a_job(ada)
    page = client.get("/")
    assert shown(page) == [members[0].pk, single.pk]
    text = re.sub(r"<[^>]+>", "", page.content.decode())
    assert f"99 more of array {array.pk} wait behind it" in text
    assert f'value="a{array.pk}"' in page.content.decode()
    Job.objects.filter(pk=members[7].pk).update(priority=-4)  # one that was moved stands for itself
    assert shown(client.get("/")) == [members[0].pk, single.pk, members[7].pk]
    assert len(shown(client.get("/?q=sweep"))) == now_lists.PAGE  # who looks for members sees members


def test_one_ticks_ones_own_jobs_operators_all_and_viewers_none(client: Client, ada: Any) -> None:
    mine, theirs = a_job(ada), a_running(a_user("bob"))
    ticks = re.compile(r'name="job" value="(\d+)"')
    assert ticks.findall(client.get("/").content.decode()) == [str(mine.pk)]
    client.force_login(a_user("olga", Role.OPERATOR))
    assert ticks.findall(client.get("/").content.decode()) == [str(mine.pk), str(theirs.pk)]
    client.force_login(a_user("vic", Role.VIEWER))
    page = client.get("/").content.decode()
    assert ticks.findall(page) == []
    assert 'id="bulk"' not in page


def test_who_owns_nothing_here_shares_a_rendering_and_own_jobs_say_you(client: Client, ada: Any) -> None:
    bob = a_user("bob")
    a_job(bob)
    shown_by = {}
    for user in (ada, bob, a_user("cleo")):
        client.force_login(user)
        shown_by[user.username] = re.search(
            r'<section id="now-waiting".*?</section>', client.get("/").content.decode(), re.S
        )[0]
    unaged = {who: re.sub(r">[^<]*</time>", "", page) for who, page in shown_by.items()}  # a second may pass between
    assert unaged["ada"] == unaged["cleo"]
    assert "you" in shown_by["bob"]
    assert ">bob" not in shown_by["bob"]


def test_ids_are_unique_and_every_control_has_a_name(client: Client, ada: Any) -> None:
    array = JobArray.objects.create(name="s", user=ada, size=2)
    for index in range(2):
        a_job(ada, array=array, array_index=index)
    a_running(ada), a_finished(ada)
    page = client.get("/").content.decode()
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids)), [one for one in ids if ids.count(one) > 1]
    labelled = set(re.findall(r'<label[^>]* for="([^"]+)"', page))
    for tag in re.findall(r"<(?:select|input)[^>]*>", page):
        found = re.search(r'\sid="([^"]+)"', tag)
        if 'type="hidden"' in tag or 'type="checkbox"' in tag:
            continue
        assert found, tag
        assert found[1] in labelled, tag


def test_what_goes_over_the_wire_is_packed_for_who_takes_it_so(client: Client, ada: Any) -> None:
    for n in range(30):
        a_job(ada, name=f"run {n}")
    takes = {"Accept-Encoding": "gzip, br"}
    for path in ("/", "/fragments/queue?v=x"):
        plain, packed = client.get(path, headers=HTMX), client.get(path, headers={**HTMX, **takes})
        assert packed["Content-Encoding"] == "gzip"
        assert "Accept-Encoding" in packed["Vary"]
        assert "Content-Encoding" not in plain
        assert len(packed.content) < len(plain.content) / 5
        assert b"run 29" in gzip.decompress(packed.content)


def test_what_runs_is_read_with_one_query_however_many_run(ada: Any, django_assert_num_queries: Any) -> None:
    for n in range(5):
        job = a_running(ada, name=f"run {n}", flags=["a word"], stop_requested_at=timezone.now() if n else None)
        JobProgress.objects.create(job=job, share=0.5)
    with django_assert_num_queries(1):
        active = devices.active_jobs()
        assert [rows.running(job, {}).progress.percent for job in active] == [50] * 5
        assert len(tanks.holders(active, "atlas", UUIDS[1], None)) == 5
        assert [wire._running(job)["user"] for job in active] == ["ada"] * 5


def test_a_banner_is_a_sentence_about_what_lasts(client: Client, ada: Any) -> None:
    passing = f"2 exact memory readings {PASSING}: too many for one"
    Node.objects.update(notes=["NVIDIA devices are not read here", passing])
    page = client.get("/").content.decode()
    assert re.search(r"atlas: NVIDIA devices are not read here\.[ <]", page)
    assert PASSING not in page  # it comes and goes, and would move all that stands below it


def test_of_a_part_that_only_moves_the_pieces_are_sent_each_for_its_place(client: Client, ada: Any) -> None:
    first, second = a_running(ada, name="first"), a_running(ada, name="second")
    before = version(page := client.get("/"))
    assert 'hx-swap-oob="true"' not in page.content.decode()
    Job.objects.filter(pk=second.pk).update(used={UUIDS[1]: 3 * GIB})
    text = client.get(f"/fragments/queue?v={before}", headers=HTMX).content.decode()
    places = re.findall(r'id="([\w-]+)"[^>]*? hx-swap-oob="true"', text)
    assert f"row-{second.pk}" in places
    assert f"row-{first.pk}" not in text
    assert '<section id="now-running"' not in text
    assert all(f'id="{place}"' in page.content.decode() for place in places)
    assert f'value="{second.pk}"' in text  # it can be ticked as before
    now = re.findall(r"fragments/queue\?v=(\w+)", text)[0]
    assert client.get(f"/fragments/queue?v={now}", headers=HTMX).status_code == 204
    a_running(ada, name="third")  # who comes or goes takes the whole list
    assert '<section id="now-running"' in client.get(f"/fragments/queue?v={now}", headers=HTMX).content.decode()


def test_a_tank_that_moves_is_sent_without_its_neighbours(client: Client, ada: Any) -> None:
    before = version(client.get("/"))
    PoolNow.objects.filter(pool=UUIDS[0]).update(used=9 * GIB, free=15 * GIB, external=9 * GIB)
    text = client.get(f"/fragments/queue?v={before}", headers=HTMX).content.decode()
    assert re.findall(r'<article[^>]* id="([\w-]+)"', text) == [f"tank-{tanks.slugify(f'atlas-{UUIDS[0]}')}"]
    assert '<section id="now-devices"' not in text
