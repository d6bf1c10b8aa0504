"""What arming torch costs a Python at its start: with and without in turn, so that a busy machine slows both alike.

python -m bench.shim [--pairs 60] [--torch]    (--torch: `import torch`, too, with the wheel that tests install)
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
SHIM = ROOT / "placement" / "shim"


def once(command: Sequence[str], environ: dict[str, str]) -> float:
    """Return how long a command takes, in ms."""
    began = time.perf_counter()
    subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000


def pairs(command: Sequence[str], count: int, receipts: str) -> tuple[float, float, float]:
    """Return medians in ms: without, armed, and of the differences within a pair; who is first changes each time."""
    bare = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    cap = {"TIDEGATE_VRAM_CAP_BYTES": str(8 << 30), "TIDEGATE_VRAM_CAPS": f"GPU-a={8 << 30}"}
    armed = {**bare, **cap, "PYTHONPATH": str(SHIM), "TIDEGATE_RECEIPTS": receipts}
    for environ in (bare, armed):  # the first one compiles and fills caches
        once(command, environ)
    found = []
    for number in range(count):
        order = (bare, armed) if number % 2 else (armed, bare)
        times = {id(environ): once(command, environ) for environ in order}
        found.append((times[id(bare)], times[id(armed)]))
    return (
        median(without for without, _ in found),
        median(with_it for _, with_it in found),
        median(with_it - without for without, with_it in found),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.shim", description=__doc__)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--torch", action="store_true", help="import torch, too; the first time installs it")
    options = parser.parse_args()
    pythons = {"this venv's python": sys.executable}
    if system := shutil.which("python3", path="/usr/bin:/bin"):
        pythons["the system's python3"] = system
    commands = {f"{name} -c pass": ([path, "-c", "pass"], options.pairs) for name, path in pythons.items()}
    if options.torch:
        from tests import torch_wheel

        commands["import torch"] = ([torch_wheel.python(), "-c", "import torch"], max(1, options.pairs // 6))
    print(f"{'ms, medians':32} {'pairs':>6} {'without':>9} {'armed':>9} {'difference':>11}")
    with tempfile.TemporaryDirectory(prefix="shim-") as receipts:
        for name, (command, count) in commands.items():
            without, armed, difference = pairs(command, count, receipts)
            print(f"{name:32} {count:>6} {without:>9.1f} {armed:>9.1f} {difference:>+11.2f}")


if __name__ == "__main__":
    main()
