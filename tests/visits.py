"""What `./tidegate shots` visits: each page, and one job of each kind that is there now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from playwright.sync_api import Page

COMMAND = "python train.py --batch 64"
WAITING = ("depends", "not_before", "quota", "no_room", "booked", "set_aside", "job_held")
"""Codes of waiting jobs of which one each is visited."""
PAGES = {
    "queue": "/",
    "submit": "/submit",
    "submit-open": "/submit",
    "submit-wrong": "/submit",
    "devices": "/devices",
    "attribution": "/attribution",
    "jobs": "/jobs/",
    "jobs-failed": "/jobs/?outcome=failed",
    "jobs-none": "/jobs/?q=there-is-no-such-name",
    "forecasts": "/forecasts/",
    "workloads": "/workloads",
    "workload-define": "/workloads/define",
    "reasons": "/reasons",
    "people": "/people",
    "knobs": "/knobs",
    "audit": "/audit",
    "tokens": "/tokens",
    "notices": "/notices",
    "notice-settings": "/notices/settings",
    "api": "/api",
    "api-found": "/api?q=jobs+hold",
}


def visits(page: Page, address: str) -> dict[str, str]:
    """Return the path of each page by its name; ``page`` is a tab of somebody who may see all of them."""
    queue = _json(page, f"{address}/api/v1/queue")
    found = {**PAGES, **_jobs(queue)}
    page.goto(f"{address}/jobs/?outcome=completed")
    for name, link in {"jobs-older": '[rel="next"]'}.items():
        if there := page.query_selector(link):
            found[name] = f"/jobs/{there.get_attribute('href')}"
    page.goto(f"{address}/devices")
    if pool := page.query_selector(".charts figcaption a"):
        found["device"] = str(pool.get_attribute("href"))
    page.goto(f"{address}/workloads")
    if workload := page.query_selector("a.name"):
        found["workload"] = str(workload.get_attribute("href"))
    page.goto(address)
    if finished := page.query_selector(".row.finished"):
        found["job-finished"] = f"/jobs/{finished.get_attribute('data-job')}"
    if array := page.query_selector('[href^="/arrays/"]'):
        found["array"] = str(array.get_attribute("href"))
    return found


def _jobs(queue: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for job in queue["queued"]:
        found.setdefault("job-waiting", f"/jobs/{job['id']}")
        if job["code"] in WAITING:
            found.setdefault(f"job-{job['code'].replace('_', '-')}", f"/jobs/{job['id']}")
    for job in queue["running"][:1]:
        found["job-running"] = f"/jobs/{job['id']}"
        found["log"] = f"/jobs/{job['id']}/log"
    return found


def _json(page: Page, url: str) -> Any:
    page.goto(url)
    return json.loads(page.inner_text("pre"))
