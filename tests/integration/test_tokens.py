"""Tokens: what they open, what they never open, and what is kept of them."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from placement.domain.errors import Refused
from placement.models import AuditEntry, Job, LoginAttempt, Role, Token
from placement.services import members, tokens
from tests.integration.rows import a_job, a_machine, a_user

pytestmark = pytest.mark.django_db

COMMAND = {"command": "sleep 60", "cwd": "/tmp"}


class Program:
    """Somebody's program with a token of this scope."""

    def __init__(self, user: Any, scope: str, days: float | None = None) -> None:
        self.client = Client(enforce_csrf_checks=True)
        self.token, self.text = tokens.make(user, "a program", scope, days)

    def __call__(self, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {self.text}"}
        if body is None:
            return self.client.get(f"/api/v1/{path}", headers=headers)
        return self.client.post(f"/api/v1/{path}", json.dumps(body), "application/json", headers=headers)


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_a_token_comes_in_without_csrf_and_leaves_no_session():
    a_machine()
    program = Program(a_user("ada"), "submit")
    answer = program("me")
    assert answer.json()["user"] == "ada"
    assert answer.json()["token"]["shown"] == f"{program.text[:7]}…{program.text[-4:]}"
    made = program("jobs", COMMAND)
    assert made.status_code == 201, made.content
    assert Job.objects.get().user.get_username() == "ada"
    assert not Session.objects.exists()
    assert not program.client.cookies


def test_only_a_hash_is_kept_and_the_text_is_told_once(client: Client):
    client.force_login(a_user("ada"))
    page = client.post("/tokens", {"name": "nightly", "scope": "submit", "days": "30"}).content.decode()
    (text,) = set(re.findall(r"tg_[\w-]{40,}", page))
    row = Token.objects.get()
    assert len(text) == 3 + 43
    assert row.digest == tokens.digest(text)
    assert text not in str(vars(row))
    assert text not in str(list(AuditEntry.objects.values()))
    again = client.get("/tokens").content.decode()
    assert text not in again
    assert f"{text[:7]}…{text[-4:]}" in again
    assert text not in client.get("/api/v1/tokens").content.decode()


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer tg_", "Bearer tg_" + "x" * 43, "Basic YWRhOng=", "bearer \x00", "Bearer tg_é"],
    ids=["empty", "no text", "prefix", "unknown", "basic", "nul", "not ascii"],
)
def test_a_bad_token_never_falls_back_to_the_session(client: Client, header: str):
    client.force_login(a_user("ada", Role.ADMIN))
    assert client.get("/api/v1/me").status_code == 200
    answer = client.get("/api/v1/me", HTTP_AUTHORIZATION=header)
    assert code(answer) == (401, "bad_token")
    assert answer["WWW-Authenticate"] == "Bearer"


def test_a_reader_changes_nothing_and_a_submitter_touches_only_its_own():
    a_machine()
    admin, bob = a_user("root", Role.ADMIN), a_user("bob")
    others = a_job(bob)
    reader, submitter, full = (Program(admin, scope) for scope in ("read", "submit", "full"))
    assert [p("me").json()["role"] for p in (reader, submitter, full)] == ["viewer", "submitter", "admin"]
    for path in ("jobs", f"jobs/{others.pk}/cancel", "queue/hold", "tokens"):
        assert code(reader(path, COMMAND)) == (403, "scope"), path
    assert "command" not in reader(f"jobs/{others.pk}").json()["job"]
    assert submitter("jobs", COMMAND).status_code == 201
    assert code(submitter(f"jobs/{others.pk}/cancel", {})) == (403, "not_yours")
    assert code(submitter("queue/hold", {})) == (403, "role")
    assert full("queue/hold", {"why": "a test"}).status_code == 200
    assert full(f"jobs/{others.pk}/cancel", {}).status_code == 200


def test_no_token_makes_itself_larger():
    admin = a_user("root", Role.ADMIN)
    asked = {"name": "more", "scope": "full"}
    assert code(Program(admin, "submit")("tokens", asked)) == (403, "not_yours")
    reader = Program(admin, "read")
    assert code(Program(admin, "submit")(f"tokens/{reader.token.pk}/revoke", {})) == (403, "not_yours")
    made = Program(admin, "full")("tokens", asked)
    assert made.status_code == 201
    assert made.json()["text"].startswith("tg_")


