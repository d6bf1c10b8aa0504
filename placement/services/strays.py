"""Containers that nobody of ours is labelled on, and the jobs whose own docker clients may have started them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from calibration.domain.resources import gib
from calibration.domain.samples import RAM, Attribution, Reading
from placement.domain.containing import containers
from placement.models import Job
from placement.services.learning import owner

CLIENT = "client:"
"""Begins the rule of a process that is nobody's but sits in such a container: the jobs' numbers follow."""
_WORTH = 1 << 20  # bytes below which a container's memory is not told


@dataclass(slots=True)
class _Stray:
    jobs: set[int] = field(default_factory=set)
    pids: set[int] = field(default_factory=set)


class Strays:
    """What one node's loop knows of such containers. A suspicion stays while the container lives."""

    def __init__(self) -> None:
        self._known: dict[str, _Stray] = {}
        self._clients: set[int] = set()  # jobs in which a client was seen
        self._seen: tuple[Reading, Attribution] | None = None

    def look(self, jobs: Iterable[Job], reading: Reading, found: Attribution) -> None:
        """Hold each container that is nobody's against the jobs that run a client of an engine."""
        began: dict[int, int] = {}
        for job in jobs:
            inside = (reading.processes.get(i.pid) for i in found.members.get(owner(job), ()))
            starts = [p.start_ticks for p in inside if p is not None and p.name in containers.CLIENTS]
            if not job.image and starts:
                began[job.pk] = min(starts)
        self._clients |= began.keys()
        outside: dict[str, set[int]] = {}
        for process in reading.processes.values():
            if process.cgroup and process.pid not in found.rules and (ident := containers.id_of(process.cgroup)):
                outside.setdefault(ident, set()).add(process.pid)
        self._known = {ident: stray for ident, stray in self._known.items() if ident in outside}
        for ident, pids in outside.items():
            first = min(reading.processes[pid].start_ticks for pid in pids)
            suspects = {job for job, at in began.items() if at <= first}
            if suspects or ident in self._known:
                stray = self._known.setdefault(ident, _Stray())
                stray.jobs, stray.pids = stray.jobs | suspects, pids
        self._seen = (reading, found)

    def has_client(self, job: int) -> bool:
        """Return whether a client of an engine was seen among the processes of a job: it tells too little of it."""
        return job in self._clients

    def rules(self) -> Mapping[int, str]:
        """Return "client:7" by pid for what may be a job's though nothing proves it."""
        return {
            pid: CLIENT + ",".join(map(str, sorted(stray.jobs))) for stray in self._known.values() for pid in stray.pids
        }

    def held(self, job: int) -> str:
        """Return what containers hold that a job may have started, "" for nothing."""
        said = [self._amounts(ident, stray) for ident, stray in sorted(self._known.items()) if job in stray.jobs]
        return "; ".join(said)

    def _amounts(self, ident: str, stray: _Stray) -> str:
        assert self._seen is not None
        reading, found = self._seen
        told = []
        for name, amounts in sorted(found.amounts.items(), key=lambda one: one[0] == RAM):
            held = [amounts[pid] for pid in stray.pids if pid in amounts]
            known = [amount for amount in held if amount is not None]
            if held and (sum(known) >= _WORTH or len(known) < len(held)):
                size = gib(sum(known)) if len(known) == len(held) else "an unknown amount"
                told.append(f"{size} on {reading.pools[name].name}" if name != RAM else f"{size} of RAM")
        return f"container {ident[:12]} holds {' and '.join(told) or 'no memory to speak of'}"

    def forget(self, jobs: Iterable[Job]) -> None:
        """Drop what was seen of jobs that are not among these; their containers stay known."""
        self._clients &= {job.pk for job in jobs}


def running(held: str) -> str:
    """Return the flag of a running job for what ``Strays.held`` says."""
    return f"external, a docker client of it is running: {held}; nothing keeps or ends that" if held else ""


def ended(held: str) -> str:
    """Return the sentence that follows the end of such a job."""
    return f"It is not all freed: {held}, which it may have started; end it by hand." if held else ""
