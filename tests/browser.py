"""A real browser for tests and pictures: one launch, a page that keeps what went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
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
        # A refused form answers 422, a session that is over 401, on purpose; browser and htmx write it to the console.
        if not re.search(r"(status of|Status Error Code) (401|422)\b", text):
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
def watched_tab(running: Browser, address: str, link: str) -> Iterator[Page]:
    """Yield a logged-in tab from whose life no error, no violation and no request elsewhere may come."""
    context = running.new_context(viewport={"width": 1280, "height": 900}, base_url=address)
    tab = context.new_page()
    complaints = Complaints(address)
    complaints.watch(tab)
    log_in(tab, link)
    yield tab
    context.close()
    assert not complaints.found, complaints.found


def log_in(page: Page, link: str) -> None:
    """Open a one-time login link and use it."""
    page.goto(link)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_selector("#queue")
