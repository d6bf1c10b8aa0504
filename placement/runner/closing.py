"""The end of a run's container: nothing of the run is over before its engine says that it does not run any more."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from placement.runner import engine
from placement.runner.engine import NO_CONTAINER, Container, State
from placement.runner.jsonfile import control_path, write_record
from placement.runner.notes import Notes
from placement.runner.record import ExitRecord
from placement.runner.spec import Spec

CLOSING = "closing.json"  # in control/: {"why": what its engine says to the end of it, "since": unix second}
_PAUSE_S = 1.0
_TAIL = 8192


def closed(spec: Spec, record: ExitRecord, run_dir: str, notes: Notes, *, stopped: bool) -> ExitRecord:
    """Return the record once the container is ended and removed; an engine that does not answer is asked for ever.

    Before it is removed its state is read: that alone tells of its memory limit. ``stopped``: it had its grace.
    """
    container = spec.container
    assert container is not None
    ident = engine.ident(container)
    grace_s = 0.0 if stopped else spec.grace_s
    killed = ours = False
    silent: float | None = None
    while True:
        state = engine.look(container)
        if state.there and state.runs:
            # Its client has gone before it: nobody hears it, and nobody would wait for it.
            killed, ours = _end(container, grace_s) or killed, True
            grace_s = 0.0
            _pause(0.05)
            continue
        if state.there is not None or not ident:
            break  # it has ended, is gone, or never was
        silent = silent or time.time()
        tell(run_dir, state.why, silent, notes)
        _pause(_PAUSE_S)
    if state.there:
        code, said = engine.ask(container.remove, container.env)
        if code != 0:
            tell(run_dir, f"{container.name} cannot be removed: {said[-300:]}", time.time(), notes)
    record = record._replace(killed=record.killed or killed, swept=record.swept or (ours and not stopped))
    return _told(record, container, ident, state, run_dir)


def _told(record: ExitRecord, c: Container, ident: str, state: State, run_dir: str) -> ExitRecord:
    """Return the record with what the engine said of the end."""
    fields = {"name": c.name, "id": ident, "oom_killed": state.oom_killed, "code": state.code, "limit": c.limit}
    record = record._replace(container=fields)
    if record.stopped_by is not None or record.code in (None, 0):
        return record
    log = _tail(os.path.join(run_dir, "stderr.log"))
    if record.code in NO_CONTAINER and not state.began:
        return record._replace(code=None, start_error=engine.sentence(log, record.code))
    if record.code in (*NO_CONTAINER, 1) and (said := engine.no_program(log)):
        return record._replace(code=None, start_error=said)
    if record.code in NO_CONTAINER and state.there:
        return record._replace(code=state.code)  # the client lost its engine, and cannot tell how it ended
    return record


def _end(container: Container, grace_s: float) -> bool:
    """Have the engine end the container and wait for its answer; True where it was by force."""
    engine.ask(engine.ending_line(container, grace_s), container.env, grace_s + engine.TAKES_S)
    return grace_s <= 0


def tell(run_dir: str | os.PathLike[str], why: str, since: float, notes: Notes | None = None) -> None:
    """Write down why a container is not ended yet; the page says so."""
    if notes is not None:
        notes.say("container", why)
    with contextlib.suppress(OSError):  # a full disk; the log of the runner has it
        write_record(control_path(run_dir, CLOSING), {"why": why, "since": since}, durable=False)


def _pause(seconds: float) -> None:
    signal.sigtimedwait((signal.SIGTERM,), seconds)


def _tail(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.pread(descriptor, _TAIL, max(0, os.fstat(descriptor).st_size - _TAIL)).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
