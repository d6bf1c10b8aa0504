"""Who may see and do what, page by page; everything is refused by the server, not only hidden."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import get_resolver

from placement.models import Job, Role
from tests.integration.rows import a_finished, a_job, a_machine, a_running, a_user

pytestmark = pytest.mark.django_db

OPEN = {"login", "login-link", "logout"}
HTMX = {"HX-Request": "true"}
SAMPLES = {
    "job_id": 1,
    "array_id": 1,
    "ident": 1,
    "user_id": 1,
    "token_id": 1,
    "node_id": 1,
    "device_id": 1,
    "hook_id": 1,
    "request_id": 1,
    "lease_id": 1,
    "kind": "device",
    "node": "atlas",
    "pool": "ram",
    "stream": "stdout",
}


def own_paths() -> list[tuple[str, str]]:
    """Return (name, path) of every page of ours, with made-up arguments."""
    found = []
    for name, entries in get_resolver().reverse_dict.lists():
        if not isinstance(name, str) or ":" in name or name in {"healthz"}:
            continue
        pattern, parameters = entries[0][0][0]
        found.append((name, "/" + pattern % {p: SAMPLES.get(p, "x") for p in parameters}))
    return sorted(found)


def as_role(role: Role, name: str = "") -> Client:
    client = Client()
    client.force_login(a_user(name or role.value, role))
    return client


def test_there_are_pages_to_check():
    names = {name for name, _ in own_paths()}
    assert {"queue", "job", "device-series", "api-queue", "people"} <= names


@pytest.mark.parametrize("name, path", own_paths())
def test_nobody_gets_in_without_a_login(client: Client, name: str, path: str):
    a_machine()
    a_job(a_user("ada"))
    for method in (client.get, client.post):
        answer = method(path)
        if name in OPEN:
            continue
        if path.startswith("/api/"):
            assert answer.status_code in (401, 405), path
            assert answer.json()["error"]["code"] in ("not_logged_in", "bad_token", "method_not_allowed")
        else:
            assert answer.status_code in (302, 405), path
            assert answer.status_code == 405 or answer.url.startswith("/login")


@pytest.mark.parametrize(
    "name, path", [(n, p) for n, p in own_paths() if "fragment" in n or n in ("job-log", "job-cancel")]
)
def test_a_part_asked_for_after_the_session_says_where_to_log_in(client: Client, name: str, path: str):
    headers = {**HTMX, "HX-Current-URL": "http://testserver/jobs/1?stream=stderr"}
    answer = (client.post if name == "job-cancel" else client.get)(path, headers=headers)
    assert answer.status_code == 401
    assert b'href="/login?next=%2Fjobs%2F1%3Fstream%3Dstderr"' in answer.content
    assert b"password" not in answer.content
    assert "HX-Redirect" not in answer  # a page that somebody reads or types into stays where it is


@pytest.mark.parametrize("name, path", [(n, p) for n, p in own_paths() if "fragment" in n or n == "job-log-lines"])
def test_a_part_opened_as_a_page_leads_to_its_page(name: str, path: str):
    answer = as_role(Role.ADMIN).get(f"{path}?v=x&stream=stderr")
    assert answer.status_code == 302
    whole = {"queue-fragment": "/", "pools-fragment": "/devices"}.get(name, path.rpartition("/")[0])
    assert answer.url == f"{whole}?stream=stderr"


def test_polling_never_changes_cookies_nor_keeps_a_session_alive(client: Client):
    a_machine()
    client.force_login(a_user("ada"))
    client.get("/")
    before = {key: morsel.value for key, morsel in client.cookies.items()}
    for n in range(100):
        answer = client.get(f"/fragments/queue?v={n % 2 or 'x'}", headers=HTMX)
        assert answer.status_code in (200, 204)
        assert not answer.cookies
    assert {key: morsel.value for key, morsel in client.cookies.items()} == before


def test_a_post_with_an_old_token_is_refused_in_words():
    ada = a_user("ada")
    job = a_job(ada)
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    answer = client.post(f"/jobs/{job.pk}/cancel", {"csrfmiddlewaretoken": "x" * 64}, headers=HTMX)
    assert answer.status_code == 403
    assert b"Reload it and try again" in answer.content
    job.refresh_from_db()
    assert job.state == "queued"


@pytest.mark.parametrize(
    "path, least",
    [
        ("/submit", Role.SUBMITTER),
        ("/people", Role.ADMIN),
        ("/audit", Role.ADMIN),
        ("/queue/hold", Role.OPERATOR),
        ("/queue/release", Role.OPERATOR),
        ("/declarations/device/1/edit", Role.ADMIN),
        ("/declarations/device/1/preview", Role.ADMIN),
        ("/declarations/node/1/hold", Role.OPERATOR),
        ("/declarations/node/1/drain", Role.OPERATOR),
        ("/people/add", Role.ADMIN),
    ],
)
def test_pages_need_their_role(path: str, least: Role):
    a_machine()
    ranks = list(Role)
    for role in Role:
        client = as_role(role)
        answers = [client.get(path), client.post(path)]
        allowed = ranks.index(role) >= ranks.index(least)
        assert (403 in [a.status_code for a in answers]) is not allowed, (role, [a.status_code for a in answers])


def test_everybody_sees_owner_name_figures_and_reasons_but_nothing_private(tmp_path):
    a_machine()
    (tmp_path / "stdout.log").write_text("the secret output")
    ada = a_user("ada")
    job = a_running(ada, run_dir=str(tmp_path), note="a private note")
    stranger = as_role(Role.SUBMITTER, "bob")
    page = stranger.get(f"/jobs/{job.pk}").content.decode()
    assert "train-vit" in page
    assert "ada" in page
    assert "11.0 GiB" in page
    for private in ("--secret-plan", "a private note", "the secret output"):
        assert private not in page
    assert stranger.get(f"/jobs/{job.pk}/log", headers=HTMX).status_code == 403
    assert stranger.get(f"/jobs/{job.pk}/log/stdout.log").status_code == 403
    assert "--secret-plan" not in stranger.get(f"/api/v1/jobs/{job.pk}").content.decode()
    operator = as_role(Role.OPERATOR)
    assert "--secret-plan" in operator.get(f"/jobs/{job.pk}").content.decode()
    assert b"the secret output" in operator.get(f"/jobs/{job.pk}/log", headers=HTMX).content


@pytest.mark.parametrize("act", ["cancel", "hold", "release", "retry"])
def test_nobody_touches_another_persons_job(act: str):
    a_machine()
    ada = a_user("ada")
    job = a_finished(ada) if act == "retry" else a_job(ada)
    before = Job.objects.values().get(pk=job.pk)
    for client in (as_role(Role.SUBMITTER, "bob"), as_role(Role.VIEWER)):
        assert client.post(f"/jobs/{job.pk}/{act}").status_code == 403
        page = client.get(f"/jobs/{job.pk}").content.decode()
        assert f"/jobs/{job.pk}/{act}" not in page
    assert Job.objects.values().get(pk=job.pk) == before
    assert Job.objects.count() == 1
    assert as_role(Role.SUBMITTER, "eve").post(f"/api/v1/jobs/{job.pk}/cancel").status_code == 403
    assert as_role(Role.OPERATOR).post(f"/jobs/{job.pk}/{act}").status_code == 302


def test_a_job_or_page_that_is_not_there_is_404():
    client = as_role(Role.ADMIN)
    for path in ("/jobs/99", "/jobs/99/log", "/jobs/99999999999999999999999999", "/nowhere", "/declarations/x/1/edit"):
        answer = client.get(path, headers=HTMX) if "declarations" not in path else client.post(path)
        assert answer.status_code == 404, path


def test_names_of_variables_are_shown_and_values_never():
    from placement.services import secrets

    ada = a_user("ada")
    job = a_job(ada, environment=secrets.seal({"WANDB_API_KEY": "do-not-show"}))
    client = Client()
    client.force_login(ada)
    for path in (f"/jobs/{job.pk}", f"/api/v1/jobs/{job.pk}", "/api/v1/queue"):
        assert "do-not-show" not in client.get(path).content.decode()
    assert "WANDB_API_KEY" in client.get(f"/jobs/{job.pk}").content.decode()
