"""The one-line box: a command and Enter make one job, as the person's last ones were."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.template import Context, Template
from django.test import Client, RequestFactory

from placement.models import Job, Role
from tests.integration.rows import a_job, a_machine, a_user

pytestmark = pytest.mark.django_db


def box(user: Any) -> str:
    request = RequestFactory().get("/")
    request.user = user
    return Template("{% load quick %}{% quick %}").render(Context({"request": request})).strip()


def test_the_box_is_there_for_who_may_submit_and_its_key_is_new_each_time() -> None:
    ada = a_user("ada")
    keys = [re.search(r'name="form_key" value="([^"]{20,})"', box(ada)) for _ in range(2)]
    assert len({key[1] for key in keys if key}) == 2
    assert box(a_user("vi", Role.VIEWER)) == ""


def test_a_line_sent_twice_makes_one_job_where_the_last_one_was(client: Client) -> None:
    a_machine()
    ada = a_user("ada")
    a_job(ada, cwd="/tmp", command="python a.py", gpu="one")
    client.force_login(ada)
    line = {"quick": "1", "command": "python a.py", "form_key": "only-once"}
    answers = [client.post("/submit", line) for _ in range(2)]
    made = Job.objects.get(form_key="only-once")
    assert {a.headers["Location"] for a in answers} == {f"/jobs/{made.pk}"}
    assert (made.command, made.cwd, made.gpu, made.name) == ("python a.py", "/tmp", "one", "python a.py")


def test_a_line_that_cannot_be_taken_shows_the_whole_form_with_it(client: Client) -> None:
    ada = a_user("ada")
    a_job(ada, cwd="/nowhere-at-all")
    client.force_login(ada)
    page = client.post("/submit", {"quick": "1", "command": "echo kept", "form_key": "k"})
    assert page.status_code == 422
    assert "echo kept</textarea>" in page.content.decode()
    assert "/nowhere-at-all is outside the directories" in page.content.decode()
