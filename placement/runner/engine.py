"""The container of a run: told, asked and ended through its engine's own program, whose lines the service wrote."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from placement.runner.descendants import list_pids
from placement.runner.identity import read_bytes, read_stat

GRACE = "@grace"  # stands in a stop line for the seconds
TAKES_S = 20.0  # seconds that an engine gets for one answer
NO_CONTAINER = (125, 126, 127)  # codes by which a client says that nothing was run; a command may end with them, too
OOM = "oom"  # beside the cidfile, where the client runs: podman before 5 has this made there, and tells of it nowhere
_LONGEST = 1 << 16
_BOOLS = frozenset(("true", "false"))
_ADVICE = ("Run 'docker", "See 'docker", "Run 'podman", "See 'podman")


class Container(NamedTuple):
    """How a run's container is dealt with. ``limit`` in bytes; ``env`` is what the engine's program needs itself."""

    name: str
    cidfile: str
    stop: tuple[str, ...]
    kill: tuple[str, ...]
    state: tuple[str, ...]
    remove: tuple[str, ...]
    limit: int | None
    env: Mapping[str, str]


class State(NamedTuple):
    """What an engine says of a container. ``there`` None: it does not answer, and ``why`` says how."""

    there: bool | None
    runs: bool = False
    began: bool = False
    oom_killed: bool = False
    code: int | None = None
    why: str = ""
    pid: int = 0  # of its first process while it runs


def parse_container(value: Any) -> Container | None:
    """Return the container in a spec's field, None where the run has none. ValueError names what is wrong."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError("the container is no table")
    env, limit = value.get("env"), value.get("limit")
    if not isinstance(env, dict) or not all(isinstance(text, str) for text in env.values()):
        raise ValueError("the container's environment is no table of texts")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool)):
        raise ValueError("the container's limit is no number of bytes")
    stop, kill, state, remove = (_line(value, name) for name in ("stop", "kill", "state", "remove"))
    return Container(_text(value, "name"), _text(value, "cidfile"), stop, kill, state, remove, limit, env)


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"the container has no {name}")
    return value


