"""What is in a run's group and no child of its runner: wait() says nothing of those whom somebody moved there."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from placement.runner import cgroup
from placement.runner.cgroup import Group
from placement.runner.identity import identify
from placement.runner.signals import signal_member

_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.5
_TELL_AFTER_S = 2.0


def empty(group: Group, boot_id: str, tell: Callable[[str], object]) -> None:
    """Return once nothing lives in the group: what cannot be ended yet holds its memory, so the run goes on for it.

    ``tell`` hears now and then who is left.
    """
    began, pause = time.monotonic(), _FIRST_PAUSE_S
    while cgroup.populated(group):
        if not cgroup.kill(group):  # a kernel before 5.14 ends no group, only processes
            for pid in cgroup.pids(group):
                member = identify(pid, boot_id)
                if member is not None:
                    signal_member(member, signal.SIGKILL)
        if time.monotonic() - began > _TELL_AFTER_S:
            tell(f"processes of its control group do not end: {cgroup.pids(group)[:10]}")
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE_S, pause * 2)
