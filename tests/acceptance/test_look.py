"""Every page in a real browser: nothing that a reader cannot use, nothing that runs over, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.axe import violations
from tests.browser import Complaints, log_in
from tests.person import sign_in
from tests.service import LiveService, live_service
from tests.visits import PAGES, visits
from tests.wait import until

SOON = 30_000  # milliseconds
PLAIN = {"password": "/password", "missing": "/there-is-no-such-page", "refused": "/jobs/?q=%00"}
REFUSED = ("missing", "refused")
JOBS = ("job-waiting", "job-running", "job-finished")
LOOKS = [(1280, "light"), (390, "dark")]
MORE_LOOKS = [(w, t) for w in (390, 1280, 2560) for t in ("light", "dark") if (w, t) not in LOOKS]
OF_A_LOOK = ("color-contrast", "target-size", "scrollable-region-focusable")
"""Rules whose answer depends on width and theme; the others are asked once a page."""
WIDE = "document.documentElement.scrollWidth"
TOO_WIDE = """[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1
  && !e.closest("nav, .scroll, .output, pre, .hidden")).slice(0, 5).map((e) => e.tagName + "." + e.className)"""


PART = (
    """<div id="job" data-poll data-title="running · #1" hx-get="/jobs/%(job)d/fragment?v=%(n)d" hx-trigger="every 1s"
  hx-swap="outerHTML"><p id="k-n">%(n)d</p><pre class="output" id="k-read">"""
    + "line\n" * 99
    + """</pre>
  <details id="k-details"><summary>More</summary><label>Field <input id="k-field" value=""></label>
  <label>Box <input id="k-box" type="checkbox"></label></details></div>"""
)


@dataclass
class Visit:
    """One tab of an admin, where it can go, and what was complained of."""

    page: Page
    paths: dict[str, str]
    job: int
    complaints: Complaints

    def look(self, name: str, looks: list[tuple[int, str]]) -> list[str]:
        """Return all that is wrong with a page, loaded once, at these widths and in these themes."""
        self.complaints.found.clear()
        self._dress(*looks[0])
        answer = self.page.goto(self.paths[name])
        assert answer is not None
        policy = answer.headers.get("content-security-policy", "")
        wrong = [] if "script-src 'self'" in policy and "unsafe-inline" not in policy else [f"policy: {policy!r}"]
        for width, theme in looks:
            self._dress(width, theme)
            try:  # charts take a moment to follow
                until(lambda w=width: self.page.evaluate(WIDE) <= w, 20, "the page to fit")  # type: ignore[misc]
            except AssertionError:
                wrong.append(f"wider than {width} px: {self.page.evaluate(TOO_WIDE)}")
            rules = OF_A_LOOK if (width, theme) != LOOKS[0] else ()
            wrong += [f"{width} {theme}: {one}" for one in violations(self.page, *rules)]
        return wrong + [one for one in self.complaints.found if not (name in REFUSED and "status of 4" in one)]

    def _dress(self, width: int, theme: str) -> None:
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]  # one of two words


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with live_service(demo=True) as running:
        yield running


@pytest.fixture(scope="module")
def visit(service: LiveService, chromium: Browser) -> Iterator[Visit]:
    person = sign_in(service)
    small = {"declared_ram": "20 MiB"}
    ended = person.submit("true", **small)
    held = person.submit("true", name="held", not_before="2090-01-01T00:00Z", **small)
    long = person.submit("echo begun; sleep 300", **small)
    said = service.manage("login_link", "admin", "--address", service.address).stdout
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, base_url=service.address)
    page = context.new_page()
    log_in(page, said.split("Login (once): ")[1].strip())
    person.wait_for(ended, "finished")
    person.wait_for(long, "running")
    paths = {**visits(page, service.address), **PLAIN}
    paths |= {name: f"/jobs/{job}" for name, job in zip(JOBS, (held, long, ended), strict=True)}
    complaints = Complaints(service.address)
    complaints.watch(page)
    yield Visit(page, paths, long, complaints)
    context.close()


@pytest.mark.parametrize("name", [*PAGES, *PLAIN, *JOBS])
def test_a_page_can_be_read_used_and_trusted(visit: Visit, name: str) -> None:
    assert not (wrong := visit.look(name, LOOKS)), "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PAGES, *PLAIN, *JOBS])
def test_a_page_can_be_read_used_and_trusted_in_every_look(visit: Visit, name: str) -> None:
    assert not (wrong := visit.look(name, MORE_LOOKS)), "\n".join(wrong)


def test_whatever_else_there_is_can_be_read_used_and_trusted(visit: Visit) -> None:
    others = set(visit.paths) - set(PAGES) - set(PLAIN) - set(JOBS)
    wrong = [f"{name}: {one}" for name in sorted(others) for one in visit.look(name, LOOKS[:1])]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", ["/login?next=/devices", "/login/link/none"])
def test_whoever_is_not_in_yet_can_read_the_door(service: LiveService, chromium: Browser, path: str) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark")
    page = context.new_page()
    complaints = Complaints(service.address)
    complaints.watch(page)
    page.goto(f"{service.address}{path}")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert complaints.found == []
    context.close()


def test_the_checker_finds_what_is_wrong(visit: Visit) -> None:
    visit.page.goto("/password")
    visit.page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<input><img src=data:,>')")
    found = violations(visit.page)
    assert {line.partition(":")[0] for line in found} >= {"label", "image-alt"}


def test_keys_lead_about_and_can_be_turned_off(visit: Visit) -> None:
    page = visit.page
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard")
    expect(dialog).to_contain_text("Devices")
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url("**/devices")
    page.keyboard.press("s")
    page.wait_for_url("**/submit")
    page.locator("#id_command").focus()
    page.keyboard.type("gd?")  # words, while somebody types
    expect(page.locator("#id_command")).to_have_value("gd?")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.get_by_label("Single keys act").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("n")
    page.locator("#account summary").click()
    expect(page.get_by_role("link", name="Set your password")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Set your password")).to_be_hidden()
    expect(page).to_have_url(f"{visit.complaints.address}/submit")
    page.evaluate("localStorage.removeItem('keys')")


def test_a_swap_keeps_what_somebody_has_open_types_and_reads(visit: Visit) -> None:
    """The service's answers are stood in for, so that each of them changes the part."""
    page, asked = visit.page, []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(status=200, content_type="text/html", body=PART % {"job": visit.job, "n": len(asked)})

    page.route("**/fragment*", answer)
    page.goto(f"/jobs/{visit.job}")
    page.locator("#k-details summary").click(timeout=SOON)
    page.locator("#k-box").check()
    page.evaluate("document.getElementById('k-read').scrollTop = 100")
    page.fill("#k-field", "typed here")
    page.evaluate("document.getElementById('k-field').setSelectionRange(2, 4)")
    seen, shown = len(asked), page.locator("#k-n")
    until(lambda: int(shown.inner_text()) >= seen + 2, SOON / 1000, "two more answers in the page")
    expect(page.locator("#k-field")).to_have_value("typed here")
    expect(page.locator("#k-field")).to_be_focused()
    expect(page.locator("#k-box")).to_be_checked()
    caret = "[document.activeElement.selectionStart, document.activeElement.selectionEnd]"
    assert page.evaluate(caret) == [2, 4]
    assert page.evaluate("document.getElementById('k-details').open")
    assert page.evaluate("document.getElementById('k-read').scrollTop") == 100
    assert page.title() == "running · #1 · Tidegate"
    page.locator("#k-read").select_text()
    seen = len(asked)
    for _ in range(2):  # the log, in which nothing is selected, goes on asking
        page.wait_for_event("request", lambda request: "/log" in request.url, timeout=SOON)
    assert len(asked) == seen
    page.unroute("**/fragment*")


def test_a_job_on_paper_is_black_on_white_with_everything_open(visit: Visit) -> None:
    page = visit.page
    page.emulate_media(media="print", color_scheme="dark")
    page.goto(visit.paths["job-running"])
    expect(page.locator("nav")).to_be_hidden()
    ground = page.evaluate("getComputedStyle(document.documentElement).colorScheme")
    assert ground == "light"
    parts = page.locator("main details:has(> summary:visible)")
    assert parts.count() > 0
    closed = """(all) => all.filter((d) => [...d.children].slice(1).some((part) => part.textContent.trim())
      && d.scrollHeight <= d.querySelector("summary").offsetHeight).map((d) => d.id)"""
    assert parts.evaluate_all(closed) == []
    page.emulate_media(media="screen")
