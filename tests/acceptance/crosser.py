"""A restartable step that takes one device, then another: `crosser.py FIRST SECOND NOTES`. Run by tests."""

from __future__ import annotations

import os
import sys
import time

import tidegate

first, second, notes = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
runs = 0
DEADLINE = time.monotonic() + 120  # ends by itself where its test does not live to end it


@tidegate.session
def train() -> None:
    global runs
    runs += 1
    with tidegate.cuda(16, device_id=first):
        with open(f"{notes}.{first}", "w"):
            pass
        # Both hold one before they ask for the other.
        while runs == 1 and not os.path.exists(f"{notes}.{second}") and time.monotonic() < DEADLINE:
            time.sleep(0.01)
        with tidegate.cuda(16, device_id=second) as place:
            print(f"has both, run {runs}, {place.device_id}", flush=True)


train()
