"""A process that tries to get away from its job: `escapist.py HOW FILE`. Run by tests, not by pytest.

HOW is one or several of: child, nohup, setsid, daemon (double fork and a session of its own), clean (with an empty
environment, started anew), retitle (its title written over arguments and environment, its name changed), ignore (TERM),
stop (itself). The one that got furthest appends its pid to FILE and sleeps; the first goes on beside it, or exits with
"orphan".
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time


def retitle(text: bytes) -> None:
    """Write a title over argv and the environment behind it, as setproctitle does, and change the thread's name."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    begin, end = int(fields[45]), int(fields[48])  # arg_start and env_end, fields 48 and 51
    ctypes.memset(begin, 0, end - begin)
    ctypes.memmove(begin, text, len(text))
    ctypes.CDLL(None).prctl(15, b"python-worker")  # PR_SET_NAME


def away(how: list[str], file: str) -> None:
    if "nohup" in how:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if "setsid" in how or "daemon" in how:
        os.setsid()
    between = os.getpid()
    if "daemon" in how and os.fork():
        os._exit(0)
    while "daemon" in how and os.getppid() == between:
        time.sleep(0.001)  # who is told of in FILE is the only one that is left
    if "clean" in how and "--anew" not in sys.argv:
        rest = ",".join(word for word in how if word not in ("daemon", "setsid", "orphan"))
        os.execve(sys.executable, [sys.executable, "-S", "-E", __file__, rest, file, "--anew"], {})
    if "retitle" in how:
        retitle(b"VLLM::Engine")
    if "ignore" in how:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(file, "a") as told:
        told.write(f"{os.getpid()}\n")
    if "stop" in how:
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)


def main() -> None:
    how, file = sys.argv[1].split(","), sys.argv[2]
    if "--anew" in sys.argv or not os.fork():
        away(how, file)
        return
    if "orphan" in how:
        while not os.path.exists(file):
            time.sleep(0.01)
        return
    time.sleep(600)


if __name__ == "__main__":
    main()
