"""An example of a short evaluation: it loads a model at once, works on batches, and prints one figure."""

from __future__ import annotations

import argparse
import random

from _progress import GIB, MIB, Ram, device, steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=16, help="samples at once; device memory grows with it")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    noise = random.Random(options.seed)
    gpu, ram = device(), Ram()
    ram.hold(96 * MIB)
    if gpu is not None:
        gpu.hold(int((2 + options.batch / 4) * GIB), busy=0.5)
    right = 0
    batches = max(4, int(options.seconds / 0.5))
    for _ in steps(batches, options.seconds, "batch"):
        right += sum(noise.random() < 0.87 for _ in range(options.batch))
    print(f"accuracy {right / (batches * options.batch):.4f} over {batches * options.batch} samples", flush=True)


if __name__ == "__main__":
    main()
