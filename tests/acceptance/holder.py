"""A job that holds memory until a file is there: `holder.py vram|ram SIZE FILE`. Run by tests, not by pytest."""

from __future__ import annotations

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "calibration", "probes"))

import simgpu

kind, size, file = sys.argv[1:]
ram = simgpu.Ram()
if kind == "ram":
    ram.hold(simgpu.parse_size(size))
else:
    simgpu.Device().hold(simgpu.parse_size(size), busy=0.9)
while not os.path.exists(file):
    time.sleep(0.005)
