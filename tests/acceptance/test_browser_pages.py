"""What people do with the pages, in a real browser against the real service; no page may complain meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, TimeoutError, expect

from tests.acceptance.scene import end_all
from tests.browser import log_in, open_context
from tests.person import Person, login_link
from tests.service import LiveService

SOON = 30_000  # milliseconds


@pytest.fixture(autouse=True)
def nothing_left(service: LiveService, person: Person) -> Iterator[None]:
    """Cancel what a test left, so that the next one finds an idle machine."""
    yield
    end_all(service, person)


def submit_by_form(page: Page, command: str, **fields: str) -> None:
    page.goto("/submit")
    page.fill("#id_command", command)
    page.fill("#id_cwd", "/tmp")
    if fields:
        page.locator("#more summary").click()
    for name, value in fields.items():
        page.fill(f"#id_{name}", value)
    page.click("#submit-button")
    page.wait_for_url(re.compile(r"/jobs/\d+$"))


def test_a_run_is_submitted_watched_and_read(page: Page) -> None:
    submit_by_form(page, "echo begun; sleep 2; printf '\\033[32mdone\\033[0m\\n'", declared_ram="100 MiB")
    expect(page.locator("#output")).to_contain_text("begun", timeout=SOON)
    expect(page.locator("#job .lead")).to_contain_text("completed", timeout=SOON)
    expect(page.locator("#output .f2")).to_have_text("done", timeout=SOON)
    page.goto("/")
    expect(page.locator(".row.finished").first).to_contain_text("echo begun")


def test_the_form_answers_while_typing_and_preselects_the_device(page: Page) -> None:
    page.goto("/submit")
    page.type("#id_command", "python train.py")
    expect(page.locator("#estimate .verdict")).to_contain_text("Fits now on gpu0", timeout=SOON)
    expect(page.locator('[name="gpu"][value="one"]')).to_be_checked()
    page.locator('label:has([name="gpu"][value="none"])').click()
    page.type("#id_command", " --more")
    expect(page.locator("#estimate .charged")).to_have_count(1, timeout=SOON)
    expect(page.locator('[name="gpu"][value="none"]')).to_be_checked()  # a choice of the person's stays
    page.locator("#more summary").click()
    page.fill("#id_declared_ram", "24 parsecs")
    expect(page.locator("#estimate")).to_contain_text("is not a unit", timeout=SOON)


def test_a_waiting_job_says_why_and_starts_when_capacity_is_declared(page: Page, person: Person) -> None:
    page.goto("/devices")
    page.get_by_role("link", name="change gpu0").click()
    declared = page.get_by_label("Declared capacity")
    declared.fill("16 GiB")
    expect(page.locator(".effects")).to_contain_text("16.0 GiB", timeout=SOON)
    page.locator(".declaration").first.get_by_role("button", name="Save").click()
    expect(page.locator("#messages")).to_contain_text("gpu0 is saved.")
    needs = {"gpu": "one", "declared_vram": "10 GiB", "declared_ram": "100 MiB"}
    first = person.submit("sleep 120", name="first", **needs)
    person.wait_for(first, "running")
    second = person.submit("sleep 121", name="second", **needs)
    page.goto(f"/jobs/{second}")
    expect(page.locator(".lead .sentence")).to_contain_text("10.0 GiB", timeout=SOON)
    objection = page.locator(".check.bad").filter(has_text="booked").first
    expect(objection).to_contain_text("16.0 GiB declared − 10.0 GiB leased = 6.0 GiB room", timeout=SOON)
    page.goto("/devices")
    page.get_by_role("link", name="change gpu0").click()
    page.get_by_label("Declared capacity").fill("24 GiB")
    page.locator(".declaration").first.get_by_role("button", name="Save").click()
    expect(page.locator("#messages")).to_contain_text("gpu0 is saved.", timeout=SOON)  # who leaves sooner takes it back
    page.goto(f"/jobs/{second}")
    expect(page.locator("#job .lead")).to_contain_text("Running on gpu0", timeout=SOON)


def test_cancelling_is_one_click_and_is_seen(page: Page, person: Person) -> None:
    job = person.submit("sleep 300", declared_ram="100 MiB")
    person.wait_for(job, "running")
    page.goto(f"/jobs/{job}")
    page.click("#cancel")
    expect(page.locator("#messages")).to_contain_text("is being stopped")
    expect(page.locator("#job .lead")).to_contain_text("cancelled", timeout=SOON)
    assert person.job(job)["outcome"] == "cancelled"


def test_the_queue_is_live_and_keeps_focus_and_parts_that_did_not_change(page: Page, person: Person) -> None:
    expect(page.locator("#live")).to_contain_text("live")
    job = person.submit("sleep 300", name="seen-by-itself", declared_ram="100 MiB")
    link = page.locator(f"#job-{job}")
    expect(link).to_be_visible(timeout=SOON)
    expect(page.locator(f'.running[data-job="{job}"]')).to_be_visible(timeout=SOON)
    link.focus()
    person.submit("sleep 301", name="another", declared_ram="100 MiB")
    expect(page.get_by_role("link", name="another", exact=True)).to_be_visible(timeout=SOON)
    expect(link).to_be_focused()


def test_a_hidden_tab_asks_for_nothing_until_it_is_looked_at(page: Page) -> None:
    hide = "Object.defineProperty(document, 'hidden', { value: %s, configurable: true });"
    tell = "document.dispatchEvent(new Event('visibilitychange'));"
    with page.expect_request("**/fragments/queue*", timeout=SOON):
        pass
    page.evaluate(hide % "true" + tell)
    expect(page.locator("#live")).to_contain_text("paused")
    late = "{ requestConfig: { elt: document.querySelector('[data-poll]') }, xhr: { status: 204, responseURL: '/' } }"
    page.evaluate(f"document.dispatchEvent(new CustomEvent('htmx:afterRequest', {{ detail: {late} }}))")
    expect(page.locator("#live")).to_contain_text("paused")  # an answer that was on its way changes nothing
    with pytest.raises(TimeoutError):
        page.wait_for_event("request", timeout=2500)
    with page.expect_request("**/fragments/queue*", timeout=SOON):
        page.evaluate(hide % "false" + tell)


def test_a_service_that_does_not_answer_is_told_until_it_does_again(chromium: Browser, person: Person) -> None:
    with open_context(chromium, person) as context:  # unwatched: who gets no answer has it in the console, too
        page, hangs = context.new_page(), True
        page.route("**/fragments/queue*", lambda route: None if hangs else route.continue_())
        page.route("**/notices/bell*", lambda route: route.abort())  # its 204 would be taken for an answer, too
        page.goto("/")
        page.evaluate("htmx.config.timeout = 500")
        expect(page.locator("#live")).to_contain_text("no answer since", timeout=SOON)
        person.submit("sleep 302", name="after-the-silence", declared_ram="100 MiB")
        page.evaluate("htmx.config.timeout = 0")  # as it was: who answers late answers
        hangs = False  # the first answer brings new rows: the part that asked is no longer there when it has come
        expect(page.get_by_role("link", name="after-the-silence", exact=True)).to_be_visible(timeout=SOON)
        expect(page.locator("#live")).to_contain_text("live", timeout=SOON)


def test_a_session_that_ends_says_so_once_and_the_page_asks_no_more(page: Page) -> None:
    page.goto("/?from=here")
    page.context.clear_cookies(name="tidegate_session")
    over = page.locator("#messages .error")
    # The poll that found this out was answered 401, which Chromium writes to the console.
    expect(over).to_contain_text("Your session is over.", timeout=SOON)
    expect(page.locator("#live")).to_contain_text("logged out")
    with pytest.raises(TimeoutError):
        page.wait_for_event("request", timeout=2500)
    expect(page.get_by_label("Password")).to_have_count(0)
    page.get_by_role("link", name="Log in again").click()
    page.wait_for_url(re.compile(r"/login\?next=%2F%3Ffrom%3Dhere"), timeout=SOON)


def test_what_was_typed_outlives_a_session_that_ends(page: Page, service: LiveService) -> None:
    page.goto("/submit")
    page.context.clear_cookies(name="tidegate_session")
    page.type("#id_command", "echo a long command")
    page.get_by_role("link", name="Log in again").click(timeout=SOON)
    page.wait_for_url(re.compile(r"/login\?next=.*submit"), timeout=SOON)
    link = login_link(service)
    token = page.context.request.get(link).text().split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    page.context.request.post(link, form={"csrfmiddlewaretoken": token}, headers={"Referer": link})
    page.goto("/submit", referer=f"{service.address}/login")
    expect(page.locator("#id_command")).to_have_value("echo a long command")


def test_the_theme_follows_the_choice(page: Page) -> None:
    page.goto("/")
    background = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(background)
    page.click("#theme")
    chosen = page.evaluate(background)
    assert chosen != before
    page.reload()
    assert page.evaluate(background) == chosen


def test_pages_fit_a_narrow_and_a_wide_screen(page: Page, person: Person) -> None:
    job = person.submit("sleep 300", name="x" * 150, declared_ram="100 MiB")
    for width in (390, 760, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        for path in ("/", "/submit", "/devices", "/jobs/", f"/jobs/{job}", "/people", "/audit"):
            page.goto(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)


def test_an_admin_lets_somebody_in_who_may_only_look(page: Page, service: LiveService, chromium: Browser) -> None:
    page.goto("/people")
    page.fill("#new-name", "vic")
    page.select_option("#new-role", "viewer")
    page.get_by_role("button", name="Add").click()
    link = page.locator("#new-link").inner_text()
    context = chromium.new_context(base_url=service.address)
    tab = context.new_page()
    log_in(tab, link)
    expect(tab.get_by_role("link", name="Submit a run")).to_have_count(0)
    assert tab.goto("/submit").status == 403
    context.close()
