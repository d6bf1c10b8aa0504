"""The only readers: what pages and interfaces show comes from here as frozen rows."""

from __future__ import annotations

from placement.domain.jobs import ACTIVE
from placement.models import Job


def running_count() -> int:
    """Return how many jobs are admitted or running."""
    return Job.objects.filter(state__in=[s.value for s in ACTIVE]).count()
