"""One service per data directory: a lock that the kernel gives back when its holder ends."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who runs on the data: process id, address of its pages, local time of its start."""

    pid: int
    address: str
    since: str

    def sentence(self) -> str:
        who = f"process {self.pid} at {self.address}"
        return f"Tidegate runs on this data already: {who}, since {self.since}."


class UpLock:
    """The lock file of one role (up, worker, web) in one data directory.

    ``up`` locks the directory itself, too: people remove lock files that they take for left-overs.
    """

    def __init__(self, data: Path, role: str = "up") -> None:
        self._path = data / f"{role}.lock"
        self._record = data / f"{role}.json"
        self._folder = data if role == "up" else None
        self._file: TextIO | None = None
        self._held: int | None = None  # the directory's descriptor

    def take(self) -> bool:
        """Return whether the lock is ours now."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(descriptor, "r+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._take_folder()
        except BlockingIOError:
            self.release()
            return False
        return True

    def _take_folder(self) -> None:
        if self._folder is None:
            return
        self._held = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            return  # NFS locks no directories; there the file alone must do

    def release(self) -> None:
        """Give the lock back; the kernel does the same when the process ends."""
        if self._held is not None:
            os.close(self._held)
            self._held = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def describe(self, holder: Holder) -> None:
        """Write who we are for others to read; the lock must be ours."""
        assert self._file is not None
        self._file.seek(0)
        self._file.truncate()
        json.dump(asdict(holder), self._file)
        self._file.flush()

    def holder(self) -> Holder | None:
        """Return who holds the lock, None when nobody does; a file left by a dead holder says nothing."""
        try:
            with self._path.open() as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return _parsed(file.read())
        except FileNotFoundError:
            pass
        return self._holder_without_file()

    def _holder_without_file(self) -> Holder | None:
        """Return who holds the directory though the lock file was removed; its record names it."""
        try:
            descriptor = os.open(self._folder or "", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _parsed(self._record.read_text() if self._record.exists() else "")
        except OSError:
            return None
        finally:
            os.close(descriptor)
        return None


def _parsed(raw: str) -> Holder:
    try:
        found = json.loads(raw)
        return Holder(pid=found["pid"], address=found["address"], since=found["since"])
    except (ValueError, TypeError, KeyError):
        # Between taking the lock and describing itself the holder is nameless for an instant.
        return Holder(pid=0, address="an address not known yet", since="a moment ago")
