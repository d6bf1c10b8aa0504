"""Why a command could not be started, as one sentence that says what to do next."""

from __future__ import annotations

import errno
import os

from placement.runner.spec import Spec

# The kernel's limit for one argument or variable, its ending NUL included (MAX_ARG_STRLEN).
_MAX_ARGUMENT_BYTES = 131072
_PROCESS_LIMIT = "process limit reached (EAGAIN): too many processes run for this account or on this machine"


def sentence(step: str, number: int, spec: Spec, arguments: list[bytes]) -> str:
    """Return the sentence for a system call that failed with `number` in this step of the start."""
    if number in (errno.EAGAIN, errno.ENOMEM) and step in ("fork", "account", "exec"):
        reason = _PROCESS_LIMIT if number == errno.EAGAIN else "the machine is out of memory (ENOMEM)"
    elif step == "directory":
        reason = _directory(number, spec)
    elif step == "account":
        name = spec.account.name if spec.account else "this account"
        reason = f"the service may not run commands as {name}: {os.strerror(number)}"
    elif step == "exec":
        reason = _exec(number, spec, arguments)
    else:
        reason = f"{step}: {os.strerror(number)}"
    return f"could not start: {reason}"


def _directory(number: int, spec: Spec) -> str:
    if number == errno.ENOENT:
        return f"the working directory {spec.cwd} does not exist"
    if number == errno.ENOTDIR:
        return f"the working directory {spec.cwd} is not a directory"
    if number == errno.EACCES:
        who = spec.account.name if spec.account else "the service's account"
        return f"{who} may not enter the working directory {spec.cwd}"
    return f"the working directory {spec.cwd}: {os.strerror(number)}"


def _exec(number: int, spec: Spec, arguments: list[bytes]) -> str:
    program = spec.argv[0] if spec.argv else "bash"
    if number == errno.E2BIG:
        longest = max((len(argument) for argument in arguments), default=0)
        if longest >= _MAX_ARGUMENT_BYTES:
            return (
                f"one argument has {longest} bytes, the system takes {_MAX_ARGUMENT_BYTES - 1} at most "
                "(E2BIG); put the text into a file and pass its name"
            )
        total = sum(len(argument) + 1 for argument in arguments)
        return f"arguments ({total} bytes) and environment together are too long for the system (E2BIG)"
    if number == errno.ENOENT:
        return f"there is no program {program}, or the interpreter in its first line is missing"
    if number == errno.EACCES:
        return f"{program} is not executable; run chmod +x on it, or name its interpreter first"
    if number == errno.ENOEXEC:
        return f"{program} is no program and has no interpreter line; name its interpreter first"
    return f"{program}: {os.strerror(number)}"
