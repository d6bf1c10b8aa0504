"""The tick worker's side of the pipe on which the supervisor watches the cycle's transaction."""

from __future__ import annotations

import os

VARIABLE = "TIDEGATE_CYCLE_PIPE"


def supervisor() -> int | None:
    """Return the pid of the supervisor that started us; None without one, or where it is everybody's foster parent."""
    above = os.getppid()
    return above if VARIABLE in os.environ and above > 1 else None


def begin() -> None:
    """Say that a cycle's transaction begins; does nothing where no supervisor listens."""
    _write(b"B")


def end() -> None:
    """Say that the transaction has ended, however it ended."""
    _write(b"E")


def _write(mark: bytes) -> None:
    number = os.environ.get(VARIABLE)
    if number:
        try:
            os.write(int(number), mark)
        except OSError:
            # The supervisor is gone or far behind; the cycle must not fail for that.
            pass
