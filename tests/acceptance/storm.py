"""Chains of processes that fork and exit without end: `storm.py setsid|together CHAINS`. Run by tests, not by pytest.

Each link appends a byte to "growth" in the directory where it runs, and with setsid leaves its session first. All of it
ends by itself after a minute, whatever becomes of the test and of the runner.
"""

from __future__ import annotations

import os
import sys
import time

END = time.monotonic() + 60


def chain(apart: bool) -> None:
    while time.monotonic() < END:
        if os.fork():
            os._exit(0)
        if apart:
            os.setsid()
        with open("growth", "ab", 0) as file:
            file.write(b".")
        time.sleep(0.02)
    os._exit(0)


def main() -> None:
    for _ in range(int(sys.argv[2])):
        if os.fork() == 0:
            chain(sys.argv[1] == "setsid")
    print("up", flush=True)
    time.sleep(60)


if __name__ == "__main__":
    main()
