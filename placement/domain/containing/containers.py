"""Jobs whose command runs in a container: the engine's command lines, and whose a container found running is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

ENGINES = ("docker", "podman")
CHOICES = ("off", "auto", *ENGINES)
"""What a node may be told about containers; "auto": every engine that answers there."""
LABEL = "tidegate.job"
UNLIMITED = 1 << 50  # bytes
GRACE = "@grace"
"""Stands in a stop line for the seconds that the container is given."""
_ID = re.compile(r"(?:^|[/-])([0-9a-f]{64})(?:\.scope)?(?:/|$)")
_CLIENT = re.compile(
    r"(?:^|[\s;&|(])(?:sudo\s+(?:-\S+\s+)*)?(?:\S*/)?(docker|podman|nerdctl)\s+(?:compose\s+)?(?:run|up|start|create)\b"
)
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/:@-]*")
CLIENTS = (*ENGINES, "nerdctl", "docker-compose", "podman-compose")
"""Names of programs that start containers."""
UNKEPT = "its container is not kept inside the grant: add --label tidegate.job=$TIDEGATE_JOB_ID"
# What the client or its loader reads itself: it may run with more rights than the job, so nobody sets it for it.
_READ_BY_CLIENT = re.compile(
    r"(?i)(LD_.*|GLIBC_.*|GCONV_.*|MALLOC_.*|LOCPATH|NLSPATH|PATH|HOME|TMPDIR|SHELL|ENV|BASH_ENV|GO[A-Z]+|OTEL_.*"
    r"|DOCKER_.*|CONTAINER_.*|CONTAINERS_.*|BUILDX?_.*|BUILDKIT_.*|COMPOSE_.*|PODMAN_.*|STORAGE_.*|REGISTRY_.*|DBUS_.*"
    r"|_CONTAINERS_.*|_PODMAN_.*|HOSTALIASES|LOCALDOMAIN|RES_OPTIONS|RESOLV_.*|GNUPGHOME|PASSWORD_STORE_.*|CLOUDSDK_.*"
    r"|SHELLOPTS|BASHOPTS|PS4|IFS|XDG_.*|SSL_CERT_.*|NOTIFY_SOCKET|LISTEN_FDS|NVIDIA_VISIBLE_DEVICES)"
)
_LONGEST_LINE = 8000  # characters of a value; the client reads lines of 64 KiB at most
# Begins the text: bash where the image has it, as everywhere else, and what every image has where it has not.
_SHELL = 'if [ -x /bin/bash ]; then exec /bin/bash -c "$1"; else exec /bin/sh -c "$1"; fi'
_FAILED = '{ set -- $?; echo "tidegate: the set-up line failed with code $1; the command was not run" >&2; exit $1; }'


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What is to run in a container. ``memory`` in bytes, None without a cap; ``devices`` are UUIDs of cards.

    ``command`` are arguments for the image's own entry; where ``text`` is given, a shell runs that instead.
    """

    engine: str
    image: str
    job: int
    name: str
    cidfile: str
    command: Sequence[str] = ()
    text: str = ""
    workdir: str = ""
    mounts: Sequence[str] = ()  # folders that are in the container under the same path
    seen: Sequence[str] = ()  # the same, but it cannot write there
    user: str = ""  # "uid:gid"
    keep_id: bool = False  # an engine without rights of its own is to take the user's number as it is
    memory: int | None = None
    devices: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)  # what the client takes from its own
    environment_file: str = ""  # what it reads there instead


def given(backend: str, measurable: bool) -> bool:
    """Return whether a container can be given a device: NVIDIA's alone, by the names that their driver has for them."""
    return measurable and backend != "ROCM"


def run_command(c: Container) -> list[str]:
    """Return the line that runs a container as a job's command.

    Without ``--rm``: whether the engine's own limit killed it is told only while the container is there; who removes it
    reads that first. Values of variables are not in the line, where every account could read them, but are taken from
    the client's environment. Nothing in the image can win rights that its account has not.
    """
    line = [c.engine, "run", "--init", "--name", c.name, "--label", f"{LABEL}={c.job}", "--cidfile", c.cidfile]
    line += ["--security-opt", "no-new-privileges"]
    if c.memory is not None:  # with swap as much as without: so there is none
        line += ["--memory", f"{c.memory}b", "--memory-swap", f"{c.memory}b"]
    line += _devices(c)
    for folder in c.mounts:
        line += ["--volume", f"{folder}:{folder}"]
    for folder in c.seen:
        line += ["--volume", f"{folder}:{folder}:ro"]
    if c.workdir:
        line += ["--workdir", c.workdir]
    if c.user:
        line += ["--user", c.user]
    if c.keep_id and PurePosixPath(c.engine).name == "podman":
        line += ["--userns", "keep-id"]
    if c.environment_file:
        line += ["--env-file", c.environment_file]
    for name in sorted({"TIDEGATE_JOB_ID", *c.environment}):
        line += ["--env", name if name in c.environment else f"{name}={c.job}"]
    if c.text:
        return [*line, "--entrypoint", "/bin/sh", c.image, "-c", _SHELL, "sh", c.text]
    return [*line, c.image, *c.command]


