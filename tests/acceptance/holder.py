"""A job that holds device memory until a file is there: `holder.py SIZE FILE`. Run by tests, not by pytest."""

from __future__ import annotations

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "calibration", "probes"))

import simgpu

device = simgpu.Device()
device.hold(simgpu.parse_size(sys.argv[1]), busy=0.9)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.005)
