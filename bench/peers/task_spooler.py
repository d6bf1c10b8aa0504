"""task-spooler: a queue of one person, one process a job, no GPU memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.tools import Missing, Peer, Submit, Tools, quietly


def _program(tools: Tools) -> str:
    for name in ("tsp", "ts"):
        try:
            place = tools.find(name)[0]
        except Missing:
            continue
        if name == "tsp" or "task" in quietly([place, "-V"], tools.environment()).lower():
            return place
    raise Missing("no tsp (Debian's task-spooler) on PATH")


@contextmanager
def serving(tools: Tools, folder: Path) -> Iterator[Submit]:
    """Run its server with two places."""
    program = _program(tools)
    environment = tools.environment(TS_SOCKET=str(folder / "socket"), TS_SLOTS="2", TMPDIR=str(folder))

    def submit(commands: list[list[str]]) -> None:
        for command in commands:
            quietly([program, "-n", *command], environment)

    try:
        yield submit
    finally:
        quietly([program, "-K"], environment)


PEER = Peer("task-spooler", _program, serving)
