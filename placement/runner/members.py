"""The processes of a run whose runner is dead, found and signalled one by one. Service side."""

from __future__ import annotations

import os
from collections.abc import Iterable

from placement.runner import cgroup
from placement.runner.cgroup import NONE, Group
from placement.runner.descendants import list_pids, walk
from placement.runner.identity import Identity, alive, read_boot_id, read_stat
from placement.runner.record import Started
from placement.runner.signals import signal_member


def members(started: Started, kept_in: Group = NONE) -> tuple[Identity, ...]:
    """Return the living processes of a run: the child, its descendants, its groups, the runner's session.

    After a reboot, or once a stranger has a recorded pid, that pid leads to nobody.
    """
    if started.boot_id != read_boot_id():
        return ()
    if {started.runner.pid, started.child.pid} & {os.getpid(), os.getpgrp(), os.getsid(0)}:
        return ()  # a record that names the service itself is none of a job
    found: dict[int, Identity] = {}
    roots = [started.child] if alive(started.child) else []
    for root in roots:
        found[root.pid] = root
    # Processes that lost their parents keep the session and group numbers; while one of them lives, the
    # kernel gives these numbers to nobody. A stranger who holds one proves that none of ours is left in it.
    session = started.runner.pid if not _stranger(started.runner) else None
    group = started.child.pid if not _stranger(started.child) else None
    for pid in list_pids():
        stat = read_stat(pid)
        if stat is None or stat.gone or pid == started.runner.pid:
            continue
        if stat.start_ticks >= started.child.start_ticks and (stat.sid == session or stat.pgid == group):
            found[pid] = Identity(pid, stat.start_ticks, started.boot_id)
    for pid in cgroup.pids(kept_in):  # whatever left everything else is in it still
        stat = read_stat(pid)
        if stat is not None and not stat.gone and pid != started.runner.pid:
            found[pid] = Identity(pid, stat.start_ticks, started.boot_id)
    for pid in list(found):
        for stat in walk(pid):
            found[stat.pid] = Identity(stat.pid, stat.start_ticks, started.boot_id)
    return tuple(found[pid] for pid in sorted(found))


def _stranger(recorded: Identity) -> bool:
    stat = read_stat(recorded.pid)
    return stat is not None and stat.start_ticks != recorded.start_ticks


def kill_members(identities: Iterable[Identity], number: int) -> int:
    """Send the signal to each process that is still the recorded one; return how many got it."""
    return sum(signal_member(identity, number) for identity in identities)
