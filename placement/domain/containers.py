"""Jobs whose command runs in a container: the engine's command lines, and whose a container found running is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

ENGINES = ("docker", "podman")
LABEL = "tidegate.job"
_ID = re.compile(r"(?:^|[/-])([0-9a-f]{64})(?:\.scope)?(?:/|$)")
_CLIENT = re.compile(
    r"(?:^|[\s;&|(])(?:sudo\s+(?:-\S+\s+)*)?(?:\S*/)?(docker|podman|nerdctl)\s+(?:compose\s+)?(?:run|up|start|create)\b"
)
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/:@-]*")
UNKEPT = "its container is not kept inside the grant: add --label tidegate.job=$TIDEGATE_JOB_ID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What is to run in a container. ``memory`` in bytes, None without a cap; ``devices`` are UUIDs of cards."""

    engine: str
    image: str
    job: int
    name: str
    cidfile: str
    command: Sequence[str] = ()
    workdir: str = ""
    mounts: Sequence[str] = ()  # folders that are in the container under the same path
    user: str = ""  # "uid:gid"
    memory: int | None = None
    devices: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def run_command(c: Container) -> list[str]:
    """Return the line that runs a container as a job's command.

    Without ``--rm``: whether the engine's own limit killed it is told only while the container is there; who removes it
    reads that first. Values of variables are not in the line, where every account could read them, but are taken from
    the client's environment.
    """
    line = [c.engine, "run", "--init", "--name", c.name, "--label", f"{LABEL}={c.job}", "--cidfile", c.cidfile]
    if c.memory is not None:  # with swap as much as without: so there is none
        line += ["--memory", f"{c.memory}b", "--memory-swap", f"{c.memory}b"]
    if c.devices:
        # The quotes belong to the value: without them the comma between two devices ends the option.
        line += ["--gpus", '"device=' + ",".join(c.devices) + '"']
    for folder in c.mounts:
        line += ["--volume", f"{folder}:{folder}"]
    if c.workdir:
        line += ["--workdir", c.workdir]
    if c.user:
        line += ["--user", c.user]
    for name in sorted({"TIDEGATE_JOB_ID", *c.environment}):
        line += ["--env", name if name in c.environment else f"{name}={c.job}"]
    return [*line, c.image, *c.command]


def stop_command(engine: str, name: str, grace_s: float) -> list[str]:
    """Return the line that ends a container politely, and by force after the grace."""
    return [engine, "stop", "--time", str(max(0, round(grace_s))), name]


def kill_command(engine: str, name: str) -> list[str]:
    """Return the line that ends a container at once."""
    return [engine, "kill", name]


def state_command(engine: str, name: str) -> list[str]:
    """Return the line that tells how a container ended: "true" or "false" for its memory limit, and its exit code."""
    return [engine, "inspect", "--format", "{{.State.OOMKilled}} {{.State.ExitCode}}", name]


def remove_command(engine: str, name: str) -> list[str]:
    """Return the line that removes a container, running or not."""
    return [engine, "rm", "--force", name]


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


def unkept(command: str, argv: Iterable[str] | None = None) -> str:
    """Return what to say of an ordinary job whose command starts a container by itself, "" where it does not."""
    text = " ".join(argv) if argv is not None else command
    if _CLIENT.search(text) is None or LABEL in text:
        return ""
    return UNKEPT
