"""A Python with the real torch (its wheel for CPUs) in a folder that is kept, for slow tests and benches."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "2.13.0"


def python() -> str:
    """Return the path of a Python that imports torch; the first call installs it, which takes minutes."""
    cache = Path(os.environ.get("TIDEGATE_TEST_CACHE") or Path.home() / ".cache" / "tidegate")
    cache.mkdir(parents=True, exist_ok=True)
    place = cache / f"torch-{VERSION}"
    with open(cache / "torch.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            shutil.rmtree(place, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            wanted = [f"torch=={VERSION}", "setuptools"]
            subprocess.run([place / "bin/python", "-m", "pip", "install", "-q", *wanted], check=True)
            (place / "complete").touch()
    return str(place / "bin" / "python")
