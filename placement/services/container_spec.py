"""What the engine's client is told that runs a job's container: its line, its variables, its mounts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from placement.domain.containing import containers
from placement.domain.containing.containers import Container
from placement.domain.errors import Refused
from placement.models import Job, Node
from placement.services import accounts, containing, device_environment, relay, secrets
from placement.services.engines import AUTO, CID, OFF, client_environment

VARIABLES = "variables"  # in control/: what the container is given, NAME=value a line; it is as secret as the spec


def _engine_of(job: Job) -> str:
    """Return the path of the engine that runs a job here. Raise Refused where there is none."""
    if settings.CONTAINERS == OFF:
        raise Refused("containers are switched off on this node (TIDEGATE_CONTAINERS)")
    allowed = containers.ENGINES if settings.CONTAINERS == AUTO else (settings.CONTAINERS,)
    known = Node.objects.filter(name=job.node).values_list("containers", flat=True).first() or {}
    works = known.get("works") or ()
    for name in (job.engine,) if job.engine else sorted(allowed, key=lambda one: one not in works):
        path = shutil.which(name) if name in allowed else None
        if path is not None:
            return path
    raise Refused(f"there is no {job.engine or ' or '.join(allowed)} on this node to run its container")


def spec(
    job: Job, run_dir: Path, command: Mapping[str, Any], account: Mapping[str, Any] | None,
    variables: Mapping[str, str], limit: int | None,
) -> dict[str, Any]:  # fmt: skip
    """Return the fields of a spec that make it run in a container.

    ``command`` are its "argv" or "command" and "setup"; ``variables`` what the container is given. The client runs as
    the service does, which may reach the engine; what is inside runs as the job's account.
    """
    if wrong := containers.refused_names(variables):
        raise Refused(wrong)
    if not accounts.may_enter(account, job.cwd):
        who = account["name"] if account else "the service's account"
        raise Refused(f"{who} may not enter the working directory {job.cwd}")
    given, shim = _without_shim(variables)
    typed, client = "argv" not in command, device_environment.client(other_account=account is not None)
    if client and not typed and "PYTHONPATH" in given:
        given["PYTHONPATH"] = os.pathsep.join(filter(None, (given["PYTHONPATH"], client)))
    path = _engine_of(job)
    lines, own_way = containers.for_file(given)
    secrets.write(run_dir / "control" / VARIABLES, lines)
    c = Container(
        engine=path,
        image=job.image or "",
        job=job.pk,
        name=containing.name_of(job),
        cidfile=str(run_dir / "control" / CID),
        command=command.get("argv") or (),
        text=containers.shell_text(command["command"], job.setup, shim, client) if typed else "",
        workdir=job.cwd,
        mounts=_mounts(job, run_dir),
        seen=_seen(shim if typed else "", client, str(relay.folder()) if relay.SOCKET in variables else ""),
        user=f"{account['uid']}:{account['gid']}" if account else f"{os.geteuid()}:{os.getegid()}",
        keep_id=os.geteuid() != 0,
        memory=limit,
        devices=device_environment.in_container(job, variables),
        environment=own_way,
        environment_file=str(run_dir / "control" / VARIABLES),
    )
    if "argv" in command and job.setup.strip():
        raise Refused("a set-up line needs a shell: with a container's image give a command, not an argument list")
    own = client_environment()
    dealt = {
        "name": c.name,
        "cidfile": c.cidfile,
        "stop": containers.stop_command(path, c.name),
        "kill": containers.kill_command(path, c.name),
        "state": containers.state_command(path, c.name),
        "remove": containers.remove_command(path, c.name),
        "limit": limit,
        "env": own,
    }
    line = {"argv": containers.run_command(c), "setup": "", "account": None, "env": {**own_way, **own}}
    # Not where the job can write: podman's helper makes a file in the folder in which its client is started, as root.
    return {**line, "cwd": str(run_dir / "control"), "container": dealt}


def _without_shim(variables: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Return the variables as a container is given them, and the shim's folder, "" where it is turned off.

    Given from outside, PYTHONPATH would replace what the image has there; only a shell inside can put ours before it.
    """
    given = dict(variables)
    shim, _, rest = given.get("PYTHONPATH", "").partition(os.pathsep)
    if shim not in (str(device_environment.SHIM), str(settings.DATA / "shim")):
        return given, ""
    given.pop("PYTHONPATH")
    return {**given, **({"PYTHONPATH": rest} if rest else {})}, shim


def _mounts(job: Job, run_dir: Path) -> tuple[str, ...]:
    for folder in settings.CONTAINER_MOUNTS:
        if not os.path.isdir(folder):  # docker would make it, as root
            raise Refused(f"TIDEGATE_CONTAINER_MOUNTS names {folder}, and there is no such folder on this node")
    folders = tuple(dict.fromkeys([job.cwd, str(run_dir / "receipts"), *map(str, settings.CONTAINER_MOUNTS)]))
    for folder in folders:
        if ":" in folder:
            raise Refused(f"{folder} has a colon in its name, so no container can be given it")
    return folders


def _seen(*folders: str) -> tuple[str, ...]:
    """Return what is mounted to be read; a folder whose name no option can hold is left out."""
    return tuple(folder for folder in folders if folder and ":" not in folder)
