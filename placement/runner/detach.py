"""From a fork of somebody else's process to a runner of its own: signals, session, directory, files."""

from __future__ import annotations

import os
import signal

from placement.runner.attempt import NOT_CLAIMED, run_attempt
from placement.runner.jsonfile import control_path
from placement.runner.supervise import WAKING_SIGNALS

# Whoever closes a terminal or presses Ctrl-C does not mean the jobs. SIGTERM is the way to stop one.
_IGNORED = (
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGPIPE,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGXFSZ,
)


def take_signals() -> None:
    """Block what the runner waits for and ignore what it must not die of."""
    signal.pthread_sigmask(signal.SIG_SETMASK, WAKING_SIGNALS)
    # Ignored, it would make the kernel reap our children and lose their codes.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)


def be_the_runner(run_dir: str, speak: int) -> None:
    """Leave the caller's session, directory and files behind, then run the attempt."""
    os.setsid()
    os.chdir("/")
    os.umask(0o077)
    confirm = Confirmation(speak)
    try:
        _leave_files(run_dir, speak)
    except OSError as error:
        confirm(NOT_CLAIMED, f"could not start: control/ cannot be written: {error.strerror}")
        return
    run_attempt(run_dir, confirm)


class Confirmation:
    """Tells the launching process how the start went; only the first word counts."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def __call__(self, code: int, text: str) -> None:
        """Send the code and the sentence; a launcher that is gone by now is no trouble."""
        if self._descriptor is None:
            return
        try:
            os.write(self._descriptor, f"{code} {text[:2000]}\n".encode("utf-8", "replace"))
        except OSError:
            pass  # killed with its whole group perhaps; the run goes on
        os.close(self._descriptor)
        self._descriptor = None


def _leave_files(run_dir: str, keep: int) -> None:
    """Point 0, 1 and 2 at nothing and at the runner's own log, and close all else but `keep`."""
    path = control_path(run_dir, "runner.log")
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for source, target in ((null, 0), (null, 1), (log, 2)):
        os.dup2(source, target)
    os.closerange(3, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
