"""Take pictures of every page, in both themes, narrow and wide.

python -m tests.shots OUT_DIR --address http://127.0.0.1:8765 --login-link http://127.0.0.1:8765/login/link/TOKEN
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from playwright.sync_api import Page

from tests.browser import browser, log_in

WIDTHS = (390, 1280)
THEMES = ("light", "dark")
COMMAND = "python train.py --batch 64"


def main() -> None:
    """Log in once, then visit each page in each theme and width."""
    parser = argparse.ArgumentParser(description="Take pictures of every page.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--address", required=True)
    parser.add_argument("--login-link", required=True)
    parser.add_argument("--widths", type=int, nargs="*", default=WIDTHS)
    parser.add_argument("--only", default="", help="a part of the names of pages to visit")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    address = given.address.rstrip("/")
    with browser() as running:
        context = running.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        log_in(page, given.login_link)
        visits = {n: p for n, p in _visits(page, address).items() if given.only in n}
        for theme in THEMES:
            page.evaluate(f"localStorage.setItem('theme', '{theme}')")
            for width in given.widths:
                page.set_viewport_size({"width": width, "height": 900})
                for name, path in visits.items():
                    _shoot(page, address + path, given.out / f"{name}-{theme}-{width}.png")
        if given.only in "login":
            _door(running.new_context(viewport={"width": 1280, "height": 700}).new_page(), address, given.out)


def _visits(page: Page, address: str) -> dict[str, str]:
    """Return the path of each page; one job of each kind that is there now."""
    page.goto(f"{address}/api/v1/queue")
    queue = json.loads(page.inner_text("pre"))
    page.goto(address)
    found = {"queue": "/", "submit": "/submit", "devices": "/devices", "jobs": "/jobs/", "people": "/people"}
    found["audit"] = "/audit"
    if queue["queued"]:
        found["job-waiting"] = f"/jobs/{queue['queued'][0]['id']}"
    if queue["running"]:
        found["job-running"] = f"/jobs/{queue['running'][0]['id']}"
    finished = page.query_selector(".row.finished")
    if finished:
        found["job-finished"] = f"/jobs/{finished.get_attribute('data-job')}"
    return found


def _shoot(page: Page, url: str, path: Path) -> None:
    page.goto(url)
    if url.endswith("/submit"):
        page.fill("#id_command", COMMAND)
        page.wait_for_selector("#estimate .verdict", timeout=10_000)
    if url.endswith("/devices"):
        page.wait_for_selector(".chart .main-svg", timeout=20_000)
    page.wait_for_load_state("networkidle" if "chart" in url else "load")
    page.screenshot(path=path, full_page=True)
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    print(path, f"is {wide} px too wide" if wide > 0 else "")


def _door(page: Page, address: str, out: Path) -> None:
    page.goto(f"{address}/login")
    page.screenshot(path=out / "login-light-1280.png")


if __name__ == "__main__":
    main()
