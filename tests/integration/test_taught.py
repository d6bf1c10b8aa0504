"""What people say about what was learned reaches the next estimate, with who and when."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from calibration.domain.resources import GIB
from calibration.models import Sediment
from placement import estimates, snapshots
from placement.domain.errors import NotYours, Refused
from placement.domain.submitting.submission import Submission
from placement.models import AuditEntry, Job, Role
from placement.services import drafting, learning, taught
from tests.integration.rows import a_finished, a_machine, a_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    a_machine()
    return a_user("ada", Role.OPERATOR)


def drafted(user: User, command: str) -> Job:
    return drafting.draft(user, Submission(name="t", command=command, cwd="/tmp"))


def ran(user: User, command: str, gib: int) -> Job:
    """Return a finished typed command that used this much RAM."""
    draft = drafted(user, command)
    keys = {name: getattr(draft, name) for name in ("key_workload", "key_params", "key_script", "key_fingerprint")}
    job = a_finished(user, command=command, gpu="none", workload=None, **keys)
    Sediment.objects.create(
        owner=f"job:{job.pk}",
        workload=job.key_workload,
        params=job.key_params,
        script=job.key_script,
        completed=True,
        outcome="completed",
        peaks={"ram": gib * GIB},
        at=timezone.now(),
    )
    return job


def need(user: User, command: str) -> tuple[str, int | None]:
    found = estimates.estimate_of(drafted(user, command), learning.store_version(), snapshots.knobs_now()[1])
    return found.pools["ram"].basis.word, found.pools["ram"].need


def test_a_seed_that_does_not_matter_makes_two_runs_the_same(ada: User) -> None:
    ran(ada, "python train.py --seed 1", 3)
    assert need(ada, "python train.py --seed 2")[0] == "similar"
    marked = ran(ada, "python train.py --seed 7", 3)
    taught.argument(ada, marked.pk, "--seed", matters=False)
    assert drafted(ada, "python train.py --seed 1").key_params == drafted(ada, "python train.py --seed 2").key_params
    taught.argument(ada, marked.pk, "--seed", matters=True)
    assert drafted(ada, "python train.py --seed 1").key_params != drafted(ada, "python train.py --seed 2").key_params
    assert AuditEntry.objects.filter(action="mark_argument").count() == 2


@pytest.mark.parametrize("mark", ["atypical", "forgotten"])
def test_a_run_that_is_left_out_counts_no_more_until_it_is_taken_back(ada: User, mark: str) -> None:
    ran(ada, "python a.py", 2)
    wild = ran(ada, "python a.py", 9)
    learning.instrument.raise_version()
    assert need(ada, "python a.py") == ("measured", 9 * GIB)
    taught.run(ada, wild.pk, **{mark: True})
    assert need(ada, "python a.py") == ("measured", 2 * GIB)
    row = Sediment.objects.get(owner=f"job:{wild.pk}")
    assert (row.marked_by, row.marked_at is not None) == ("ada", True)
    taught.run(ada, wild.pk, **{mark: False})
    assert need(ada, "python a.py") == ("measured", 9 * GIB)


def test_a_pin_stands_for_what_was_learned(ada: User, capsys: pytest.CaptureFixture[str]) -> None:
    job = ran(ada, "python a.py", 2)
    call_command("pin", job.key_workload, "ram", "12 GiB")
    assert need(ada, "python a.py")[1] == 12 * GIB
    call_command("pin")
    assert "12,884,901,888 bytes" in capsys.readouterr().out
    call_command("pin", job.key_workload, "ram", "none")
    assert need(ada, "python a.py")[1] == 2 * GIB
    for wrong in (("ram", "much"), ("ram",)):
        with pytest.raises(CommandError):
            call_command("pin", job.key_workload, *wrong)


def test_others_may_not(ada: User) -> None:
    job = ran(ada, "python a.py --seed 1", 2)
    bob = a_user("bob")
    with pytest.raises(NotYours):
        taught.argument(bob, job.pk, "--seed", matters=False)
    with pytest.raises(NotYours):
        taught.run(bob, job.pk, forgotten=True)
    with pytest.raises(Refused, match="taught nothing"):
        taught.run(ada, a_finished(ada).pk, forgotten=True)


def test_the_page_offers_both(client: Client, ada: User) -> None:
    job = ran(ada, "python train.py --seed 1", 3)
    client.force_login(ada)
    page = client.get(f"/jobs/{job.pk}").content.decode()
    assert "Peak: RAM 3.0 GiB" in page
    assert "looks like a seed" in page
    client.post(f"/jobs/{job.pk}/argument", {"name": "--seed", "matters": "0"})
    client.post(f"/jobs/{job.pk}/mark", {"what": "atypical"})
    page = client.get(f"/jobs/{job.pk}").content.decode()
    assert "Matters after all" in page
    assert "not typical, said ada" in page
    assert client.post(f"/jobs/{job.pk}/mark", {"what": "other"}).status_code == 404
