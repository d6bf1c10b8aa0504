"""Typed reading of environment variables: a wrong value stops the start and names the variable."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"", "0", "false", "no", "off"})


def text(name: str, default: str = "") -> str:
    """Return the variable without surrounding blanks, or the default when it is unset or empty."""
    return os.environ.get(name, "").strip() or default


def boolean(name: str, default: bool = False) -> bool:
    """Return the variable as a switch: 1/true/yes/on or 0/false/no/off."""
    raw = os.environ.get(name)
    if raw is None:
        return default
    word = raw.strip().lower()
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise ImproperlyConfigured(f"{name} is {raw!r}; it must be 1 or 0.")


def one_of(name: str, choices: tuple[str, ...]) -> str:
    """Return the variable, which must be one of these words; the first where it is unset."""
    word = text(name, choices[0])
    if word not in choices:
        raise ImproperlyConfigured(f"{name} is {word!r}; it must be one of {', '.join(choices)}.")
    return word


def words(name: str, separator: str = ",") -> list[str]:
    """Return the variable's parts, blanks removed and empty parts left out."""
    return [part.strip() for part in text(name).split(separator) if part.strip()]


def directory(name: str, default: Path) -> Path:
    """Return the variable as an absolute path; a relative one would depend on where we were started."""
    path = Path(text(name, str(default)))
    if not path.is_absolute():
        raise ImproperlyConfigured(f"{name} is {str(path)!r}; it must be an absolute path.")
    return path


def json_object(name: str) -> dict[str, Any]:
    """Return the variable as a JSON object, {} when unset."""
    raw = text(name, "{}")
    try:
        value = json.loads(raw)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise ImproperlyConfigured(f"{name} must be a JSON object of names and values, not {raw!r}.")
    return value


def node_name(name: str, default: str) -> str:
    """Return this machine's name in the service; it names files, queues and devices, too."""
    found = text(name, default)
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", found) is None:
        raise ImproperlyConfigured(
            f"This node would be called {found[:80]!r}; set {name} to 1 to 63 letters, digits, dots, _ or -."
        )
    return found


def database(name: str, sqlite_file: Path) -> dict[str, Any]:
    """Return Django's database settings for a `postgresql://` URL, or for SQLite when it is unset."""
    url = text(name)
    if not url:
        return _sqlite(sqlite_file)
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return _sqlite(Path(unquote(parts.path)))
    if parts.scheme not in {"postgresql", "postgres"}:
        raise ImproperlyConfigured(
            f"{name} starts with {parts.scheme!r}; it must be postgresql://user:password@host:port/name, "
            "postgresql:///name?host=/socket/directory, or unset for SQLite."
        )
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    try:
        port = query.get("port") or (parts.port and str(parts.port)) or ""
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} has a port that is no number.") from error
    database_name = unquote(parts.path.lstrip("/"))
    if not database_name:
        raise ImproperlyConfigured(f"{name} names no database: add it after the last slash.")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": database_name,
        "USER": unquote(parts.username or query.get("user", "")),
        "PASSWORD": unquote(parts.password or query.get("password", "")),
        "HOST": query.get("host") or parts.hostname or "",
        "PORT": port,
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        # A holder of the cycle row that falls asleep inside its transaction loses it after five seconds.
        "OPTIONS": {"options": "-c idle_in_transaction_session_timeout=5s"},
    }


def _sqlite(path: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        # Without it every request opens the file and runs the pragmas again.
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            # A deferred transaction that reads first and writes later fails at once when another writes.
            "transaction_mode": "IMMEDIATE",
            "timeout": 5,
            "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;",
        },
        # A file, not memory: tests of races need a second connection to the same data.
        "TEST": {"NAME": str(path.with_name("test.sqlite3"))},
    }


def secret_key(name: str, path: Path) -> str:
    """Return the secret from the variable, else from the file, which is made once, for our eyes only."""
    given = text(name)
    if given:
        return given
    if not path.exists():
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(64) + "\n")
        try:
            # link() fails when another process was first, so all of them read the same key.
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    key = path.read_text().strip()
    if len(key) < 50:
        raise ImproperlyConfigured(f"{path} holds a key that is too short; remove the file or set {name}.")
    return key


def time_zone(environment: Mapping[str, str] = os.environ, link: Path = Path("/etc/localtime")) -> str:
    """Return the machine's zone name, UTC when it has none that can be read."""
    zones = Path("/usr/share/zoneinfo")
    candidates = [environment.get("TZ", "").lstrip(":")]
    if link.is_symlink():
        candidates.append(str(link.readlink()).partition("zoneinfo/")[2])
    for candidate in candidates:
        if candidate and ".." not in candidate and (zones / candidate).is_file():
            return candidate
    return "UTC"


def host_names(bind: str) -> list[str]:
    """Return the names under which pages may be asked for when the service listens on `bind`."""
    import socket

    import psutil

    names = ["localhost", "127.0.0.1", "[::1]"]
    if bind in {"", "127.0.0.1", "localhost", "::1"}:
        return names
    names += [socket.gethostname(), socket.getfqdn()]
    if bind not in {"0.0.0.0", "::"}:
        return [*names, bind]
    for addresses in psutil.net_if_addrs().values():
        for address in addresses:
            if address.family == socket.AF_INET:
                names.append(address.address)
            elif address.family == socket.AF_INET6:
                names.append(f"[{address.address.partition('%')[0]}]")
    return sorted(set(names))
