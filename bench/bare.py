"""What this machine can start at all: bare processes a second, two at a time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from bench import floor

AT_ONCE = 2


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def rate(call: Callable[[], object], count: int) -> float:
    """Return how often a second the call returns, with two callers."""
    began = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda _: call(), range(count)))
    return count / (time.perf_counter() - began)


def spawn(arguments: list[str]) -> None:
    """Start a process and wait for its end."""
    os.waitpid(os.posix_spawn(arguments[0], arguments, {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}), 0)


def rates(count: int = 200) -> dict[str, float]:
    """Return starts a second: /bin/true, python without and with its site packages, a bare runner to its end."""
    python = shutil.which("python3", path="/usr/bin:/bin") or os.path.realpath(sys.executable)
    found = {
        "true": rate(lambda: spawn(["/bin/true"]), count * 5),
        "python -c pass": rate(lambda: spawn([python, "-c", "pass"]), count),
        "python -S -c pass": rate(lambda: spawn([python, "-S", "-c", "pass"]), count),
        "this venv's python -c pass": rate(lambda: subprocess.run([sys.executable, "-c", "pass"]), count // 4),
    }
    with floor.runners() as once:
        found["runner"] = rate(once, count // 2)
    return found
