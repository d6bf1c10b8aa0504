"""The command's process: forked early, held back until it is on record, then turned into the command."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from placement.runner.identity import Identity, identify
from placement.runner.spec import Spec
from placement.runner.start_error import sentence

# What the child exits with when it never became the command; the record then carries a start error instead.
NEVER_STARTED = 125
_SHELLS = (b"/bin/bash", b"/usr/bin/bash")


class Child(NamedTuple):
    """A process in its own group that waits for one byte before it becomes the command."""

    identity: Identity
    go: int
    trouble: int


def fork_held(spec: Spec, stdout: int, stderr: int, boot_id: str) -> Child:
    """Return a child that is ready and waits; OSError (EAGAIN, ENOMEM) where none can be made."""
    go_read, go_write = os.pipe()
    trouble_read, trouble_write = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        for descriptor in (go_read, go_write, trouble_read, trouble_write):
            os.close(descriptor)
        raise
    if pid == 0:
        # Without this the child would hold the other end itself and wait for ever when the runner dies.
        os.close(go_write)
        _become(spec, stdout, stderr, go_read, trouble_write)
    os.close(go_read)
    os.close(trouble_write)
    try:
        # The child does the same; whoever comes first, the group is its own before anybody records it.
        os.setpgid(pid, pid)
    except OSError:
        pass  # the child has done it already, or has died, which wait() will tell
    child = identify(pid, boot_id)
    if child is None:
        raise ProcessLookupError(f"the kernel does not show the child {pid}")
    os.set_blocking(trouble_read, False)
    return Child(child, go_write, trouble_read)


def release(child: Child) -> None:
    """Let the child become the command."""
    try:
        os.write(child.go, b"g")
    except OSError:
        pass  # it was killed while it waited; wait() tells how
    os.close(child.go)


def abandon(child: Child) -> None:
    """End a child that waits: it reads the end of the pipe and exits without running anything."""
    os.close(child.go)
    os.waitpid(child.identity.pid, 0)
    os.close(child.trouble)


def trouble_of(child: Child) -> str | None:
    """Return why an ended child had not become the command, None where it had. To be asked once."""
    try:
        text = os.read(child.trouble, 65536)
    except OSError:
        return None
    finally:
        os.close(child.trouble)
    return str(json.loads(text)) if text else None


def arguments_of(spec: Spec) -> list[bytes]:
    """Return what is executed: the argument list itself, or bash with the text.

    A failing set-up line ends the job with its code and one line in the log; the command is then not run.
    """
    failed = (
        '{ set -- $?; echo "tidegate: the set-up line failed with code $1; the command was not run" >&2; exit $1; }'
    )
    setup = f"eval {_quoted(spec.setup)} || {failed}\n" if spec.setup.strip() else ""
    if spec.argv is None:
        return [b"bash", b"-c", _encode(setup + (spec.command or ""))]
    if not setup:
        return [_encode(argument) for argument in spec.argv]
    return [b"bash", b"-c", _encode(setup + 'exec "$@"'), b"bash", *map(_encode, spec.argv)]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _encode(text: str) -> bytes:
    # A name that is no UTF-8 travels through JSON as lone surrogates and comes out as its own bytes again.
    return text.encode("utf-8", "surrogateescape")


def _become(spec: Spec, stdout: int, stderr: int, go: int, trouble: int) -> NoReturn:
    """Turn this process into the command, or report why not and exit: never back into the runner."""
    arguments: list[bytes] = []
    step = "prepare"
    try:
        os.setpgid(0, 0)
        if os.read(go, 1) != b"g":
            os._exit(NEVER_STARTED)
        arguments = arguments_of(spec)
        environment = _environment(spec)
        _raise_oom_score(spec.oom_score_adj)
        _attach(stdout, stderr)
        os.umask(spec.umask & 0o777)
        step = "account"
        _drop_to_account(spec)
        step = "directory"
        os.chdir(_encode(spec.cwd))
        step = "exec"
        _reset_signals()
        _execute(arguments, environment, shell=spec.argv is None or bool(spec.setup.strip()))
    except OSError as error:
        _report(trouble, sentence(step, error.errno or 0, spec, arguments))
    except BaseException as error:
        _report(trouble, f"could not start: {step}: {error}")
    os._exit(NEVER_STARTED)


def _report(trouble: int, text: str) -> None:
    # A pipe takes 64 KiB without a reader; the reader comes after the end of this process.
    readable = text[:4000].encode("utf-8", "replace").decode("utf-8")
    os.write(trouble, json.dumps(readable).encode("ascii"))


def _raise_oom_score(score: int) -> None:
    try:
        descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, str(score).encode("ascii"))
        finally:
            os.close(descriptor)
    except OSError:
        return  # lowering needs a privilege; a job with another score is better than no job


def _attach(stdout: int, stderr: int) -> None:
    null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)


def _drop_to_account(spec: Spec) -> None:
    account = spec.account
    if account is None or (os.geteuid() == account.uid != 0 and os.getegid() == account.gid):
        return
    if account.groups is None:
        os.initgroups(account.name, account.gid)
    else:
        os.setgroups(account.groups)
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)


def _environment(spec: Spec) -> dict[bytes, bytes]:
    texts = dict(spec.env)
    if spec.account is not None:
        texts.setdefault("HOME", spec.account.home)
        texts.setdefault("USER", spec.account.name)
        texts.setdefault("LOGNAME", spec.account.name)
    return {_encode(name): _encode(value) for name, value in texts.items()}


def _reset_signals() -> None:
    # Ignored signals and the mask survive exec: whoever launched the runner must not decide them for the job.
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            continue  # reserved by the C library
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _execute(
    arguments: list[bytes],
    environment: dict[bytes, bytes],
    shell: bool,
    execve: Callable[[bytes, list[bytes], dict[bytes, bytes]], object] = os.execve,
) -> None:
    """Replace this process; returns only by OSError, the most telling of those met on the way."""
    name = arguments[0]
    if b"/" in name:
        candidates = [name]
    else:
        path = environment.get(b"PATH", b"/usr/local/bin:/usr/bin:/bin")
        candidates = [os.path.join(directory or b".", name) for directory in path.split(b":")]
        if shell:
            candidates = [*_SHELLS, *candidates]
    worst: OSError | None = None
    for candidate in candidates:
        try:
            execve(candidate, arguments, environment)
        except (FileNotFoundError, NotADirectoryError) as error:
            worst = worst or error
        except PermissionError as error:
            # In a folder of PATH that is closed to this account there is nothing to find.
            if len(candidates) == 1 or os.path.exists(candidate):
                worst = error
            else:
                worst = worst or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if worst is not None:
        raise worst
