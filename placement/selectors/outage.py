"""What to tell a person when the database or the disk does not take something: no fault of theirs, and it may pass."""

from __future__ import annotations

import errno

from django.db import OperationalError

_NEXT = "Nothing was changed by this request; try it again in a moment. Running jobs go on."
_FULL = (errno.ENOSPC, errno.EDQUOT)


def sentence(problem: Exception) -> str:
    """Return what to say where storing failed for now, "" where the problem is another one."""
    if isinstance(problem, OperationalError):
        why = str(problem).strip().splitlines()
        return f"The database does not answer as it should ({(why or ['no reason given'])[0][:200]}). {_NEXT}"
    if isinstance(problem, OSError) and problem.errno in _FULL:
        return f"The disk of this service is full ({problem.strerror}). {_NEXT}"
    return ""
