"""What would start a waiting job, in words, with what a button has to send: read from the machines as they are now."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from calibration import clock, rows
from calibration.domain.estimate import Estimate
from calibration.domain.knobs import Knobs as InstrumentKnobs
from calibration.domain.resources import gib, workers_of
from placement import conditions, estimates, inside, snapshots
from placement.domain.ending.streaks import HOLDER
from placement.domain.submitting import group_keys
from placement.domain.unblocking.changes import Change, Comes, Edited, Ends, Met, Opened, Released
from placement.domain.unblocking.remedies import Remedy, remedies
from placement.domain.world import text
from placement.domain.world.durations import Sure
from placement.domain.world.requests import fewer
from placement.domain.world.snapshot import Snapshot
from placement.models import Job
from placement.selectors import wording
from placement.selectors.expected import Expected
from placement.selectors.kept import Kept

WORKERS = "TIDEGATE_WORKERS"  # the variable in which a run finds how many it may start
POLLED = 2.0  # seconds that a poll's answer may be old; the button's service and the gate look again
OF = {"per_device_memory": " of each device", "group_memory": " of the group together"}
_QUEUE = 2_000  # with more waiting jobs than this nothing is looked for: each look plays those before it
_worlds: Kept[Snapshot] = Kept()
_ways: Kept[tuple[Remedy, ...]] = Kept()


@dataclass(frozen=True, slots=True)
class Way:
    """One way to a start: "when" ``bold``, "about" ``at``, ``rest``. ``fields`` are what its button sends."""

    kind: str  # "ends", "edit", "hand", "now"
    bold: str
    at: datetime | None
    guess: bool
    rest: str
    button: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    hint: str = ""
    first: bool = False  # its button is the one to press

    @property
    def key(self) -> str:
        """Return what its button is called by: what it changes."""
        return self.fields[0][0].replace("_", "-") if self.fields else self.kind


def ways(job: Job, foretold: Expected | None, no_account: Callable[[Any], str], anyhow: float = 0.0) -> tuple[Way, ...]:
    """Return what would start this waiting job, what comes by itself first; () where nothing of the kind would.

    ``no_account`` as in snapshots.take; ``anyhow`` as in Kept. Where a forecast waits for the same jobs, its time is
    told.
    """
    found = _ways.get(_asked(job), lambda: _found(job, no_account, anyhow), anyhow=anyhow)
    now = datetime.now(UTC)
    told = [_way(one, job, foretold, now) for one in found]
    first = next((number for number, way in enumerate(told) if way.button), None)
    return tuple(replace(way, first=number == first) for number, way in enumerate(told))


def _asked(job: Job) -> Hashable:
    """Return what a kept answer is for: the job as it stands, and the decision that it was last told."""
    own = job.workers, job.declared_ram, job.declared_vram, job.exclusive, job.held_by, job.node_wanted
    return job.pk, job.decided_at, job.device_wanted, str(job.devices_wanted), *own


def _found(job: Job, no_account: Callable[[Any], str], anyhow: float) -> tuple[Remedy, ...]:
    if conditions.in_sight()[: _QUEUE + 1].count() > _QUEUE:
        return ()
    snapshot = _worlds.get(clock.epoch(), lambda: snapshots.take(no_account=no_account), anyhow=anyhow / 2)
    version, (_, instrument) = rows.version(), snapshots.knobs_now()
    snapshot = _with(snapshot, job, no_account(job.user), version, instrument)

    def for_workers(count: int) -> Estimate:
        return estimates.estimate_of(_as(job, workers=count), version, instrument)

    def declaring(kind: str, amount: int) -> Estimate:
        return estimates.estimate_of(_as(job, **{f"declared_{kind}": amount}), version, instrument)

    def on_devices(count: int) -> Estimate:
        request = fewer(job.request(), count)
        asked = {**(job.devices_wanted or {}), "min": request.min_devices, "max": request.max_devices}
        made = _as(job, devices_wanted=asked, key_params=group_keys.on_devices(job.key_params, request))
        return estimates.estimate_of(made, version, instrument)

    return remedies(snapshot, job.pk, for_workers, declaring, on_devices)


def _with(snapshot: Snapshot, job: Job, no_account: str, version: int, instrument: InstrumentKnobs) -> Snapshot:
    """Return the snapshot with the job as it stands now: one that is far behind in its array is in none."""
    waits_for = conditions.facts([job], snapshot.knobs).of(job)
    later = inside.later([job]).get(0, ()) if snapshot.asked else ()
    mine = snapshots.waiting_of(
        job, snapshot.at, snapshot.wall, clock.epoch(), version, instrument, no_account, waits_for, later
    )
    others = tuple(w for w in snapshot.waiting if w.job != job.pk)
    running = tuple(r for r in snapshot.running if r.job != job.pk)
    return replace(snapshot, waiting=(*others, mine), running=running)


def _as(job: Job, **changes: Any) -> Job:
    made = copy.copy(job)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def _way(found: Remedy, job: Job, foretold: Expected | None, now: datetime) -> Way:
    edit, at = found.edit, None
    if not found.steps:
        return Way("now", "in the next look of the gate", None, False, f"{found.place} has room for it")
    if found.in_s is not None and edit is None:
        at = (now + timedelta(seconds=found.in_s + 30)).replace(second=0, microsecond=0)  # to the nearest minute
    guess = found.sure is Sure.GUESS and bool(found.ends)
    if foretold is not None and foretold.at is not None and found.ends and set(foretold.waits_for) == set(found.ends):
        at, guess = foretold.at, foretold.guess
    elif at is not None and guess and foretold is not None and foretold.early is not None and at < foretold.early:
        at = None  # a guess that says sooner than the forecast does, which looked at more
    words = " and ".join(part for part in (_words(step, job) for step in _merged(found.steps)) if part)
    kind = "edit" if edit else "ends" if at or found.ends else "hand"
    rest = ""
    if edit is not None:
        needs = "" if edit.limit is not None else f"needs {gib(found.need)}, "
        needs = f"if it reads {WORKERS}; {needs}" if edit.workers is not None else needs
        rest = f"{needs}fits {found.place}{' now' if len(found.steps) == 1 else ' then'}"
    elif found.gives:
        many = " + " in found.place  # those who end hold some of these devices, and not each as much
        rest = f"then {found.place} have room" if many else f"frees {gib(found.gives)} on {found.place}"
    button, fields, hint = _button(edit, job) if edit and len(found.steps) == 1 else ("", (), "")
    return Way(kind, words, at, guess, rest, button, fields, hint)


def _merged(steps: tuple[Change, ...]) -> tuple[Change, ...]:
    """Return the steps with those who have to end named once, last but for what is to be asked for."""
    ended = tuple(job for step in steps if isinstance(step, Ends) for job in step.jobs)
    rest = [step for step in steps if not isinstance(step, Ends | Edited)]
    edits = [step for step in steps if isinstance(step, Edited)]
    return (*rest, *([Ends(ended)] if ended else []), *edits)


def _words(step: Change, job: Job) -> str:
    if isinstance(step, Ends):
        return f"when {text.jobs(step.jobs)} {'ends' if len(step.jobs) == 1 else 'end'}"
    if isinstance(step, Released):
        return _released(step)
    if isinstance(step, Opened):
        return f"after {step.name} takes new jobs again"
    if isinstance(step, Comes):
        return "when its time has come"
    if isinstance(step, Met):
        return _met(step)
    if isinstance(step, Edited):
        return _edited(step, job)
    return ""


def _released(step: Released) -> str:
    if step.until is not None:
        return "when its hold ends" if step.what == "job" else f"when the hold of {step.name or 'the queue'} ends"
    if step.what == "job":
        return "after its group is released" if step.who == HOLDER else "after it is released"
    return f"after {step.name or 'the queue'} is released, which {step.who} holds"


def _met(step: Met) -> str:
    done = {"complete": "completed", "end": "ended", "fail": "failed"}
    tos = dict.fromkeys(tie.to for tie in step.ties)
    told = []
    for to in tos:
        jobs = [tie.on for tie in step.ties if tie.to == to]
        told.append(f"{text.jobs(jobs)} {'has' if len(jobs) == 1 else 'have'} {done.get(to, to)}")
    return f"when {' and '.join(told)}"


def _edited(step: Edited, job: Job) -> str:
    if step.workers is not None:
        return f"with {workers_of(step.workers)} instead of {job.workers}"
    if step.limit is not None:
        return f"with a time limit of {wording.span(step.limit)}"
    if step.beside:
        return "beside others, no longer alone"
    if step.anywhere:
        return "on any device, not only the one that it names"
    if step.devices is not None:
        asked = job.request()
        least = "" if asked.min_devices == asked.max_devices else "at least "
        return f"with {least}{text.devices(step.devices)} instead of {asked.min_devices}"
    if step.reserved:
        ((name, amount),) = step.reserved.items()
        was, of = getattr(job.request(), name), OF[name] if job.gpu == "group" else ""
        return f"with {gib(amount, was)} of device memory reserved{of} instead of {gib(was, amount)}"
    kinds = {"vram": "device memory", "ram": "RAM"}
    ((kind, amount),) = step.declared.items()
    before = job.declared_vram if kind == "vram" else job.declared_ram
    return f"with {gib(amount, before)} of {kinds[kind]} declared instead of {gib(before, amount)}"


def _button(step: Edited, job: Job) -> tuple[str, tuple[tuple[str, str], ...], str]:
    if step.workers is not None:
        hint = f"It finds the number in {WORKERS}; a command that does not read that starts as many as before."
        return f"Run with {workers_of(step.workers)}", (("workers", str(step.workers)),), hint
    if step.limit is not None:
        limit = wording.span(step.limit)
        hint = "It would be over before what is planned there, and is stopped where it takes longer."
        return f"Limit to {limit}", (("time_limit_s", str(int(step.limit))),), hint
    if step.beside:
        return "Run beside others", (("beside", "1"),), ""
    if step.anywhere:
        return "Run anywhere", (("anywhere", "1"),), ""
    if step.devices is not None:
        hint = "Its command finds them in CUDA_VISIBLE_DEVICES, and has to make do with them."
        return f"Take {text.devices(step.devices)}", (("devices", str(step.devices)),), hint
    if step.reserved:
        ((name, amount),) = step.reserved.items()
        hint = "It is stopped where it uses much more than that."
        return f"Reserve {gib(amount)}", ((name, str(amount)),), hint
    ((kind, amount),) = step.declared.items()
    hint = "It is stopped where it uses much more than that."
    return f"Declare {gib(amount)}", ((f"declared_{kind}", str(amount)),), hint
