"""A driver call that does not return: the loop goes on, the figures grow old, nothing piles up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.nvml_stub import MIB, Device, State, build
from tests.wait import until

ROOT = Path(__file__).parents[2]
LOOP = """
import json, sys, threading, time
from calibration.probes.choose import Instrument
instrument = Instrument("n1")
for line in sys.stdin:
    began = time.monotonic()
    reading = instrument.read(timeout_s=0.2)
    pool = reading.pools.get("GPU-0")
    print(json.dumps({
        "took": time.monotonic() - began,
        "age": None if pool is None or pool.read_at is None else reading.at - pool.read_at,
        "message": "" if pool is None else pool.message,
        "free": None if pool is None else pool.free,
        "notes": reading.notes,
        "ram": reading.pools["ram"].free is not None,
        "threads": sum(t.name == "device-reading" for t in threading.enumerate()),
    }), flush=True)
"""


def test_the_fifth_memory_call_hangs_and_the_loop_goes_on(tmp_path: Path) -> None:
    state = State(tmp_path / "nvml.txt")
    card = Device("GPU-0", used=4 * MIB)
    state.write([card], block=(5, 60.0))
    loop = subprocess.Popen(
        [sys.executable, "-c", LOOP],
        env={**os.environ, **state.environ(build(tmp_path)), "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert loop.stdin is not None
    assert loop.stdout is not None

    def tick() -> dict[str, object]:
        loop.stdin.write("tick\n")
        loop.stdin.flush()
        return json.loads(loop.stdout.readline())

    try:
        for _ in range(4):
            assert tick()["message"] == ""

        hung = [tick() for _ in range(30)]
        assert "has not answered" in str(hung[-1]["message"])
        took = sorted(float(str(one["took"])) for one in hung)
        assert took[-1] < 20  # of the 60 for which the call hangs
        assert took[len(took) // 3] < 0.2, "each look waited for the call"
        assert [one["threads"] for one in hung] == [1] * 30
        assert all(one["ram"] for one in hung)
        assert hung[-1]["age"] > hung[0]["age"] > 0.15
        assert {one["free"] for one in hung} == {card.total - card.used}

        # Other memory was taken meanwhile; the answer of the hung call must not pass for a fresh one.
        card.used = 9000 * MIB
        state.write([card])
        fresh = until(lambda: (one := tick())["message"] == "" and one["age"] < 0.1 and one, 20, "recovery")
        assert fresh["free"] == card.total - card.used
        assert fresh["threads"] == 1
    finally:
        loop.stdin.close()
        assert loop.wait(60) == 0
        loop.stdout.close()


def test_a_driver_that_hangs_from_the_start_leaves_the_main_memory_readable(tmp_path: Path) -> None:
    state = State(tmp_path / "nvml.txt")
    state.write([Device("GPU-0")], block=(1, 60.0))
    done = subprocess.run(
        [sys.executable, "-c", LOOP],
        input="tick\ntick\n",
        env={**os.environ, **state.environ(build(tmp_path)), "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["free"] is None
    assert "has not answered" in first["notes"][0]
    assert second["ram"]
    assert done.returncode == 0
