"""`python -S -E -s -m placement.runner RUN_DIR`: start one attempt, detached from whoever asked.

Exit codes of the process that was called (the runner itself goes on): 0 the attempt is on record, 2 wrong
arguments, 3 another runner has this attempt, 4 nothing was claimed, 5 the runner ended without a word.
"""

from __future__ import annotations

import os
import sys

from placement.runner.attempt import NOT_CLAIMED
from placement.runner.detach import be_the_runner, take_signals

_WRONG_ARGUMENTS = 2
_SILENT = 5


def main(arguments: list[str]) -> int:
    """Return the exit code of the launching process."""
    if len(arguments) != 1:
        _tell("usage: python -m placement.runner RUN_DIR")
        return _WRONG_ARGUMENTS
    run_dir = os.path.realpath(arguments[0])
    while os.open(os.devnull, os.O_RDWR) < 3:
        continue  # a caller that closed 0, 1 or 2: no pipe of ours may land there
    take_signals()
    listen, speak = os.pipe()
    try:
        pid = os.fork()
    except OSError as error:
        _tell(f"could not start: no process for the runner: {error.strerror}")
        return NOT_CLAIMED
    if pid == 0:
        os.close(listen)
        be_the_runner(run_dir, speak)
        os._exit(0)
    os.close(speak)
    return _hear(listen)


def _hear(listen: int) -> int:
    """Return the code the runner sends, and print its sentence."""
    heard = b""
    while b"\n" not in heard and (part := os.read(listen, 4096)):
        heard += part
    if not heard:
        _tell("the runner ended before it confirmed the start")
        return _SILENT
    code, _, sentence = heard.decode("utf-8", "replace").strip().partition(" ")
    _tell(sentence)
    return int(code)


def _tell(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
