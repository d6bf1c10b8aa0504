"""What people do with a job's output, in a real browser: follow it, search it, find the error, see how far it is."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.person import Person
from tests.wait import until

SOON = 30_000  # milliseconds
PROGRAM = """
import pathlib, sys, time
go = pathlib.Path(sys.argv[1])
for n in range(1, 3001):
    print(f"line {n} <b>&amp;")
print("ValueError: the first of all", flush=True)
for n in range(3002, 4001):
    print(f"line {n}")
def bar(n):
    sys.stderr.write(f"\\r{n:3d}%|{'#' * (n // 5):<20}| {n}/100 [00:{n % 60:02d}<01:00, 1.00it/s]")
    sys.stderr.flush()
bar(40)
print("waiting", flush=True)
while not go.exists():
    time.sleep(0.05)
bar(62)
for n in range(30):
    print(f"later {n}", flush=True)
while not (go.parent / "end").exists():
    time.sleep(0.05)
"""


def test_the_output_is_followed_searched_and_its_first_error_found(page: Page, person: Person, tmp_path: Path) -> None:
    program, go = tmp_path / "job.py", tmp_path / "go"
    program.write_text(PROGRAM)
    command = shlex.join([sys.executable, str(program), str(go)])
    job = person.submit(command, name="talks", declared_ram="100 MiB")
    person.wait_for(job, "running")
    page.goto(f"/jobs/{job}/log")
    output = page.locator("#output")
    expect(output).to_contain_text("waiting", timeout=SOON)
    at_end = "(box => box.scrollHeight - box.scrollTop - box.clientHeight < 24)(document.querySelector('#output'))"
    until(lambda: page.evaluate(at_end), SOON / 1000, "the end to be in view")

    # Whoever scrolled up is left there; earlier lines come in pages, and what is looked at does not move.
    follow = page.get_by_role("button", name="Follow")
    expect(follow).to_have_attribute("aria-pressed", "true")
    output.evaluate("box => { box.scrollTop = 0 }")
    expect(follow).to_have_attribute("aria-pressed", "false")
    first = output.locator("li[id^=L]").first
    before = first.get_attribute("id") or ""
    edge = output.get_by_role("button", name="Load earlier lines")
    edge.click()
    expect(output.locator("li[id^=L]").first).not_to_have_id(before)
    where = f"""document.getElementById('{before}').getBoundingClientRect().top
        - document.querySelector('#output').getBoundingClientRect().top"""
    until(lambda: 0 <= page.evaluate(where) < 120, SOON / 1000, "what is looked at to stand where it stood")

    # What comes meanwhile is there, and does not move the reader.
    go.touch()
    expect(output).to_contain_text("later 29", timeout=SOON)
    assert not page.evaluate(at_end)
    follow.click()
    until(lambda: page.evaluate(at_end), SOON / 1000, "the end to be in view again")

    # Words are found over the whole of it, with a count, onward and back, by keyboard.
    page.fill("#log-q", "LATER")
    page.press("#log-q", "Enter")
    said = page.locator("#log-said")
    expect(said).to_contain_text("1 of 30")
    expect(output.locator(".hit mark")).to_have_text("later")
    expect(output.locator(".hit")).to_be_in_viewport()
    expect(page.locator("#log-q")).to_be_focused()
    page.press("#log-q", "Enter")
    expect(said).to_contain_text("2 of 30")
    page.get_by_role("button", name="Previous").click()
    expect(said).to_contain_text("1 of 30")

    page.get_by_role("link", name="First error").click()
    expect(said).to_contain_text("error")
    expect(output.locator("#L3001.hit")).to_have_text("ValueError: the first of all")
    expect(output.locator("#L3001")).to_be_in_viewport()
    expect(output.locator("#L2990")).to_have_text("line 2990 <b>&amp;")

    page.get_by_role("button", name="Wrap").click()
    assert page.evaluate("getComputedStyle(document.querySelector('#L3001')).whiteSpace") == "pre"
    page.get_by_role("link", name="Back to the end").click()
    expect(output).to_contain_text("later 29")
    expect(follow).to_have_attribute("aria-pressed", "true")

    # A bar is one line in its last state, and says how far the job is.
    page.get_by_role("link", name="both", exact=True).click()
    expect(page.locator("#output-stderr li.more")).to_contain_text("62%")
    expect(page.locator("#output-stderr")).not_to_contain_text("40%")
    for width in (390, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
    page.set_viewport_size({"width": 1280, "height": 900})
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download stdout").click()
    assert Path(saved.value.path()).read_text().startswith("line 1 <b>&amp;\n")

    page.goto(f"/jobs/{job}")
    bar = page.get_by_role("progressbar", name="Progress")
    expect(bar).to_have_attribute("aria-valuenow", "62", timeout=SOON)
    expect(page.locator(".progress-words").first).to_contain_text("62 % · read from its log")
    (tmp_path / "end").touch()
    person.wait_for(job, "finished")
    expect(page.locator("#log [data-poll]")).to_have_count(0, timeout=SOON)
    expect(page.locator("#log-follow")).to_be_hidden()


def test_nothing_is_asked_for_twice_when_nothing_comes(page: Page, person: Person) -> None:
    job = person.submit("echo begun; sleep 300", declared_ram="100 MiB")
    person.wait_for(job, "running")
    page.goto(f"/jobs/{job}/log")
    expect(page.locator("#output")).to_contain_text("begun", timeout=SOON)
    with page.expect_response(lambda answer: "/log/lines" in answer.url and answer.status == 204, timeout=SOON):
        pass
    person.call(f"/api/v1/jobs/{job}/cancel", {})
    person.wait_for(job, "finished")
    expect(page.locator("#log [data-poll]")).to_have_count(0, timeout=SOON)
