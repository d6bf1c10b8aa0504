"""Containers as a job's own kind, on this node: which engine runs them, what is in force, and that none is left."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
import time
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from calibration import clock
from calibration.domain.samples import RAM
from placement.domain.containing import containers, containment
from placement.domain.knobs import Knobs
from placement.models import Job
from placement.runner import engine
from placement.runner.closing import CLOSING, tell
from placement.runner.jsonfile import control_path, read_json, write_record
from placement.runner.record import ExitRecord
from placement.runner.spec import container_of_run
from placement.runner.status import Phase, look
from placement.services import containing, relay
from placement.services.capping import run_dir_of

log = logging.getLogger(__name__)
OFF, AUTO = "off", "auto"
CID = "cid"  # in control/: the id of the container, written by the client when it has made one
LIMIT = "container-limit.json"  # in control/: the memory limit that was set last, in bytes, null for none
_YEAR_9999 = 253_000_000_000  # unix second
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
            said.append(f"{name} {answer.split()[-1] if answer else 'of unknown version'} answers")
        else:
            said.append(f"{name} does not answer: {' '.join(answer.split())[-200:] or code}")
    return {"works": works, "sentence": "; ".join(said)}


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
    _note_silence(job, state)
    if state.there is None or state.runs:
        return True, None
    if not state.there or not state.began:
        return False, None
    fields = {"name": container.name, "id": number, "oom_killed": state.oom_killed, "code": state.code}
    record = ExitRecord(job.pk, job.attempt, clock.boot_id(), code=state.code)
    return False, record._replace(container={**fields, "limit": container.limit})


def _note_silence(job: Job, state: engine.State) -> None:
    """Keep since when the engine of a job without runner does not answer; what its runner wrote stands."""
    path = control_path(run_dir_of(job), CLOSING)
    if state.there is None and not os.path.lexists(path):
        tell(run_dir_of(job), state.why, time.time())
    elif state.there is not None:
        with contextlib.suppress(OSError):
            os.unlink(path)


def flags(job: Job) -> list[str]:
    """Return what to say beside a running job that is a container."""
    if begun_at(job) is None:
        since = f" since {_clock(job.started_at.timestamp())}" if job.started_at else ""
        return [f"its image is being fetched{since}: its time has not begun, and nothing of it is measured yet"]
    found = read_json(control_path(run_dir_of(job), CLOSING)) or {}
    why, since = found.get("why"), found.get("since")
    if not why:
        return []
    when = f" since {_clock(since)}" if isinstance(since, (int, float)) and 0 < since < _YEAR_9999 else ""
    again = "tried again every few seconds, and its lease stays until the container is known to be gone"
    return [f"its engine does not end its container{when} ({again}): {str(why)[:300]}"]


def _clock(at: float) -> str:
    return timezone.localtime(datetime.fromtimestamp(at, UTC)).strftime("%H:%M:%S")


class Engines:
    """The engines of this node as its loop knows them; they are asked beside it, since one that hangs takes long."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}
        self.notes: tuple[str, ...] = ()
        self._relay = relay.Relay()
        self._looked = float("-inf")
        self._beside: threading.Thread | None = None
        self._limits: dict[tuple[int, int], int | None] = {}
        self._refused: dict[tuple[int, int], tuple[int | None, float, str]] = {}  # what was asked, when, what was said

    def look(self, jobs: Collection[Job]) -> None:
        """Ask the engines and remove leftovers, now and then; ``jobs`` are all that run here."""
        if settings.URL and settings.CONTAINERS != OFF:
            self._relay.stand()
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

    def refresh(self, job: Job, knobs: Knobs, node_policy: str) -> bool:
        """Have a container's memory limit follow cap and policy, note what is in force; return whether that changed.

        A limit is raised and lifted, never lowered: below what is used the kernel would kill at once.
        """
        charge, found = job.charges.get(RAM), container_of_run(run_dir_of(job))
        if charge is None or found is None:
            return False
        key = (job.pk, job.attempt)
        if key not in self._limits:
            self._limits[key] = limit_of(run_dir_of(job), found[0].limit)
        warns = containing.warns_only(job, knobs, node_policy)
        wanted = _wanted(self._limits[key], warns, charge.get("cap"), job.used.get(RAM))
        if wanted == self._limits[key]:
            self._refused.pop(key, None)
        elif engine.ident(found[0]) and not self._refused_lately(key, wanted):
            self._change(job, found[0], wanted)
        by = {"kind": "container", "name": found[0].name, "engine": os.path.basename(found[0].kill[0])}
        refused = f"its engine does not change that: {self._refused[key][2]}" if key in self._refused else ""
        now = containment.fields(containment.of_container(self._limits[key], refused, warns_only=warns), by)
        if charge.get("force") == now:
            return False
        job.charges = {**job.charges, RAM: {**charge, "force": now}}
        return True

    def _refused_lately(self, key: tuple[int, int], wanted: int | None) -> bool:
        asked, at, _ = self._refused.get(key, (wanted, float("-inf"), ""))
        return asked == wanted and time.monotonic() - at < _EVERY

    def _change(self, job: Job, container: engine.Container, wanted: int | None) -> None:
        key = (job.pk, job.attempt)
        line = containers.limit_command(container.kill[0], container.name, wanted)
        code, said = engine.ask(line, container.env, _QUICK_S)
        if code != 0:
            log.warning("#%s: the limit of its container stays: %s", job.pk, said, extra={"action": "limit_refused"})
            self._refused[key] = (wanted, time.monotonic(), " ".join(said.split())[-150:])
            return
        self._refused.pop(key, None)
        self._limits[key] = wanted
        try:
            write_record(control_path(run_dir_of(job), LIMIT), {"limit": wanted}, durable=False)
        except OSError:
            log.warning("#%s: its new limit cannot be written down", job.pk, extra={"action": "limit_refused"})

    def forget(self, jobs: Collection[Job]) -> None:
        """Drop what is known of all other jobs."""
        keys = {(job.pk, job.attempt) for job in jobs}
        self._limits = {key: limit for key, limit in self._limits.items() if key in keys}
        self._refused = {key: said for key, said in self._refused.items() if key in keys}


def _wanted(limit: int | None, warns: bool, cap: int | None, used: int | None) -> int | None:
    """Return the limit in bytes that a container is to have that has ``limit``; None for none."""
    if warns:
        return None
    above = used if limit is None else limit
    if cap is None or above is None or settings.RAM_LIMIT == containing.OFF or cap < above + _RAISE_BY:
        return limit
    return cap


def limit_of(run_dir: str | os.PathLike[str], at_start: int | None) -> int | None:
    """Return the memory limit of a run's container in bytes, None where it has none."""
    changed = read_json(control_path(run_dir, LIMIT)) or {}
    limit = changed.get("limit", at_start)
    return limit if limit is None or (isinstance(limit, int) and not isinstance(limit, bool)) else at_start


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
