"""An example of replicas over a group: one worker process for each granted device, and batches sharded over them.

Submit it for a group of devices (from 2 to 4, say). Or submit it without a device and with "Reserves inside its run"
and give it ``--inside 2 4``: then it takes the group itself, while it runs. Without any device there is one replica.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

import tidegate
from _progress import device, steps

MASK = "CUDA_VISIBLE_DEVICES"


class Replica:
    """A process of its own, which sees one device alone: whatever that is called outside, it is number 0 there."""

    def __init__(self, mask: str, size: int) -> None:
        command = [sys.executable, __file__, "--replica", str(size)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env={**os.environ, MASK: mask})
        self.says = self._answer()

    def send(self, shard: Sequence[int]) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the answer, which is then missing, tells
            self.process.stdin.write(json.dumps(shard) + "\n")
            self.process.stdin.flush()

    def receive(self) -> list[int]:
        return list(json.loads(self._answer()))

    def _answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(
                f"A replica ended with code {self.process.wait()} and gave no answer; see its error above."
            )
        return line.strip()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def replica(size: int) -> None:
    """Hold the model on the device, then answer each line of samples with one of scores, until there are no more."""
    gpu = device()
    if gpu is not None:
        gpu.hold(size, busy=0.9)
    print("the CPU" if gpu is None else f"{gpu.uuid} with {size / 1e9:g} GB", flush=True)
    for line in sys.stdin:
        print(json.dumps([sample * sample for sample in json.loads(line)]), flush=True)


def shards(batch: Sequence[int], count: int) -> list[Sequence[int]]:
    """Return the batch in so many parts in a row, whose lengths differ by one at most."""
    cuts = [len(batch) * number // count for number in range(count + 1)]
    return [batch[first:last] for first, last in itertools.pairwise(cuts)]


@contextlib.contextmanager
def places(gb: float, inside: Sequence[int] | None) -> Iterator[list[tuple[str, int]]]:
    """Yield, for each device to use, what a process has to be told to see it alone, and the bytes to take there."""
    seen = [entry for entry in os.environ.get(MASK, "").split(",") if entry]
    if inside is None:
        yield [(entry, round(gb * 1e9)) for entry in seen] or [("", 0)]
        return
    least, most = inside
    with tidegate.cuda_group(
        per_device_memory_gb=gb, min_devices=least, max_devices=most, prefer_max_devices=True
    ) as group:
        yield [(seen[one.local_index], one.memory_bytes) for one in group if one.local_index is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb", type=float, default=1.0, help="of device memory for each replica")
    parser.add_argument("--inside", type=int, nargs=2, metavar=("LEAST", "MOST"), help="take a group while it runs")
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--batch", type=int, default=1000, help="samples of one batch")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--replica", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replica is not None:
        replica(options.replica)
        return
    with places(options.gb, options.inside) as found, contextlib.ExitStack() as started:
        replicas = []
        for mask, size in found:
            replicas.append(Replica(mask, size))
            started.callback(replicas[-1].end)
            print(f"replica {len(replicas) - 1} on {replicas[-1].says}", flush=True)
        total = 0
        for number in steps(options.batches, options.seconds, "batch"):
            first = number * options.batch
            for one, shard in zip(replicas, shards(range(first, first + options.batch), len(replicas)), strict=True):
                one.send(list(shard))
            total += sum(sum(one.receive()) for one in replicas)
    print(f"{len(replicas)} replicas scored {options.batches * options.batch} samples: {total}", flush=True)


if __name__ == "__main__":
    main()
