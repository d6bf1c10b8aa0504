"""Exact memory of the processes that belong to somebody here: proportional size, read within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from calibration.domain.samples import ProcessSample
from calibration.probes.procfs import PAGE, read_small

_MOVED = 64 * 2**20
"""A process whose own pages moved by more than this since its exact reading is read again at once."""


@dataclass(slots=True)
class _Exact:
    start_ticks: int
    need: int
    cached: int | None
    own: int | None  # resident pages of its own at that moment (bytes), None where statm was unreadable
    at: float


def parse_rollup(text: bytes) -> tuple[int, int | None]:
    """Return (need, cached) in bytes: proportional anonymous and shared memory, and file pages apart.

    Kernels before 5.4 tell the whole proportional size only; then it is the need and cached is None.
    Raises ValueError where the text tells no proportional size at all.
    """
    found: dict[bytes, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(b":")
        if name in (b"Pss", b"Pss_Anon", b"Pss_Shmem", b"Pss_File"):
            found[name] = int(rest.split()[0]) * 1024
    if b"Pss_Anon" in found and b"Pss_Shmem" in found:
        return found[b"Pss_Anon"] + found[b"Pss_Shmem"], found.get(b"Pss_File")
    if b"Pss" in found:
        return found[b"Pss"], None
    raise ValueError("smaps_rollup without a proportional size")


def exact_sizes(root: str = "/proc") -> bool:
    """Return whether this kernel tells a process its own proportional size."""
    try:
        parse_rollup(read_small(f"{root}/self/smaps_rollup"))
    except (OSError, ValueError):
        return False
    return True


class PssReader:
    """Replaces the resident size of owned processes by what they need.

    Each is read exactly every ``every_s`` seconds, sooner when its own pages moved or its family changed (a
    fork halves the parent's share), the longest unread first, until ``budget_ms`` is spent in a tick.
    """

    def __init__(
        self,
        root: str = "/proc",
        *,
        every_s: float = 5.0,
        budget_ms: float = 50.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.root = root
        self.every_s = every_s
        self.budget_ms = budget_ms
        self._clock = clock
        self._exact: dict[int, _Exact] = {}
        self._family: dict[int, tuple[int, int]] = {}  # owned pid -> (start ticks, parent), at the last tick
        self.left_over = 0  # exact readings that the last tick's budget had no room for

    def apply(self, processes: Mapping[int, ProcessSample], owned: Collection[int]) -> dict[int, ProcessSample]:
        """Return new samples of the owned processes that exist, by pid. Never raises for a process."""
        now = self._clock()
        members = {pid: processes[pid] for pid in owned if pid in processes}
        for pid in [p for p, e in self._exact.items() if not _same(members.get(p), e.start_ticks)]:
            del self._exact[pid]
        own = {pid: self._own(pid) for pid in members}
        due = self._due(members, own, now)
        fresh: set[int] = set()
        self.left_over = 0
        for pid in due:
            if fresh and (self._clock() - now) * 1000 >= self.budget_ms:
                self.left_over = len(due) - len(fresh)
                break
            self._read(pid, members[pid].start_ticks)
            fresh.add(pid)
        return {pid: self._sample(sample, own[pid], pid in fresh) for pid, sample in members.items()}

    def _due(self, members: Mapping[int, ProcessSample], own: Mapping[int, int | None], now: float) -> list[int]:
        family = {pid: (sample.start_ticks, sample.ppid) for pid, sample in members.items()}
        changed = dict(family.items() ^ self._family.items())
        parents = {ppid for _, ppid in changed.values()}
        self._family = family

        def is_due(pid: int) -> bool:
            exact = self._exact.get(pid)
            if exact is None or now - exact.at >= self.every_s or pid in parents:
                return True
            if members[pid].ppid in parents or members[pid].ppid in changed:
                return True
            here = own[pid]
            return here is not None and exact.own is not None and abs(here - exact.own) > _MOVED

        due = [pid for pid, sample in members.items() if sample.state not in "ZX" and is_due(pid)]
        return sorted(due, key=lambda pid: self._exact[pid].at if pid in self._exact else float("-inf"))

    def _own(self, pid: int) -> int | None:
        """Return resident bytes that are not backed by a file or shared memory, None where unreadable."""
        try:
            fields = read_small(f"{self.root}/{pid}/statm", 256).split()
            return max(0, int(fields[1]) - int(fields[2])) * PAGE
        except (OSError, ValueError, IndexError):
            return None

    def _read(self, pid: int, start_ticks: int) -> None:
        try:
            need, cached = parse_rollup(read_small(f"{self.root}/{pid}/smaps_rollup"))
        except (OSError, ValueError):
            self._exact.pop(pid, None)  # not ours to read, or gone: the resident size is marked instead
            return
        # Asked right after: what it took since the walk is in its need and must not be added once more.
        self._exact[pid] = _Exact(start_ticks, need, cached, self._own(pid), self._clock())

    def _sample(self, sample: ProcessSample, own: int | None, fresh: bool) -> ProcessSample:
        if sample.state in "ZX":  # an ended process holds no memory, however long nobody collects it
            return replace(sample, ram=0, ram_exact=True, cached=0)
        exact = self._exact.get(sample.pid)
        if exact is None:
            return self._resident(sample)
        if fresh:
            return replace(sample, ram=exact.need, ram_exact=True, cached=exact.cached)
        return replace(sample, ram=_since(exact, own), ram_exact=False, cached=exact.cached)

    def now(self, pids: Collection[int]) -> int | None:
        """Return the bytes that these processes need now: the last exact readings and what each took since.

        Cheap: one short read each. None where one of them was never read exactly, so that no resident size, which
        counts shared pages once a process, passes for a need.
        """
        total = 0
        for pid in pids:
            exact = self._exact.get(pid)
            if exact is None:
                return None
            own = self._own(pid)
            total += 0 if own is None else _since(exact, own)  # it has ended meanwhile
        return total

    def _resident(self, sample: ProcessSample) -> ProcessSample:
        """Return the sample with resident memory less file pages, shared pages counted in full."""
        found: dict[bytes, int] = {}
        try:
            for line in read_small(f"{self.root}/{sample.pid}/status").splitlines():
                name, _, rest = line.partition(b":")
                if name in (b"RssAnon", b"RssShmem", b"RssFile"):
                    found[name] = int(rest.split()[0]) * 1024
        except (OSError, ValueError, IndexError):
            return sample
        if b"RssAnon" not in found:
            return sample
        ram = found[b"RssAnon"] + found.get(b"RssShmem", 0)
        return replace(sample, ram=ram, ram_exact=False, cached=found.get(b"RssFile"))


def _since(exact: _Exact, own: int | None) -> int:
    """Return the need at an exact reading moved by the own pages since, in bytes."""
    if own is None or exact.own is None:
        return exact.need
    # New pages are its own alone; of freed ones it gives back only its share.
    return exact.need + own - exact.own if own >= exact.own else exact.need * own // exact.own


def _same(sample: ProcessSample | None, start_ticks: int) -> bool:
    return sample is not None and sample.start_ticks == start_ticks
