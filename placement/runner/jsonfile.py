"""Control files: written whole or not at all, read without trust."""

from __future__ import annotations

import _thread
import json
import os
from collections.abc import Mapping
from typing import Any

VERSION = 1
_MAX_RECORD_BYTES = 1 << 20
_DIGITS = 19  # of 2**62


def control_path(run_dir: str | os.PathLike[str], name: str) -> str:
    """Return the path of a control file of this run directory."""
    return os.path.join(os.fspath(run_dir), "control", name)


def write_record(path: str, fields: Mapping[str, Any], durable: bool = True) -> None:
    """Replace the file by these fields in one step; OSError as it comes.

    Durable means that they survive a loss of power.
    """
    temporary = f"{path}.{os.getpid()}.{_thread.get_ident()}.tmp"
    data = json.dumps({"version": VERSION, **fields}).encode("ascii") + b"\n"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(temporary, flags, 0o600)
        try:
            write_all(descriptor, data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _take_place(temporary, path)
    except OSError:
        _remove(temporary)
        raise
    if durable:
        sync_directory(os.path.dirname(path))


def _take_place(temporary: str, path: str) -> None:
    """Put a finished file where a record belongs; a directory that somebody made there is moved aside."""
    try:
        os.replace(temporary, path)
    except IsADirectoryError:
        os.rename(path, f"{path}.{os.getpid()}.aside")
        os.replace(temporary, path)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte; a full disk may take a part first and refuse the rest."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_directory(path: str) -> None:
    """Make a rename or a new name in this directory survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_record(path: str, fields: Mapping[str, Any]) -> bool:
    """Write the file only where it does not exist yet; False where it does. OSError as it comes.

    The name appears by link(), which is as exclusive as O_EXCL and never shows a file without its content.
    """
    temporary = f"{path}.{os.getpid()}.{_thread.get_ident()}.new"
    write_record(temporary, fields)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        _remove(temporary)
    sync_directory(os.path.dirname(path))
    return True


def read_json(path: str, limit: int = _MAX_RECORD_BYTES) -> dict[str, Any] | None:
    """Return the object in a control file; None where it is missing, too long, or no JSON object."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        raw = _read_all(descriptor, limit)
        fields = None if raw is None else json.loads(raw, parse_int=_whole)
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        os.close(descriptor)
    return fields if isinstance(fields, dict) else None


def seconds(value: Any) -> float | None:
    """Return seconds, of a time or a span, that a calendar has, None for anything else.

    A job can write NaN, 1e30 and whole numbers that no float holds into a control file.
    """
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if -6e10 < value < 2.5e11 else None


def _whole(digits: str) -> int | float:
    """Return a whole number; one that no database holds, nor many a float, comes as a float, which is no count."""
    return int(digits) if len(digits) <= _DIGITS else float(digits)


def _read_all(descriptor: int, limit: int) -> bytes | None:
    parts: list[bytes] = []
    total = 0
    while part := os.read(descriptor, 65536):
        parts.append(part)
        total += len(part)
        if total > limit:
            return None
    return b"".join(parts)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
