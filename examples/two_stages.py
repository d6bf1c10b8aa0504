"""An example that reserves more in the middle of its run: it trains on its own device, then evaluates on a second one.

Submit it with "Reserves inside its run". The evaluation is a step that can be run again: if its lease is taken back so
that others can go on, it begins anew from its first line, and what the training made is still there.
"""

from __future__ import annotations

import argparse

import tidegate
from _progress import GIB, device, steps

from calibration.probes.simgpu import Device


def train(seconds: float) -> float:
    gpu = device()
    if gpu is not None:
        gpu.hold(GIB, busy=0.9)
    loss = 2.5
    for _ in steps(10, seconds, "step"):
        loss *= 0.8
    return loss


@tidegate.session
def evaluate(loss: float, size: float, where: int | None, seconds: float) -> None:
    with tidegate.cuda(size, device_id=where) as place:
        if place.reserved:
            print(f"evaluates on cuda:{place.local_index}, which people call gpu{place.device_id}", flush=True)
            second = Device(place.local_index)
            second.hold(place.reserved_memory_bytes, busy=0.9)
        for _ in steps(5, seconds, "batch"):
            tidegate.check()  # whether the lease was taken back
        if place.reserved:
            second.hold(0)  # before it lets go
    print(f"score {1 / loss:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb", type=float, default=6.0, help="of device memory for the evaluation")
    parser.add_argument("--device", type=int, default=None, help="on this one; left out: wherever there is room")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    loss = train(options.seconds / 2)
    evaluate(loss, options.gb, options.device, options.seconds / 2)


if __name__ == "__main__":
    main()
