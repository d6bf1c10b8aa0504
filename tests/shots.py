"""Take pictures of every page, in both themes, narrow and wide.

python -m tests.shots OUT_DIR --address http://127.0.0.1:8765 --login-link http://127.0.0.1:8765/login/link/TOKEN
"""

from __future__ import annotations

import argparse
from pathlib import Path

from playwright.sync_api import Page

from tests.browser import browser, log_in
from tests.visits import COMMAND, visits

WIDTHS = (390, 1280)
THEMES = ("light", "dark")


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
        found = {name: path for name, path in visits(page, address).items() if given.only in name}
        for theme in THEMES:
            page.evaluate(f"localStorage.setItem('theme', '{theme}')")
            for width in given.widths:
                page.set_viewport_size({"width": width, "height": 900})
                for name, path in found.items():
                    _shoot(page, name, address + path, given.out / f"{name}-{theme}-{width}.png")
        if given.only in "login":
            _door(running.new_context(viewport={"width": 1280, "height": 700}).new_page(), address, given.out)


def _shoot(page: Page, name: str, url: str, path: Path) -> None:
    page.goto(url)
    if name.startswith("submit"):
        _type(page, name)
    if name == "devices":
        page.wait_for_selector(".chart .main-svg", timeout=20_000)
    page.wait_for_load_state("networkidle" if "chart" in url else "load")
    page.screenshot(path=path, full_page=True)
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    print(path, f"is {wide} px too wide" if wide > 0 else "")


def _type(page: Page, name: str) -> None:
    """Fill the form in: plainly, with all its fields open, or wrongly."""
    page.fill("#id_command", COMMAND)
    if name == "submit":
        page.wait_for_selector("#estimate .verdict", timeout=10_000)
        return
    page.evaluate("document.querySelectorAll('#submit-form details').forEach((part) => { part.open = true; })")
    page.fill("#id_not_before", "2030-01-01 08:00")
    page.fill("#id_array", "30")
    page.fill("#id_array_limit", "3")
    page.wait_for_selector("#estimate .verdict", timeout=10_000)
    if name == "submit-wrong":
        page.fill("#id_after", "12 perhaps")
        page.fill("#id_not_before", "tomorrow")
        page.click("#submit-button")
        page.wait_for_selector(".field.bad")


def _door(page: Page, address: str, out: Path) -> None:
    page.goto(f"{address}/login")
    page.screenshot(path=out / "login-light-1280.png")


if __name__ == "__main__":
    main()
