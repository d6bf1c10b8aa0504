"""An example that reserves more in the middle of its run: it trains on its own device, then evaluates on a second one.

Submit it with "Reserves inside its run". The evaluation is a step that can be run again: if its leases are taken
back so that others can go on, it leaves the devices and begins anew from its first line, with what the training made.
With ``--against`` it takes a third place for a model to compare with, while it holds the second.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator

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


@contextlib.contextmanager
def model(size: float, where: int | None) -> Iterator[None]:
    """Reserve a place (GB) and hold a model there; whatever ends the step, the memory goes before the lease does."""
    with tidegate.cuda(size, device_id=where) as place:
        if not place.reserved:  # outside a job of Tidegate
            yield
            return
        print(f"evaluates on cuda:{place.local_index}, which people call gpu{place.device_id}", flush=True)
        there = Device(place.local_index)
        there.hold(place.reserved_memory_bytes, busy=0.9)
        try:
            yield
        finally:
            there.hold(0)


@tidegate.session
def evaluate(loss: float, size: float, where: int | None, against: int | None, seconds: float) -> None:
    with contextlib.ExitStack() as models:
        models.enter_context(model(size, where))
        if against is not None:
            models.enter_context(model(size, against))
        for _ in steps(5, seconds, "batch"):
            tidegate.check()  # whether a lease was taken back
    print(f"score {1 / loss:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb", type=float, default=6.0, help="of device memory for the evaluation")
    parser.add_argument("--device", type=int, default=None, help="on this one; left out: wherever there is room")
    parser.add_argument("--against", type=int, default=None, help="and on this one, at the same time")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    loss = train(options.seconds / 2)
    print(f"trained to a loss of {loss:.2f}", flush=True)
    evaluate(loss, options.gb, options.device, options.against, options.seconds / 2)


if __name__ == "__main__":
    main()
