from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.utils import timezone

from placement.domain.errors import NotYours, Refused
from placement.models import AuditEntry, Cycle, LoginAttempt, LoginLink, Member, Role
from placement.services import members

pytestmark = pytest.mark.django_db


def user(name: str, role: str | None = "submitter") -> User:
    made = User.objects.create_user(name)
    if role:
        Member.objects.create(user=made, role=role)
    return made


@pytest.fixture
def ann() -> User:
    return user("ann", "admin")


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        (None, []),
        ("viewer", []),
        ("submitter", ["submit"]),
        ("operator", ["submit", "operate"]),
        ("admin", ["submit", "operate", "administer"]),
    ],
)
def test_each_role_may_do_what_the_ones_below_may(role: str | None, allowed: list[str]) -> None:
    bob = user("bob", role)

    assert [a for a in ("submit", "operate", "administer") if members.may(bob, a)] == allowed


def test_a_superuser_is_an_admin_and_nobody_in_particular_is_a_viewer() -> None:
    assert members.role_of(User.objects.create_superuser("root")) is Role.ADMIN
    assert members.role_of(AnonymousUser()) is Role.VIEWER
    assert members.role_of(User(username="gone", is_superuser=True, is_active=False)) is Role.VIEWER


def test_a_link_opens_once_and_is_stored_as_a_hash() -> None:
    bob = user("bob")

    link = members.make_link(bob, address="http://127.0.0.1:8470/")
    base, _, token = link.rpartition("/")

    assert base == "http://127.0.0.1:8470/login/link"
    assert token not in str(LoginLink.objects.values().get())
    assert members.redeem_link(token) == bob
    assert members.redeem_link(token) is None


def test_a_link_that_is_old_wrong_or_of_a_closed_account_opens_nothing() -> None:
    bob = user("bob")
    old = members.make_link(bob, lifetime_s=-1)
    good = members.make_link(bob)
    User.objects.filter(pk=bob.pk).update(is_active=False)

    assert [members.redeem_link(token) for token in (old, good, "", "x" * 1000, "\ud800")] == [None] * 5


