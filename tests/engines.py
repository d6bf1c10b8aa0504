"""A docker on this machine that is none: its program, its daemon, and what they were asked."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.wait import until

FAKE = Path(__file__).with_name("fake_docker.py")


class Docker:
    """The program lies in ``folder``, the state of its containers in ``home``."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tidegate-docker-"))  # a socket's path has to be short
        self.home = self.folder / "state"
        self.home.mkdir()
        self.program = self.folder / "docker"
        self.program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E -s {FAKE} "$@"\n')
        self.program.chmod(0o755)
        self.env = {"PATH": os.environ["PATH"], "DOCKER_FAKE": str(self.home)}
        self.daemon = subprocess.Popen([str(self.program), "serve"], env=self.env, stdin=subprocess.DEVNULL)

    def state(self, name: str) -> dict[str, Any]:
        """Return what is known of a container."""
        found: dict[str, Any] = json.loads((self.home / f"{name}.json").read_text())
        return found

    def names(self) -> list[str]:
        """Return the containers that are there, running or not."""
        return sorted(path.stem for path in self.home.glob("*.json"))

    def asked(self) -> list[list[str]]:
        """Return every line that the program was called with."""
        file = self.home / "asked"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def close(self) -> None:
        """End the daemon and what it started."""
        for name in self.names():
            state = self.state(name)
            if state["pid"] and not state["done"]:
                os.killpg(state["pid"], signal.SIGKILL)
        self.daemon.kill()
        self.daemon.wait()
        shutil.rmtree(self.folder)


@contextmanager
def docker() -> Iterator[Docker]:
    """Make one, ready to be asked."""
    made = Docker()
    try:
        until((made.home / "socket").exists, 20, "the daemon")
        yield made
    finally:
        made.close()


def gone(pid: int) -> bool:
    """Return whether a process has ended, waited for or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
