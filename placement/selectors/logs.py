"""Bounded, careful reads of a job's output: its files are written by strangers' programs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

STREAMS = ("stdout", "stderr")
CHUNK = 48 * 1024  # bytes of log in one answer; markup makes it larger
BLOCK = 64 * 1024  # bytes of a download read at once


@contextmanager
def opened(run_dir: str, stream: str) -> Iterator[int | None]:
    """Yield a descriptor of the log, None where there is none to read.

    The directory is opened first and the name below it never followed when it is a link; what is not a regular file
    is ignored, and opening it cannot block.
    """
    if stream not in STREAMS or not run_dir:
        yield None
        return
    descriptor = _open(run_dir, f"{stream}.log")
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def version(run_dir: str, stream: str) -> str:
    """Return what changes whenever the log does; "" where there is none."""
    with opened(run_dir, stream) as descriptor:
        return "" if descriptor is None else version_of(os.fstat(descriptor))


def size(run_dir: str, stream: str) -> int:
    """Return the bytes of a log; 0 where there is none."""
    with opened(run_dir, stream) as descriptor:
        return 0 if descriptor is None else os.fstat(descriptor).st_size


def download(run_dir: str, stream: str) -> tuple[int, Iterator[bytes]] | None:
    """Return the size now and the bytes of the log up to there; None where there is none."""
    if stream not in STREAMS or not run_dir:
        return None
    descriptor = _open(run_dir, f"{stream}.log")
    if descriptor is None:
        return None
    size = os.fstat(descriptor).st_size
    return size, _blocks(descriptor, size)


def _blocks(descriptor: int, size: int) -> Iterator[bytes]:
    try:
        at = 0
        while at < size:
            block = os.pread(descriptor, min(BLOCK, size - at), at)
            if not block:
                return
            at += len(block)
            yield block
    finally:
        os.close(descriptor)


def _place(run_dir: str) -> str:
    """Return the run directory, or its name below where runs are kept now: the data may have been moved since."""
    if os.path.lexists(run_dir):
        return run_dir
    return str(settings.RUNS / os.path.basename(run_dir))


def _open(run_dir: str, name: str) -> int | None:
    try:
        directory = os.open(_place(run_dir), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return None
    finally:
        os.close(directory)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return descriptor


def version_of(status: os.stat_result) -> str:
    """Return what changes whenever the file does."""
    return f"{status.st_size}-{status.st_mtime_ns}"
