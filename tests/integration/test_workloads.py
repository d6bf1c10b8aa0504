"""A workload is defined from a file, submitted by name, and starts from what its author wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from placement.models import AuditEntry, Job, Role, Workload
from placement.services import secrets
from tests.integration.rows import a_machine, a_user

pytestmark = pytest.mark.django_db
TEXT = """
name = "train"
command = "python train.py --lr {lr} --seed {seed}"
cwd = "/tmp"
gpu = "one"
workers = 3
hint_vram = "4 GiB"
hint_ram = "1 GiB"
[parameters.lr]
default = "1e-3"
[parameters.seed]
matters = false
[environment]
TOKEN = "s3cret"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "train.toml"
    path.write_text(TEXT)
    return path


def test_it_is_defined_updated_listed_and_removed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("workload", str(file))
    row = Workload.objects.get(name="train")
    assert secrets.unseal(bytes(row.environment)) == {"TOKEN": "s3cret"}
    assert "s3cret" not in json.dumps(list(AuditEntry.objects.values_list("detail", flat=True)))
    file.write_text(TEXT.replace("workers = 3", "workers = 5"))
    call_command("workload", str(file))
    assert Workload.objects.get(name="train").workers == 5
    call_command("workload")
    call_command("workload", "--remove", "train")
    said = capsys.readouterr().out
    assert "train is defined." in said
    assert "train is up to date." in said
    assert "train: python train.py" in said
    for wrong in (["--remove", "train"], [str(file) + ".gone"]):
        with pytest.raises(CommandError):
            call_command("workload", *wrong)


def test_a_submission_by_name_starts_from_what_its_author_wrote(client: Client, file: Path) -> None:
    a_machine()
    call_command("workload", str(file))
    client.force_login(a_user("ada", Role.SUBMITTER))
    asked = {"workload": "train", "params": {"seed": "it's 7"}}
    answer = client.post("/api/v1/jobs", json.dumps(asked), content_type="application/json")
    assert answer.status_code == 201, answer.content
    job = Job.objects.get(pk=answer.json()["job"]["id"])
    assert (job.gpu, job.workers, job.cwd) == ("one", 3, "/tmp")
    assert job.command == "python train.py --lr 1e-3 --seed 'it'\"'\"'s 7'"
    assert job.key_params == '{"lr": "1e-3"}'
    assert job.estimate["basis"] == "hint"
