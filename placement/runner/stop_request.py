"""Ask a run to end. Service side."""

from __future__ import annotations

import os
import signal
import time

from placement.runner import engine
from placement.runner.containment import group_of_run
from placement.runner.identity import Identity, read_bytes
from placement.runner.jsonfile import control_path, write_record
from placement.runner.members import kill_members, members
from placement.runner.record import read_claim
from placement.runner.signals import signal_member
from placement.runner.spec import container_of_run
from placement.runner.status import Phase, look
from placement.runner.stop import AT_ONCE, STOP, StopRequest, read_stop

SIGNALLED = "signalled"
ALREADY_GONE = "already_gone"
NOT_STARTED = "not_started"

__all__ = ["ALREADY_GONE", "NOT_STARTED", "SIGNALLED", "kill_members", "members", "request_stop"]


def request_stop(run_dir: str | os.PathLike[str], reason: str, grace_s: float | None = None) -> str:
    """Ask the run to end; return "signalled", "already_gone" or "not_started".

    The request is written before anybody is signalled, so a runner that starts after this never lets the
    command run. Of a run whose runner is dead every process is signalled on its own: TERM, or KILL where the
    reason allows no grace or `grace_s` is 0; the caller asks again for
    the next step. Asking twice does no harm. OSError only where nothing runs yet and the disk takes no request.
    """
    status = look(run_dir)
    if status.phase is Phase.EXITED:
        return ALREADY_GONE
    if reason in AT_ONCE:
        grace_s = 0.0
    if status.phase is Phase.LOST:  # its processes here are gone; a container of it may live, with nobody beside it
        return SIGNALLED if _container_asked(run_dir, grace_s) else ALREADY_GONE
    fields = _joined(read_stop(run_dir), StopRequest(reason, time.time(), grace_s))
    refused: OSError | None = None
    try:
        write_record(control_path(run_dir, STOP), fields)
    except OSError as error:
        # A full disk must not keep a run alive: the signal alone ends it, with "signal" as the reason.
        refused = error
    # It may have been claimed, or have ended, while we wrote.
    status = look(run_dir)
    if status.phase is Phase.NEW:
        if refused is not None:
            raise refused
        return NOT_STARTED
    if status.phase is Phase.UNSUPERVISED and status.started is not None:
        if _container_asked(run_dir, grace_s):
            return SIGNALLED  # its engine ends it, and the client that waits for it follows
        number = signal.SIGKILL if grace_s == 0 else signal.SIGTERM
        found = [one for one in members(status.started, group_of_run(run_dir)) if not _tells_of_container(one, run_dir)]
        return SIGNALLED if kill_members(found, number) else ALREADY_GONE
    runner = status.started.runner if status.started is not None else read_claim(run_dir)
    if runner is not None and signal_member(runner, signal.SIGTERM):
        return SIGNALLED
    return ALREADY_GONE


def _container_asked(run_dir: str | os.PathLike[str], grace_s: float | None) -> bool:
    """Have a run's container ended by its engine, which nobody waits for; False where there is none to end."""
    found = container_of_run(run_dir)
    if found is None or not engine.ident(found[0]):
        return False
    container, usual = found
    line = engine.ending_line(container, usual if grace_s is None else grace_s)
    aside = ["/bin/sh", "-c", '"$@" </dev/null >/dev/null 2>&1 &', "sh", *line]
    engine.ask(aside, container.env)
    return grace_s != 0  # without grace its client is killed, too, whatever the engine does


def _tells_of_container(one: Identity, run_dir: str | os.PathLike[str]) -> bool:
    """Return whether a process is podman's helper: it alone learns how a container ended, and ends with it."""
    return read_bytes(f"/proc/{one.pid}/comm") == b"conmon\n" and container_of_run(run_dir) is not None


def _joined(first: StopRequest | None, second: StopRequest) -> dict[str, object]:
    """Return stop.json's fields for both: who asked first is the reason, the shorter grace counts."""
    asked = first or second
    graces = [request.grace_s for request in (first, second) if request and request.grace_s is not None]
    fields: dict[str, object] = {"reason": asked.reason, "at": asked.at}
    if graces:
        fields["grace_s"] = min(graces)
    return fields
