"""Signals go to a group that is proven to be the job's, or to a process that is; there is no third way."""

from __future__ import annotations

import errno
import os
import signal

from placement.runner.identity import Identity, holder


def signal_group(pgid: object, leader: Identity, number: int) -> bool:
    """Send to a whole process group; return False, having sent nothing, where the group is not proven.

    Refused: anything but a number above 1 (0 and -1 reach far beyond a job), the caller's own group, and a
    group whose leader is not the recorded process, or has not moved to its own group yet.
    """
    if not isinstance(pgid, int) or isinstance(pgid, bool) or pgid <= 1:
        return False
    if pgid in (os.getpgrp(), os.getsid(0)) or pgid != leader.pid:
        return False
    stat = holder(leader)
    if stat is None or stat.pgid != pgid:
        return False
    try:
        os.killpg(pgid, number)
    except OSError:
        return False
    return True


def signal_member(member: Identity, number: int) -> bool:
    """Send to one process after checking that the pid is still its own; False where nothing was sent.

    The pidfd is opened before the check, so the pid cannot change hands between the check and the signal.
    """
    if member.pid <= 1 or member.pid == os.getpid():
        return False
    try:
        descriptor = os.pidfd_open(member.pid)
    except OSError as error:
        # A kernel before 5.3 has no pidfd: the check right before the signal is the best there is.
        return error.errno == errno.ENOSYS and _signal_by_pid(member, number)
    try:
        if holder(member) is None:
            return False
        signal.pidfd_send_signal(descriptor, number)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _signal_by_pid(member: Identity, number: int) -> bool:
    if holder(member) is None:
        return False
    try:
        os.kill(member.pid, number)
    except OSError:
        return False
    return True
