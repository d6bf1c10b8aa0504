"""An example of a parameter sweep on the CPU: parallel worker processes, each with memory of its own."""

from __future__ import annotations

import argparse
import os
import random
import time
from concurrent.futures import ProcessPoolExecutor

from _progress import MIB, Ram


def trial(number: int, seconds: float) -> tuple[int, float]:
    """Return (trial, score) after holding memory for a while."""
    ram = Ram()
    ram.hold(48 * MIB)
    time.sleep(seconds)
    return number, random.Random(number).random()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=4.0, help="of one trial")
    parser.add_argument("--workers", type=int, default=int(os.environ.get("TIDEGATE_WORKERS", "2")))
    options = parser.parse_args()
    with ProcessPoolExecutor(options.workers) as pool:
        waiting = [pool.submit(trial, number, options.seconds) for number in range(options.trials)]
        results = []
        for future in waiting:
            results.append(future.result())
            print(f"trial {results[-1][0]}: score {results[-1][1]:.3f}", flush=True)
    best = max(results, key=lambda result: result[1])
    print(f"best: trial {best[0]} with {best[1]:.3f}", flush=True)


if __name__ == "__main__":
    main()