def test_expired_revoked_and_closed_tokens_are_dead_at_once():
    ada, admin = a_user("ada"), a_user("root", Role.ADMIN)
    programs = [Program(ada, "full", days=1) for _ in range(3)]
    assert {p("me").status_code for p in programs} == {200}
    Token.objects.filter(pk=programs[0].token.pk).update(expires_at=timezone.now())
    assert code(programs[0]("me")) == (401, "bad_token")
    assert programs[1](f"tokens/{programs[1].token.pk}/revoke", {}).json()["token"]["state"] == "revoked"
    assert code(programs[1]("me")) == (401, "bad_token")
    members.set_active(admin, ada, False)
    assert code(programs[2]("me")) == (401, "bad_token")
    members.set_active(admin, ada, True)
    assert programs[2]("me").status_code == 200


def test_last_use_is_written_once_a_minute(django_assert_num_queries: Any):
    program = Program(a_user("ada"), "read")
    program("me")
    used = Token.objects.get().used_at
    with django_assert_num_queries(1):  # the token with its user and role
        program("me")
    assert Token.objects.get().used_at == used
    Token.objects.update(used_at=used - timedelta(seconds=61))
    program("me")
    assert Token.objects.get().used_at > used


def test_many_bad_tokens_wait_and_a_good_one_does_not():
    program = Program(a_user("ada"), "read")
    bad = {"Authorization": "Bearer tg_" + "x" * 43}
    answers = [Client().get("/api/v1/me", headers=bad) for _ in range(8)]
    assert [a.status_code for a in answers] == [401] * 5 + [429] * 3
    assert 0 < int(answers[-1]["Retry-After"]) <= 15
    assert LoginAttempt.objects.count() == 5
    assert program("me").status_code == 200


def test_admins_see_and_revoke_everybodys_and_others_do_not(client: Client):
    ada, bob, admin = a_user("ada"), a_user("bob"), a_user("root", Role.ADMIN)
    token, _ = tokens.make(ada, "ada's own", "read")
    client.force_login(bob)
    assert "ada&#x27;s own" not in client.get("/tokens").content.decode()
    assert client.post(f"/tokens/{token.pk}/revoke").status_code == 404
    assert client.get("/api/v1/tokens?everybody=true").status_code == 403
    client.force_login(admin)
    assert "ada&#x27;s own" in client.get("/tokens").content.decode()
    (line,) = client.get("/api/v1/tokens?everybody=true").json()["tokens"]
    assert (line["user"], line["name"]) == ("ada", "ada's own")
    client.post(f"/tokens/{token.pk}/revoke")
    token.refresh_from_db()
    assert (token.revoked_by, token.revoked_at is not None) == ("root", True)
    acts = AuditEntry.objects.filter(action__endswith="_token").order_by("pk").values_list("who", "action")
    assert list(acts) == [("ada", "make_token"), ("root", "revoke_token")]
    client.post(f"/tokens/{token.pk}/revoke")  # once more changes nothing and is no second entry
    assert AuditEntry.objects.filter(action="revoke_token").count() == 1


@pytest.mark.parametrize(
    "field, value", [("name", ""), ("name", "x" * 101), ("name", "a\ud800"), ("scope", "all"), ("days", -1)]
)
def test_what_cannot_be_taken_is_said_beside_its_field(client: Client, field: str, value: Any):
    ada = a_user("ada")
    asked = {"name": "n", "scope": "read", "days": 3, field: value}
    with pytest.raises(Refused) as refused:
        tokens.make(ada, **asked)
    assert set(refused.value.fields) == {field}
    client.force_login(ada)
    if value != "a\ud800":
        page = client.post("/tokens", {name: str(one) for name, one in asked.items()})
        assert page.status_code == 422
        assert refused.value.fields[field] in page.content.decode()
    answer = client.post("/api/v1/tokens", json.dumps(asked), "application/json")
    assert set(answer.json()["error"]["fields"]) == {field}
    assert not Token.objects.exists()


def test_a_person_has_so_many_tokens_at_most(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tokens, "MOST", 2)
    ada = a_user("ada")
    first, _ = tokens.make(ada, "one", "read")
    tokens.make(ada, "two", "read")
    client.force_login(ada)
    page = client.post("/tokens", {"name": "three", "scope": "read", "days": ""})
    assert page.status_code == 422
    assert "2 tokens in force" in page.content.decode()
    tokens.revoke(ada, first.pk)
    assert client.post("/tokens", {"name": "three", "scope": "read", "days": ""}).status_code == 200