@pytest.mark.django_db(transaction=True)
def test_of_many_visitors_at_once_one_gets_in() -> None:
    token = members.make_link(user("bob"))
    gate, got = threading.Barrier(8), []

    def visit() -> None:
        gate.wait()
        got.append(members.redeem_link(token))
        connection.close()

    threads = [threading.Thread(target=visit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len([one for one in got if one is not None]) == 1
    assert len(got) == 8


def test_five_failures_make_the_name_and_the_address_wait_and_nobody_else() -> None:
    for _ in range(5):
        assert members.wait_before_login(["name:bob", "address:10.0.0.7"]) == 0
        members.failed_login(["name:bob", "address:10.0.0.7"])

    assert 5 < members.wait_before_login(["name:bob", "address:10.0.0.8"]) <= 15
    assert 5 < members.wait_before_login(["name:cid", "address:10.0.0.7"]) <= 15
    assert members.wait_before_login(["name:cid", "address:10.0.0.8"]) == 0


def test_failures_of_yesterday_are_forgotten_and_long_names_are_cut_alike() -> None:
    name = "name:" + "x" * 500
    members.failed_login([name])
    LoginAttempt.objects.update(at=timezone.now() - timedelta(days=1, seconds=1))

    for _ in range(5):
        members.failed_login([name])

    assert LoginAttempt.objects.count() == 5
    assert members.wait_before_login([name]) > 0


def test_a_new_user_comes_in_by_a_link_and_has_no_password(ann: User) -> None:
    bob, token = members.add_user(ann, "bob", "submitter")

    assert members.role_of(bob) is Role.SUBMITTER
    assert not bob.has_usable_password()
    assert members.redeem_link(token) == bob
    assert AuditEntry.objects.get(action="add_user").who == "ann"


@pytest.mark.parametrize(
    ("name", "role", "field"),
    [
        ("ann", "viewer", "name"),
        ("", "viewer", "name"),
        ("a b", "viewer", "name"),
        ("x" * 151, "viewer", "name"),
        (["bob"], "viewer", "name"),
        ("bob", "king", "role"),
        ("bob", None, "role"),
    ],
)
def test_a_user_that_cannot_be_added_is_not(ann: User, name: object, role: object, field: str) -> None:
    with pytest.raises(Refused) as refused:
        members.add_user(ann, name, role)

    assert list(refused.value.fields) == [field]
    assert User.objects.count() == 1


def test_only_an_admin_manages_people() -> None:
    oscar, bob = user("oscar", "operator"), user("bob")

    for attempt in (
        lambda: members.add_user(oscar, "cid", "viewer"),
        lambda: members.set_role(oscar, oscar, "admin"),
        lambda: members.set_account(oscar, bob, "nobody"),
    ):
        with pytest.raises(NotYours, match="needs the role admin; oscar is operator"):
            attempt()


def test_a_role_is_changed_kept_on_record_and_decided_on_at_once(ann: User) -> None:
    bob = user("bob", None)
    Cycle.objects.create(pk=1, wanted=5)

    members.set_role(ann, bob, "operator")

    assert members.role_of(User.objects.get(pk=bob.pk)) is Role.OPERATOR
    assert AuditEntry.objects.get().detail == {"before": "viewer", "after": "operator"}
    assert Cycle.objects.get().wanted == 6


def test_the_only_admin_stays_one(ann: User) -> None:
    with pytest.raises(Refused, match="ann is the only admin"):
        members.set_role(ann, ann, "viewer")

    user("eve", "admin")
    members.set_role(ann, ann, "viewer")
    assert members.role_of(User.objects.get(pk=ann.pk)) is Role.VIEWER


def test_a_superuser_who_gets_a_smaller_role_is_no_superuser_any_more(ann: User) -> None:
    root = User.objects.create_superuser("root")

    members.set_role(ann, root, "submitter")

    assert members.role_of(User.objects.get(pk=root.pk)) is Role.SUBMITTER
    assert not User.objects.get(pk=root.pk).is_staff


def test_an_account_has_to_exist_and_root_has_to_be_meant(ann: User) -> None:
    bob = user("bob")

    for account in ("no-such-account", "a\0b"):
        with pytest.raises(Refused, match="has no Unix account"):
            members.set_account(ann, bob, account)
    with pytest.raises(Refused, match="root is root"):
        members.set_account(ann, bob, "root")
    members.set_account(ann, bob, " nobody ")
    assert members.person(User.objects.get(pk=bob.pk)).mapped == "nobody"
    members.set_account(ann, bob, "root", root=True)
    members.set_account(ann, bob, "")

    assert members.person(User.objects.get(pk=bob.pk)).mapped == ""
    assert AuditEntry.objects.filter(action="set_account").count() == 3


def test_the_first_admin_is_made_once_and_never_out_of_somebody_elses_user() -> None:
    user("admin", "viewer")

    first, logged_in = members.first_admin()

    assert (first.username, logged_in, first.has_usable_password()) == ("admin2", False, False)
    assert members.first_admin()[0] == first
    User.objects.filter(pk=first.pk).update(last_login=timezone.now())
    assert members.first_admin() == (first, True)


def test_somebody_is_kept_out_and_let_in_and_the_only_admin_is_not(ann: User) -> None:
    bob = user("bob")
    members.set_active(ann, bob, False)
    assert not User.objects.get(pk=bob.pk).is_active
    members.set_active(ann, bob, True)
    assert User.objects.get(pk=bob.pk).is_active
    assert list(AuditEntry.objects.order_by("pk").values_list("action", flat=True)) == ["keep_out", "let_in"]
    with pytest.raises(Refused, match="only admin"):
        members.set_active(ann, ann, False)
    with pytest.raises(NotYours):
        members.set_active(bob, ann, False)


def test_two_names_that_differ_in_case_alone_are_not_both_taken(ann: User) -> None:
    user("sam")
    with pytest.raises(Refused, match="There is a user sam already"):
        members.add_user(ann, "SAM", "viewer")
