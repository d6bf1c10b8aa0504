"""Why does my job wait, and what can I do? Asked of the page of a job, in a real browser against the real service."""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.person import Person
from tests.service import REPOSITORY

SOON = 30_000  # milliseconds
HOLDS = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from _progress import GIB, device
for _ in range(int(sys.argv[2])):
    device().hold(int(int(os.environ["TIDEGATE_WORKERS"]) * 1.5 * GIB), busy=0.5)
    time.sleep(0.5)
"""
"""A run that takes 1.5 GiB of its device for each of its workers."""


def test_a_waiting_job_says_what_would_start_it_and_a_click_does_it(page: Page, person: Person, tmp_path: Path) -> None:
    script = tmp_path / "eval.py"
    script.write_text(HOLDS)
    command = f"{sys.executable} {script} {REPOSITORY / 'examples'} 10"
    small = {"gpu": "one", "declared_ram": "100 MiB"}
    seen = person.submit(command, workers=2, declared_vram="4 GiB", **small)
    assert person.wait_for(seen, "finished", 30.0)["outcome"] == "completed"
    filler = person.submit("sleep 300", declared_vram="18 GiB", time_limit_s=900, **small)
    person.wait_for(filler, "running")
    job = person.submit(command, workers=8, name="eval-vlm", **small)

    page.goto(f"/jobs/{job}")
    expect(page.locator(".lead .sentence")).to_contain_text("it needs 12.0 GiB", timeout=SOON)
    expect(page.locator(".ways")).to_contain_text(f"when #{filler} ends, about")
    expect(page.locator(".ways")).to_contain_text(
        "with 3 workers instead of 8 (if it reads TIDEGATE_WORKERS; needs 4.5 GiB, fits gpu0 now)"
    )
    expect(page).to_have_title(f"waiting · #{job} eval-vlm · Tidegate")
    expect(page.locator(".ladders")).to_contain_text("no run with 8 workers was measured, only with 2")
    expect(page.locator(".checks > .check.bad svg.bar")).not_to_have_count(0)

    expect(page.locator("#passed .check").first).to_be_hidden()
    page.keyboard.press("p")
    expect(page.locator("#passed")).to_contain_text("Nobody holds this job.")
    expect(page.locator("#passed .check").first).to_be_visible()
    for width in (390, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, width
    page.set_viewport_size({"width": 1280, "height": 900})

    page.get_by_role("button", name="Run with 3 workers").click()
    expect(page.locator("#messages")).to_contain_text(f"#{job} now asks for 3 workers instead of 8.")
    expect(page.locator("#job .lead")).to_contain_text("Running on gpu0", timeout=SOON)
    assert person.job(job)["workers"] == 3
    expect(page.locator("#chart-device .main-svg").first).to_be_visible(timeout=SOON)
    expect(page.locator("#job .lead")).to_contain_text("completed", timeout=SOON)
    expect(page.locator(".stretches .stretch").first).to_contain_text("declared capacity")
    expect(page.locator(".stretches .stretch").last).to_contain_text("ran, completed")
    expect(page).to_have_title(f"completed · #{job} eval-vlm · Tidegate")
    expect(page.locator("#h-proof")).to_be_visible()
    expect(page.get_by_role("link", name="Submit again with changes")).to_have_attribute("href", f"/submit?again={job}")


def test_a_code_leads_to_what_it_means_and_a_held_job_is_released(page: Page, person: Person) -> None:
    job = person.submit("sleep 1", name="held", declared_ram="100 MiB", not_before="2036-01-01T00:00:00Z")
    page.goto(f"/jobs/{job}")
    expect(page.locator(".ways")).to_contain_text("when its time has come", timeout=SOON)
    page.get_by_role("button", name="Hold").click()
    expect(page.locator(".ways")).to_contain_text("after it is released", timeout=SOON)
    page.get_by_role("button", name="Release").click()
    expect(page.locator("#messages")).to_contain_text("is released")
    page.get_by_role("link", name="not_before").first.click()
    expect(page.locator("#not_before")).to_contain_text("that time")
    page.goto(f"/jobs/{job}")
    page.get_by_label("Priority").fill("-7")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.locator("#messages")).to_contain_text("has priority -7")
