"""Each address that there is, asked for as people and strangers would: none fails, each carries the same headers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import get_resolver

from calibration.domain.keys import named
from placement.models import Device, JobArray, Node, Role
from tests.integration.rows import UUIDS, a_finished, a_job, a_machine, a_running, a_user

pytestmark = pytest.mark.django_db

MARKUP = '<script>alert("1")</script>'
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
}
POLICY = "frame-ancestors 'none'"
BEYOND = (2**63, 10**30)  # no id that a database takes


def routes(resolver: Any = None, before: str = "") -> Iterator[str]:
    """Yield every pattern of ours, as Django writes it."""
    for pattern in (resolver or get_resolver()).url_patterns:
        route = before + str(pattern.pattern)
        if route.startswith("admin/") and route != "admin/login/":
            continue
        if hasattr(pattern, "url_patterns"):
            yield from routes(pattern, route)
        else:
            yield route


def addresses(route: str, values: dict[str, tuple[object, ...]]) -> Iterator[str]:
    """Yield the route with each of the values in its places."""
    places = re.findall(r"<(\w+):(\w+)>", route)
    usual: tuple[object, ...] = (1, *BEYOND)
    for chosen in itertools.product(*(values.get(n, usual if kind == "int" else ("no such",)) for kind, n in places)):
        address = route
        for (kind, name), value in zip(places, chosen, strict=True):
            address = address.replace(f"<{kind}:{name}>", str(value))
        yield f"/{address}"


@pytest.fixture
def there() -> dict[str, tuple[object, ...]]:
    """Put something behind most addresses, and return what their places take."""
    node = a_machine()
    ada, ben = a_user("ada", Role.ADMIN), a_user("ben")
    a_user("vic", Role.VIEWER)
    array = JobArray.objects.create(name=MARKUP, user=ben, size=2)
    jobs = (
        a_job(ben, name=MARKUP, note=MARKUP, headline=MARKUP),
        a_running(ada, name=MARKUP),
        a_finished(ben, name=MARKUP, sentence=MARKUP),
        a_job(ben, name=MARKUP, array=array, array_index=0),
    )
    return {
        "job_id": (*(job.pk for job in jobs), *BEYOND),
        "array_id": (array.pk, *BEYOND),
        "ident": (named("train"), "train", Device.objects.first().pk, node.pk, *BEYOND),
        "node": (node.name, "no such"),
        "pool": (UUIDS[0], "ram", "no such"),
        "kind": ("device", "node", "ram", "no such"),
        "node_id": (Node.objects.get().pk, *BEYOND),
        "device_id": (Device.objects.first().pk, *BEYOND),
        "user_id": (ben.pk, *BEYOND),
        "stream": ("stdout", "../../secret", "no such"),
        "name": ("grace_seconds", "no such"),
        "which": ("time", "spread", "no such"),
    }


# What pages are asked for, in portions: what is refused at once hides what stands behind it.
ASKED = (
    ("page",),
    ("q", "sort", "state", "user", "workload", "device", "reason", "whose", "outcome", "before", "v", "who", "order"),
    ("range", "since", "stream", "line", "of", "to", "at", "workers", "again", "job", "text", "which", "key", "kind"),
)
NONSENSE = ("0", "9" * 30, f"-1 {MARKUP} ٣")
LARGE = re.compile(r"/api$|/openapi.json$|chart.html$|/submit$|/admin/|/knobs$")  # these take long, and have own tests


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_no_page_fails_by_what_it_is_asked_for(there: dict[str, tuple[object, ...]], nonsense: str):
    client = Client(raise_request_exception=False)
    client.force_login(get_user_model().objects.get(username="ada"))
    some = {name: values[:1] for name, values in there.items()}
    pages = [address for route in routes() for address in addresses(route, some)]
    pages = [page for page in pages if not LARGE.search(page) and client.get(page).status_code == 200]
    assert len(pages) > 30
    wrong = [
        f"{page} asked for {names} = {nonsense[:20]!r} answers {answer.status_code}"
        for page in pages
        for names in ASKED
        if (answer := client.get(page, dict.fromkeys(names, nonsense))).status_code >= 500
        or (answer.status_code in (301, 302) and not re.match(r"/(?![/\\\\])", answer.url))
    ]
    assert wrong == []


@pytest.mark.parametrize("who, part", [("ada", True), ("ben", False), ("vic", False), ("", False)])
def test_no_address_fails_or_goes_without_its_headers(there: dict[str, tuple[object, ...]], who: str, part: bool):
    client = Client(raise_request_exception=False, headers={"HX-Request": "true"} if part else {})
    if who:
        client.force_login(get_user_model().objects.get(username=who))
    wrong, asked = [], 0
    for address in (address for route in routes() for address in addresses(route, there)):
        answer = client.get(address)
        asked += 1
        said = b"".join(answer.streaming_content) if answer.streaming else answer.content
        if answer.status_code >= 500:
            wrong.append(f"{address} answers {answer.status_code}")
        wrong += [f"{address}: no {n}" for n, value in HEADERS.items() if answer.headers.get(n) != value]
        if POLICY not in answer.headers.get("Content-Security-Policy", ""):
            wrong.append(f"{address}: no policy")
        if "no-store" not in answer.headers.get("Cache-Control", ""):
            wrong.append(f"{address}: may be kept")
        if b"<script>alert" in said and answer.headers["Content-Type"].startswith("text/html"):
            wrong.append(f"{address} shows markup as markup")
        if not who and answer.status_code == 200 and not re.match(r"/(healthz|login)", address):
            wrong.append(f"{address} is open to strangers")
    assert asked > 300
    assert wrong == []
