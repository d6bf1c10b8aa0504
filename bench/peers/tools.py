"""What a peer is made of, and where its programs are found."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

Submit = Callable[[list[list[str]]], object]
"""Hands over commands, each a list of arguments."""


class Missing(Exception):
    """A peer cannot run here; the text says what is missing."""


@dataclass(frozen=True)
class Tools:
    """Programs on PATH, and before them those of a virtual environment ("" for none)."""

    venv: str = ""
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Return the PATH that peers are started with."""
        own = [str(Path(self.venv) / "bin")] if self.venv else []
        return os.pathsep.join([*own, os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])

    def find(self, *programs: str) -> list[str]:
        """Return where these programs are; Missing where one is not there."""
        found = []
        for program in programs:
            place = shutil.which(program, path=self.path)
            if place is None:
                raise Missing(f"no {program} on PATH" + (f" or in {self.venv}" if self.venv else ""))
            found.append(place)
        return found

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment that peers are started with."""
        return {**os.environ, "PATH": self.path, **self.extra, **more}


def quietly(arguments: Sequence[str], environment: dict[str, str], **more: object) -> str:
    """Run a program to its end and return its output; RuntimeError with its last line where it fails."""
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload]
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["without a word"]
        raise RuntimeError(f"{Path(arguments[0]).name} ended with {done.returncode}: {said[-1]}")
    return str(done.stdout)


@dataclass(frozen=True)
class Peer:
    """One other queue. ``takes_many``: its front door takes all commands in one call.

    ``needs`` raises Missing; ``serving`` starts it with two places in a folder and yields how to submit.
    ``slow``: it takes a second or more for each job, so it gets a hundred.
    """

    name: str
    needs: Callable[[Tools], object]
    serving: Callable[[Tools, Path], AbstractContextManager[Submit]]
    takes_many: bool = False
    slow: bool = False
