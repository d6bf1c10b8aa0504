from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.domain import notices
from placement.domain.notices import Kind, checked, chosen, kind_of_end, merged, shown


@pytest.mark.parametrize(
    "outcome, by, again, kind",
    [
        ("completed", "", False, Kind.FINISHED),
        ("failed", "", False, Kind.FAILED),
        ("failed", "", True, Kind.RETRIED),
        ("lost", "", False, Kind.FAILED),
        ("out_of_memory", "", False, Kind.FAILED),
        ("cap_exceeded", "tidegate", False, Kind.STOPPED),
        ("timed_out", "tidegate", False, Kind.STOPPED),
        ("cancelled", "ada", False, None),
        ("cancelled", "root", False, Kind.STOPPED),
        ("cancelled", "tidegate", False, Kind.STOPPED),
    ],
)
def test_an_end_is_told_as_what_it_is_to_its_owner(outcome: str, by: str, again: bool, kind: Kind | None) -> None:
    assert kind_of_end(outcome, by, "ada", again=again) is kind


@pytest.mark.parametrize("outcome", ["completed", "timed_out", "cancelled"])
def test_a_hold_that_is_over_is_a_kind_of_its_own(outcome: str) -> None:
    assert kind_of_end(outcome, "tidegate", "ada", again=False, hold=True) is Kind.HOLD_ENDS
    assert kind_of_end("lost", "", "ada", again=False, hold=True) is Kind.FAILED


@pytest.mark.parametrize(
    "address",
    [
        "https://host.example/hook?x=1",
        "http://10.0.0.1:8000/",
        "  json://user:pass@host/path ",
        "mailto://user:pass@example.org?to=me@example.org",
        "ntfy://topic",
        "slack://T1/B2/C3",
    ],
)
def test_addresses_that_are_taken(address: str) -> None:
    assert checked(address) == address.strip()


@pytest.mark.parametrize(
    "address, word",
    [
        ("", "Give the address"),
        ("x" * 700, "700 characters"),
        ("host/path", "scheme must be"),
        ("file:///etc/passwd", "not “file”"),
        ("syslog://", "not “syslog”"),
        ("dbus://", "not “dbus”"),
        ("gnome://", "not “gnome”"),
        ("https://", "names nobody"),
        ("https://[::1", "cannot be read"),
        ("mailto://u:p@h?pgpkey=/etc/passwd", "pgpkey"),
        ("json://h?+attach=/etc/passwd", "attach"),
        ("json://h/\x00", "cannot be printed"),
    ],
)
def test_addresses_that_are_not(address: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        checked(address)


def complaint(address: str) -> str:
    """Return what is said against an address, "" where it is taken."""
    try:
        checked(address)
    except ValueError as error:
        return str(error)
    return ""


@given(st.text(max_size=80))
def test_no_address_is_too_strange_and_none_is_repeated(text: str) -> None:
    secret = f"json://u:s3cr3t@h/{text}"
    assert "s3cr3t" not in complaint(secret)
    assert "s3cr3t" not in shown(secret)


@pytest.mark.parametrize(
    "address, seen",
    [
        ("https://user:pw@host.example/token/abc?x=secret", "https://host.example/…"),
        ("slack://T1token/B2/C3", "slack://…"),
        ("ntfy://secret-topic", "ntfy://…"),
        ("mailto://user:pw@example.org", "mailto://…"),
    ],
)
def test_what_is_shown_of_an_address_is_no_secret(address: str, seen: str) -> None:
    assert shown(address) == seen


def test_many_messages_become_one() -> None:
    assert merged([("a", "b")]) == ("a", "b")
    title, body = merged([(f"#{n}", "done") for n in range(30)])
    assert title == "30 notices"
    assert body.splitlines()[0] == "#0: done"
    assert body.splitlines()[-1] == "and 10 more"


def test_only_kinds_that_exist_are_chosen() -> None:
    assert chosen(["failed", "test", "x"]) == {"failed"}
    assert set(notices.DEFAULT) == chosen([str(kind) for kind in Kind])
