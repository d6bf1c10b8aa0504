"""What to run: control/spec.json, checked once, before anything is started."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from placement.runner.containment import Plan, parse_plan
from placement.runner.engine import Container, parse_container
from placement.runner.jsonfile import control_path, read_json, seconds

SPEC = "spec.json"
_MAX_SPEC_BYTES = 16 << 20
_SWEEPS = ("after_grace", "keep")


class SpecError(Exception):
    """The spec cannot be run; the message is the sentence that people read."""


class Account(NamedTuple):
    """The Unix account the command drops to. Without `groups` the system's own list for it is used."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...] | None
    home: str


class Spec(NamedTuple):
    """One attempt, as the service asked for it. Exactly one of `command` and `argv` is set."""

    job_id: int | None
    attempt: int | None
    node: str
    command: str | None
    argv: tuple[str, ...] | None
    setup: str
    cwd: str
    env: Mapping[str, str]
    account: Account | None
    umask: int
    log_limit_bytes: int
    time_limit_s: float | None
    grace_s: float
    sweep: str
    sweep_grace_s: float
    oom_score_adj: int
    containment: Plan | None = None
    container: Container | None = None


def read_spec(run_dir: str) -> Spec:
    """Return the run's spec; SpecError says which field is wrong."""
    path = control_path(run_dir, SPEC)
    fields = read_json(path, _MAX_SPEC_BYTES)
    if fields is None:
        found = "is not a readable JSON object" if os.path.lexists(path) else "is missing"
        raise SpecError(f"could not start: control/{SPEC} {found}")
    return parse_spec(fields)


def parse_spec(fields: Mapping[str, Any]) -> Spec:
    """Return the spec in these fields; unknown ones are passed over, so other versions load too."""
    command, argv = fields.get("command"), fields.get("argv")
    if argv is not None and command is not None:
        raise SpecError("could not start: the spec has both a command and an argument list; give one")
    if argv is None and not (isinstance(command, str) and command.strip()):
        raise SpecError("could not start: the spec has neither a command nor an argument list")
    if argv is not None and not (isinstance(argv, list) and argv and all(isinstance(a, str) for a in argv)):
        raise SpecError("could not start: the argument list is not a list of texts with at least one entry")
    if argv is not None and not argv[0]:
        raise SpecError("could not start: the argument list names no program")
    env = fields.get("env", {})
    if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
        raise SpecError("could not start: the environment is not a table of texts")
    sweep = fields.get("sweep", "after_grace")
    if sweep not in _SWEEPS:
        raise SpecError(f"could not start: the sweep policy {sweep!r} is none of {', '.join(_SWEEPS)}")
    spec = Spec(
        job_id=_whole(fields, "job_id", None),
        attempt=_whole(fields, "attempt", None),
        node=_text(fields, "node", ""),
        command=command,
        argv=None if argv is None else tuple(argv),
        setup=_text(fields, "setup", ""),
        cwd=_text(fields, "cwd", None),
        env=env,
        account=_account(fields.get("account")),
        umask=_whole(fields, "umask", 0o022) or 0,
        log_limit_bytes=_whole(fields, "log_limit_bytes", 64 << 20) or 0,
        time_limit_s=_seconds(fields, "time_limit_s", None),
        grace_s=_seconds(fields, "grace_s", 10.0) or 0.0,
        sweep=sweep,
        sweep_grace_s=_seconds(fields, "sweep_grace_s", 5.0) or 0.0,
        oom_score_adj=_whole(fields, "oom_score_adj", 500) or 0,
        containment=parse_plan(fields.get("containment")),
        container=_container(fields.get("container")),
    )
    _refuse_nul(spec)
    return spec


def _container(value: Any) -> Container | None:
    try:
        return parse_container(value)
    except ValueError as error:
        raise SpecError(f"could not start: {error}") from error


def container_of_run(run_dir: str | os.PathLike[str]) -> tuple[Container, float] | None:
    """Return a run's container as its spec has it, and the seconds of grace; None: it has none or the spec is gone."""
    fields = read_json(control_path(run_dir, SPEC), _MAX_SPEC_BYTES) or {}
    grace = fields.get("grace_s")
    try:
        found = parse_container(fields.get("container"))
    except ValueError:
        return None
    return None if found is None else (found, 10.0 if (known := seconds(grace)) is None else max(0.0, known))


def _refuse_nul(spec: Spec) -> None:
    places = {
        "the command": [spec.command or ""],
        "an argument": spec.argv or (),
        "the set-up line": [spec.setup],
        "the working directory": [spec.cwd],
        "the environment": [*spec.env, *spec.env.values()],
    }
    for place, texts in places.items():
        if any("\0" in text for text in texts):
            raise SpecError(f"could not start: {place} contains a NUL byte, which no program can be given")
    bad = [name for name in spec.env if not name or "=" in name]
    if bad:
        raise SpecError(f"could not start: {bad[0]!r} is no name for an environment variable")


def _account(value: Any) -> Account | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise SpecError("could not start: the account is not a table")
    groups = value.get("groups")
    if groups is not None and not (isinstance(groups, list) and all(_is_id(group) for group in groups)):
        raise SpecError("could not start: the account's groups are not a list of group ids")
    if not (_is_id(value.get("uid")) and _is_id(value.get("gid"))):
        raise SpecError("could not start: the account has no numeric uid and gid")
    return Account(
        name=_text(value, "name", ""),
        uid=value["uid"],
        gid=value["gid"],
        groups=None if groups is None else tuple(groups),
        home=_text(value, "home", "/"),
    )


def _is_id(value: Any) -> bool:
    # 2**32 - 1 is (uid_t) -1, which means "leave it as it is" to the kernel.
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32 - 1


def _text(fields: Mapping[str, Any], name: str, default: str | None) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str):
        raise SpecError(f"could not start: the spec's {name} is not a text")
    return value


def _whole(fields: Mapping[str, Any], name: str, default: int | None) -> int | None:
    value = fields.get(name, default)
    if value is None and default is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise SpecError(f"could not start: the spec's {name} is not a whole number")
    return value


def _seconds(fields: Mapping[str, Any], name: str, default: float | None) -> float | None:
    value = fields.get(name, default)
    if value is None and default is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < 1e10:
        raise SpecError(f"could not start: the spec's {name} is not a number of seconds")
    return float(value)
