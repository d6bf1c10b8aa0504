"""Containers as a job's own kind, on this node: which engine runs them, how one is started, and that none is left."""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from calibration import clock
from calibration.domain.samples import RAM
from placement.domain import containers, containment
from placement.domain.containers import Container
from placement.domain.errors import Refused
from placement.models import Job, Node
from placement.runner import engine
from placement.runner.closing import CLOSING
from placement.runner.jsonfile import control_path, read_json, write_record
from placement.runner.record import ExitRecord
from placement.runner.spec import container_of_run
from placement.runner.status import Phase, look
from placement.services import accounts, containing, device_environment, secrets
from placement.services.capping import run_dir_of

log = logging.getLogger(__name__)
OFF, AUTO = "off", "auto"
CID = "cid"  # in control/: the id of the container, written by the client when it has made one
VARIABLES = "variables"  # in control/: what the container is given, NAME=value a line; it is as secret as the spec
LIMIT = "container-limit.json"  # in control/: the memory limit that was raised last, in bytes
_EVERY = 60.0  # seconds between two looks at the engines and for leftovers
_QUICK_S = 3.0  # seconds that an engine gets where a tick waits for it
_RAISE_BY = 16 << 20  # bytes; a smaller rise is not worth a call
# Of the service's own environment, what an engine's program needs; nothing of a job's gets there.
_FOR_CLIENT = ("PATH", "HOME", "LANG", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME")


def client_environment() -> dict[str, str]:
    """Return the environment in which an engine's program is run."""
    own = {n: os.environ[n] for n in _FOR_CLIENT if n in os.environ}
    for name, value in os.environ.items():
        if name.startswith(("DOCKER_", "CONTAINER_", "CONTAINERS_")):
            own[name] = value
    return {"PATH": os.defpath, **own}


def told() -> dict[str, Any]:
    """Return what the node's row says of containers: the engines that work, and a sentence. Asks each engine."""
    if settings.CONTAINERS == OFF:
        return {"works": [], "sentence": "containers are switched off there (TIDEGATE_CONTAINERS)"}
    wanted = containers.ENGINES if settings.CONTAINERS == AUTO else (settings.CONTAINERS,)
    works, said = [], []
    for name in wanted:
        path = shutil.which(name)
        if path is None:
            said.append(f"no {name} was found")
            continue
        code, answer = engine.ask(containers.version_command(path), client_environment(), _QUICK_S)
        if code == 0:
            works.append(name)
            said.append(f"{name} {answer.split()[0] if answer else 'of unknown version'} answers")
        else:
            said.append(f"{name} does not answer: {' '.join(answer.split())[-200:] or code}")
    return {"works": works, "sentence": "; ".join(said)}


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
        text="" if "argv" in command else containers.shell_text(command["command"], job.setup, shim),
        workdir=job.cwd,
        mounts=_mounts(job, run_dir),
        seen=(shim,) if shim and "argv" not in command else (),
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
    return {**line, "container": dealt}


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
    folders = tuple(dict.fromkeys([job.cwd, str(run_dir / "receipts"), *map(str, settings.CONTAINER_MOUNTS)]))
    for folder in folders:
        if ":" in folder:
            raise Refused(f"{folder} has a colon in its name, so no container can be given it")
    return folders


def begun_at(job: Job) -> float | None:
    """Return the unix second at which a job's container was made, None while its image is still being fetched."""
    try:
        found = os.stat(run_dir_of(job) / "control" / CID)
    except OSError:
        return None
    return found.st_mtime if found.st_size else None


def ident(job: Job) -> str:
    """Return the id of a job's container, "" where it has none (yet)."""
    container = container_of_run(run_dir_of(job))
    return engine.ident(container[0]) if container else ""


def last_word(job: Job) -> tuple[bool, ExitRecord | None]:
    """Return whether the container of a run without runner may still live, and else how it ended, if its engine knows.

    An engine that does not answer proves nothing, so the run goes on until it does.
    """
    found = container_of_run(run_dir_of(job))
    if found is None or not (number := engine.ident(found[0])):
        return False, None
    container = found[0]
    state = engine.look(container, _QUICK_S)
    if state.there is None or state.runs:
        return True, None
    if not state.there or not state.began:
        return False, None
    fields = {"name": container.name, "id": number, "oom_killed": state.oom_killed, "code": state.code}
    record = ExitRecord(job.pk, job.attempt, clock.boot_id(), code=state.code)
    return False, record._replace(container={**fields, "limit": container.limit})


def flags(job: Job) -> list[str]:
    """Return what to say beside a running job that is a container."""
    if begun_at(job) is None:
        return ["its image is being fetched: nothing of it is measured yet"]
    why = (read_json(control_path(run_dir_of(job), CLOSING)) or {}).get("why")
    return [str(why)[:300]] if why else []


class Engines:
    """The engines of this node as its loop knows them; they are asked beside it, since one that hangs takes long."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}
        self.notes: tuple[str, ...] = ()
        self._looked = float("-inf")
        self._beside: threading.Thread | None = None
        self._limits: dict[tuple[int, int], int] = {}

    def look(self, jobs: Collection[Job]) -> None:
        """Ask the engines and remove leftovers, now and then; ``jobs`` are all that run here."""
        if settings.CONTAINERS == OFF or not self.told:
            self.told = told()
            if settings.CONTAINERS == OFF:
                return
        elif time.monotonic() - self._looked < _EVERY or (self._beside and self._beside.is_alive()):
            return
        self._looked = time.monotonic()
        kept = {containing.name_of(job) for job in jobs}
        self._beside = threading.Thread(target=self._round, args=(kept,), daemon=True, name="engines")
        self._beside.start()

    def _round(self, kept: Collection[str]) -> None:
        self.told = told()
        self.notes = tuple(note for name in self.told["works"] for note in leftovers(name, kept))

    def refresh(self, job: Job) -> bool:
        """Raise the memory limit of a container whose cap rose, note what is in force; return whether that changed."""
        charge, found = job.charges.get(RAM), container_of_run(run_dir_of(job))
        if charge is None or found is None:
            return False
        key, cap = (job.pk, job.attempt), charge.get("cap")
        limit = self._limits.get(key, limit_of(run_dir_of(job), found[0].limit))
        if limit is not None and cap is not None and cap >= limit + _RAISE_BY and engine.ident(found[0]):
            limit = self._raise(job, found[0], limit, cap)
        if limit is not None:
            self._limits[key] = limit
        by = {"kind": "container", "name": found[0].name, "engine": os.path.basename(found[0].kill[0])}
        now = containment.fields(containment.of_container(limit), by)
        if charge.get("force") == now:
            return False
        job.charges = {**job.charges, RAM: {**charge, "force": now}}
        return True

    def _raise(self, job: Job, container: engine.Container, limit: int, cap: int) -> int:
        line = containers.limit_command(container.kill[0], container.name, cap)
        code, said = engine.ask(line, container.env, _QUICK_S)
        if code != 0:
            log.warning("#%s: the limit of its container stays: %s", job.pk, said, extra={"action": "limit_refused"})
            self._limits[job.pk, job.attempt] = cap  # not asked again each second
            return limit
        try:
            write_record(control_path(run_dir_of(job), LIMIT), {"limit": cap}, durable=False)
        except OSError:
            log.warning("#%s: its new limit cannot be written down", job.pk, extra={"action": "limit_refused"})
        return cap

    def forget(self, jobs: Collection[Job]) -> None:
        """Drop what is known of all other jobs."""
        keys = {(job.pk, job.attempt) for job in jobs}
        self._limits = {key: limit for key, limit in self._limits.items() if key in keys}


def limit_of(run_dir: str | os.PathLike[str], at_start: int | None) -> int | None:
    """Return the memory limit of a run's container in bytes, None where it has none."""
    raised = (read_json(control_path(run_dir, LIMIT)) or {}).get("limit")
    return raised if isinstance(raised, int) and not isinstance(raised, bool) else at_start


def closed(job: Job) -> None:
    """Remove the container of a job that is over; its runner did, unless it was killed."""
    found = container_of_run(run_dir_of(job)) if job.image else None
    if found is not None and engine.ident(found[0]) and not read_json(control_path(run_dir_of(job), "exit.json")):
        engine.ask(found[0].remove, found[0].env, _QUICK_S)


def leftovers(name: str, kept: Collection[str]) -> list[str]:
    """Remove containers that ended runs of this service left; return a sentence for each that cannot be removed.

    ``kept`` are names of those that belong to running jobs; one whose run has not ended is never touched.
    """
    path = shutil.which(name)
    if path is None:
        return []
    code, said = engine.ask(containers.list_command(path), client_environment())
    ours = containing.name_of(Job(pk=0, attempt=0)).removesuffix("0-0")
    found = [one.strip() for one in said.splitlines() if one.strip().startswith(ours)] if code == 0 else []
    notes = []
    for one in found:
        run_dir = settings.RUNS / one.removeprefix(ours)
        if one in kept or (run_dir.exists() and look(run_dir).phase not in (Phase.EXITED, Phase.LOST)):
            continue
        code, said = engine.ask(containers.remove_command(path, one), client_environment())
        if code != 0:
            notes.append(f"the container {one} of an ended run cannot be removed: {' '.join(said.split())[-150:]}")
    return notes
