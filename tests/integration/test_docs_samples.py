"""What the documents tell people to send is taken."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.test import Client

from placement.models import Job, Role, Workload
from placement.services import workloads
from tests.integration.rows import a_finished, a_machine, a_user

pytestmark = pytest.mark.django_db
DOCS = Path(__file__).parents[2] / "docs"
SENT = re.findall(r"^P (\S+) '(\{.*\})'", (DOCS / "api.md").read_text(), re.MULTILINE)


def test_there_are_samples_to_send() -> None:
    assert {path for path, _ in SENT} >= {"jobs", "estimate", "jobs/bulk"}


@pytest.mark.parametrize(("path", "body"), SENT)
def test_a_sample_of_the_guide_to_the_api_is_taken(client: Client, path: str, body: str) -> None:
    ada = a_user("ada", Role.ADMIN)
    a_machine()
    client.force_login(ada)
    for number in (12, 13):
        a_finished(ada, pk=number)
    answer = client.post(f"/api/v1/{path}", json.loads(body), content_type="application/json")
    assert answer.status_code in (200, 201), (body, answer.content)
    assert Job.objects.filter(state="queued").exists() == (path == "jobs")


def test_the_text_that_defines_a_workload_is_taken() -> None:
    whole, *parts = re.findall(r"```toml\n(.*?)```", (DOCS / "workloads.md").read_text(), re.DOTALL)
    workloads.define(None, whole)
    assert Workload.objects.get().name == "train-vit"
    for number, part in enumerate(parts):  # in the place of the lines that say the same
        said = {"name", *re.findall(r"^(\w+) =", part, re.MULTILINE)}
        left = [line for line in whole.splitlines() if line.partition(" ")[0] not in said]
        workloads.define(None, "\n".join([f'name = "part-{number}"', part, *left]))
    assert Workload.objects.count() == 1 + len(parts)
