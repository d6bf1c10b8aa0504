"""What axe-core, the accessibility checker, finds on a page. The package brings the script; nothing is fetched."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from playwright.sync_api import Page

GRAVE = ("serious", "critical")
_SCRIPT = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
_ALL = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_ASK = "(runOnly) => axe.run(document, { resultTypes: ['violations'], runOnly })"


def violations(page: Page, *rules: str) -> list[str]:
    """Return one line for each serious or critical violation: the rule, what it asks for, and where it is broken.

    Without the ids of rules, all are looked at that WCAG 2.2 at level AA or good practice asks for.
    """
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(_SCRIPT)
    found: list[dict[str, Any]] = page.evaluate(_ASK, list(rules) or _ALL)["violations"]
    return [
        f"{rule['id']}: {rule['help']}: {' | '.join(_where(node) for node in rule['nodes'][:4])}"
        for rule in found
        if rule["impact"] in GRAVE
    ]


def _where(node: dict[str, Any]) -> str:
    said = [check["message"] for kind in ("any", "all", "none") for check in node[kind]]
    return f"{' '.join(map(str, node['target']))} ({said[0] if said else 'no more is known'})"
