"""Containers that run on this node: which job each is labelled with, asked once an id."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence

from placement.domain.containing import containers
from placement.runner.engine import unknown

Ask = Callable[[Sequence[str]], str]
_AGAIN_AFTER = 60.0  # seconds after which an engine that did not answer is asked again
_MOST = 1000


def ask(command: Sequence[str], timeout_s: float = 2.0) -> str:
    """Return what a command printed. OSError where it cannot be run, fails or takes too long."""
    try:
        done = subprocess.run(
            list(command), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{command[0]} did not answer within {timeout_s:g} s") from error
    if done.returncode:
        raise OSError(done.stderr.strip()[-300:] or f"{command[0]} ended with code {done.returncode}")
    return done.stdout


class Labels:
    """Owners by the label of a container; an engine is asked once a container, and rarely when it does not answer."""

    def __init__(self, by: Ask = ask, which: Callable[[str], str | None] = shutil.which) -> None:
        self._ask, self._which = by, which
        self._owners: dict[str, str | None] = {}
        self._quiet_until: dict[str, float] = {}

    def know(self, ours: Iterable[tuple[str, str]]) -> None:
        """Take it from whoever started them that these ids are of these owners; no engine is asked for them."""
        self._owners.update((ident, owner) for ident, owner in ours if ident)

    def owner(self, path: str) -> str | None:
        """Return the owner that the container of this control group names ("job:7"), None where there is none."""
        ident = containers.id_of(path)
        if not ident:
            return None
        if ident not in self._owners:
            told, owner = self._told(ident)
            if not told:
                return None
            if len(self._owners) >= _MOST:
                self._owners.clear()
            self._owners[ident] = owner
        return self._owners[ident]

    def _told(self, ident: str) -> tuple[bool, str | None]:
        """Return whether an engine answered, and the owner."""
        asked = False
        for engine in containers.ENGINES:
            if self._which(engine) is None or time.monotonic() < self._quiet_until.get(engine, 0.0):
                continue
            try:
                label = self._ask(containers.label_command(engine, ident)).strip()
            except OSError as error:
                if not unknown(str(error)):  # it is the other engine's, or gone
                    self._quiet_until[engine] = time.monotonic() + _AGAIN_AFTER
                    continue
                asked = True
                continue
            return True, f"job:{label}" if re.fullmatch(r"[0-9]{1,18}", label) else None
        return asked, None
