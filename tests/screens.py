"""Pictures for the documentation: a small lab at work, staged anew each time, into docs/screens/.

python -m tests.screens [OUT_DIR]
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.browser import browser, log_in
from tests.person import Person
from tests.service import REPOSITORY, LiveService, live_service
from tests.wait import until

OUT = REPOSITORY / "docs" / "screens"
TRAIN = """
name = "train-vit"
summary = "ViT on one card"
command = "python3 train.py --width {width} --seconds {seconds} --seed {seed}"
cwd = "CWD"
gpu = "one"
[parameters.width]
default = "512"
[parameters.seconds]
default = "8"
matters = false
[parameters.seed]
default = "0"
matters = false
"""
EVALUATE = (
    TRAIN.replace("train-vit", "habitat-eval")
    .replace("ViT on one card", "Scores of a checkpoint")
    .replace("train.py --width {width}", "evaluate.py --batch {batch}")
    .replace('parameters.width]\ndefault = "512"', 'parameters.batch]\ndefault = "16"')
)
# name of the picture: (page, theme, width, height)
PICTURES: Mapping[str, tuple[str, str, int, int]] = {
    "now": ("/", "light", 1280, 900),
    "now-dark": ("/", "dark", 1280, 900),
    "now-phone": ("/", "light", 390, 844),
    "now-wide": ("/", "dark", 2560, 1300),
    "why": ("/jobs/{waiting}", "light", 1280, 1000),
    "why-dark": ("/jobs/{waiting}", "dark", 1280, 1000),
    "running": ("/jobs/{running}", "light", 1280, 1000),
    "device": ("/devices/atlas/{pool}", "dark", 1280, 900),
    "memory": ("/attribution", "light", 1280, 900),
    "workload": ("{workload}", "light", 1280, 1000),
    "submit": ("/submit", "light", 1280, 900),
    "failed": ("/jobs/{failed}", "light", 1280, 900),
}


def main(arguments: list[str]) -> int:
    """Stage the scene, take the pictures, and say where they are."""
    out = Path(arguments[0]).resolve() if arguments else OUT
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lab-") as folder:
        for script in ("train.py", "evaluate.py"):
            (Path(folder) / script).symlink_to(REPOSITORY / "examples" / script)
        environment = {"TIDEGATE_NODE": "atlas", "TIDEGATE_ALLOWED_ROOTS": folder}
        with live_service(broker="", simulate="2x24GiB", environment=environment) as service:
            places = _scene(service, folder)
            _shoot(service, places, out)
    return 0


def _scene(service: LiveService, folder: str) -> dict[str, Any]:
    """Let three people work until there is something of each kind; return what the pictures' addresses need.

    They are admins: under root nobody else's jobs run without a mapping of accounts.
    """
    link = re.search(r"http\S+/login/link/\S+", service.said())
    assert link, service.said()
    admin = Person(service.address, link[0])
    for text in (TRAIN, EVALUATE):
        done = service.manage("workload", "-", input=text.replace("CWD", folder))
        assert done.returncode == 0, done.stderr
    people = {}
    for name in ("ada", "bob", "eve"):
        made = admin.call("/api/v1/people", {"name": name, "role": "admin"})
        people[name] = Person(service.address, re.search(r"http\S+/login/link/[\w-]+", str(made))[0])  # type: ignore[index]

    def run(who: str, workload: str, name: str, **params: str) -> int:
        body = {"workload": workload, "name": name, "params": params, "cwd": folder, "gpu": "one"}
        return int(people[who].call("/api/v1/jobs", body)["job"]["id"])

    # First runs take a card each; the largest goes first, so that none of the others passes its cap.
    for width, name in (("704", "train-vit large"), ("640", "train-vit small")):
        looked = [run("ada", "train-vit", name, width=width), run("eve", "habitat-eval", "habitat-eval", seconds="6")]
        for job in looked:
            admin.wait_for(job, "finished", 120)
    running = run("bob", "train-vit", "train-vit large", width="704", seconds="600")
    for seed, seconds in (("1", "500"), ("2", "400"), ("3", "300"), ("4", "200")):
        run("eve", "habitat-eval", f"habitat-eval seed {seed}", seconds=seconds, seed=seed)
    run("eve", "train-vit", "train-vit small", width="640", seconds="300")
    failed = people["ada"].call(
        "/api/v1/jobs",
        {"command": "python3 evaluate.py --bach 16", "name": "evaluate, mistyped", "cwd": folder, "gpu": "none"},
    )["job"]["id"]
    admin.wait_for(failed, "finished", 60)
    admin.wait_for(running, "running", 60)
    waiting = run("ada", "train-vit", "train-vit 704, new seed", width="704", seconds="300", seed="3")
    run("ada", "habitat-eval", "habitat-eval large batch", batch="40", seconds="200")
    people["bob"].call(
        "/api/v1/jobs",
        {"command": "python3 train.py --width 900 --lr {lr}", "name": "learning rates", "cwd": folder, "gpu": "one",
         "sweep": "lr = 0.1, 0.03, 0.01"},
    )  # fmt: skip
    until(lambda: admin.job(waiting)["headline"], 30, "a reason why it waits")
    until(lambda: admin.job(waiting)["forecast"], 30, "a forecast")
    until(lambda: (admin.job(running)["progress"] or {}).get("share", 0) > 0.06, 90, "a line in the charts", 0.5)
    pools = admin.call("/api/v1/queue")["pools"]
    pool = next(p["pool"] for p in pools if p["pool"] != "ram")
    workload = re.search(r'href="(/workloads/[0-9a-f]{32})[^"]*"[^>]*>\s*train-vit', admin.read("/workloads"))
    ada = service.manage("login_link", "ada", "--address", service.address)
    return {
        "running": running, "waiting": waiting, "failed": failed, "pool": pool,
        "workload": workload[1] if workload else "/workloads", "link": re.search(r"http\S+", ada.stdout)[0],  # type: ignore[index]
    }  # fmt: skip


def _shoot(service: LiveService, places: Mapping[str, Any], out: Path) -> None:
    with browser() as running:
        page = running.new_context(viewport={"width": 1280, "height": 900}).new_page()
        log_in(page, places["link"])
        for name, (path, theme, width, height) in PICTURES.items():
            page.evaluate(f"localStorage.setItem('theme', '{theme}')")
            page.set_viewport_size({"width": width, "height": height})
            page.goto(service.address + path.format(**places))
            _settle(page, name)
            page.screenshot(path=out / f"{name}.png")
            print(out / f"{name}.png")


def _settle(page: Page, name: str) -> None:
    """Wait until the page shows what it is photographed for."""
    if name == "submit":
        page.fill("#id_command", "python3 train.py --width 768 --seed {seed}")
        page.wait_for_selector("#estimate .verdict", timeout=15_000)
    drawn = "[...document.querySelectorAll('.chart')].every((chart) => !chart.querySelector('.skeleton'))"
    page.wait_for_function(drawn, timeout=20_000)
    page.wait_for_load_state("networkidle")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
