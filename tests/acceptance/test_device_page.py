"""A device's page and the page of memory, in a real browser in another time zone; neither may complain meanwhile."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Download, Page, Route, expect

from tests.browser import Complaints, open_context
from tests.person import Person
from tests.service import LiveService
from tests.wait import until

SOON = 30_000  # milliseconds
LATEST = "Math.max(...document.getElementById('chart').data.map((trace) => +new Date(trace.x.at(-1) ?? 0)))"
TORCH = "import time; held = bytearray(64 << 20); time.sleep(300)"


@pytest.fixture(scope="module")
def job(person: Person) -> int:
    """Return a job that holds RAM, and a device's lease, until the service ends."""
    ident = person.submit(
        f"python3 -c '{TORCH}'", name="<b>holder</b>", gpu="one", declared_vram="4 GiB", declared_ram="200 MiB"
    )
    person.wait_for(ident, "running")
    return ident


@pytest.fixture(scope="module")
def admin(person: Person, chromium: Browser) -> Iterator[BrowserContext]:
    """An admin's browser in Nepal, logged in."""
    with open_context(chromium, person, timezone_id="Asia/Kathmandu", accept_downloads=True) as context:
        yield context


@pytest.fixture
def page(service: LiveService, admin: BrowserContext) -> Iterator[Page]:
    """A tab of which nothing may be complained."""
    tab = admin.new_page()
    complaints = Complaints(service.address)
    complaints.watch(tab)
    yield tab
    tab.close()
    assert complaints.found == []


def to_device(page: Page) -> None:
    page.goto("/devices")
    page.locator(".charts figcaption").get_by_role("link", name="gpu0").click()
    expect(page.locator("#chart .main-svg").first).to_be_visible(timeout=SOON)


def test_the_chart_grows_where_it_stands_and_rests_when_paused(page: Page, job: int) -> None:
    to_device(page)
    drawn = page.locator("#chart .plot-container").element_handle()
    before = until(lambda: page.evaluate(LATEST), SOON / 1000, "the first points of the chart")
    until(lambda: page.evaluate(LATEST) > before, SOON / 1000, "a further point in the chart")
    assert drawn is not None
    assert drawn.evaluate("(node) => node.isConnected")
    # What the axis ends with reads as the clock of whoever looks, hours from the server's.
    off = page.evaluate(
        """() => { const chart = document.getElementById("chart"), end = chart._fullLayout.xaxis.range[1];
          return [Date.parse(end) - Date.now(), chart.data[0].x.at(-1) - Date.now()]; }"""
    )
    assert max(abs(milliseconds) for milliseconds in off) < 60_000

    under_way: list[Route] = []
    page.route(re.compile("since="), lambda route: under_way.append(route))
    until(lambda: page.evaluate("1") and under_way, SOON / 1000, "a question of the chart's")
    page.get_by_role("button", name="Pause").click()
    still = page.evaluate(LATEST)
    with page.expect_response(re.compile("since="), timeout=SOON):
        page.unroute(re.compile("since="))  # what was held goes on
    with page.expect_response(re.compile("/fragment")):
        pass  # the rest of the page goes on meanwhile
    assert page.evaluate(LATEST) == still
    with page.expect_response(re.compile("since=")):
        page.get_by_role("button", name="Go on").click()


def test_whoever_left_stays_drawn_and_the_range_is_asked_for_once(page: Page, person: Person, job: int) -> None:
    gone = person.submit(f"python3 -c '{TORCH.replace('300', '4')}'", name="gone", declared_ram="200 MiB")
    person.wait_for(gone, "finished")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/series" in request.url else None)
    page.goto("/devices/testnode/ram")
    key = page.locator(".figure-key")
    expect(key).to_contain_text(f"#{gone} gone", timeout=SOON)
    for _ in range(3):
        with page.expect_response(re.compile("since="), timeout=SOON):
            pass
    assert sum("since=" not in url for url in asked) == 1
    expect(key).to_contain_text(f"#{gone} gone")


