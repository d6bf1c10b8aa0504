from __future__ import annotations

import pwd

import pytest
from django.contrib.auth.models import User

from placement.models import Member
from placement.services import accounts

pytestmark = pytest.mark.django_db


def user(name: str, role: str, account: str = "") -> User:
    made = User.objects.create_user(name)
    Member.objects.create(user=made, role=role, account=account)
    return made


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "worker_is_root", lambda: True)


@pytest.fixture
def as_tide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "worker_is_root", lambda: False)


@pytest.mark.usefixtures("as_tide")
def test_a_worker_without_root_runs_everybody_as_itself() -> None:
    assert accounts.account_for(user("bob", "submitter", "nobody")) == (None, "")
    assert accounts.worker_name() in accounts.trust_notice()


@pytest.mark.usefixtures("as_root")
def test_a_mapped_user_runs_as_that_account() -> None:
    nobody = pwd.getpwnam("nobody")

    account, sentence = accounts.account_for(user("bob", "submitter", "nobody"))

    assert sentence == ""
    assert account == {"name": "nobody", "uid": nobody.pw_uid, "gid": nobody.pw_gid, "home": nobody.pw_dir}


@pytest.mark.usefixtures("as_root")
def test_without_a_mapping_admins_run_as_root_and_others_wait() -> None:
    ann, bob = user("ann", "admin"), user("bob", "submitter")
    user("vic", "viewer")

    assert accounts.account_for(ann) == (None, "")
    assert accounts.account_for(bob) == (
        None,
        "No Unix account is mapped for bob; an admin sets one on the page People.",
    )
    assert accounts.trust_notice() == (
        "Jobs of ann run as root: no Unix account is mapped. Jobs of bob wait until an admin maps a Unix account."
    )


@pytest.mark.usefixtures("as_root")
def test_an_account_that_was_removed_keeps_the_job_waiting() -> None:
    account, sentence = accounts.account_for(user("ann", "admin", "removed-account"))

    assert account is None
    assert "removed-account, which this machine does not have" in sentence


@pytest.mark.usefixtures("as_root")
def test_somebody_without_a_role_waits() -> None:
    assert accounts.account_for(User.objects.create_user("new"))[1].startswith("No Unix account is mapped for new")
