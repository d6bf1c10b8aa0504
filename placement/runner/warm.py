"""Start runners from a nursery that is kept: the same as launch, in a tenth of its time. Service side."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time

from placement.runner.attempt import CLAIMED_BY_ANOTHER
from placement.runner.launch import CODE_ROOT, ENVIRONMENT, LaunchResult, launch

_LEAVES_IN = 2.0  # seconds after which a nursery that was let go and is still there is killed


class Nursery:
    """One nursery, started when it is first needed and again when it is gone; for one thread of one process."""

    def __init__(self, python: str = sys.executable, root: str | os.PathLike[str] = CODE_ROOT) -> None:
        self._command = [python, "-S", "-E", "-s", "-m", "placement.runner.nursery"]
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def launch(self, run_dir: str | os.PathLike[str], timeout_s: float = 10.0) -> LaunchResult:
        """Return once the runner has put the start on record, or why it did not. Raises nothing.

        Where the nursery cannot do it, a runner is started by itself: whoever claims the attempt first has it.
        """
        try:
            heard = self._ask(os.path.abspath(run_dir), timeout_s)
        except (OSError, ValueError):
            self.close()
            heard = b""
        if heard is None:
            self._replace()
            return LaunchResult(ok=False, message=f"the runner did not confirm the start within {timeout_s:g} s")
        code, _, sentence = heard.decode("utf-8", "replace").strip().partition(" ")
        if not code.isdigit():
            return launch(run_dir, timeout_s=timeout_s)
        return LaunchResult(ok=int(code) in (0, CLAIMED_BY_ANOTHER), message=sentence)

    def close(self) -> None:
        """Let the nursery go; runners go on."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            try:
                self._process.wait(_LEAVES_IN)  # it ends when it sees that nobody asks any more
            except subprocess.TimeoutExpired:  # somebody stopped it, or it hangs
                self._process.kill()
                self._process.wait()
        self._socket = self._process = None

    def _replace(self) -> None:
        """End a nursery that may hear nobody, so that only this start is late; a slow runner is not its child."""
        if self._process is not None:
            self._process.kill()
        self.close()

    def _ask(self, run_dir: str, timeout_s: float) -> bytes | None:
        """Return what the runner said, b"" where it ended without a word, None where it took too long."""
        channel = self._channel()
        listen, speak = os.pipe()
        try:
            try:
                socket.send_fds(channel, [os.fsencode(run_dir)], [speak])
            finally:
                os.close(speak)
            return _hear(listen, timeout_s)
        finally:
            os.close(listen)

    def _channel(self) -> socket.socket:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._socket is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._socket = ours
            with theirs:
                self._process = subprocess.Popen(
                    self._command,
                    cwd=self._root,
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=ENVIRONMENT,
                    start_new_session=True,
                )
        return self._socket


def _hear(listen: int, timeout_s: float) -> bytes | None:
    deadline = time.monotonic() + timeout_s
    heard = b""
    poller = select.poll()
    poller.register(listen, select.POLLIN)
    while b"\n" not in heard:
        if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return None
        part = os.read(listen, 4096)
        if not part:
            return b""
        heard += part
    return heard
