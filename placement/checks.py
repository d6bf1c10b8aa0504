"""What boots but cannot work, or is not safe: `manage.py check` says so, with what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from placement.services import premises


@register("tidegate")
def run_directories(**_: Any) -> list[CheckMessage]:
    """E001: run directories cannot be made, so no job can start."""
    why = premises.unwritable(Path(settings.RUNS))
    if not why:
        return []
    hint = "Give the service's account the right to write there, or set TIDEGATE_RUNS to another directory."
    return [Error(f"{settings.RUNS} cannot be written: {why}.", hint=hint, id="tidegate.E001")]


@register("tidegate")
def database_place(**_: Any) -> list[CheckMessage]:
    """E002: a database file on a network mount loses locks, and with them jobs."""
    path = premises.database_file()
    kind = premises.network_kind(path.parent) if path else ""
    if not kind:
        return []
    hint = "Set TIDEGATE_DATA to a directory on a local disk, or TIDEGATE_DATABASE_URL to a PostgreSQL server."
    return [Error(f"{path} lies on a network file system ({kind}).", hint=hint, id="tidegate.E002")]


@register("tidegate")
def data_is_private(**_: Any) -> list[CheckMessage]:
    """E003: others may list or change the data directory. E004: others may open a key or the database."""
    data = Path(settings.DATA)
    mode, found = premises.mode_of(data), list[CheckMessage]()
    # Jobs of other accounts have to pass through to their own directories, so x alone is no fault.
    if mode & 0o066:
        said = f"{data} is open to other accounts (mode {mode:04o})."
        found.append(Error(said, hint=f"chmod go-rw {data}", id="tidegate.E003"))
    database = premises.database_file()
    private = [data / "environment.key", data / "secret.key"]
    if database is not None and mode & 0o011:
        private.append(database)
    for path in private:
        mode = premises.mode_of(path)
        if mode & 0o077:
            said = f"{path} can be opened by other accounts (mode {mode:04o})."
            found.append(Error(said, hint=f"chmod 600 {path}", id="tidegate.E004"))
    return found


@register("tidegate")
def redis_version(**_: Any) -> list[CheckMessage]:
    """E005: the Redis in use is too old. W001: it does not answer. W002: the one installed is passed over."""
    oldest = premises.dotted(premises.OLDEST_REDIS)
    hint = f"Install Redis {oldest} or newer."
    if settings.BROKER_IS_FILES:
        installed = premises.redis_on_path()
        if installed is None or installed[1] is None or installed[1] >= premises.OLDEST_REDIS:
            return []
        said = f"{installed[0]} is {premises.dotted(installed[1])}; the file broker is used instead."
        return [Warning(said, hint=hint, id="tidegate.W002")]
    version, why = premises.redis_in_use()
    if version is None:
        return [
            Warning(
                f"The message broker does not answer: {why}.",
                hint="Start it, or correct TIDEGATE_BROKER_URL. Nothing new starts until then.",
                id="tidegate.W001",
            )
        ]
    if version < premises.OLDEST_REDIS:
        said = f"The Redis in use is {premises.dotted(version)}; {oldest} is the oldest that works."
        return [Error(said, hint=hint, id="tidegate.E005")]
    return []
