"""Who inside a job will let go of what: what its other steps and processes hold is not in a request's own way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from placement import inside
from placement.models import InsideSession
from placement.services import holding


def of(session: InsideSession) -> tuple[str, str]:
    """Return the keys of the sessions whose leases stay as long as this one waits: its own, and its process's."""
    return session.key, holding.process_key(session.process)


def of_call(process: Mapping[str, Any], step: str = "") -> tuple[str, str]:
    """Return the same of a call that is not stored yet; ``step`` is the key of its step, "" outside one."""
    own = holding.process_key(process)
    return step or own, own


class Others:
    """What each session of these jobs was granted while they ran, by pool: read once for many questions."""

    def __init__(self, jobs: Iterable[int]) -> None:
        rows = [lease for lease in inside.leases(jobs) if lease.request is not None]
        sessions = InsideSession.objects.in_bulk({lease.request.session_id for lease in rows if lease.request})
        self._held: defaultdict[int, list[tuple[str, str, int]]] = defaultdict(list)
        for lease in rows:
            session = sessions[lease.request.session_id] if lease.request else None
            if session is not None and session.ended_at is None:  # an artifact's is as good as the job's
                self._held[lease.job_id].append((session.key, lease.pool, lease.bytes))

    def of(self, job: int, scopes: Collection[str]) -> dict[str, int]:
        """Return the bytes by pool that others inside the job hold: they will let go by themselves."""
        found: dict[str, int] = {}
        for key, pool, size in self._held[job]:
            if key not in scopes:
                found[pool] = found.get(pool, 0) + size
        return found
