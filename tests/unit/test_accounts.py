from __future__ import annotations

import pytest

from placement.domain.containing.accounts import Account, Person, RunsAs, runs_as, trust_notice

BOB1 = Account("bob1", 1001, 1001, "/home/bob1")


@pytest.mark.parametrize(
    ("person", "root", "found", "account"),
    [
        pytest.param(Person("bob", False), False, None, None, id="a plain worker runs everybody as itself"),
        pytest.param(Person("bob", False, "bob1"), False, BOB1, None, id="it cannot change to a mapped account"),
        pytest.param(Person("bob", False, "bob1"), True, BOB1, BOB1, id="root drops to the mapped account"),
        pytest.param(Person("ann", True, "bob1"), True, BOB1, BOB1, id="an admin's mapping counts too"),
        pytest.param(Person("ann", True), True, None, None, id="an admin without a mapping runs as root"),
    ],
)
def test_who_runs_as_whom(person: Person, root: bool, found: Account | None, account: Account | None) -> None:
    assert runs_as(person, worker_is_root=root, found=found) == RunsAs(account)


def test_somebody_without_a_mapping_waits_for_one() -> None:
    answer = runs_as(Person("bob", False), worker_is_root=True, found=None)

    assert answer.account is None
    assert answer.sentence == "No Unix account is mapped for bob; an admin sets one on the page People."


@pytest.mark.parametrize("is_admin", [True, False])
def test_an_account_that_is_gone_is_never_replaced_by_root(is_admin: bool) -> None:
    answer = runs_as(Person("bob", is_admin, "bob1"), worker_is_root=True, found=None)

    assert "bob1, which this machine does not have" in answer.sentence


def test_the_notice_of_a_plain_worker_names_its_account() -> None:
    assert "runs as the Unix account tide" in trust_notice("tide", worker_is_root=False, people=[])


def test_the_notice_of_root_names_who_runs_as_root_and_who_waits() -> None:
    people = [Person("ann", True), Person("bob", False), Person("cid", False, "cid")]

    said = trust_notice("root", worker_is_root=True, people=people)

    assert said == (
        "Jobs of ann run as root: no Unix account is mapped. Jobs of bob wait until an admin maps a Unix account."
    )
    assert trust_notice("root", worker_is_root=True, people=people[2:]) == ""
