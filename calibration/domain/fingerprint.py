"""Fingerprints: one hash over the files that decide what a run does, never over a whole tree."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

LARGEST_READ = 4 * 2**20
"""Bytes read of one file. Beyond, its size and time of change stand for the rest."""


def read_file(path: Path) -> bytes | None:
    """Return a regular file's content for hashing, None when there is none that can be read.

    Never waits: a pipe or a device in the place of a file counts as unreadable.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(LARGEST_READ)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if facts.st_size > LARGEST_READ:
        content += f"\0{facts.st_size}\0{facts.st_mtime_ns}".encode()
    return content


def fingerprint(paths: Sequence[Path], read: Callable[[Path], bytes | None] = read_file) -> str:
    """Return a hash of the listed files' names and contents, "" when none of them can be read.

    Names count from the folder that all of them share, so a copy elsewhere has the same fingerprint. The
    order of the list does not matter; a rename does, so does every byte, and a file that is missing.
    """
    files = sorted({os.path.abspath(path) for path in paths})
    contents = {file: read(Path(file)) for file in files}
    if all(content is None for content in contents.values()):
        return ""
    shared = os.path.commonpath([os.path.dirname(file) for file in files])
    whole = hashlib.sha256()
    for name, content in sorted((os.path.relpath(file, shared), content) for file, content in contents.items()):
        state = b"missing" if content is None else b"sha256:" + hashlib.sha256(content).digest()
        for part in (os.fsencode(name), state):
            whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()
