"""When and how often, in a real browser: arrays, jobs after jobs, held groups, forecasts, long lists."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import watched_tab
from tests.person import Person

SOON = 30_000  # milliseconds
SMALL = "20 MiB"


@pytest.fixture(scope="module")
def tab(chromium: Browser, person: Person) -> Iterator[Page]:
    with watched_tab(chromium, person) as opened:
        yield opened


@pytest.fixture
def page(tab: Page, person: Person) -> Iterator[Page]:
    """The one tab of this module at its usual width; what a test leaves in the queue is cancelled."""
    tab.set_viewport_size({"width": 1280, "height": 900})
    yield tab
    queue = person.call("/api/v1/queue")
    left = [job["id"] for job in (*queue["queued"], *queue["running"])]
    arrays = {array["id"] for job in left if (array := person.job(job)["array"])} if left else set()
    for array in arrays:
        person.call(f"/api/v1/arrays/{array}/cancel", {})
    for job in left:
        person.call(f"/api/v1/jobs/{job}/cancel", {})


def fill_in(page: Page, command: str, **fields: str) -> None:
    """Fill the form in as somebody who opens both of its parts."""
    page.goto("/submit")
    page.fill("#id_command", command)
    page.fill("#id_cwd", "/tmp")
    for part in ("more", "terms"):
        page.locator(f"#{part} summary").click()
    for name, value in {"declared_ram": SMALL, **fields}.items():
        page.fill(f"#id_{name}", value)


def test_an_array_is_submitted_watched_filtered_and_cancelled(page: Page) -> None:
    fill_in(page, "sleep 30{index}", name="sweep", array="6", array_limit="2")
    page.click("#submit-button")
    page.wait_for_url(re.compile(r"/arrays/\d+$"))
    expect(page.locator("#messages")).to_contain_text("6 jobs from #")
    expect(page.locator("#state-running")).to_have_text("2 running", timeout=SOON)
    expect(page.locator(".bar.states")).to_have_attribute("aria-label", "2 running, 4 waiting")
    expect(page.get_by_role("link", name="sweep [5]")).to_be_visible()
    page.locator("#state-queued").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".row")).to_have_count(4)
    expect(page.locator("#state-queued")).to_have_attribute("aria-current", "true")
    page.click("#cancel-array")
    expect(page.locator("#state-cancelled")).to_have_text("6 cancelled", timeout=SOON)
    expect(page.locator("#cancel-array")).to_have_count(0)


def test_after_another_job_and_not_before_a_time_with_a_mistake_first(page: Page, person: Person) -> None:
    first = person.submit("sleep 300", name="first", declared_ram=SMALL)
    typed = {"not_before": "2037-05-01 08:00", "retry_times": "2", "name": "second", "environment": "A=1"}
    fill_in(page, "echo second", after=f"{first} perhaps", **typed)
    page.click("#submit-button")
    wrong = page.locator("#wrong a")
    expect(wrong).to_have_text("After these jobs")
    for name, value in {"command": "echo second", "after": f"{first} perhaps", **typed}.items():
        expect(page.locator(f"#id_{name}")).to_have_value(value)
    expect(page.locator("#id_after_error")).to_contain_text("names no job")
    wrong.click()
    expect(page.locator("#id_after")).to_be_focused()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type(f"{first} ok")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    lead = page.locator(f"#lead-{first}")
    expect(lead).to_be_visible(timeout=SOON)
    expect(page.locator(".terms")).to_contain_text("not before 2037-05-01 08:00:00")
    expect(page.locator(".terms")).to_contain_text("run again up to 2 times")
    lead.click()
    page.wait_for_url(re.compile(rf"/jobs/{first}$"))
    expect(page.locator(".terms")).to_contain_text("waited for by")


def test_a_group_that_failed_fast_is_held_and_released(page: Page, person: Person) -> None:
    made = {"command": "exit 3", "cwd": "/tmp", "name": "typo", "array": 6, "array_limit": 1, "declared_ram": SMALL}
    first = person.call("/api/v1/jobs", made)["job"]["id"]
    page.goto(f"/jobs/{first + 5}")  # the last one: three more of them would be held again as soon as they have failed
    expect(page.locator(".lead .sentence")).to_contain_text("held by tidegate", timeout=SOON)
    expect(page.locator(".lead .sentence")).to_contain_text("failed within 10 s of their start")
    page.click("#release")
    expect(page.locator("#messages")).to_contain_text("3 jobs of this group are released.")
    expect(page.locator(".lead .sentence")).not_to_contain_text("held", timeout=SOON)


def test_a_waiting_job_is_foretold_and_the_page_of_forecasts_fits_a_narrow_screen(page: Page, person: Person) -> None:
    alone = {"gpu": "one", "exclusive": "device", "declared_vram": "1 GiB", "declared_ram": SMALL}
    running = person.submit("sleep 300", time_limit_s=1200, **alone)
    person.wait_for(running, "running")
    waiting = person.submit("sleep 10", name="next", **alone)
    page.goto("/")
    row = page.locator(f'.waiting[data-job="{waiting}"]')
    expect(row.locator(".expected")).to_contain_text(
        re.compile(r"in about \d+ min \(by (\S+ )?\d\d:\d\d\)"), timeout=SOON
    )
    page.get_by_role("link", name="how good forecasts are").click()
    expect(page.get_by_role("heading", name="How good the forecasts are")).to_be_visible()
    expect(page.locator("main")).to_contain_text("1 waiting job is told a time now.")
    page.set_viewport_size({"width": 390, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_list_is_turned_over_and_keeps_its_filter(page: Page, person: Person) -> None:
    made = {"command": "sleep 300", "cwd": "/tmp", "name": "many", "array": 110, "array_limit": 1}
    person.call("/api/v1/jobs", {**made, "declared_ram": SMALL})
    page.goto("/jobs/")
    page.select_option("#outcome", "queued")
    page.get_by_role("button", name="Show").click()
    top = page.locator(".row .id").first.inner_text()
    expect(page.locator(".row")).to_have_count(50)
    expect(page.locator("#newer")).to_have_count(0)
    page.click("#older")
    page.wait_for_url(re.compile("outcome=queued.*before="))
    expect(page.locator("#outcome")).to_have_value("queued")
    page.click("#older")
    expect(page.locator("#older")).to_have_count(0)
    assert 0 < page.locator(".row").count() < 50
    page.click("#newer")
    page.click("#newer")
    expect(page.locator(".row .id").first).to_have_text(top)
    expect(page.locator("#outcome")).to_have_value("queued")


def test_pages_of_arrays_and_conditions_fit_every_screen(page: Page, person: Person) -> None:
    made = {
        "command": "sleep 300",
        "cwd": "/tmp",
        "name": "n" * 90,
        "array": 3,
        "array_limit": 1,
        "declared_ram": SMALL,
    }
    first = person.call("/api/v1/jobs", made)["job"]
    far = person.submit("true", not_before="2090-01-01T00:00Z", after=[first["id"]], declared_ram=SMALL)
    person.wait_for(first["id"], "running")
    for width in (390, 760, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        for path in ("/", f"/arrays/{first['array']['id']}", f"/jobs/{far}", "/forecasts/", "/people", "/submit"):
            page.goto(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
