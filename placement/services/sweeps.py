"""Sweeps: one submission, a job for each combination of values; asked about, and stored all or none."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError

from calibration import rows
from calibration.domain import commandline
from calibration.domain.keys import typed_command_key
from placement import estimates, snapshots
from placement.domain.admission.wire import estimate_json
from placement.domain.errors import Infeasible, Refused
from placement.domain.submitting import sweeps
from placement.domain.submitting.submission import LONGEST_ARGUMENT, Submission, problems
from placement.domain.world.snapshot import Waiting
from placement.models import IrrelevantArgument, Job
from placement.services import arrays, audit, cycle_row, drafting, jobs, tying

SHOWN = 4  # members whose command a preview shows
ASKED = 24  # members whose need a preview works out, spread evenly


@dataclass(frozen=True, slots=True)
class Need:
    """What the members that were asked about need of one kind of memory, bytes; None: of some nothing is known."""

    kind: str  # "vram" or "ram"
    least: int | None
    most: int | None


@dataclass(frozen=True, slots=True)
class SweepPreview:
    """What a sweep would make. ``first`` is what the gate says of its first job now; ``members`` (values, command)."""

    count: int
    members: tuple[tuple[str, str], ...]
    asked: int
    needs: tuple[Need, ...]
    at_once: int | None
    seconds: float | None
    look_same: tuple[str, ...]
    first: jobs.Preview


def submit(user: User, submission: Submission, *, form_key: str | None = None) -> Job:
    """Store a submission, of a sweep all its jobs in one transaction; return the first. As jobs.submit() else.

    Raise Refused, NotYours, or Infeasible where one of the jobs could never start: then none is stored.
    """
    if not submission.sweep:
        return jobs.submit(user, submission, form_key=form_key)
    if earlier := jobs.made_by(user, form_key):
        return earlier
    members, same = _members(user, submission)
    first = members[0]
    first.form_key = form_key or None
    _estimate(members, submission)
    try:
        with cycle_row.changing():
            named = tying.resolved(submission.after)
            _mark(user, members, same)
            arrays.store_each(members, submission.array_limit, _as_submitted(submission))
            tying.tie(first, named)
    except IntegrityError:
        earlier = jobs.made_by(user, form_key)
        if earlier is None:
            raise
        return earlier
    return first


def preview(user: User, submission: Submission) -> SweepPreview:
    """Return how many jobs a sweep makes, what they need and about how long they take; nothing is stored."""
    made = sweeps.count(submission.sweep)
    every = max(1, -(-made // ASKED))
    members, _ = _members(user, submission, every=every)
    chosen = next(sweeps.combinations(submission.sweep))
    seen = jobs.preview(user, _one(submission, chosen))
    version = rows.version()
    _, instrument = snapshots.knobs_now()
    found = [estimates.estimate_of(job, version, instrument) for job in members]
    kinds = [kind for kind in ("vram", "ram") if kind in found[0].pools]
    width = sweeps.at_once(seen.decision["candidates"], alone=seen.estimate["basis"] == "cold_start")
    width = None if width is None else min(width, made, submission.array_limit or made)
    return SweepPreview(
        count=made,
        members=tuple(_shown(submission, values) for values in islice(sweeps.combinations(submission.sweep), SHOWN)),
        asked=len(members),
        needs=tuple(_need(kind, [one.pools[kind].need for one in found]) for kind in kinds),
        at_once=width,
        seconds=_seconds(members[0], made, width, version),
        look_same=_look_same(user, submission, members[0].cwd),
        first=seen,
    )


def _members(user: User, submission: Submission, every: int = 1) -> tuple[list[Job], frozenset[str]]:
    """Return unsaved jobs, all or every so many, and the arguments that do not change memory. Raise Refused."""
    wrong = dict(problems(submission))
    if wrong:
        raise Refused("Nothing was submitted: " + " ".join(wrong.values()), wrong)
    same = _same(user, submission)
    keys = drafting.Keys(same)
    combinations = islice(sweeps.combinations(submission.sweep), 0, None, every)
    chosen = next(combinations)
    found = [drafting.draft(user, _one(submission, chosen), keys)]
    found += [drafting.another(found[0], keys, **_values(submission, values)) for values in combinations]
    longest = max(len(part.encode()) for job in found for part in (job.argv or [job.command]))
    if longest > LONGEST_ARGUMENT:
        said = f"Filled in, the command has {longest:,} bytes; the system takes {LONGEST_ARGUMENT:,}."
        raise Refused(f"Nothing was submitted: {said}", {"sweep": said})
    return found, same


def _one(submission: Submission, chosen: Mapping[str, str]) -> Submission:
    """Return the submission of one member."""
    return replace(submission, **_values(submission, chosen), sweep={}, sweep_same=(), array_limit=None)


def _values(submission: Submission, chosen: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": sweeps.member_name(submission.name or submission.workload or submission.command, chosen),
        "params": {**submission.params, **chosen},
    }
    if submission.argv is not None:
        found["argv"] = sweeps.list_filled(submission.argv, chosen)
    elif not submission.workload:
        found["command"] = sweeps.filled(submission.command, chosen)
    return found


def _shown(submission: Submission, chosen: Mapping[str, str]) -> tuple[str, str]:
    words = ", ".join(f"{name}={value}" for name, value in chosen.items())
    found = _values(submission, chosen)
    return words, shlex.join(found["argv"]) if "argv" in found else found.get("command", "")


def _estimate(members: Iterable[Job], submission: Submission) -> None:
    """Give each member its estimate; raise Infeasible, naming the values, where one could never start."""
    snapshot = snapshots.take(without_jobs=True)
    version = rows.version()
    _, instrument = snapshots.knobs_now()
    template: Waiting | None = None
    possible: set[object] = set()
    for job, chosen in zip(members, sweeps.combinations(submission.sweep), strict=True):
        template = template or jobs.waiting_of(job, snapshot, ())
        needed = estimates.estimate_of(job, version, instrument)
        asks = tuple((kind, p.need, p.at_least, p.basis, p.margin) for kind, p in needed.pools.items())
        if asks not in possible:
            try:
                jobs.refuse_impossible(snapshot, replace(template, estimate=needed))
            except Infeasible as error:
                words = ", ".join(f"{name}={value}" for name, value in chosen.items())
                raise Infeasible(f"None was submitted, because of {words}: {error.sentence}", error.checks) from error
            possible.add(asks)
        job.estimate = estimate_json(needed)


def _same(user: User, submission: Submission) -> frozenset[str]:
    """Return the arguments of the command that hold nothing but values which do not change memory."""
    if not submission.sweep_same:
        return frozenset()
    said = set(submission.sweep_same)
    found = {name for name, there, _ in _arguments(user, submission, submission.cwd) if there and there <= said}
    covered = {p for name, there, _ in _arguments(user, submission, submission.cwd) if name in found for p in there}
    if left := sorted(said - covered):
        text = (
            f"{', '.join(left)} cannot be left out of what is learned: it is no argument of its own in this command. "
            "Leave it out here, or write it as an option such as --seed {seed}."
        )
        raise Refused(f"Nothing was submitted: {text}", {"sweep_same": text})
    return frozenset(found)


def _look_same(user: User, submission: Submission, cwd: str) -> tuple[str, ...]:
    """Return the names whose arguments look as if they changed no memory: seeds, dates, paths, names."""
    looks: dict[str, bool] = {}
    for _, there, look in _arguments(user, submission, cwd):
        for name in there:
            looks[name] = looks.get(name, True) and look
    return tuple(name for name, same in looks.items() if same and name not in submission.sweep_same)


def _arguments(user: User, submission: Submission, cwd: str) -> list[tuple[str, set[str], bool]]:
    """Return (argument, the names in it, whether it looks irrelevant) of a typed command."""
    if submission.workload or submission.argv is not None:
        return []
    if commandline.parse(submission.command) is None:
        return []  # only a shell can take it apart
    key = typed_command_key(user.get_username(), submission.command, submission.setup, cwd, submission.workers)
    names = set(submission.sweep)
    told = ((a.name, names.intersection(sweeps.placeholders(a.text)), a.looks_like) for a in key.arguments)
    return [(name, there, look in ("seed", "date", "name")) for name, there, look in told if there and key.script]


def _mark(user: User, members: Iterable[Job], same: frozenset[str]) -> None:
    """Store what the submission says about its arguments; it holds for later submissions of the script, too."""
    scripts = sorted({job.key_script for job in members if job.key_script}) if same else []
    for script in scripts:
        for name in sorted(same):
            _, new = IrrelevantArgument.objects.get_or_create(
                script=script, argument=name, defaults={"who": audit.name_of(user)}
            )
            if new:
                audit.record(user, "mark_argument", f"script {script}"[:200], argument=name, matters=False)


def _as_submitted(submission: Submission) -> dict[str, Any]:
    return {
        "axes": {name: list(found) for name, found in submission.sweep.items()},
        "command": submission.command,
        "argv": list(submission.argv) if submission.argv is not None else None,
        "name": submission.name or submission.workload or submission.command,
        "params": dict(submission.params),
        "same": list(submission.sweep_same),
    }


def _need(kind: str, amounts: list[int | None]) -> Need:
    known = [amount for amount in amounts if amount is not None]
    whole = len(known) == len(amounts)
    return Need(kind, min(known) if known else None, max(known) if whole else None)


def _seconds(job: Job, made: int, width: int | None, version: int) -> float | None:
    """Return about how long all of them take on what is free now, None where a run's length is not known."""
    seen = estimates.seen_durations(job, version)
    one = seen[len(seen) // 2] if seen else job.time_limit_s
    return None if one is None or not width else one * -(-made // width)
