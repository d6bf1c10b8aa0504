"""The page that people keep open: looking for something, acting on many, and a page that moves under one's hands."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Response, expect

from tests.browser import watched_tab
from tests.machine_pace import slowness
from tests.person import Person
from tests.wait import until

SOON = 30_000  # milliseconds
LARGE = {"gpu": "one", "declared_vram": "20 GiB", "declared_ram": "32 MiB"}
NAMES = ("train-vit", "train-gan", "eval-vit", "bake")
WAITING = "#now-waiting .row"


@pytest.fixture(scope="module")
def holder(person: Person) -> int:
    """A job that has the only card as long as the tests take."""
    job = person.submit("sleep 600", name="holder", **LARGE)
    person.wait_for(job, "running")
    return job


@pytest.fixture
def jobs(person: Person, holder: int) -> Iterator[dict[str, int]]:
    """Four jobs that wait for the card; nothing waits when the test is over."""
    yield {name: person.submit(f"sleep 1 # {name}", name=name, **LARGE) for name in NAMES}
    queue = person.call("/api/v1/queue")
    for job in queue["queued"]:
        person.call(f"/api/v1/jobs/{job['id']}/cancel", {})


@pytest.fixture
def page(chromium: Browser, person: Person, jobs: dict[str, int]) -> Iterator[Page]:
    with watched_tab(chromium, person) as tab:
        yield tab


def polls(page: Page, count: int) -> list[Response]:
    """Return so many looks that the page takes by itself."""
    found: list[Response] = []
    while len(found) < count:
        with page.expect_response("**/fragments/queue*", timeout=SOON) as seen:
            pass
        found.append(seen.value)
    return found


def test_what_one_looks_for_is_in_the_address_and_outlives_polls_and_reloads(page: Page) -> None:
    expect(page.locator(WAITING)).to_have_count(4, timeout=SOON)
    page.locator("#q").press_sequentially("vit", delay=20)
    expect(page).to_have_url(re.compile(r"/\?q=vit$"), timeout=SOON)
    expect(page.locator(WAITING)).to_have_count(2)
    expect(page.locator("#q")).to_be_focused()
    page.select_option("#f-sort", "newest")
    expect(page).to_have_url(re.compile(r"/\?q=vit&sort=newest$"), timeout=SOON)
    expect(page.locator(f"{WAITING} .title").first).to_contain_text("eval-vit")
    assert all("q=vit" in seen.url for seen in polls(page, 2))
    page.reload()
    expect(page.locator("#q")).to_have_value("vit")
    expect(page.locator("#f-sort")).to_have_value("newest")
    expect(page.locator(WAITING)).to_have_count(2)
    page.locator("#filters-more summary").click()
    page.select_option("#f-reason", "quota")
    expect(page.locator("#now-waiting")).to_contain_text("No waiting job matches.", timeout=SOON)
    expect(page.locator("#now-running")).to_be_hidden()
    page.go_back()
    expect(page.locator(WAITING)).to_have_count(2, timeout=SOON)
    page.click("#clear")
    expect(page.locator(WAITING)).to_have_count(4)


def test_a_look_that_a_filter_overtakes_changes_nothing(page: Page) -> None:
    page.route("**/fragments/queue*", lambda route: None)  # held until nobody holds it any more
    with page.expect_request("**/fragments/queue*", timeout=SOON):
        pass
    page.select_option("#f-state", "running")
    expect(page.locator(WAITING)).to_have_count(0)
    page.unroute("**/fragments/queue*")
    assert all("state=running" in seen.url for seen in polls(page, 2))
    expect(page.locator(WAITING)).to_have_count(0)


def test_ticks_and_focus_stay_while_the_page_moves_and_one_click_acts_on_all_ticked(
    page: Page, person: Person, jobs: dict[str, int]
) -> None:
    bar = page.locator("#bulk")
    expect(bar).to_be_hidden()
    for name in ("train-vit", "bake"):
        page.locator(f"#pick-{jobs[name]}").check()
    expect(page.locator("#bulk-count")).to_have_text("2 selected")
    expect(bar.get_by_role("button", name="Run again")).to_be_disabled()
    link = page.locator(f"#job-{jobs['bake']}")
    link.focus()
    newcomer = person.submit("sleep 2", name="newcomer", **LARGE)
    expect(page.locator(f"#job-{newcomer}")).to_be_visible(timeout=SOON)
    expect(link).to_be_focused()
    expect(page.locator(f"#pick-{jobs['bake']}")).to_be_checked()
    expect(page.locator("#bulk-count")).to_have_text("2 selected")

    page.fill("#bulk-priority", "-7")
    polls(page, 1)
    expect(page.locator("#bulk-priority")).to_have_value("-7")
    bar.get_by_role("button", name="Set").click()
    expect(page.locator("#messages")).to_contain_text("2 given priority -7.")
    expect(page.locator(f'[data-job="{jobs["bake"]}"]')).to_contain_text("priority -7")
    assert person.job(jobs["train-vit"])["priority"] == -7

    person.call(f"/api/v1/jobs/{newcomer}/cancel", {})
    expect(page.locator(WAITING)).to_have_count(4, timeout=SOON)
    page.locator("#pick-all-waiting").check()
    expect(page.locator("#bulk-count")).to_have_text("4 selected", timeout=SOON)
    page.locator(f"#pick-{jobs['train-gan']}").uncheck()
    page.locator(f"#pick-{jobs['eval-vit']}").uncheck()
    expect(page.locator("#pick-all-waiting")).to_have_js_property("indeterminate", True)
    bar.get_by_role("button", name="Cancel").click()
    expect(page.locator("#messages")).to_contain_text("2 cancelled.")
    expect(page.locator(WAITING)).to_have_count(2)
    assert person.job(jobs["bake"])["outcome"] == "cancelled"


def test_a_look_brings_what_changed_and_no_more(page: Page) -> None:
    page.goto("/?state=waiting&q=eval")
    seen = polls(page, 4)  # the machine's memory moves from second to second, why a job waits does not
    assert any(one.status == 204 or 'id="now-waiting"' not in one.text() for one in seen)
    assert all('id="now-finished"' not in one.text() for one in seen if one.status == 200)


def test_a_stranger_finds_within_two_clicks_why_a_job_waits(
    person: Person, chromium: Browser, jobs: dict[str, int], holder: int
) -> None:
    link = re.search(r"/login/link/[\w-]+", person.send("/people/add", b"name=stranger&role=viewer"))
    assert link
    job = jobs["eval-vit"]
    with watched_tab(chromium, Person(person.address, link[0])) as tab:
        row = tab.locator(f'[data-job="{job}"]')  # no click: the reason and what is missing
        expect(row.locator(".because")).to_contain_text(f"leased by #{holder} leaves 4.0 GiB", timeout=SOON)
        expect(row.locator(".gauge")).to_contain_text("16.0 GiB short")
        expect(tab.locator("input[name=job]")).to_have_count(0)
        row.get_by_role("link", name="eval-vit").click()  # one click: every check
        expect(tab.get_by_text("4.0 GiB").first).to_be_visible(timeout=SOON)
        tab.go_back()
        row.get_by_role("link", name=f"#{holder}").click()  # or one click: who holds it
        expect(tab.get_by_text("holder").first).to_be_visible(timeout=SOON)


def test_a_thousand_waiting_jobs_are_a_short_page(page: Page, person: Person) -> None:
    first = person.submit("true # {index}", name="sweep", array=1000, array_limit=1, **LARGE)
    page.goto("/")
    expect(page.locator("#h-waiting")).to_contain_text("1004")
    expect(page.locator("#now-waiting")).to_contain_text("999 more of array")
    assert page.locator(".row").count() < 130
    took = page.evaluate("performance.getEntriesByType('navigation')[0].duration")
    assert took < 5000 * slowness()
    page.goto("/?q=sweep&state=waiting")
    expect(page.locator(WAITING)).to_have_count(50)
    page.get_by_role("link", name="the next ones").click()
    expect(page.locator(".pager").first).to_contain_text("rows 51 to 100")
    for width in (390, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto("/")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
    page.locator(f"#pick-{first}").check()
    page.locator("#bulk").get_by_role("button", name="Cancel").click()
    expect(page.locator("#messages")).to_contain_text("1000 cancelled.")


WATCH = """() => { window.shifted = 0; new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifted += one.value;
}).observe({ type: "layout-shift" }); }"""
PUSH = """() => new Promise((done) => { document.getElementById("content").prepend(Object.assign(
  document.createElement("hr"), { style: "height: 200px" })); requestAnimationFrame(done); })"""


def test_nothing_moves_under_the_eyes_of_who_only_looks(page: Page, holder: int) -> None:
    page.goto("/devices")
    device = page.locator(".charts figcaption a").first.get_attribute("href")
    tabs = {path: page.context.new_page() for path in ("/", str(device), f"/jobs/{holder}")}
    for path, tab in tabs.items():
        tab.goto(path)
    tabs[str(device)].wait_for_selector(".chart .main-svg", timeout=SOON)
    tabs[f"/jobs/{holder}"].wait_for_selector(".chart .main-svg", timeout=SOON)
    expect(tabs["/"].locator(WAITING)).to_have_count(4, timeout=SOON)
    polls(tabs["/"], 3)  # until what was learned of the newcomers stands there
    for tab in tabs.values():
        tab.evaluate(WATCH)
    polls(tabs["/"], 8)
    assert {path: moved for path, tab in tabs.items() if (moved := tab.evaluate("window.shifted")) >= 0.01} == {}
    tabs["/"].evaluate(PUSH)
    until(lambda: tabs["/"].evaluate("window.shifted") > 0.01, SOON / 1000, "what moves to be seen")
    for tab in tabs.values():
        tab.close()