def test_owners_are_links_and_their_names_are_text(page: Page, job: int) -> None:
    to_device(page)
    held = page.locator("#pool .inmates")
    expect(held).to_contain_text(f"#{job} <b>holder</b>", timeout=SOON)
    expect(held).to_contain_text("4.0 GiB")
    page.locator(".figure-table summary").click()
    expect(page.locator(".figure-values thead")).to_contain_text("booked")
    expect(page.locator(".figure-values tbody tr").first).to_be_visible()
    page.get_by_role("link", name="RAM", exact=True).click()
    expect(page.locator(".figure-key")).to_contain_text("<b>holder</b>", timeout=SOON)
    page.locator(".figure-key").get_by_role("link", name="<b>holder</b>").click()
    page.wait_for_url(re.compile(rf"/jobs/{job}$"))


def test_the_range_is_in_the_address_and_each_file_has_content(page: Page, job: int, tmp_path: Path) -> None:
    to_device(page)
    page.get_by_role("link", name="1 h", exact=True).click()
    page.wait_for_url(re.compile(r"\?range=1h$"))
    expect(page.locator("#chart .main-svg").first).to_be_visible(timeout=SOON)
    png = saved(page, "PNG", tmp_path).read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", png[16:24]) == (2800, 1240)
    table = saved(page, "CSV", tmp_path).read_text().splitlines()
    assert table[0].startswith("time_utc,unix_s,step_s,total,used,free,booked,kept")
    assert int(table[-1].split(",")[3]) == 24 << 30
    drawing = saved(page, "HTML", tmp_path)
    alone = page.context.new_page()
    alone.goto(drawing.as_uri())
    expect(alone.locator(".main-svg").first).to_be_visible(timeout=SOON)
    alone.close()


def saved(page: Page, name: str, folder: Path) -> Path:
    with page.expect_download(timeout=SOON) as waiting:
        page.get_by_role("link" if name != "PNG" else "button", name=name, exact=True).click()
    found: Download = waiting.value
    path = folder / found.suggested_filename
    found.save_as(path)
    return path


def test_an_admin_sees_what_a_declaration_does_before_it_is_saved(page: Page, job: int) -> None:
    to_device(page)
    save = page.get_by_role("button", name="Save")
    save.scroll_into_view_if_needed()
    stood = save.bounding_box()
    page.get_by_label("Declared capacity").fill("3 GiB")
    expect(page.locator(".effects")).to_contain_text("1.0 GiB more than declared", timeout=SOON)
    assert save.bounding_box() == stood  # else who presses it as this comes presses something else
    save.click()
    expect(page.locator("#messages")).to_contain_text("gpu0 is saved.")
    expect(page.locator("#pool .sums")).to_contain_text("none, 1.0 GiB too much", timeout=SOON)
    page.get_by_label("Declared capacity").fill("24 GiB")
    with page.expect_navigation(timeout=SOON):  # the page that is left may show the new sum, too
        page.get_by_role("button", name="Save").click()
    expect(page.locator("#pool .sums")).to_contain_text("20.0 GiB", timeout=SOON)
    page.get_by_label("Hold, because").fill("new fan")
    page.get_by_role("button", name="Hold", exact=True).click()
    expect(page.locator("#declared")).to_contain_text("new fan")
    page.get_by_role("button", name="Release").click()
    expect(page.locator(".event").first).to_contain_text("release")


def test_memory_names_the_process_of_a_job_and_the_rule(page: Page, job: int) -> None:
    page.goto("/attribution")
    part = page.locator("details.part", has_text="<b>holder</b>").last
    expect(part).to_contain_text(re.compile("started by its runner|in the job's control group"), timeout=SOON)
    expect(part).to_contain_text("python3")
    expect(page.locator(".icicle").first).to_be_visible()
    part.locator("summary").click()
    with page.expect_response(lambda answer: "/attribution/fragment" in answer.url):
        pass
    assert part.get_attribute("open") is None, "what somebody closed stays closed when the page is renewed"
