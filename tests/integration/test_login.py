from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from placement.models import LoginLink, Role
from placement.services import members
from tests.integration.rows import a_user

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery"


def test_every_page_asks_for_a_login(client: Client):
    answer = client.get("/jobs/?whose=mine")
    assert answer.status_code == 302
    assert answer.url == "/login?next=/jobs/%3Fwhose%3Dmine"


@pytest.mark.parametrize(
    ("asked", "page"),
    [
        ("/tokens/", "/tokens"),
        ("/jobs/12/?tab=log", "/jobs/12?tab=log"),
        ("/jobs//", "/jobs/"),
        ("/api/", "/api"),
        ("/nothing/", ""),
        ("/api/v1/queue/", ""),
    ],
)
def test_a_slash_too_many_leads_to_the_page_that_is_meant(client: Client, asked: str, page: str):
    client.force_login(a_user("ada"))
    answer = client.get(asked)
    assert (answer.status_code, answer.get("Location", "")) == (301 if page else 404, page)
    assert client.post(asked).status_code in (404, 405)


def test_a_password_opens_and_leads_on(client: Client):
    a_user("ada", password=PASSWORD)
    answer = client.post("/login", {"username": "ada", "password": PASSWORD, "next": "/devices"})
    assert (answer.status_code, answer.url) == (302, "/devices")


@pytest.mark.parametrize(
    "onward",
    ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example", "queue", "no such view"],
)
def test_a_login_leads_nowhere_else(client: Client, onward: str):
    a_user("ada", password=PASSWORD)
    assert client.post("/login", {"username": "ada", "password": PASSWORD, "next": onward}).url == "/"
    assert client.get("/login", {"next": onward}).url == "/"  # who is in already is led on, too


def test_failed_logins_make_the_next_one_wait_whoever_it_is_for(client: Client):
    a_user("ada", password=PASSWORD)
    for _ in range(30):
        answer = client.post("/login", {"username": "Ada", "password": "wrong"})
        if answer.status_code == 429:
            break
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) > 0
    assert re.search(r"possible in \d+ s", answer.content.decode())
    # The right password does not help while the name waits, so guessing cannot be told from knowing.
    assert client.post("/login", {"username": "ada", "password": PASSWORD}).status_code == 429


@pytest.mark.parametrize("proxy", [True, False])
def test_behind_a_proxy_wrong_passwords_of_one_make_only_them_wait(settings: Any, proxy: bool):
    settings.HTTPS = proxy
    a_user("ada", password=PASSWORD)
    client = Client()
    for n in range(6):
        told = {"HTTP_X_FORWARDED_FOR": f"10.0.0.{n}, 192.0.2.1"}  # the first is what its client said itself
        answer = client.post("/login", {"username": f"nobody{n}", "password": "wrong"}, **told)
    assert answer.status_code == 429
    other = client.post("/login", {"username": "ada", "password": PASSWORD}, HTTP_X_FORWARDED_FOR="192.0.2.2")
    assert other.status_code == (302 if proxy else 429)


def test_the_admin_pages_have_no_login_of_their_own(client: Client):
    """Their form counts no failures: passwords could be guessed there as fast as the machine answers."""
    a_user("ada", password=PASSWORD, is_staff=True, is_superuser=True)
    for _ in range(2):
        answer = client.post("/admin/login/?next=/admin/auth/", {"username": "ada", "password": PASSWORD})
        assert (answer.status_code, answer.url) == (302, "/login?next=/admin/auth/")
    assert client.get("/admin/").status_code == 302
    client.post("/login", {"username": "ada", "password": PASSWORD})
    assert client.get("/admin/login/").url == "/admin/"
    assert client.get("/admin/").status_code == 200


def test_who_may_not_see_the_admin_pages_is_told_so(client: Client):
    client.force_login(a_user("ada", Role.ADMIN))
    answer = client.get("/admin/", follow=True)
    assert answer.status_code == 403
    assert b"superusers only" in answer.content


def test_looking_at_a_link_does_not_use_it_up(client: Client):
    token = members.make_link(a_user("ada"))
    for _ in range(3):
        assert client.get(f"/login/link/{token}").status_code == 200
    assert LoginLink.objects.get().used_at is None
    answer = client.post(f"/login/link/{token}")
    assert (answer.status_code, answer.url) == (302, "/")
    assert client.get("/").status_code == 200


def test_a_link_opens_once(client: Client):
    token = members.make_link(a_user("ada"))
    client.post(f"/login/link/{token}")
    again = Client().post(f"/login/link/{token}")
    assert again.status_code == 410
    assert b"used already" in again.content


def test_a_link_without_a_valid_token_opens_nothing(client: Client):
    assert client.post("/login/link/wrong").status_code == 410
    assert client.get("/").status_code == 302


def test_logging_out_takes_a_post(client: Client):
    client.force_login(a_user("ada", Role.ADMIN))
    assert client.get("/logout").status_code == 405
    client.post("/logout")
    assert client.get("/").status_code == 302


def test_whoever_came_by_a_link_sets_a_password_and_stays_logged_in(client: Client):
    client.force_login(a_user("ada"))
    weak = client.post("/password", {"new_password1": "12345", "new_password2": "12345"})
    assert weak.status_code == 422
    answer = client.post("/password", {"new_password1": PASSWORD, "new_password2": PASSWORD})
    assert (answer.status_code, answer.url) == (302, "/")
    assert client.get("/").status_code == 200
    assert Client().post("/login", {"username": "ada", "password": PASSWORD}).status_code == 302


def test_a_password_is_changed_only_by_who_knows_the_old_one(client: Client):
    client.force_login(a_user("ada", password=PASSWORD))
    new = "another horse, another battery"
    answer = client.post("/password", {"old_password": "wrong", "new_password1": new, "new_password2": new})
    assert answer.status_code == 422
    assert Client().post("/login", {"username": "ada", "password": PASSWORD}).status_code == 302
