"""gpusched with two simulated GPUs: its queue is a file of command lines, read again at each poll (5 s unless told)."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.tools import Peer, Submit, Tools


@contextmanager
def serving(tools: Tools, folder: Path) -> Iterator[Submit]:
    """Run it on a file that grows; each job declares a little memory so that several share a GPU."""
    queue = folder / "jobs.txt"
    queue.touch()
    (program,) = tools.find("gpusched")
    arguments = [program, "--sim", "2", "--watch", "--poll", "0.5", "--log-dir", str(folder / "logs"), str(queue)]
    with subprocess.Popen(
        arguments, cwd=folder, env=tools.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:

        def submit(commands: list[list[str]]) -> None:
            with queue.open("a") as file:
                file.writelines(f"[vram=16M] {shlex.join(command)}\n" for command in commands)

        try:
            yield submit
        finally:
            process.terminate()


PEER = Peer("gpusched", lambda tools: tools.find("gpusched"), serving, takes_many=True, slow=True)
