"""An example of a training run: its memory rises while it warms up, then stays level for a long time."""

from __future__ import annotations

import argparse
import math
import random

from _progress import GIB, MIB, Ram, device, steps

WARM_UP = 0.2  # share of the steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=1024, help="of the model; device memory grows with it")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    noise = random.Random(options.seed)
    gpu, ram = device(), Ram()
    peak = int(12 * GIB * options.width / 1024)
    total = max(options.epochs, int(options.seconds / 0.5))
    print(f"model of width {options.width} on {f'gpu{gpu.index}' if gpu else 'the CPU'}", flush=True)
    for step in steps(total, options.seconds, "step"):
        share = min(1.0, (step + 1) / (WARM_UP * total))
        ram.hold(int((60 + 120 * share) * MIB))
        if gpu is not None:
            gpu.hold(int(peak * (0.3 + 0.7 * share)), busy=0.8)
        if (step + 1) % (total // options.epochs) == 0:
            loss = 2.5 * math.exp(-3 * (step + 1) / total) + noise.uniform(0, 0.05)
            print(f"step {step + 1}: loss {loss:.3f}", flush=True)
    print("saved the weights", flush=True)


if __name__ == "__main__":
    main()
