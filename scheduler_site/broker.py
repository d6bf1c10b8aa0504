"""A message broker made of files, for one machine without a Redis server.

A message is written under a name that starts with a dot and renamed into its queue's directory when it is
whole; a consumer claims it by renaming it back to a dot name. Both renames are atomic, so no message is
seen half written and none is taken twice.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from typing import Any, ClassVar
from urllib.parse import quote

from kombu.transport import virtual

log = logging.getLogger(__name__)

# Renames on these are not atomic for every client, or locks are not seen by all of them.
NETWORK_FILE_SYSTEMS = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "ceph",
        "lustre",
        "gpfs",
        "beegfs",
        "afs",
        "glusterfs",
        "ocfs2",
        "gfs2",
        "orangefs",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.ceph",
        "fuse.ceph-fuse",
        "fuse.s3fs",
        "fuse.rclone",
    ]
)

LOOKS_UP = 0.2  # seconds that a worker waits for a message before it sees that it was told to end


class NetworkMount(RuntimeError):
    """The file broker's folder lies on a network file system; use Redis there."""


def file_system_of(folder: Path, mountinfo: str) -> str:
    """Return the type of the file system that holds `folder`, by the longest mount point above it."""
    best, kind = "", ""
    for line in mountinfo.splitlines():
        mount, _, rest = line.partition(" - ")
        fields = mount.split()
        if len(fields) < 5 or not rest:
            continue
        point = fields[4].encode().decode("unicode_escape")  # blanks are written as \040
        if (folder == Path(point) or Path(point) in folder.parents) and len(point) >= len(best):
            best, kind = point, rest.split()[0]
    return kind


def refuse_network_mount(folder: Path, mountinfo: str | None = None) -> None:
    """Raise NetworkMount when the folder is not on a local file system."""
    if mountinfo is None:
        mountinfo = Path("/proc/self/mountinfo").read_text()
    kind = file_system_of(folder.resolve(), mountinfo)
    if kind in NETWORK_FILE_SYSTEMS:
        raise NetworkMount(
            f"{folder} is on a network file system ({kind}), where the file broker would lose messages; "
            "choose a local directory with --data, or install redis-server."
        )


class Channel(virtual.Channel):
    """One connection's view of the folder."""

    supports_fanout = True

    @property
    def folder(self) -> Path:
        return Path(self.connection.client.transport_options["folder"])

    def _queue_folder(self, queue: str) -> Path:
        path = self.folder / "queues" / _file_name(queue)
        if not path.is_dir():
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def _new_queue(self, queue: str, **_: Any) -> None:
        self._queue_folder(queue)

    def _has_queue(self, queue: str, **_: Any) -> bool:
        return (self.folder / "queues" / _file_name(queue)).is_dir()

    def _put(self, queue: str, message: Any, **_: Any) -> None:
        folder = self._queue_folder(queue)
        name = f"{time.time_ns():020d}-{uuid.uuid4().hex}"
        draft = folder / f".draft-{name}"
        draft.write_text(json.dumps(message))
        os.rename(draft, folder / name)

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        folder = self._queue_folder(queue)
        for name in _waiting(folder):
            claimed = folder / f".claimed-{name}"
            try:
                os.rename(folder / name, claimed)
            except FileNotFoundError:
                continue  # another consumer was quicker
            message = _read_message(claimed)
            _remove(claimed)
            if message is not None:
                return message
            # One lost message is sent again within seconds; one that kills each worker that meets it is not.
            log.warning("A message in %s could not be read and is dropped.", folder, extra={"action": "bad_message"})
        raise Empty

    def _size(self, queue: str) -> int:
        return len(_waiting(self._queue_folder(queue)))

    def _purge(self, queue: str) -> int:
        folder, removed = self._queue_folder(queue), 0
        for name in _waiting(folder):
            try:
                (folder / name).unlink()
            except FileNotFoundError:
                continue
            removed += 1
        return removed

    def _delete(self, queue: str, *_: Any, **__: Any) -> None:
        self._purge(queue)

    def _put_fanout(self, exchange: str, message: Any, routing_key: str, **kwargs: Any) -> None:
        for _, _, queue in self.get_table(exchange):
            self._put(queue, message, **kwargs)

    def get_table(self, exchange: str) -> list[tuple[str, str, str]]:
        # What this process declared itself is true even where the file was removed or cut off.
        own = self.state.exchanges.get(exchange, {}).get("table", [])
        return self._stored_table(exchange) or [_row(*entry) for entry in own]

    def _stored_table(self, exchange: str) -> list[tuple[str, str, str]]:
        try:
            rows = json.loads(self._table_file(exchange).read_text())
            return [(row[0], row[1], row[2]) for row in rows]
        except (FileNotFoundError, ValueError, TypeError, LookupError):
            return []

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        row = _row(routing_key, pattern, queue)
        if row in self._stored_table(exchange):
            return
        path = self._table_file(exchange)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(path.with_name(f".{path.name}.lock")):
            rows = self._stored_table(exchange)
            if row not in rows:
                draft = path.with_name(f".{path.name}.draft")
                draft.write_text(json.dumps([*rows, row]))
                os.replace(draft, path)

    def _table_file(self, exchange: str) -> Path:
        return self.folder / "bindings" / f"{_file_name(exchange)}.json"


class Transport(virtual.Transport):
    """The kombu transport `safefs`; its folder comes from the transport option of that name."""

    Channel = Channel
    implements = virtual.Transport.implements.extend(asynchronous=False, exchange_type={"direct", "topic", "fanout"})
    default_port = 0
    driver_type = "safefs"
    driver_name = "safefs"

    # Processes find each other's queues on the disk; this only remembers what this process declared where.
    _declared: ClassVar[dict[str, virtual.BrokerState]] = {}

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        folder = client.transport_options["folder"]
        refuse_network_mount(Path(folder))
        self.state = self._declared.setdefault(folder, virtual.BrokerState())

    def driver_version(self) -> str:
        return "1"

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        """Wait for a message; a worker, which would wait for two seconds, looks up more often whether it is to end."""
        super().drain_events(connection, None if timeout is None else min(timeout, LOOKS_UP))


def _file_name(name: str) -> str:
    """Return a name that cannot leave its directory, nor be taken for one of our dot files."""
    return "q" + quote(name, safe="@+=")


def _waiting(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


def _row(routing_key: str | None, pattern: object, queue: str | None) -> tuple[str, str, str]:
    return routing_key or "", str(pattern or ""), queue or ""


def _read_message(path: Path) -> dict[str, Any] | None:
    """Return a message; None for a file that is none: empty after a loss of power, or somebody else's."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            found = json.loads(file.read())
    except (OSError, ValueError, RecursionError):
        return None
    whole = isinstance(found, dict) and isinstance(found.get("properties"), dict)
    return found if whole and "delivery_tag" in found["properties"] else None


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except IsADirectoryError:
        return  # under its dot name nobody looks at it again


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
