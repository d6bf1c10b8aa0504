"""Submitting, in a real browser: Enter, sweeps, a dropped script, mistakes, a session that ends, an earlier run."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.axe import violations
from tests.browser import watched_tab
from tests.person import Person, login_link
from tests.service import LiveService

SOON = 30_000  # milliseconds
SCRIPT = "#!/bin/bash\n#SBATCH --time=90 -p long\necho from a script\n"
DROP = """([name, text]) => {
  const given = new DataTransfer();
  given.items.add(new File([text], name, { type: "text/x-sh" }));
  const all = { dataTransfer: given, bubbles: true, cancelable: true };
  for (const kind of ["dragover", "drop"]) document.getElementById("drop").dispatchEvent(new DragEvent(kind, all));
}"""


@pytest.fixture(scope="module")
def tab(chromium: Browser, person: Person) -> Iterator[Page]:
    with watched_tab(chromium, person) as opened:
        yield opened


@pytest.fixture
def page(tab: Page) -> Page:
    """The one tab of this module at its usual width, without a draft, on the submit page."""
    tab.set_viewport_size({"width": 1280, "height": 900})
    tab.goto("/submit")
    tab.evaluate("localStorage.clear()")
    tab.goto("/submit")
    return tab


def test_what_is_chosen_already_can_be_chosen_so_that_no_guess_changes_it(page: Page) -> None:
    page.locator("label", has_text="No device").click()
    page.fill("#id_command", "python train.py")
    expect(page.locator("#estimate .verdict")).to_contain_text("Fits now", timeout=SOON)
    expect(page.locator('[name="gpu"][value="none"]')).to_be_checked()


def test_what_a_workload_fills_in_goes_and_comes_with_it(page: Page, person: Person) -> None:
    toml = 'name = "pair"\ncommand = "sleep 1"\ngpu = "one"\nmemory = "exact"\nper_device_memory = "3 GiB"\n'
    person.call("/api/v1/workloads", {"toml": toml})
    page.goto("/submit")
    each, exact = page.locator("#id_per_device_memory"), page.locator('[name="memory"][value="exact"]')
    page.locator("label", has_text="Choose a workload").click()
    page.select_option("#id_workload", "pair")
    expect(each).to_have_value("3.0 GiB", timeout=SOON)
    page.locator("label", has_text="Type a command").click()
    expect(each).to_have_value("")
    expect(exact).not_to_be_checked()
    page.locator("label", has_text="Choose a workload").click()
    expect(each).to_have_value("3.0 GiB")
    expect(exact).to_be_checked()
    page.locator("label", has_text="Type a command").click()  # what is chosen last is the draft of the next test
    expect(each).to_have_value("")


def test_a_command_and_enter_make_one_job(page: Page, person: Person) -> None:
    expect(page.locator("#id_command")).to_be_focused()
    page.keyboard.type("echo fast")
    expect(page.locator("#estimate .verdict")).to_contain_text("Fits now", timeout=SOON)
    expect(page.locator("#verdict-said")).to_contain_text("Fits now")
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Backspace")
    page.evaluate(
        """() => { const field = document.getElementById("id_command"); for (const _ of [1, 2])
        field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true })); }"""
    )
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    expect(page.locator("#messages")).to_contain_text("is in the queue")
    job = int(page.url.rsplit("/", 1)[1])
    assert person.job(job)["command"] == "echo fast"
    page.goto("/jobs/")
    expect(page.get_by_role("link", name="echo fast")).to_have_count(1)
    page.goto("/submit")
    expect(page.locator("#draft-note")).to_be_hidden()
    expect(page.locator("#id_command")).to_have_value("")


def test_a_group_is_asked_for_with_the_keyboard_and_answered_while_typing(page: Page) -> None:
    page.fill("#id_command", "sleep 60")
    page.locator('[name="gpu"][value="none"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("Devices, at least")).to_have_value("2")
    expect(page.get_by_label("Of the group together")).to_be_hidden()
    page.locator("#placement > summary").press("Enter")
    page.locator('[name="memory"][value="auto"]').press("ArrowRight")
    page.get_by_label("Of the group together").fill("6 GiB")
    never = "Can never be granted: it needs 2 devices of one node, and there is 1"
    expect(page.locator("#answer")).to_contain_text(never, timeout=SOON)
    page.get_by_label("Devices, at least").fill("1")
    expect(page.locator("#answer")).to_contain_text("Would get 6.0 GiB on gpu0, with ", timeout=SOON)
    page.set_viewport_size({"width": 390, "height": 900})
    assert not violations(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.goto("/submit")  # as a draft
    expect(page.get_by_label("Of the group together")).to_have_value("6 GiB")
    expect(page.locator('[name="gpu"][value="group"]')).to_be_checked()
    page.locator("#submit-button").click()
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    expect(page.locator("#job")).to_contain_text("of 6.0 GiB granted", timeout=SOON)
    page.get_by_role("button", name="Cancel").first.click()
    expect(page.locator("#messages")).to_contain_text(re.compile("is being stopped|is cancelled"), timeout=SOON)


def test_in_a_text_of_several_lines_enter_is_a_new_line_and_with_ctrl_it_submits(page: Page, person: Person) -> None:
    page.fill("#id_command", "echo one")
    page.press("#id_command", "Shift+Enter")
    page.keyboard.type("echo two")
    page.keyboard.press("Enter")
    page.keyboard.type("echo three")
    expect(page.locator("#id_command")).to_have_value("echo one\necho two\necho three")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    assert person.job(int(page.url.rsplit("/", 1)[1]))["command"] == "echo one\necho two\necho three"


def test_a_sweep_of_six_is_previewed_and_made_and_used_again(page: Page) -> None:
    page.fill("#id_command", "echo {lr} --seed {seed}")
    page.get_by_role("link", name="under Sweep").click(timeout=SOON)
    expect(page.locator("#id_sweep")).to_be_focused()
    page.keyboard.type("lr = 0.1, 0.01")
    page.keyboard.press("Enter")
    page.keyboard.type("seed = 1..3")
    preview = page.locator("#sweep-preview")
    expect(preview).to_contain_text("6 jobs", timeout=SOON)
    expect(preview.locator("li").nth(1)).to_contain_text("echo 0.1 --seed 2")
    page.get_by_role("link", name="say that").click()
    expect(page.locator("#id_sweep_same")).to_be_focused()
    page.click("#submit-button")
    page.wait_for_url(re.compile(r"/arrays/\d+$"))
    expect(page.locator("#messages")).to_contain_text("6 jobs from #")
    page.goto("/submit")
    page.locator(".recent a.again", has_text="echo {lr}").click()
    page.wait_for_url(re.compile(r"again=\d+&whole=1"))
    expect(page.locator("#id_sweep")).to_have_value("lr = 0.1, 0.01\nseed = 1, 2, 3")
    expect(page.locator("#again-note")).to_contain_text("Filled in from #")
    expect(preview).to_contain_text("6 jobs", timeout=SOON)


def test_a_script_that_is_dropped_fills_the_form(page: Page) -> None:
    page.fill("#id_setup", "set -e")
    page.evaluate(DROP, ["fit.sh", SCRIPT])
    expect(page.locator("#id_command")).to_have_value(SCRIPT, timeout=SOON)
    expect(page.locator("#id_time_limit_s")).to_have_value("90 min")
    expect(page.locator("#id_name")).to_have_value("fit")
    expect(page.locator("#id_setup")).to_have_value("set -e")
    expect(page.locator("#script-told")).to_contain_text("--partition=long: there is one queue here")
    page.evaluate(DROP, ["big.sh", "x" * 200_000])
    expect(page.locator("#script-told .error")).to_contain_text("big.sh has 200,000 bytes")
    expect(page.locator("#id_command")).to_have_value(SCRIPT)


def test_a_mistake_keeps_all_that_was_typed_and_says_where_to_look(page: Page) -> None:
    for part in ("more", "sweep", "terms"):
        page.locator(f"#{part} summary").first.click()
    typed = {"command": "echo {x}", "sweep": "x = 1..", "note": "kept", "environment": "A=1", "time_limit_s": "soon"}
    for name, value in typed.items():
        page.fill(f"#id_{name}", value)
    page.click("#submit-button")
    expect(page.locator("#wrong a")).to_have_text(["Time limit"])
    for name, value in typed.items():
        expect(page.locator(f"#id_{name}")).to_have_value(value)
    page.locator("#wrong a").click()
    expect(page.locator("#id_time_limit_s")).to_be_focused()
    expect(page.locator("#id_time_limit_s_error")).to_contain_text("is not a time")


def test_what_was_typed_outlives_the_session_but_for_variables(page: Page, service: LiveService) -> None:
    page.locator("#more summary").first.click()
    page.fill("#id_environment", "TOKEN=geheim")
    page.fill("#id_command", "echo a long command")
    page.fill("#id_note", "do not lose me")
    page.context.clear_cookies(name="tidegate_session")
    assert "geheim" not in page.evaluate("JSON.stringify(localStorage)")
    page.goto("/submit")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    page.goto(login_link(service))
    page.get_by_role("button", name="Log in").click()
    page.wait_for_selector("#queue")
    page.goto("/submit")
    expect(page.locator("#draft-note")).to_be_visible()
    expect(page.locator("#id_command")).to_have_value("echo a long command")
    expect(page.locator("#id_note")).to_have_value("do not lose me")
    expect(page.locator("#id_environment")).to_have_value("")
    page.click("#draft-drop")
    expect(page.locator("#id_command")).to_have_value("")


def test_an_estimate_that_fails_says_so_and_submitting_goes_on(page: Page, chromium: Browser) -> None:
    state = page.context.storage_state()
    other = chromium.new_context(base_url=page.url.removesuffix("/submit"), storage_state=state).new_page()
    other.route("**/submit/estimate", lambda route: route.fulfill(status=500, body="no"))
    other.goto("/submit")
    other.fill("#id_command", "echo all the same")
    expect(other.locator("#estimate-slow")).to_contain_text("could not be made", timeout=SOON)
    other.press("#id_command", "Enter")
    other.wait_for_url(re.compile(r"/jobs/\d+$"))
    other.context.close()


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1280, "light"), (2560, "dark")])
def test_the_estimate_stays_in_view_and_nothing_is_in_the_way(page: Page, width: int, theme: str) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]  # one of two words
    for part in ("more", "sweep", "terms"):
        page.locator(f"#{part} summary").first.click()
    page.fill("#id_command", "python train.py --seed {seed} {other}")
    page.fill("#id_sweep", "seed = 1..3")
    expect(page.locator("#sweep-preview")).to_be_visible(timeout=SOON)
    page.locator("#id_retry_wait_s").focus()
    page.keyboard.type("30 s")
    expect(page.locator("#verdict-short" if width < 981 else "#estimate .verdict")).to_be_in_viewport()
    expect(page.locator("#submit-button")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []
