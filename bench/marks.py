"""Jobs that write down when they ran, one line each in one file, whoever starts them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.wait import until


class Ledger:
    """One file to which each job appends its number and the moment at which its command ran."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ran"
        self.path.touch()

    def command(self, number: int | str) -> str:
        """Return a command for bash: one line, written at once, so that lines of several jobs do not mix."""
        return f"echo {number} $EPOCHREALTIME >> {self.path}"

    def argv(self, number: int) -> list[str]:
        """Return the same for whoever wants arguments."""
        return ["bash", "-c", self.command(number)]

    def times(self) -> dict[int, float]:
        """Return wall seconds by number; ValueError where a job ran twice."""
        return parse(self.path.read_text())

    def seen(self) -> set[int]:
        """Return the numbers of those that ran."""
        return set(self.times())

    def first_byte(self, submit: Callable[[int], object], number: int, patience: float = 60.0) -> float:
        """Submit one job and return the seconds until its first byte."""
        began = time.time()
        submit(number)
        return until(lambda: self.times().get(number), patience, f"job {number}", 0.002) - began


def parse(text: str) -> dict[int, float]:
    """Return wall seconds by number of the lines that are whole; ValueError where one number stands twice."""
    found: dict[int, float] = {}
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            continue
        number, at = line.split()
        if int(number) in found:
            raise ValueError(f"job {number} ran twice")
        found[int(number)] = float(at)
    return found
