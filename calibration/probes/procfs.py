"""One raw walk over /proc: who runs, whose child it is, since when, and its resident size."""

from __future__ import annotations

import contextlib
import os
import pwd
import resource
from dataclasses import dataclass

from calibration.domain.samples import ProcessSample

PAGE = os.sysconf("SC_PAGE_SIZE")

_YOUNG_WALKS = 2
"""A process may change its user and its group between fork and exec, so both are read again on its first walks."""


@dataclass(frozen=True, slots=True)
class Stat:
    """What /proc/PID/stat tells. ``rss`` is bytes, ``start_ticks`` clock ticks since boot."""

    name: str
    state: str
    ppid: int
    pgid: int
    session: int
    start_ticks: int
    rss: int


def parse_stat(raw: bytes) -> Stat:
    """Return the parsed line; the name may hold spaces and brackets, so fields count from the last ``)``.

    Raises ValueError where the line is cut off, as it can be for a process that is just ending.
    """
    close = raw.rindex(b")")
    fields = raw[close + 2 :].split(None, 22)
    if len(fields) < 22:
        raise ValueError("a /proc stat line with too few fields")
    return Stat(
        name=raw[raw.index(b"(") + 1 : close].decode(errors="replace"),
        state=fields[0].decode(),
        ppid=int(fields[1]),
        pgid=int(fields[2]),
        session=int(fields[3]),
        start_ticks=int(fields[19]),
        rss=int(fields[21]) * PAGE,
    )


def boot_id(root: str = "/proc") -> str:
    """Return this boot's id, which makes a pid and start time unique; empty where the kernel hides it."""
    try:
        with open(f"{root}/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def read_small(path: str, limit: int = 4096) -> bytes:
    """Return the first bytes of a kernel file in one read. Raises OSError as the kernel does."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, limit)
    finally:
        os.close(descriptor)


def spare_descriptors() -> int:
    """Return how many files a walk may keep open: half of what this process may, at most 8,192."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 8192 if soft == resource.RLIM_INFINITY else min(8192, soft // 2)


class ProcWalk:
    """Walks a /proc; keeps what does not change (user, name) and each unchanged sample between walks.

    Each process's file stays open between walks as far as ``keep`` descriptors go, which saves a quarter of the
    time. The kernel answers ESRCH on the file of a process that has ended, whoever has its number now.
    """

    def __init__(self, root: str = "/proc", keep: int | None = None) -> None:
        self.root = root
        self._last: dict[int, tuple[bytes, int, ProcessSample]] = {}
        self._users: dict[int, str] = {}
        self._files: dict[int, int] = {}  # pid -> descriptor
        # Elsewhere than in a real /proc a file goes on answering for what it was.
        self._keep = keep if keep is not None else spare_descriptors() if root == "/proc" else 0

    def __del__(self) -> None:
        """Close what is kept."""
        for descriptor in self._files.values():
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def walk(self) -> dict[int, ProcessSample]:
        """Return every process that could be read, by pid. One that vanishes half-way is left out.

        Raises OSError only where /proc itself cannot be listed.
        """
        seen: dict[int, tuple[bytes, int, ProcessSample]] = {}
        processes: dict[int, ProcessSample] = {}
        last = self._last
        for entry in os.listdir(self.root):
            if not entry.isdigit():
                continue
            pid = int(entry)
            try:
                kept = self._kept(pid, self._stat(pid), last.get(pid))
            except (OSError, ValueError, IndexError):
                continue
            seen[pid] = kept
            processes[pid] = kept[2]
        self._last = seen
        for pid in self._files.keys() - seen.keys():
            os.close(self._files.pop(pid))
        return processes

    def _stat(self, pid: int) -> bytes:
        """Return the line of a process, from the file that is kept or a new one. Raises OSError where it is gone."""
        descriptor = self._files.get(pid)
        if descriptor is not None:
            try:
                return os.pread(descriptor, 1024, 0)
            except OSError:  # it ended; another may have its number by now
                os.close(self._files.pop(pid))
        if len(self._files) >= self._keep:
            return read_small(f"{self.root}/{pid}/stat", 1024)
        descriptor = os.open(f"{self.root}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        self._files[pid] = descriptor
        return os.pread(descriptor, 1024, 0)

    def _kept(
        self, pid: int, raw: bytes, before: tuple[bytes, int, ProcessSample] | None
    ) -> tuple[bytes, int, ProcessSample]:
        """Return (identifying fields, walks seen, sample); an unchanged process costs no new sample."""
        close = raw.rindex(b")")
        fields = raw[close + 2 :].split(None, 22)
        # Name, state, parent, group, session, start and size: all that a sample is made of.
        key = b" ".join((raw[:close], *fields[:4], fields[19], fields[21]))
        if before is not None and before[0] == key and before[1] >= _YOUNG_WALKS:
            return before
        stat = parse_stat(raw)
        same = before is not None and before[2].start_ticks == stat.start_ticks
        walks = before[1] + 1 if before is not None and same else 1
        if before is not None and same and before[1] >= _YOUNG_WALKS and before[2].name == stat.name:
            uid, user, cgroup = before[2].uid, before[2].user, before[2].cgroup
        else:
            uid, cgroup = self._uid(pid), self._cgroup(pid)
            user = None if uid is None else self._user(uid)
        sample = ProcessSample(
            pid=pid,
            ppid=stat.ppid,
            start_ticks=stat.start_ticks,
            state=stat.state,
            pgid=stat.pgid,
            session=stat.session,
            uid=uid,
            user=user,
            name=stat.name,
            ram=stat.rss,
            rss=stat.rss,
            cgroup=cgroup,
        )
        return key, walks, sample

    def _uid(self, pid: int) -> int | None:
        """Return the real uid; the directory's owner is root for a process that may not be dumped."""
        try:
            status = read_small(f"{self.root}/{pid}/status")
        except OSError:
            return None
        at = status.find(b"\nUid:")
        return int(status[at + 5 : at + 40].split(None, 1)[0]) if at >= 0 else None

    def _cgroup(self, pid: int) -> str:
        """Return the path in the unified tree, in that of main memory where all are at the top of the first."""
        try:
            lines = read_small(f"{self.root}/{pid}/cgroup").splitlines()
        except OSError:
            return ""
        unified = memory = b""
        for line in lines:
            _, _, rest = line.partition(b":")
            controllers, _, where = rest.partition(b":")
            if not controllers:
                unified = where
            elif b"memory" in controllers.split(b","):
                memory = where
        found = unified if unified not in (b"", b"/") else memory
        return "" if found == b"/" else os.fsdecode(found)

    def _user(self, uid: int) -> str:
        name = self._users.get(uid)
        if name is None:
            try:
                name = pwd.getpwuid(uid).pw_name
            except KeyError:
                name = f"uid {uid}"
            self._users[uid] = name
        return name
