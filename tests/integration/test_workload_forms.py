"""Workloads are defined, edited and removed on a page: nothing typed is lost, no value of a variable is shown."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from calibration.domain import keys
from placement.domain.submitting import workloads as domain
from placement.models import AuditEntry, Job, Role, Workload
from placement.services import secrets
from placement.services import workloads as service
from tests.integration.learned import a_run
from tests.integration.rows import a_finished, a_machine, a_user
from tests.integration.test_workloads import TEXT

pytestmark = pytest.mark.django_db
HERE = f"/workloads/{keys.named('train')}"


@pytest.fixture
def ada() -> User:
    a_machine()
    return a_user("ada", Role.OPERATOR)


@pytest.fixture
def page(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def sent(**more: Any) -> dict[str, Any]:
    fields = {
        "name": "train", "command": "python train.py --lr {lr}", "gpu": "one", "exclusive": "no", "workers": "2",
        "rows": "2", "p0_name": "lr", "p0_default": "1e-3", "p0_matters": "on", "p1_matters": "on",
        "hint_vram": "4 GiB", "environment": "TOKEN=s3cret", "retry_times": "2", "retry_on": "failed",
        "retry_wait_s": "1 min",
    }  # fmt: skip
    return {**fields, **more}


def test_a_workload_is_defined_and_its_author_kept(page: Client, ada: User) -> None:
    answer = page.post("/workloads/define", sent(), follow=True)
    assert answer.redirect_chain[0][0] == HERE
    assert "train is defined." in answer.content.decode()
    row = Workload.objects.get()
    assert (row.owner, row.workers, row.gpu, row.hint_vram) == (ada, 2, "one", 4 << 30)
    assert row.parameters == [{"name": "lr", "default": "1e-3", "matters": True, "help": ""}]
    assert row.retry_policy == {"times": 2, "on": ["failed"], "wait_s": 60.0, "longest_s": 3600.0}
    assert secrets.unseal(bytes(row.environment)) == {"TOKEN": "s3cret"}
    assert "s3cret" not in str(list(AuditEntry.objects.values_list("detail", flat=True)))


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"name": " "}, "This field is required"),
        ({"command": "run {lr} {seed}"}, "It names seed; a row for it is below"),
        ({"hint_vram": "4 parsecs"}, "is not a unit"),
        ({"gpu": "none"}, "cannot have one alone"),
        ({"p1_name": "lr"}, "stands in two rows"),
        ({"p0_name": "l r", "command": "run"}, "a parameter has a plain name"),
        ({"retry_on": "sunset"}, "sunset"),
        ({"retry_wait_s": "30 d"}, "wait_s is a number of seconds"),
        ({"environment": "TOKEN"}, "has no ="),
        ({"workers": "0"}, "greater than or equal to 1"),
    ],
)
def test_what_is_wrong_stands_beside_its_field_and_nothing_is_lost(page: Client, wrong: Any, said: str) -> None:
    answer = page.post("/workloads/define", sent(**wrong, summary="keep <me>"))
    shown = answer.content.decode()
    assert answer.status_code == 422
    assert said in shown.replace("&#x27;", "'")
    assert "keep &lt;me&gt;" in shown
    assert "all that you typed is still here" in shown
    assert not Workload.objects.exists()


def test_a_parameter_that_the_command_names_gets_a_row(page: Client) -> None:
    shown = page.post("/workloads/define", sent(command="run {lr} {seed} {more}")).content.decode()
    assert 'name="p1_name" value="seed"' in shown
    assert 'name="p2_name" value="more"' in shown
    more = page.post("/workloads/define", sent(what="more", name="half done"), headers={"HX-Request": "true"})
    part = more.content.decode()
    assert "<html" not in part
    assert 'name="p3_name"' in part
    assert 'value="half done"' in part


def test_editing_keeps_sealed_values_and_replaces_those_that_are_typed(page: Client) -> None:
    page.post("/workloads/define", sent(environment="A=one\nB=two\nC=three"))
    shown = page.get(f"{HERE}/edit").content.decode()
    assert not {"one\n", "two", "three"} & set(shown.split())
    assert "4.0 GiB" in shown
    seen = service.state(Workload.objects.get())
    page.post(f"{HERE}/edit", sent(seen=seen, keep=["A", "B"], environment="B=zwei", workers="3"))
    row = Workload.objects.get()
    assert row.workers == 3
    assert secrets.unseal(bytes(row.environment)) == {"A": "one", "B": "zwei"}


def test_what_others_changed_is_not_overwritten_unseen(page: Client) -> None:
    page.post("/workloads/define", sent())
    seen = service.state(Workload.objects.get())
    service.define(None, TEXT)
    answer = page.post(f"{HERE}/edit", sent(seen=seen, summary="mine"))
    shown = answer.content.decode()
    assert "was changed by tidegate while you wrote" in shown
    assert 'value="mine"' in shown
    assert Workload.objects.get().summary == ""
    page.post(f"{HERE}/edit", sent(seen=service.state(Workload.objects.get()), summary="mine"))
    assert Workload.objects.get().summary == "mine"
    assert "already" in page.post("/workloads/define", sent()).content.decode()


def test_removal_keeps_jobs_and_what_was_learned(page: Client, ada: User) -> None:
    service.define(None, TEXT)
    job, _ = a_run(ada)
    Job.objects.filter(pk=job.pk).update(workload=Workload.objects.get())
    assert "1 job of it stays" in page.get(f"{HERE}/edit").content.decode()
    said = page.post(f"{HERE}/remove", follow=True).content.decode()
    assert "train is no workload any more" in said
    assert "not defined any more" in page.get(HERE).content.decode()
    assert Job.objects.get(pk=job.pk).workload is None
    assert page.get(f"{HERE}/edit").status_code == 404
    again = page.post(f"{HERE}/edit", sent(seen="gone", summary="mine"))
    assert "was removed while you wrote" in again.content.decode()
    assert 'value="mine"' in again.content.decode()


def test_a_toml_text_fills_the_form_and_comes_out_again(page: Client) -> None:
    file = SimpleUploadedFile("train.toml", TEXT.encode())
    shown = page.post("/workloads/define", {"what": "import", "file": file}).content.decode()
    assert 'name="p0_name" value="lr"' in shown
    assert "TOKEN=s3cret" in shown  # whoever brought it reads it, before it is sealed
    assert not Workload.objects.exists()
    wrong = page.post("/workloads/define", {"what": "import", "toml": "name = 7"})
    assert wrong.status_code == 422
    assert "It must be text" in wrong.content.decode()
    assert "name = 7" in wrong.content.decode()
    assert "Paste a definition" in page.post("/workloads/define", {"what": "import"}).content.decode()
    service.define(None, TEXT)
    answer = page.get(f"{HERE}/toml")
    assert answer["Content-Disposition"] == 'attachment; filename="train.toml"'
    text = answer.content.decode()
    assert "s3cret" not in text
    assert "# TOKEN = …" in text
    assert domain.parse(text) == service.definition_of(Workload.objects.get())


def test_a_typed_job_fills_the_form(page: Client, ada: User) -> None:
    job = a_finished(ada, command="python net.py --lr 1", cwd="/tmp", workload=None, key_script="/tmp/net.py")
    shown = page.get(f"/workloads/define?job={job.pk}").content.decode()
    assert "python net.py --lr 1" in shown
    assert page.get("/workloads/define?job=x").status_code == 200


def test_only_operators_define_and_only_who_submits_reads_a_definition(client: Client, ada: User) -> None:
    service.define(None, TEXT)
    cleo, vic = a_user("cleo"), a_user("vic", Role.VIEWER)
    client.force_login(cleo)
    assert "as TOML" in client.get(HERE).content.decode()
    for path in ("/workloads/define", f"{HERE}/edit", f"{HERE}/remove"):
        assert client.post(path, sent()).status_code == 403
    client.force_login(vic)
    assert "python train.py" not in client.get(HERE).content.decode() + client.get("/workloads").content.decode()
    assert client.get(f"{HERE}/toml").status_code == 403
