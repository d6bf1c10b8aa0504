"""The control group of one run: what the spec asks for, how the held child gets into it, and the record of it.

Where no group can be had the run goes on without: it is watched then, and the record says why.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from placement.runner import cgroup
from placement.runner.cgroup import NONE, Group
from placement.runner.jsonfile import control_path, read_json, write_record
from placement.runner.scopes import Run, ask, socket_of, spawn, start_scope, wait_for

HELD = "cgroup.json"
DRIVER_LIMIT = "vram-limit.json"  # the service's record of a limit that a device's driver keeps on the group
WATCHED = "watched"
SERVED = "served"  # a scope that root's side makes for an account that is not root
_JOB, _RUNNER = "job", "runner"  # the two leaves of a scope


class Plan(NamedTuple):
    """How jobs are kept on this machine. ``base``: the folder in which groups are made (v2), ``memory`` that of v1.

    ``scope``: "system", "user" or "served" where systemd makes the outer group. ``limit`` is bytes of main memory,
    None: none.
    """

    kind: str
    name: str = ""
    base: str = ""
    memory: str = ""
    scope: str = ""
    limit: int | None = None
    root: str = "/sys/fs/cgroup"


class Held(NamedTuple):
    """Where a run is kept: its group, the limit in force, and ``why`` it has none or less than planned."""

    kind: str
    group: Group
    limit: int | None
    why: str = ""


def parse_plan(fields: Any) -> Plan | None:
    """Return the plan in the spec's field; None where there is none or it is no table."""
    if not isinstance(fields, Mapping) or not isinstance(fields.get("kind"), str):
        return None
    known = {name: fields[name] for name in Plan._fields if name in fields}
    limit = known.pop("limit", None)
    if not all(isinstance(value, str) for value in known.values()) or "/" in known.get("name", ""):
        return None
    return Plan(**known, limit=limit if isinstance(limit, int) and limit > 0 else None)


def group_of(plan: Plan) -> Group:
    """Return the group that a plan without a scope makes."""
    path = os.path.join(plan.base, plan.name) if plan.base else ""
    if plan.memory:
        return Group(path, os.path.join(plan.memory, plan.name), 1)
    return Group(path, path if plan.kind not in (WATCHED, "tree") else "", 2)


def hold(plan: Plan | None, runner: int, child: int, run: Run | None = None) -> Held | None:
    """Put the held child into a group of its own; None where nobody asked for one. Never raises.

    A group that cannot be limited is kept all the same: it still tells who belongs to the run, and ends it.
    """
    if plan is None or (not plan.base and not plan.memory and not plan.scope):
        return None
    group = NONE
    try:
        group = _scope(plan, runner, child, run or spawn) if plan.scope else group_of(plan)
        cgroup.make(group)
        cgroup.join(group, child)
    except OSError as error:
        cgroup.remove(group)
        return Held(WATCHED, NONE, None, f"no control group: {error.strerror or error}")
    if not group.memory:
        return Held("tree", group, None, "its control group has no memory controller")
    try:
        cgroup.set_limit(group, plan.limit)
    except OSError as error:
        return Held("tree", group, None, f"its control group takes no limit: {error.strerror or error}")
    return Held(plan.kind, group, plan.limit)


def _scope(plan: Plan, runner: int, child: int, run: Run) -> Group:
    """Have systemd make a scope for runner and child; each gets a leaf of its own in it.

    The scope is delegated, so what is below it is ours, a job's death for memory is no death of the scope, and the
    runner lives on when the unit of the worker is stopped.
    """
    unit = f"{plan.name}.scope"
    if plan.scope == SERVED:
        said = ask({"unit": unit, "pids": [runner, child]}, socket_of(os.geteuid()))
    else:
        said = run(start_scope(unit, plan.scope, (runner, child)))
    if said:
        raise OSError(0, f"systemd refuses a scope: {said}")
    inside = wait_for(unit, child)
    top = plan.root + inside
    leaf = Group(os.path.join(top, _JOB), os.path.join(top, _JOB), 2)
    beside = Group(os.path.join(top, _RUNNER), "", 2)
    cgroup.make(leaf)
    cgroup.make(beside)
    cgroup.join(beside, runner)
    cgroup.join(leaf, child)  # a group that holds processes may not hand controllers down
    cgroup.write(os.path.join(top, "cgroup.subtree_control"), "+memory")
    return leaf


def write_held(run_dir: str, held: Held) -> None:
    """Put on record where the run is kept; OSError as it comes."""
    group = held.group
    fields = {"kind": held.kind, "path": group.path, "memory": group.memory, "cgroup_version": group.version}
    write_record(control_path(run_dir, HELD), {**fields, "limit": held.limit, "why": held.why}, durable=False)


def read_held(run_dir: str | os.PathLike[str]) -> Held | None:
    """Return where a run is kept, None where its record is missing or says nothing."""
    fields = read_json(control_path(run_dir, HELD))
    if fields is None:
        return None
    kind, path, memory, why = (fields.get(name) for name in ("kind", "path", "memory", "why"))
    if not (isinstance(kind, str) and isinstance(path, str) and isinstance(memory, str)):
        return None
    limit = fields.get("limit")
    return Held(
        kind,
        Group(path, memory, 1 if fields.get("cgroup_version") == 1 else 2),
        limit if isinstance(limit, int) and not isinstance(limit, bool) else None,
        why if isinstance(why, str) else "",
    )


def group_of_run(run_dir: str | os.PathLike[str]) -> Group:
    """Return the control group of a run, NONE where it has none."""
    held = read_held(run_dir)
    return NONE if held is None else held.group
