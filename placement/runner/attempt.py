"""One attempt, from the claim to the exit record."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable

from placement.runner import cgroup
from placement.runner.cgroup import NONE, Group
from placement.runner.confirmed import told
from placement.runner.containment import DRIVER_LIMIT, hold, write_held
from placement.runner.identity import Identity, identify, read_boot_id
from placement.runner.jsonfile import control_path, write_all, write_record
from placement.runner.kernel import become_subreaper
from placement.runner.limits import LogLimit
from placement.runner.notes import Notes
from placement.runner.outbox import Outbox
from placement.runner.record import STARTED, ExitRecord, Started, claim, started_fields
from placement.runner.spawn import abandon, fork_held, release
from placement.runner.spec import Spec, SpecError, read_spec
from placement.runner.start_error import sentence
from placement.runner.stop import StopRequest, read_stop
from placement.runner.supervise import Watch, log_figures, write_exit

CLAIMED_BY_ANOTHER = 3
NOT_CLAIMED = 4


class StartError(Exception):
    """The command was not started; the message is the sentence for people."""


class Logs:
    """The two files the command writes to, and for each a descriptor that can write in its middle."""

    def __init__(self, run_dir: str, spec: Spec) -> None:
        self.stdout, out = _create_log(os.path.join(run_dir, "stdout.log"), spec)
        self.stderr, err = _create_log(os.path.join(run_dir, "stderr.log"), spec)
        self.limits = (LogLimit(out, spec.log_limit_bytes), LogLimit(err, spec.log_limit_bytes))


def _create_log(path: str, spec: Spec) -> tuple[int, int]:
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_APPEND | os.O_CLOEXEC
    try:
        appending = os.open(path, new, 0o640)
        os.fchmod(appending, 0o640)
        if spec.account is not None and os.geteuid() == 0:
            # So that `echo > /dev/stderr`, which opens the file anew, works under the account.
            os.fchown(appending, spec.account.uid, -1)
        return appending, os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        name = os.path.basename(path)
        raise StartError(f"could not start: the log {name} cannot be created: {error.strerror}") from error


def run_attempt(run_dir: str, confirm: Callable[[int, str], None]) -> None:
    """Run the attempt to its end.

    `confirm` hears code 0 as soon as the start is on record, or another code with the reason why it is not.
    """
    boot_id = read_boot_id()
    me = identify(os.getpid(), boot_id)
    if me is None:
        confirm(NOT_CLAIMED, "could not start: /proc does not show the runner")
        return
    try:
        mine = claim(run_dir, me)
    except OSError as error:
        confirm(NOT_CLAIMED, f"could not start: control/ cannot be written: {error.strerror}")
        return
    if not mine:
        confirm(CLAIMED_BY_ANOTHER, "another runner has this attempt")
        return
    notes = Notes()
    outbox = Outbox(run_dir, notes)
    ended = ExitRecord(None, None, boot_id)
    logs = None
    try:
        spec = read_spec(run_dir)
        ended = ended._replace(job_id=spec.job_id, attempt=spec.attempt)
        logs = Logs(run_dir, spec)
        ended = _run(run_dir, spec, me, logs, outbox, notes, confirm) or _stopped(run_dir, ended)
    except (StartError, SpecError) as error:
        ended = ended._replace(start_error=str(error))
    if ended.started_at is None:
        ended = ended._replace(ended_at=time.time(), log=log_figures(logs.limits) if logs else ended.log)
    if ended.start_error is not None and logs is not None:
        _append(logs.stderr, ended.start_error)
        ended = ended._replace(log=log_figures(logs.limits))
    write_exit(outbox, ended)
    confirm(0, ended.start_error or "ended")


def _leave_group(run_dir: str, group: Group) -> None:
    """Remove the run's group; one that a driver keeps a limit on is the service's to remove, once that is taken off."""
    if not os.path.lexists(control_path(run_dir, DRIVER_LIMIT)):
        cgroup.remove(group)


def _run(
    run_dir: str,
    spec: Spec,
    me: Identity,
    logs: Logs,
    outbox: Outbox,
    notes: Notes,
    confirm: Callable[[int, str], None],
) -> ExitRecord | None:
    """Return how the run ended; None where a stop came before the command was released."""
    try:
        become_subreaper()
    except OSError as error:
        raise StartError(f"could not start: orphans cannot be adopted: {error.strerror}") from error
    if _stop_asked(run_dir):
        return None
    try:
        child = fork_held(spec, logs.stdout, logs.stderr, me.boot_id)
    except OSError as error:
        raise StartError(sentence("fork", error.errno or errno.EIO, spec, [])) from error
    boottime = time.clock_gettime(time.CLOCK_BOOTTIME)
    started = Started(spec.job_id, spec.attempt, me, child.identity, time.time(), boottime)
    try:
        write_record(control_path(run_dir, STARTED), started_fields(started))
    except OSError as error:
        abandon(child)
        raise StartError(f"could not start: started.json cannot be written: {error.strerror}") from error
    held = hold(spec.containment, me.pid, child.identity.pid)
    if held is not None:
        try:
            write_held(run_dir, held)
        except OSError as error:
            notes.say("group", f"cannot write down the control group: {error}")
    group = held.group if held else NONE
    try:
        if _stop_asked(run_dir):
            abandon(child)
            return None
        watch = Watch(run_dir, spec, child, me.boot_id, logs.limits, outbox, notes, group)
        release(child)
        confirm(0, told(me, child.identity))
        return watch.run()
    finally:
        _leave_group(run_dir, group)


def _stop_asked(run_dir: str) -> bool:
    return signal.SIGTERM in signal.sigpending() or read_stop(run_dir) is not None


def _stopped(run_dir: str, ended: ExitRecord) -> ExitRecord:
    """Return the record of a run that was stopped before its command ran."""
    request = read_stop(run_dir) or StopRequest("signal", time.time(), None)
    return ended._replace(stopped_by=request.reason, stop_requested_at=request.at or time.time())


def _append(descriptor: int, text: str) -> None:
    try:
        write_all(descriptor, f"tidegate: {text}\n".encode("utf-8", "replace"))
    except OSError:
        return  # the sentence stands in the exit record too
