"""Where an attempt stands, judged from its run directory and /proc alone. Service side."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum

from placement.runner.containment import group_of_run
from placement.runner.identity import alive
from placement.runner.jsonfile import control_path
from placement.runner.members import members
from placement.runner.record import (
    CLAIM,
    STARTED,
    ExitRecord,
    LeaderExit,
    Started,
    read_claim,
    read_exit,
    read_leader,
    read_started,
)


class Phase(StrEnum):
    """What is known of an attempt. `unsupervised`: the runner is dead, processes of the job live."""

    NEW = "new"
    CLAIMED = "claimed"
    RUNNING = "running"
    FINISHING = "finishing"
    EXITED = "exited"
    LOST = "lost"
    UNSUPERVISED = "unsupervised"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """One look. `claim_dead` with phase new: somebody claimed the attempt and died before anything ran."""

    phase: Phase
    started: Started | None = None
    leader: LeaderExit | None = None
    exit: ExitRecord | None = None
    claimer_alive: bool = False
    claim_dead: bool = False


def look(run_dir: str | os.PathLike[str]) -> RunStatus:
    """Return where the attempt stands.

    The process is looked at before the files are: what a dead runner wrote is complete, so a record that is
    missing then is missing for good. An exit record counts once its runner is gone: until then, and while the command
    lives, the job itself may have written it.
    """
    claimed = os.path.lexists(control_path(run_dir, CLAIM))
    claimer = read_claim(run_dir)
    claimer_alive = claimer is not None and alive(claimer)
    known = read_started(run_dir)
    runner_alive = known is not None and alive(known.runner)
    exit_record = read_exit(run_dir)
    started = read_started(run_dir)
    leader = read_leader(run_dir)
    if exit_record is None and started is not None and known is None:
        return look(run_dir)  # it started while we looked; now its runner can be judged
    if exit_record is not None and not (runner_alive and known is not None and alive(known.runner)):
        # A runner writes it once nothing of the run is left: beside a living command it is somebody else's word.
        phase = Phase.UNSUPERVISED if started is not None and alive(started.child) else Phase.EXITED
    elif started is None:
        phase = Phase.CLAIMED if claimer_alive else Phase.NEW
        if phase is Phase.NEW and os.path.lexists(control_path(run_dir, STARTED)):
            phase = Phase.LOST  # a record that cannot be read: it did run, so it must not run again
    elif runner_alive:
        phase = Phase.RUNNING if leader is None else Phase.FINISHING
    else:
        phase = Phase.UNSUPERVISED if members(started, group_of_run(run_dir)) else Phase.LOST
    return RunStatus(
        phase=phase,
        started=started,
        leader=leader,
        exit=exit_record,
        claimer_alive=claimer_alive,
        claim_dead=phase is Phase.NEW and claimed,
    )
