"""The same run with more memory: what the next one would be charged after one died of memory, for a button."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from calibration import rows
from calibration.domain.resources import gib
from calibration.domain.samples import RAM
from placement import estimates, snapshots
from placement.domain.ending.postmortem import Blame
from placement.domain.ending.retries import MEMORY_DEATHS
from placement.domain.jobs import Outcome, State
from placement.models import Job
from placement.selectors.wording import mapping, whole


@dataclass(frozen=True, slots=True)
class Raised:
    """What the button says and what its form sends: (name, bytes) of each kind that is asked for."""

    text: str
    fields: tuple[tuple[str, int], ...]


def of(job: Job) -> Raised | None:
    """Return the offer, None where a larger charge would not help: no memory death, or others took the memory."""
    if job.state != State.FINISHED or Outcome(job.outcome) not in MEMORY_DEATHS:
        return None
    evidence = mapping(job.evidence)
    kind = str(evidence.get("memory") or "")
    pools = {"ram": (RAM,), "vram": job.devices}.get(kind, ())
    if mapping(evidence.get("postmortem")).get("blame") == Blame.VICTIM or not pools:
        return None
    charges = [whole(mapping(mapping(job.charges).get(pool)).get("at_start")) for pool in pools]
    charged = None if None in charges else max(charge for charge in charges if charge is not None)
    need = _need(job, kind, whole(mapping(evidence.get("watchdog")).get("next_charge")))
    if charged is None or need is None or need <= charged:
        return None
    word = "" if kind == "vram" else " of RAM"
    return Raised(f"{gib(need, charged)}{word}", ((kind, need),))


def _need(job: Job, kind: str, least: int | None) -> int | None:
    """Return what the estimate asks for the run again, if ``least`` bytes are declared for it, or reserved."""
    if kind == "vram" and job.request().exact:
        return least
    again = copy.copy(job)
    name = f"declared_{kind}"
    setattr(again, name, max(getattr(job, name) or 0, least or 0) or None)
    _, knobs = snapshots.knobs_now()
    pool = estimates.estimate_of(again, rows.version(), knobs).pools.get(kind)
    if pool is None:
        return None
    return pool.need if pool.need is not None else pool.at_least