def _devices(c: Container) -> list[str]:
    if not c.devices:
        # An image may ask for all of them by itself, and where the node's usual runtime is NVIDIA's it would get them.
        return ["--env", "NVIDIA_VISIBLE_DEVICES=void"]
    if PurePosixPath(c.engine).name == "podman":
        return [word for uuid in c.devices for word in ("--device", f"nvidia.com/gpu={uuid}")]
    # The quotes belong to the value: without them the comma between two devices ends the option.
    return ["--gpus", '"device=' + ",".join(c.devices) + '"']


def shell_text(command: str, setup: str, python_first: str = "", python_last: str = "") -> str:
    """Return what a shell inside runs: the set-up line, then the command.

    ``python_first`` leads its PYTHONPATH, ``python_last`` ends it. What the image itself puts there stays between
    them, which a variable given from outside would replace.
    """
    lines = []
    if python_first:
        lines.append(f"export PYTHONPATH={shlex.quote(python_first)}${{PYTHONPATH:+:$PYTHONPATH}}")
    if python_last:
        lines.append(f"export PYTHONPATH=${{PYTHONPATH:+$PYTHONPATH:}}{shlex.quote(python_last)}")
    if setup.strip():
        lines.append(f"eval {shlex.quote(setup)} || {_FAILED}")
    return "\n".join([*lines, command])


def stop_command(engine: str, name: str) -> list[str]:
    """Return the line that ends a container politely, and by force after the grace that stands for ``GRACE``."""
    return [engine, "stop", "-t", GRACE, name]  # its long name differs from version to version


def kill_command(engine: str, name: str) -> list[str]:
    """Return the line that ends a container at once."""
    return [engine, "kill", name]


def state_command(engine: str, name: str) -> list[str]:
    """Return the line that tells of a container, in five words.

    Whether it was killed at its memory limit ("true"), its exit code, whether it runs ("true"), its first process (0
    for none: podman says of one that is being stopped or paused that it does not run), and since when, which begins
    with "0001-" where it never ran.
    """
    told = "{{.State.OOMKilled}} {{.State.ExitCode}} {{.State.Running}} {{.State.Pid}} {{.State.StartedAt}}"
    return [engine, "inspect", "--format", told, name]


def remove_command(engine: str, name: str) -> list[str]:
    """Return the line that removes a container, running or not."""
    return [engine, "rm", "--force", name]


def limit_command(engine: str, name: str, memory: int | None) -> list[str]:
    """Return the line that gives a running container another memory limit, in bytes; None for none.

    No engine takes a limit away again (0 means "as it is"), so that is one which no machine has.
    """
    limit = f"{memory or UNLIMITED}b"
    return [engine, "update", "--memory", limit, "--memory-swap", limit, name]


def list_command(engine: str) -> list[str]:
    """Return the line that lists the names of all containers that carry our label, running or not."""
    return [engine, "ps", "--all", "--filter", f"label={LABEL}", "--format", "{{.Names}}"]


def version_command(engine: str) -> list[str]:
    """Return the line that makes whatever runs the containers answer, with its version."""
    told = "{{.Server.Version}}" if PurePosixPath(engine).name == "docker" else "{{.Client.Version}}"
    return [engine, "version", "--format", told]


def label_command(engine: str, ident: str) -> list[str]:
    """Return the line that tells which job a container is labelled with, "" or "<no value>" for none."""
    return [engine, "inspect", "--format", '{{index .Config.Labels "' + LABEL + '"}}', ident]


def id_of(path: str) -> str:
    """Return the id of the container that a control group belongs to, "" where it is none's.

    Knows the names that docker, podman, containerd and CRI-O give: a bare id, or "docker-<id>.scope" and the like.
    """
    found = _ID.search(path)
    return found.group(1) if found else ""


def problem(engine: str, image: str) -> str:
    """Return why this container cannot be run, "" where nothing speaks against it."""
    if engine not in ENGINES:
        return f"Containers are run by {' or '.join(ENGINES)}, not by {engine or 'nothing'}."
    if not _IMAGE.fullmatch(image):
        return "An image is a name such as registry.example/team/name:tag."
    return ""


def refused_names(names: Iterable[str]) -> str:
    """Return why variables cannot be given to a container, "" where they can."""
    wrong = sorted(name for name in names if _READ_BY_CLIENT.fullmatch(name))
    if not wrong:
        return ""
    shown = ", ".join(wrong[:3])
    return f"{shown}: the client that starts the container would read it itself. Export it in the set-up line instead."


def for_file(variables: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the text of a file of variables that the client hands on, and those that no line of it can hold.

    What comes by file the client does not take for its own: no list of names is complete (helpers that log in to a
    registry read theirs, too).
    """
    lined = {name for name, value in variables.items() if len(value) <= _LONGEST_LINE and value.isprintable()}
    text = "".join(f"{name}={variables[name]}\n" for name in sorted(lined))
    return text, {name: value for name, value in variables.items() if name not in lined}


def unkept(command: str, argv: Iterable[str] | None = None) -> str:
    """Return what to say of an ordinary job whose command starts a container by itself, "" where it does not."""
    text = " ".join(argv) if argv is not None else command
    if _CLIENT.search(text) is None or LABEL in text:
        return ""
    return UNKEPT
