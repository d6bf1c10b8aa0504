"""`python -S -E -s -m placement.runner.nursery`: a warm process that forks runners, one a message.

An interpreter that starts anew for each run costs more than all else at a start; a fork of one that has everything
loaded costs a tenth of it. A message is a run directory, with the descriptor to which the runner says how the start
went, on the socket that is our standard input; when its other end closes, nobody needs us any more. A runner is as
detached here as when it is started by itself: its parent is gone before it begins.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import traceback

from placement.runner.attempt import NOT_CLAIMED
from placement.runner.detach import be_the_runner, take_signals
from placement.runner.kernel import set_name

_LONGEST = 8192  # bytes of a run directory's path


def main() -> int:
    """Fork a runner for each message until the other end closes."""
    asked = socket.socket(fileno=os.dup(0))
    gc.collect()
    gc.freeze()  # nothing of it is garbage, and collecting would copy its pages in each runner
    while True:
        message, descriptors, _, _ = socket.recv_fds(asked, _LONGEST, 1)
        if not message:
            return 0
        for speak in descriptors[:1]:
            os.set_inheritable(speak, False)  # one that comes by message would go on into the command
            _fork_runner(os.fsdecode(message), speak)
        for descriptor in descriptors:
            os.close(descriptor)


def _fork_runner(run_dir: str, speak: int) -> None:
    """Leave a runner that is nobody's child; where no process can be made, say so."""
    try:
        between = os.fork()
    except OSError as error:
        _refuse(speak, error)
        return
    if between:
        os.waitpid(between, 0)
        return
    try:
        take_signals()
        if _forked(speak) == 0:
            set_name(f"runner {os.path.basename(run_dir)}")
            be_the_runner(run_dir, speak)
    except BaseException:  # whatever it is, this copy must not go on as a second nursery
        traceback.print_exc()
    finally:
        os._exit(0)


def _forked(speak: int) -> int:
    try:
        return os.fork()
    except OSError as error:
        _refuse(speak, error)
        return -1


def _refuse(speak: int, error: OSError) -> None:
    text = f"{NOT_CLAIMED} could not start: no process for the runner: {error.strerror}\n"
    try:
        os.write(speak, text.encode("utf-8", "replace"))
    except OSError:
        return  # nobody listens; the start is asked for again


if __name__ == "__main__":
    sys.exit(main())
