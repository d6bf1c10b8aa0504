"""What a person does on the page of a workload, in a real browser against the real service."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.person import Person

SOON = 30_000  # milliseconds
HOLDS = 'python3 -c "import time; b = bytearray({mib} << 20); time.sleep(5)"'


def pull_taller(page: Page, box: str) -> None:
    """Pull the corner of a text field down, as a person does to read more of it."""
    page.locator(box).scroll_into_view_if_needed()
    here = page.locator(box).bounding_box()
    assert here
    corner = here["x"] + here["width"] - 4, here["y"] + here["height"] - 4
    page.mouse.move(*corner)
    page.mouse.down()
    page.mouse.move(corner[0], corner[1] + 60, steps=4)
    page.mouse.up()


def test_a_workload_is_defined_run_twice_read_and_corrected(page: Page, person: Person) -> None:
    """From the list to a pinned need: what a person who brings a script along does, in that order."""
    page.goto("/workloads")
    page.get_by_role("link", name="Define a workload").click()
    page.fill("#id_name", "hold memory")
    page.fill("#id_command", HOLDS)
    page.fill("#id_cwd", "/tmp")
    page.get_by_role("button", name="Define it").click()
    expect(page.locator("#id_command_error")).to_contain_text("It names mib")
    expect(page.locator("#id_p0_name")).to_have_value("mib")
    page.fill("#id_p0_default", "80")
    pull_taller(
        page, "#id_command"
    )  # the content policy lets no swap put that back as an attribute: the tab is watched
    taller = page.locator("#id_command").bounding_box()
    page.get_by_role("button", name="Add rows").click()
    expect(page.locator("#id_p3_name")).to_be_visible()
    expect(page.locator("#id_p0_default")).to_have_value("80")
    assert page.locator("#id_command").bounding_box()["height"] == taller["height"]
    page.get_by_role("button", name="Define it").click()
    expect(page.locator("#messages")).to_contain_text("hold memory is defined.")
    where = page.url

    page.get_by_role("link", name="Submit this").click()
    page.click("#submit-button")
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    first = int(page.url.rsplit("/", 1)[1])
    person.wait_for(first, "finished")
    second = int(person.call("/api/v1/jobs", {"workload": "hold memory", "declared_ram": "16 MiB"})["job"]["id"])
    person.wait_for(second, "finished")

    page.goto(f"/jobs/{second}")
    page.locator("#learned-under").click()
    page.wait_for_url(where)
    expect(page.locator("#charge .sentence")).to_contain_text("measured")
    expect(page.locator("[data-run]")).to_have_count(2)
    expect(page.locator(".banner.error")).to_contain_text("declared 16 MiB")
    expect(page.locator("#chart-need .main-svg").first).to_be_visible(timeout=SOON)
    drawn = "document.getElementById('chart-time').data.filter((t) => t.name === 'counts').map((t) => t.x.length)"
    page.wait_for_function(f"() => {{ try {{ return ({drawn})[0] === 2; }} catch {{ return false; }} }}", timeout=SOON)

    page.fill("#workers", "3")
    expect(page.locator("#charge")).to_contain_text("with 3 workers")
    expect(page.locator("#charge .rung.on")).to_contain_text("scaled to 3")
    expect(page.locator("#workers")).to_be_focused()

    run = page.locator(f"[data-run]:has(a:text-is('#{first}'))")
    run.get_by_role("button", name="was not typical").click()
    expect(page.locator("#messages")).to_contain_text("does not count in estimates")
    expect(run).to_have_class(re.compile("retired"))
    expect(run).to_contain_text("marked as not typical, said admin")
    run.get_by_role("button", name="count again").click()
    expect(page.locator(f"[data-run]:has(a:text-is('#{first}'))")).not_to_have_class(re.compile("retired"))

    page.fill("#pin-amount", "2 GiB")
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.locator("#charge .sentence")).to_contain_text("pinned 2.0 GiB RAM")
    expect(page.locator("#charge .rung.on")).to_contain_text("pinned by an operator")
    page.get_by_role("button", name="Let RAM be learned again").click()
    expect(page.locator("#charge .sentence")).to_contain_text("measured")
