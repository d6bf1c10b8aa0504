"""The frame of all pages: what polls, what is said once, what stands where nothing else can."""

from __future__ import annotations

import json
import re

import pytest
from django.template import Context, Template
from django.template.loader import render_to_string
from django.test import Client

from placement.models import Role
from placement.services import accounts
from placement.templatetags import tidegate
from tests.integration.rows import a_job, a_machine, a_user

pytestmark = pytest.mark.django_db
NOTICE = "Jobs of ada run as root"


@pytest.fixture
def ada(client: Client):
    client.force_login(user := a_user("ada", Role.ADMIN))
    return user


def tag(text: str, **context: object) -> str:
    return Template("{% load tidegate %}" + text).render(Context(context))


def test_a_part_polls_by_one_tag_with_its_version_first_and_nothing_that_was_not_asked() -> None:
    found = tag(
        '{% polls "array-fragment" version 7 outcome=outcome before=before %}', version="a1", outcome="", before=3
    )
    assert 'hx-get="/arrays/7/fragment?v=a1&amp;before=3"' in found
    assert f'hx-trigger="every {tidegate.POLL_S}s, wake"' in found
    assert "data-poll" in found


def test_what_is_asked_for_is_data_and_never_an_attribute() -> None:
    found = tag('{% polls "queue-fragment" "1" q=q %}', q='" onload="x&y')
    assert "onload=" not in found
    assert "q=%22+onload%3D%22x%26y" in found


@pytest.mark.parametrize("path, times", [("/", 1), ("/people", 1), ("/jobs/", 1), ("/login", 0)])
def test_whose_account_jobs_run_as_is_said_once_on_a_page(client, monkeypatch, path: str, times: int) -> None:
    a_machine()
    monkeypatch.setattr(accounts, "trust_notice", lambda: NOTICE)
    tidegate._notice._kept.clear()
    if path != "/login":
        client.force_login(a_user("ada", Role.ADMIN))
    assert client.get(path).content.decode().count(NOTICE) == times
    tidegate._notice._kept.clear()


def test_a_part_that_is_not_answered_is_given_up_so_that_the_lamp_tells(client, ada) -> None:
    page = client.get("/").content.decode()
    config = json.loads(re.search(r"name=\"htmx-config\"\s+content='([^']+)'", page)[1])
    assert 1000 <= config["timeout"] <= 60_000
    assert "style" not in config["attributesToSettle"]  # set as an attribute, the content policy refuses it


@pytest.mark.parametrize("name", ["400.html", "500.html", "403_csrf.html"])
def test_a_page_for_when_all_else_fails_needs_no_request_and_says_what_to_do(name: str) -> None:
    page = render_to_string(name)
    assert re.search(r"<p data-message>[^<]+</p>", page)
    assert 'href="/"' in page
    assert "/static/css/tokens.css" in page
    assert "<style" not in page


def test_a_job_that_is_not_there_is_named_and_an_address_is_not_explained(client, ada) -> None:
    assert "There is no job" in client.get("/jobs/99").content.decode()
    page = client.get("/there-is-no-such-page").content.decode()
    assert "There is nothing at this address." in page
    assert "Resolver404" not in page


def test_a_refusal_says_what_kind_it_is(client) -> None:
    client.force_login(a_user("vic", Role.VIEWER))
    assert "<h1>Not allowed" in client.get("/people").content.decode()
    assert "<h1>Not understood" in client.get("/jobs/?q=%00").content.decode()


def test_pages_their_parts_and_figures_go_packed_to_whoever_takes_them_so(client: Client, ada) -> None:
    a_machine()
    job = a_job(ada, headline="Needs 8.2 GiB; 6.1 GiB is left on gpu0. " * 9)
    takes = {"Accept-Encoding": "gzip, br"}
    pages = ["/", "/jobs/", "/devices", f"/jobs/{job.pk}", "/attribution"]
    parts = [f"/jobs/{job.pk}/fragment", "/fragments/pools", "/attribution/fragment", "/fragments/queue"]
    for path, headers in [*((p, takes) for p in pages), *((p, {**takes, "HX-Request": "true"}) for p in parts)]:
        answer = client.get(path, headers=headers)
        assert answer["Content-Encoding"] == "gzip", path
        plain = client.get(path, headers={name: word for name, word in headers.items() if name != "Accept-Encoding"})
        assert "Content-Encoding" not in plain, path
        assert len(answer.content) < len(plain.content) / 2, path


def test_what_is_streamed_keeps_its_length_and_goes_as_it_is(client: Client, ada) -> None:
    node = a_machine()
    answer = client.get(f"/devices/{node.name}/ram/series.csv", headers={"Accept-Encoding": "gzip"})
    assert answer.streaming
    assert "Content-Encoding" not in answer
