"""Ask the kernel to end this process when its parent ends (Linux)."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(expected_parent: int | None = None) -> None:
    """Get SIGKILL when the *thread* that forked this process ends; exit if the parent is gone already."""
    if _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    if expected_parent is not None and os.getppid() != expected_parent:
        os._exit(1)
