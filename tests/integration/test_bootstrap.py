from __future__ import annotations

import re
import stat
import subprocess
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from placement.models import AuditEntry, Cycle, Device, Job, Member, Node, Workload
from placement.services import accounts, members, premises, stopping
from scheduler_site import errands

pytestmark = pytest.mark.django_db
GIB = 2**30


@pytest.fixture(autouse=True)
def place(settings: Any, tmp_path: Path) -> Path:
    settings.DATA, settings.RUNS, settings.SIMULATED_DIR = tmp_path, tmp_path / "runs", tmp_path / "simulated"
    settings.ALLOWED_ROOTS, settings.NODE = [tmp_path], "atlas"
    return tmp_path


def bootstrap(*arguments: str) -> str:
    out = StringIO()
    call_command("bootstrap", "--address", "http://127.0.0.1:8470", *arguments, stdout=out)
    return out.getvalue()


def test_a_start_says_what_else_would_only_be_said_by_a_command_that_refuses(
    place: Path, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(errands, "call_command", lambda *_, **__: None)
    place.chmod(0o755)
    errands.prepare(demo=False, simulate="", address="")
    assert f"Close it: chmod go-rw {place}" in capsys.readouterr().out
    place.chmod(0o700)
    errands.prepare(demo=False, simulate="", address="")
    assert capsys.readouterr().out == ""


def token(said: str) -> str:
    found = re.search(r"^Login \(once\): http://127\.0\.0\.1:8470/login/link/(\S+)$", said, re.MULTILINE)
    assert found, said
    return found[1]


def test_a_first_start_makes_the_node_its_devices_and_an_admin_who_can_come_in() -> None:
    said = bootstrap("--simulate", "2x24GiB,1x80GiB")

    assert "gpu2 found: simulated 80 GiB, 80.0 GiB declared." in said
    assert Node.objects.get().name == "atlas"
    assert list(Device.objects.order_by("index").values_list("name", "declared", "simulated")) == [
        ("gpu0", 24 * GIB, True),
        ("gpu1", 24 * GIB, True),
        ("gpu2", 80 * GIB, True),
    ]
    assert Cycle.objects.count() == 1
    admin = members.redeem_link(token(said))
    assert (admin.username, admin.is_superuser, admin.has_usable_password()) == ("admin", True, False)
    assert Member.objects.get().role == "admin"


def test_a_second_start_makes_nothing_new_and_still_lets_the_admin_in() -> None:
    bootstrap("--simulate", "1x24GiB")
    records = AuditEntry.objects.count()

    again = bootstrap("--simulate", "1x24GiB")

    assert token(again)
    assert "found" not in again
    assert (User.objects.count(), Node.objects.count(), Device.objects.count()) == (1, 1, 1)
    assert AuditEntry.objects.count() == records


def test_once_an_admin_has_logged_in_a_link_is_printed_only_when_asked_for() -> None:
    bootstrap()
    User.objects.update(last_login=timezone.now())

    assert "Login" not in bootstrap()
    assert token(bootstrap("--link"))


def test_a_start_without_the_simulation_retires_its_devices() -> None:
    bootstrap("--simulate", "1x24GiB")

    said = bootstrap("--simulate", "")

    assert "gpu0 is no longer simulated here." in said
    assert Device.objects.get().retired


def test_devices_that_cannot_be_simulated_are_an_error_in_words() -> None:
    with pytest.raises(CommandError, match="2xlots"):
        bootstrap("--simulate", "2xlots")


def test_it_says_whom_jobs_run_as(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "worker_is_root", lambda: True)

    assert "Jobs of admin run as root: no Unix account is mapped." in bootstrap()


def test_it_closes_the_database_to_others(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    database = place / "tidegate.sqlite3"
    database.write_text("")
    database.chmod(0o644)
    monkeypatch.setattr(premises, "database_file", lambda: database)

    bootstrap()

    assert stat.S_IMODE(database.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("simulate", "with_device", "alone"), [("2x24GiB", 7, "device"), ("", 0, "machine")], ids=["simulated", "no device"]
)
def test_the_demonstration_submits_jobs_that_suit_the_machine(simulate: str, with_device: int, alone: str) -> None:
    said = bootstrap("--demo", "--simulate", simulate)

    assert "Demonstration: 8 example jobs submitted." in said
    jobs = Job.objects.all()
    assert {job.demo for job in jobs} == {True}
    assert {job.priority for job in jobs} == {-1}
    assert len([job for job in jobs if job.gpu == "one"]) == with_device
    assert {job.exclusive for job in jobs} == {"no", alone}
    assert Workload.objects.filter(demo=True).count() == 3


def test_every_start_with_the_demonstration_submits_and_keeps_three_workloads() -> None:
    bootstrap("--demo", "--simulate", "1x24GiB")
    bootstrap("--demo", "--simulate", "1x24GiB")

    assert (Job.objects.count(), Workload.objects.count()) == (16, 3)
    device = dict(Workload.objects.values_list("name", "gpu"))
    assert device == {"example-train": "one", "example-evaluate": "one", "example-sweep": "none"}


def test_the_examples_run_as_they_are_submitted(place: Path) -> None:
    bootstrap("--demo", "--simulate", "")

    for name, changes in (
        ("example-train", {"seconds": "0.6"}),
        ("example-evaluate", {"seconds": "0.6"}),
        ("example-sweep", {"trials": "2", "seconds": "0.05"}),
    ):
        workload = Workload.objects.get(name=name)
        command = workload.command
        for parameter in workload.parameters:
            command = command.replace(
                "{" + parameter["name"] + "}", changes.get(parameter["name"], parameter["default"])
            )
        ended = subprocess.run(
            ["bash", "-c", command], cwd=workload.cwd, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.strip()
        assert "{" not in command


def test_the_demonstrations_jobs_are_cancelled_and_nobody_elses() -> None:
    bootstrap("--demo", "--simulate", "1x24GiB")
    mine = Job.objects.order_by("pk").first()
    assert mine is not None
    Job.objects.filter(pk=mine.pk).update(demo=False)

    call_command("cancel_demo")

    assert set(Job.objects.filter(demo=True).values_list("outcome", flat=True)) == {"cancelled"}
    assert Job.objects.get(pk=mine.pk).state == "queued"


def test_all_jobs_are_cancelled_with_a_sentence_each() -> None:
    bootstrap("--demo", "--simulate", "1x24GiB")
    out = StringIO()

    call_command("cancel_all", stdout=out)
    assert out.getvalue().count("is cancelled; it had not started.") == 8
    assert not stopping.unfinished().exists()

    out = StringIO()
    call_command("cancel_all", stdout=out)
    assert out.getvalue() == "No job waits or runs.\n"


def test_a_login_link_leads_to_where_the_service_runs(place: Path) -> None:
    User.objects.create_user("bob")

    def link() -> str:
        out = StringIO()
        call_command("login_link", "bob", stdout=out)
        return out.getvalue()

    assert link().startswith("Login (once): http://127.0.0.1:8470/login/link/")
    (place / "up.json").write_text('{"address": "http://127.0.0.1:1234"}')
    assert link().startswith("Login (once): http://127.0.0.1:1234/login/link/")


def test_a_login_link_for_somebody_who_is_locked_out() -> None:
    bob = User.objects.create_user("bob")
    out = StringIO()

    call_command("login_link", "bob", "--address", "http://127.0.0.1:8470", stdout=out)

    assert members.redeem_link(token(out.getvalue())) == bob
    with pytest.raises(CommandError, match="There is no user cid"):
        call_command("login_link", "cid")
    with pytest.raises(CommandError, match="--hours"):
        call_command("login_link", "bob", "--hours", "nan")
    User.objects.update(is_active=False)
    with pytest.raises(CommandError, match="deactivated"):
        call_command("login_link", "bob")
