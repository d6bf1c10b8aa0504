"""A worker loads what its tasks need: no page, no API."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from scheduler_site import roster

PROGRAM = """
import sys
from scheduler_site import celery
celery.app.loader.import_default_modules()
assert any(name.startswith("placement.tasks") for name in sys.modules)
print([n for n in ("placement.urls", "placement.api", "placement.views", "ninja", "pydantic") if n in sys.modules])
"""


def test_a_worker_loads_neither_pages_nor_the_api(tmp_path: Path) -> None:
    program = roster.worker("tick@here", "node.here", tmp_path, dict(os.environ), ("-P", "solo"))
    environment = {**program.environment, "DJANGO_SETTINGS_MODULE": "scheduler_site.settings"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False,
        cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip
    assert run.stdout.strip() == "[]", run.stdout + run.stderr