def _line(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = fields.get(name)
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        raise ValueError(f"the container's line {name} is no list of texts")
    return tuple(value)


def ident(c: Container) -> str:
    """Return the id of the container, "" while there is none: its image is still being fetched."""
    try:
        descriptor = os.open(c.cidfile, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(descriptor, 256).decode("ascii", "replace").strip()
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def made_at(c: Container) -> float | None:
    """Return the unix second at which the container was made, None while there is none."""
    try:
        found = os.stat(c.cidfile, follow_symlinks=False)
    except OSError:
        return None
    return found.st_mtime if found.st_size else None


def ending_line(c: Container, grace_s: float) -> list[str]:
    """Return the line that ends the container: politely, or at once without a grace."""
    return list(c.kill) if grace_s <= 0 else [str(round(grace_s)) if word == GRACE else word for word in c.stop]


def begin_end(c: Container, grace_s: float) -> int | None:
    """Have the engine end the container, without waiting for it; return the pid of its program, None for none."""
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    try:
        return _spawn(ending_line(c, grace_s), c.env, null)
    except OSError:
        return None  # whoever waits for the end asks again


def look(c: Container, takes_s: float = TAKES_S) -> State:
    """Return what the engine says of the container; of one that ended unseen it knows no code."""
    state = _asked(c, takes_s)
    if state.runs and _forsaken(c, state):
        state = _asked(c, takes_s)  # its end may just have been written down
        if state.runs:
            return state._replace(runs=False, code=None)
    return state


def _forsaken(c: Container, state: State) -> bool:
    """Return whether podman takes a container for running of which nothing is left.

    Its helper (conmon) writes down how it ends; where that was killed first, podman says "running" for ever. Docker has
    a daemon that sees the end itself, and may have another machine's numbers, as podman has that is asked far away.
    """
    here = os.path.basename(c.state[0]) == "podman" and not {"CONTAINER_HOST", "CONTAINER_CONNECTION"} & set(c.env)
    stat = read_stat(state.pid) if here and state.pid else None
    return here and state.pid > 0 and (stat is None or stat.gone) and not _seen(ident(c))


def _asked(c: Container, takes_s: float) -> State:
    code, said = ask(c.state, c.env, takes_s)
    state = read_state(said) if code == 0 else None
    if state is not None:
        at_limit = os.path.lexists(os.path.join(os.path.dirname(c.cidfile), OOM))
        return state._replace(oom_killed=state.oom_killed or at_limit)
    if code is not None and unknown(said):
        return State(False)
    if not os.path.exists(c.state[0]) and not _seen(ident(c)):
        return State(False)  # the engine was removed from this machine, and nothing runs in what it made
    return State(None, why=said[-300:] or f"{c.state[0]} did not answer")


def read_state(said: str) -> State | None:
    """Return the state in what an engine said, None where it is none; warnings may stand around its line."""
    for line in said.splitlines():
        words = line.split()
        if len(words) < 4 or not {words[0], words[2]} <= _BOOLS:
            continue
        number = int(words[1]) if words[1].lstrip("-").isdecimal() else None
        pid, since = (words[3], words[4]) if words[3].isdecimal() and len(words) > 4 else ("0", words[3])
        runs, began, at_limit = words[2] == "true" or pid != "0", not since.startswith("0001-"), words[0] == "true"
        return State(True, runs, began, at_limit, number, pid=int(pid))
    return None


def unknown(said: str) -> bool:
    """Return whether an engine said that it has no such container; "no such host" or file is another trouble."""
    lowered = said.lower()
    return "no such object" in lowered or "no such container" in lowered


def _seen(number: str) -> bool:
    """Return whether a living process is in the container's control group, or names it as a helper does."""
    wanted = number.encode()
    for pid in list_pids() if wanted else ():
        told = (read_bytes(f"/proc/{pid}/{name}") or b"" for name in ("cgroup", "cmdline"))
        if any(wanted in text for text in told) and (stat := read_stat(pid)) is not None and not stat.gone:
            return True
    return False


def ask(line: Sequence[str], env: Mapping[str, str], takes_s: float = TAKES_S) -> tuple[int | None, str]:
    """Run one line and return its code and the end of what it said; code None where it did not end in time."""
    listen, speak = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, speak, 1),
        (os.POSIX_SPAWN_DUP2, speak, 2),
    ]
    try:
        pid = _spawn(line, env, actions)
    except OSError as error:
        os.close(listen)
        return None, f"{line[0]}: {error.strerror}"
    finally:
        os.close(speak)
    said, in_time = _hear(listen, time.monotonic() + takes_s)
    os.close(listen)
    if not in_time:
        os.kill(pid, signal.SIGKILL)
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:  # somebody else waits for all children of this process
        return None, said
    return (os.waitstatus_to_exitcode(status) if in_time else None), said or ("" if in_time else "it took too long")


def _hear(listen: int, deadline: float) -> tuple[str, bool]:
    said, poller = b"", select.poll()  # select() refuses numbers above 1023, and a worker on a full machine has more
    poller.register(listen, select.POLLIN)
    while (left := deadline - time.monotonic()) > 0:
        if not poller.poll(left * 1000):
            break
        part = os.read(listen, 4096)
        if not part:
            return said.decode("utf-8", "replace").strip(), True
        said = (said + part)[-_LONGEST:]
    return said.decode("utf-8", "replace").strip(), False


def _spawn(line: Sequence[str], env: Mapping[str, str], actions: list[Any]) -> int:
    every = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    return os.posix_spawn(line[0], list(line), dict(env), file_actions=actions, setsigmask=(), setsigdef=every)


def sentence(log: str, code: int) -> str:
    """Return why nothing was run, from the end of what the client wrote: its own last words, without its advice."""
    told = _lines(log)
    why = told[-1][:600] if told else f"the container's client ended with code {code} and said nothing"
    return f"could not start: {why}"


def no_program(log: str) -> str:
    """Return why the program in a container was not run, "" where it was.

    The engine's own first process, which counts as a container that began, says so as the last words of the log: tini
    (docker) and ends with 126 or 127, catatonit (podman) and ends with 1.
    """
    last = _lines(log)[-1:]
    if not last or not (
        (last[0].startswith("[FATAL tini (") and "] exec " in last[0])
        or (last[0].startswith("ERROR (catatonit:") and "failed to exec pid1" in last[0])
    ):
        return ""
    return f"could not start: its image has no such program, or none that can be run there: {last[0][:600]}"


def _lines(log: str) -> list[str]:
    lines = [line.strip() for line in log.splitlines()]
    return [line for line in lines if line and not line.startswith(_ADVICE)]
