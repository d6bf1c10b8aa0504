"""Records that must reach the disk, however long it is full."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from placement.runner.jsonfile import control_path, write_record
from placement.runner.notes import Notes


class Outbox:
    """Keeps each record until it is written; one that fails is tried again at the next flush."""

    def __init__(
        self,
        run_dir: str,
        notes: Notes,
        write: Callable[[str, Mapping[str, Any], bool], None] = write_record,
    ) -> None:
        self._run_dir = run_dir
        self._notes = notes
        self._write = write
        self._waiting: dict[str, tuple[Mapping[str, Any], bool]] = {}

    def put(self, name: str, fields: Mapping[str, Any], durable: bool = True) -> None:
        """Keep a record for the next flush, in place of an older one of the same name."""
        self._waiting[name] = (fields, durable)

    def flush(self) -> bool:
        """Return whether nothing is left to write: all is on disk, or the run directory is gone for good."""
        for name, (fields, durable) in list(self._waiting.items()):
            path = control_path(self._run_dir, name)
            try:
                self._write(path, fields, durable)
            except OSError as error:
                # Where control/ is gone or another's nobody reads it; a runner that waits for it would stay for ever.
                if not self._replaced(error):
                    self._failed(name, error)
                    continue
            del self._waiting[name]
        return not self._waiting

    def _replaced(self, error: OSError) -> bool:
        control = os.path.dirname(control_path(self._run_dir, ""))
        if os.path.islink(self._run_dir) or os.path.islink(control):
            return True
        return isinstance(error, (FileNotFoundError, NotADirectoryError)) and not os.path.isdir(control)

    def _failed(self, name: str, error: OSError) -> None:
        self._notes.say(name, f"cannot write {name} yet, trying again each second: {error}")
