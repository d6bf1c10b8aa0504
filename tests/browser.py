"""A real browser for tests and pictures: one launch, a page that keeps what went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect, sync_playwright

from tests.person import Person

CHROMIUM = "/usr/bin/chromium"
expect.set_options(timeout=20_000)  # milliseconds: a promise about time is measured, this is for what never comes
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@dataclass
class Complaints:
    """What a page did that it must not: errors in the console, scripts that threw, requests to elsewhere."""

    address: str
    found: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        """Collect from now on. Violations of the content policy are console errors."""
        page.on("console", lambda m: self._add(f"console: {m.text}") if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self._add(f"script: {error}"))
        page.on("request", lambda request: self._request(request.url))

    def _request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("data", "blob"):
            return
        if parts.netloc != urlsplit(self.address).netloc:
            self._add(f"request to {url}")

    def _add(self, text: str) -> None:
        # On purpose, and yet in the console: a refused form answers 422, a session that is over 401, and a request is
        # aborted when a newer one takes its place (whatever else ends one is told by a name of its own).
        if not re.search(r"(status of|Status Error Code) (401|422)\b|htmx:(afterRequest|sendAbort), ", text):
            self.found.append(text)


@contextmanager
def browser() -> Iterator[Browser]:
    """Yield a running browser and end it."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield running
        finally:
            running.close()


@contextmanager
def watched_tab(running: Browser, person: Person) -> Iterator[Page]:
    """Yield a person's tab, on the first page, from whose life no error, violation or request elsewhere may come."""
    with open_context(running, person) as context:
        tab = context.new_page()
        complaints = Complaints(person.address)
        complaints.watch(tab)
        tab.goto("/")
        tab.wait_for_selector("#queue")
        yield tab
    assert not complaints.found, complaints.found


@contextmanager
def open_context(running: Browser, person: Person, **options: Any) -> Iterator[BrowserContext]:
    """Yield a browser of its own, logged in as a person is."""
    size: ViewportSize = {"width": 1280, "height": 900}
    context = running.new_context(viewport=size, base_url=person.address, **options)
    try:
        context.add_cookies(
            [{"name": one.name, "value": one.value or "", "url": person.address} for one in person.cookies]
        )
        yield context
    finally:
        context.close()


def log_in(page: Page, link: str) -> None:
    """Open a one-time login link and use it."""
    page.goto(link)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_selector("#queue")
