"""System calls that Python's standard library lacks."""

from __future__ import annotations

import ctypes
import os

_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_FALLOC_FL_KEEP_SIZE = 1
_FALLOC_FL_PUNCH_HOLE = 2

_libc = ctypes.CDLL(None, use_errno=True)
_prctl = _libc.prctl
_prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]
_fallocate = getattr(_libc, "fallocate64", _libc.fallocate)
_fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def become_subreaper() -> None:
    """Make orphaned descendants come to this process instead of to pid 1; OSError where refused."""
    if _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        _raise()


def set_name(name: str) -> None:
    """Give this process a name that lists of processes show; the kernel keeps its first 15 bytes."""
    kept = ctypes.create_string_buffer(name.encode("utf-8", "replace")[:15])
    _prctl(_PR_SET_NAME, ctypes.addressof(kept), 0, 0, 0)


def punch_hole(descriptor: int, start: int, length: int) -> None:
    """Give these bytes of a file back to the disk, leaving zeros and the size; OSError where unsupported."""
    if _fallocate(descriptor, _FALLOC_FL_PUNCH_HOLE | _FALLOC_FL_KEEP_SIZE, start, length) != 0:
        _raise()


def _raise() -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))
