"""People are told: by the bell while they look elsewhere, and at places of theirs, with real receivers."""

from __future__ import annotations

import http.server
import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.person import Person
from tests.wait import until

SOON = 30_000  # milliseconds


@contextmanager
def running(server: socketserver.BaseServer) -> Iterator[int]:
    """Serve in a thread, and yield the port."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A receiver of JSON: its address and what it was sent."""
    got: list[dict[str, Any]] = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with running(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)) as port:
        yield f"http://127.0.0.1:{port}/secret-part", got


@pytest.fixture
def mailbox() -> Iterator[tuple[int, list[str]]]:
    """A mail server that takes everything: its port and the letters."""
    letters: list[str] = []

    class Post(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while line := self.rfile.readline():
                word = line[:4].upper()
                if word == b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    body = b""
                    while (part := self.rfile.readline()) != b".\r\n":
                        body += part
                    letters.append(body.decode())
                self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 fine\r\n")
                if word == b"QUIT":
                    return

    with running(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Post)) as port:
        yield port, letters


def add(page: Page, address: str, name: str) -> None:
    page.goto("/notices/settings")
    page.get_by_label("Address").fill(address)
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#messages")).to_contain_text(f"{name} is added")


def seen_again(page: Page) -> AbstractContextManager[Any]:
    """Wait, after what is done in it, until the page of notices has said that they were seen."""
    return page.expect_response("**/notices/seen", timeout=SOON)


def test_an_end_is_told_by_the_bell_a_webhook_and_a_letter(
    page: Page, person: Person, webhook: tuple[str, list[dict[str, Any]]], mailbox: tuple[int, list[str]]
) -> None:
    address, got = webhook
    port, letters = mailbox
    before = person.submit("true", declared_ram="100 MiB")  # so that there is something to have seen
    person.wait_for(before, "finished")

    # What is wrong is said beside the field, and what was typed does not come back.
    page.goto("/notices/settings")
    page.get_by_label("Address").fill("file:///etc/secret-part")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#hook-error")).to_contain_text("The scheme must be one of")
    expect(page.locator("body")).not_to_contain_text("secret-part")

    add(page, address, "my webhook")
    add(page, f"mailto://127.0.0.1:{port}?from=tidegate@example.org&to=ada@example.org&mode=insecure", "my mail")
    expect(page.locator("#hooks")).not_to_contain_text("secret-part")
    page.get_by_role("button", name="Send a test to my webhook").click()
    expect(page.locator("#hooks .chip.ok")).to_contain_text("arrived", timeout=SOON)
    assert [one["title"] for one in got] == ["A test from Tidegate"]

    # Somewhere else in the pages meanwhile, when all before was seen.
    with seen_again(page):
        page.goto("/notices")
    page.goto("/jobs/")
    expect(page.locator("#bell-count")).to_be_empty()
    failed = person.submit("exit 3", name="falls <b>over", declared_ram="100 MiB")
    person.wait_for(failed, "finished")
    toast = page.locator(".toast")
    expect(toast).to_contain_text(f"#{failed} falls <b>over has failed", timeout=SOON)
    expect(page.locator("#bell-count")).to_have_text("1")
    until(lambda: len(got) == 2, SOON / 1000, "the webhook's message")
    until(lambda: letters, SOON / 1000, "the letter")
    assert got[1]["title"] == f"#{failed} falls <b>over has failed"
    assert got[1]["type"] == "failure"
    assert f"Subject: #{failed} falls" in letters[0] or "Subject: =?" in letters[0]

    # The list is one click away, and what was looked at counts no more; a next page says it no second time.
    with seen_again(page):
        page.get_by_role("link", name="Notices, 1 new").click()
    expect(page.locator(".row.notice.unread")).to_have_count(1)
    expect(page.locator("#bell-count")).to_be_empty()
    page.reload()
    expect(page.locator(".row.notice.unread")).to_have_count(0)
    expect(page.locator(".toast")).to_have_count(0)
    page.get_by_role("link", name=f"#{failed} falls <b>over has failed").click()
    page.wait_for_url(f"**/jobs/{failed}")
    for width in (390, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        for path in ("/notices", "/notices/settings"):
            page.goto(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
    for name in ("my webhook", "my mail"):  # nobody listens there any more
        page.get_by_role("button", name=f"Remove {name}").click()
        expect(page.locator("#hooks")).not_to_contain_text(name)


def test_a_browser_shows_them_only_after_it_was_asked_by_a_click(page: Page, person: Person) -> None:
    page.context.grant_permissions(["notifications"])
    page.goto("/notices/settings")
    shown = "window.shown = []; window.Notification = class { constructor(title) { window.shown.push(title); } "
    shown += "static permission = 'granted'; static requestPermission() { return Promise.resolve('granted'); } };"
    page.evaluate(f"() => {{ {shown} }}")
    page.get_by_role("button", name="Show them").click()
    expect(page.get_by_role("button", name="Stop showing them")).to_be_visible()
    page.evaluate("document.hasFocus = () => false")
    done = person.submit("true", name="quick", declared_ram="100 MiB")
    person.wait_for(done, "finished")
    until(lambda: page.evaluate("window.shown"), SOON / 1000, "a notice of the browser's")
    assert page.evaluate("window.shown") == [f"#{done} quick has completed"]
    page.get_by_role("button", name="Stop showing them").click()
    expect(page.get_by_role("button", name="Show them")).to_be_visible()
