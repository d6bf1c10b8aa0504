"""A job that asks for more while it runs: `reserver.py GB DEVICE_ID FILE`, held until the file is there."""

from __future__ import annotations

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "calibration", "probes"))

import simgpu
import tidegate

size, device, file = sys.argv[1:]
DEADLINE = time.monotonic() + 120  # ends by itself where its test does not live to end it
own = simgpu.Device()
own.hold(1 << 30, busy=0.9)
with tidegate.cuda(float(size), device_id=int(device)) as place:
    second = simgpu.Device(place.local_index)
    assert second.uuid == place.uuid, f"{second.uuid} stands where {place.uuid} was told to be"
    second.hold(place.reserved_memory_bytes, busy=0.9)
    print(f"has device {place.device_id} at {place.local_index}", flush=True)
    while not os.path.exists(file) and time.monotonic() < DEADLINE:
        time.sleep(0.01)
    second.hold(0)
print("let go", flush=True)
while not os.path.exists(f"{file}.end") and time.monotonic() < DEADLINE:
    time.sleep(0.01)
