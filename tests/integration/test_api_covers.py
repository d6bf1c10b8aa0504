"""What can be done on a page can be done by the API: every address that takes a POST has its operation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.urls import get_resolver

from placement.api.service import schema

REPOSITORY = Path(__file__).resolve().parents[2]
# By the page's name: the operations that do the same.
SAME = {
    "tokens": ("tokens_make",),
    "token-revoke": ("tokens_revoke",),
    "queue-hold": ("queue_hold",),
    "queue-release": ("queue_release",),
    "submit": ("jobs_submit",),
    "submit-estimate": ("jobs_estimate",),
    "jobs-bulk": ("job_lists_act",),
    "job-change": ("job_acts_change",),
    "job-priority": ("job_acts_priority",),
    "job-cancel": ("jobs_cancel",),
    "job-retry": ("jobs_retry",),
    "job-hold": ("jobs_hold",),
    "job-release": ("jobs_release",),
    "device-take": ("taking_take",),
    "job-revoke": ("job_requests_revoke",),
    "job-argument": ("job_acts_argument",),
    "job-mark": ("job_acts_mark",),
    "workload-define": ("workloads_define",),
    "workload-edit": ("workloads_define",),
    "workload-remove": ("workloads_remove",),
    "workload-mark": ("learned_mark",),
    "workload-forget": ("learned_forget",),
    "workload-forget-later": ("learned_forget_later",),
    "workload-pin": ("learned_pin",),
    "workload-argument": ("learned_argument",),
    "array-cancel": ("arrays_cancel",),
    "declaration-preview": ("devices_preview", "nodes_preview"),
    "declaration-edit": ("devices_declare", "nodes_declare"),
    "declaration-add": ("devices_add",),
    "declaration-remove": ("devices_remove",),
    "declaration-hold": ("devices_hold", "nodes_hold"),
    "declaration-release": ("devices_release", "nodes_release"),
    "declaration-drain": ("devices_drain", "nodes_drain"),
    "people-add": ("people_add",),
    "people-edit": ("people_edit",),
    "people-let-in": ("people_edit",),
    "people-quota": ("people_quota",),
    "people-link": ("people_link",),
    "notices-saw": ("notices_seen",),
    "notice-choose": ("notices_choose",),
    "hook-add": ("notices_add",),
    "hook-edit": ("notices_edit",),
    "hook-remove": ("notices_remove",),
    "hook-test": ("notices_test",),
    "knob-turn": ("record_turn", "record_reset"),
}
# Pages that take a POST and are no part of the API, each with why.
ONLY_PAGES = {
    "login": "a session is what tokens stand instead of",
    "login-link": "the same",
    "logout": "the same",
    "password": "the same: whoever has a token must not make a password of it",
    "admin-login": "Django's own pages",
    "submit-script": "it fills the form from a file; a program sends the fields",
}


def posts() -> list[str]:
    """Return the names of our pages that take a POST: their doors say so."""
    found = []
    for name, (pattern, callback) in _pages().items():
        if pattern.startswith(("api/v1/", "admin/")):
            continue
        if "POST" in _methods(callback):
            found.append(name)
    return sorted(found)


def _pages() -> dict[str, tuple[str, object]]:
    from placement.urls import urlpatterns

    return {one.name: (str(one.pattern), one.callback) for one in urlpatterns if one.name}


def _methods(callback: object) -> str:
    """Return the decorators of a view as they are written."""
    view = callback
    while hasattr(view, "__wrapped__"):
        view = view.__wrapped__
    code = view.__code__
    lines = Path(code.co_filename).read_text().splitlines()
    begin = code.co_firstlineno - 1
    end = next(i for i in range(begin, len(lines)) if lines[i].startswith("def "))
    return "\n".join(lines[begin:end])


def operations() -> set[str]:
    return {one["operationId"] for of in schema()["paths"].values() for one in of.values()}


def test_there_are_pages_to_compare():
    assert {"job-cancel", "people-add", "knob-turn", "declaration-edit"} <= set(posts())
    assert get_resolver().reverse_dict


@pytest.mark.parametrize("name", posts())
def test_what_a_page_does_an_operation_does(name: str):
    assert name in SAME or name in ONLY_PAGES, f"{name} takes a POST: give it an operation, or say why it has none"
    assert set(SAME.get(name, ())) <= operations()


def test_nothing_is_named_that_is_not_there():
    assert {*SAME, *ONLY_PAGES} - {"admin-login"} <= set(posts())


def test_every_operation_says_what_it_does_and_needs():
    for path, methods in schema()["paths"].items():
        for method, one in methods.items():
            assert one["summary"], path
            assert one["x-role"] in ("viewer", "submitter", "operator", "admin", "job"), path
            assert {"401", "403", "429", "500", "503"} <= set(one["responses"]), path
            if "requestBody" in one:
                assert one["requestBody"]["content"]["application/json"].get("example") is not None, (path, method)
                assert {"400", "409", "413"} <= set(one["responses"]), path


def test_the_guide_lists_every_operation():
    guide = (REPOSITORY / "docs" / "api.md").read_text()
    listed = set(re.findall(r"^\| `([A-Z]+) ([^`]+)` \|", guide, re.M))
    told = {
        (method.upper(), path.removeprefix("/api/v1/"))
        for path, methods in schema()["paths"].items()
        for method in methods
    }
    assert listed == told, "run `python docs/render.py`"
