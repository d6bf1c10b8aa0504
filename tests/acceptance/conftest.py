"""What stories share: one browser for all; one service, and its admin, for those who look at pages and leave it idle.

Each worker of a test run has its own. A module that wants a service of another kind has a fixture of that name.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.acceptance.scene import admin, end_all
from tests.browser import browser, watched_tab
from tests.person import Person
from tests.service import LiveService, live_service


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give each operation that schemathesis calls an id of its own: of tests with one id xdist runs only one."""
    if item.parent is not None and not item.nodeid.endswith(item.name):
        item._id = type(item.id).parse(f"{item.parent.nodeid}::{item.name}")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A running browser. As long as it is there a loop runs in this thread, in which Django would refuse queries."""
    with browser() as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        yield running


@pytest.fixture(scope="session")
def desk() -> Iterator[tuple[LiveService, Person]]:
    """A service with one simulated device of 24 GiB, and its first admin."""
    with live_service(simulate="1x24GiB") as running:
        yield running, admin(running)


@pytest.fixture(scope="module")
def service(desk: tuple[LiveService, Person]) -> Iterator[LiveService]:
    """The shared service. What ended before a module is still listed; nothing waits or runs."""
    yield desk[0]
    end_all(*desk)


@pytest.fixture(scope="module")
def person(desk: tuple[LiveService, Person], service: LiveService) -> Person:
    """The admin of the shared service."""
    return desk[1]


@pytest.fixture
def page(chromium: Browser, person: Person) -> Iterator[Page]:
    """A logged-in admin's tab, of which nothing may be complained."""
    with watched_tab(chromium, person) as tab:
        yield tab
