"""What works on this machine, line by line; looking never fails."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from calibration.domain.resources import MIB, gib
from calibration.domain.samples import RAM
from calibration.probes.choose import Instrument
from placement.domain.containing import containment
from placement.domain.knobs import Knobs
from placement.services import accounts, capping, containing, device_environment, engines, premises

_LOW_DISK = Knobs().disk_low_mib * MIB


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``ok`` None: neither good nor bad. ``fatal``: the service cannot run like this."""

    what: str
    ok: bool | None
    sentence: str
    fatal: bool = False


def findings() -> list[Finding]:
    """Return every finding, in the order in which a start meets them."""
    looks: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        ("python", _python),
        ("data", _data),
        ("database", _database),
        ("broker", _broker),
        ("accounts", _accounts),
        ("probes", _probes),
        ("caps", _caps),
        ("containers", _containers),
        ("process limit", _process_limit),
        ("disk", _disk),
        ("for tests", _tests),
    ]
    found: list[Finding] = []
    for what, look in looks:
        try:
            found += look()
        except Exception as error:  # whatever is broken here is what the person came to hear about
            found.append(Finding(what, False, f"could not be looked at: {_one_line(error)}"))
    return found


def _python() -> Iterator[Finding]:
    enough = sys.version_info >= (3, 11)
    said = f"{sys.version.split()[0]} at {sys.executable}"
    yield Finding("python", enough, said if enough else f"{said}; 3.11 or newer is needed", fatal=not enough)


def _data() -> Iterator[Finding]:
    for folder in dict.fromkeys((Path(settings.DATA), Path(settings.RUNS))):
        why = premises.unwritable(folder)
        yield Finding("data", not why, f"{folder} " + (f"cannot be written: {why}" if why else "is ours"), bool(why))


def _database() -> Iterator[Finding]:
    path = premises.database_file()
    if path is not None:
        kind = premises.network_kind(path.parent)
        if kind:
            said = f"{path} lies on a network file system ({kind}), where locks fail: use --data on a local disk"
            yield Finding("database", False, said, fatal=True)
            return
        if not path.exists():
            yield Finding("database", None, f"SQLite, made at the first start: {path}")
            return
    try:
        connection.ensure_connection()
        plan = MigrationExecutor(connection)
        waiting = len(plan.migration_plan(plan.loader.graph.leaf_nodes()))
    except Exception as error:
        yield Finding("database", False, f"{connection.vendor} does not answer: {_one_line(error)}", fatal=True)
        return
    name = f"SQLite, {path}" if path else f"PostgreSQL {connection.Database.__version__.split()[0]} client"
    late = f"; {waiting} migrations are applied at the next start" if waiting else ""
    yield Finding("database", True, name + late)


def _broker() -> Iterator[Finding]:
    oldest = premises.dotted(premises.OLDEST_REDIS)
    if not settings.BROKER_IS_FILES:
        version, why = premises.redis_in_use()
        said = f"Redis {premises.dotted(version)} answers" if version else f"Redis does not answer: {why}"
        good = version is not None and version >= premises.OLDEST_REDIS
        if version and not good:
            said += f", but {oldest} is the oldest that works"
        yield Finding("broker", good, said, fatal=not good)
        return
    installed = premises.redis_on_path()
    if installed and installed[1] and installed[1] >= premises.OLDEST_REDIS:
        yield Finding("broker", True, f"redis-server {premises.dotted(installed[1])} at {installed[0]}")
        return
    kind = premises.network_kind(Path(settings.DATA))
    if kind:
        said = f"no redis-server {oldest}, and files cannot serve on a network file system ({kind})"
        yield Finding("broker", False, f"{said}: install redis-server or choose --data on a local disk", fatal=True)
        return
    why = f"redis-server is {premises.dotted(installed[1])}" if installed else "no redis-server"
    yield Finding("broker", True, f"{why}, so files carry the messages: a start waits about 0.1 s longer")


def _accounts() -> Iterator[Finding]:
    name = accounts.worker_name()
    if not accounts.worker_is_root():
        yield Finding("accounts", None, f"every job runs as {name}: submitters trust each other as that account")
        return
    path = premises.database_file()
    notice = accounts.trust_notice() if path is None or path.exists() else ""
    yield Finding("accounts", not notice, notice or "the service is root: each person's jobs run as their own account")


def _probes() -> Iterator[Finding]:
    try:
        instrument = Instrument(settings.NODE, simulate=settings.SIMULATE, simulated_dir=settings.SIMULATED_DIR)
    except ValueError as error:
        yield Finding("simulated devices", False, _one_line(error).rstrip("."), fatal=True)
        return
    for what, works, sentence in instrument.probe_report():
        yield Finding(what, works, sentence)


def _caps() -> Iterator[Finding]:
    instrument = Instrument(settings.NODE, simulate=settings.SIMULATE, simulated_dir=settings.SIMULATED_DIR)
    for pool in instrument.read().pools.values():
        if pool.kind != RAM and not pool.simulated:
            yield Finding("device caps", None, f"device memory of {pool.name}: {capping.by_kernel(pool.pool)}")
    if settings.MPS_LIMITS:
        server, where = device_environment.mps_server(), device_environment.pipe()
        said = f"server {server} at {where} is told caps" if server else f"no server lives at {where}: nothing is told"
        yield Finding("device caps", server is not None, f"MPS: {said}")
    yield Finding("device caps", None, "torch is told its cap and answers; JAX and CuPy are told and answer nothing")
    yield Finding("", None, "device memory of everything else is watched, not capped")
    yield from _ram_cap()


def _ram_cap() -> Iterator[Finding]:
    kept = containing.told(settle=False)
    yield Finding("RAM limits", None, kept["sentence"])
    for kind, why in kept["tried"]:
        yield Finding("", None, f"not {containment.TRIED.get(kind, kind)}: {why}")
    if not containing.limits(kept["kind"]):
        said = "the watchdog looks once a second, and stops who is past its grant when memory runs short"
        yield Finding("", None, f"{said} (knob watch_policy)")


def _containers() -> Iterator[Finding]:
    told = engines.told()
    if settings.CONTAINERS == engines.OFF:
        yield Finding(
            "containers", None, "switched off; TIDEGATE_CONTAINERS=auto lets jobs run in images (docs/containers.md)"
        )
        return
    yield Finding("containers", bool(told["works"]), told["sentence"])


def _process_limit() -> Iterator[Finding]:
    limit, what = premises.process_limit()
    yield Finding("process limit", None, f"at most {limit:,}, by {what}" if limit is not None else "no limit seen")


def _disk() -> Iterator[Finding]:
    folder = Path(settings.RUNS)
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    low = free < _LOW_DISK
    hint = f"; below {gib(_LOW_DISK)} nothing new starts" if low else ""
    yield Finding("disk", not low, f"{gib(free)} free for run directories at {settings.RUNS}{hint}")


def _tests() -> Iterator[Finding]:
    found = {"chromium": shutil.which("chromium") or shutil.which("chromium-browser"), "postgres": _postgres()}
    for name, path in found.items():
        yield Finding("for tests", None, f"{name}: {path or 'not installed'}")


def _postgres() -> str | None:
    beside = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: path.parts[4])
    return str(beside[-1]) if beside else shutil.which("postgres")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
