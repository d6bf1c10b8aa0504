"""Sediment as domain values: what the estimator is given for one key."""

from __future__ import annotations

import threading

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from calibration.domain import keys
from calibration.domain.sediment import Key, Row
from calibration.models import OpenWindow, Pin, Sediment, StoreVersion, params_digest

NEWEST = 400  # rows read per key and per script; far more than the window of the quantile
_LOOKED_AT = 50  # rows among which a figure is compared
_LIMIT = 8192  # rows kept, about 2 KB each

_kept: dict[tuple[int, str, bool], Row] = {}
_reading = threading.Lock()


def forget() -> None:
    """Forget what was read."""
    _kept.clear()


def version() -> int:
    """Return the store's version: estimates made at one version stay true until it changes."""
    found = StoreVersion.objects.filter(pk=1).values_list("version", flat=True).first()
    return found or 0


def rows_for(key: Key) -> list[Row]:
    """Return closed windows of the key and of its script, newest first, then settled open ones of the same key.

    Each of the two is read by its own index and no further than NEWEST: many runs with other arguments never push
    out those with these, and a long history costs no more than a short one.
    """
    closed = _closed(of_key(key.workload, key.params))
    if key.script:
        closed |= _closed(Sediment.objects.filter(script=key.script).order_by("-at"))
    return sorted(closed.values(), key=lambda row: row.at, reverse=True) + _open_rows(key)


def seen(key: Key) -> bool:
    """Return whether anything ran with this key; of one that never did, all that is known is its script's."""
    running = OpenWindow.objects.filter(key__workload=key.workload, key__params=key.params)
    return of_key(key.workload, key.params).exists() or running.exists()


def of_key(workload: str, params: str) -> QuerySet[Sediment]:
    """Return the rows of one workload with these parameters, newest first."""
    return Sediment.objects.filter(workload=workload, params_digest=params_digest(params)).order_by("-at")


def says_more(row: Row) -> bool:
    """Return whether a row by the kernel's figure adds to what is known of its key; a million of them would not.

    It does not where runs were sampled or a figure as large is kept, unless a run that failed came after.
    """
    key = row.key
    fields = ("completed", "by_kernel", "fingerprint", "workers", "peaks")
    known = of_key(key.workload, key.params).filter(forgotten=False, atypical=False)
    kept = list(known.values_list(*fields)[:_LOOKED_AT])
    if not kept or not kept[0][0]:
        return True
    return not any(
        completed
        and "ram" in peaks
        and (
            not by_kernel
            or ((fingerprint, workers) == (key.fingerprint, key.workers) and peaks["ram"] >= row.peaks["ram"])
        )
        for completed, by_kernel, fingerprint, workers, peaks in kept
    )


def _closed(found: QuerySet[Sediment]) -> dict[int, Row]:
    """Return the newest of these rows by id. Only those that were not read before are: a closed window never changes.

    A mark does, and takes part in what a kept row is found by.
    """
    stamped = found.filter(forgotten=False).annotate(stamp=Cast("at", TextField()))  # to compare, not to read
    heads = list(stamped.values_list("pk", "stamp", "atypical")[:NEWEST])
    with _reading:
        if len(_kept) > _LIMIT:
            _kept.clear()
        unread = {head[0]: head for head in heads if head not in _kept}
        for s in Sediment.objects.filter(pk__in=unread):
            _kept[unread[s.pk]] = _row(s)
        return {head[0]: _kept[head] for head in heads if head in _kept}


def pinned(key: Key) -> dict[str, int]:
    """Return what an operator pinned for a key, kind of pool to bytes; what its script alone has goes first."""
    subjects = ("", keys.subject(key.workload, key.script, key.params))
    found = Pin.objects.filter(workload=key.workload, subject__in=subjects).order_by("subject")
    return dict(found.values_list("kind", "bytes"))


def durations(workload: str, params: str, user: str) -> list[float]:
    """Return seconds of completed runs, newest first: of the key, else of the user's last 50 runs."""
    of_this = of_key(workload, params).filter(completed=True, forgotten=False)
    of_user = Sediment.objects.filter(user=user, completed=True, forgotten=False).order_by("-at")
    return list(of_this.values_list("duration", flat=True)[:50]) or list(
        of_user.values_list("duration", flat=True)[:50]
    )


def _row(s: Sediment) -> Row:
    return Row(
        key=Key(s.workload, s.fingerprint, s.params, s.script, s.workers),
        completed=s.completed,
        outcome=s.outcome,
        peaks=s.peaks,
        seconds_to_peak=s.seconds_to_peak,
        duration=s.duration,
        samples=s.samples,
        longest_gap=s.longest_gap,
        charge=s.charge,
        cap=s.cap,
        next_charge=s.next_charge,
        lower_bound_note=s.lower_bound_note,
        preallocated=s.preallocated,
        by_kernel=bool(s.by_kernel),
        atypical=s.atypical,
        at=s.at.timestamp(),
    )


def _open_rows(key: Key) -> list[Row]:
    found = OpenWindow.objects.filter(key__workload=key.workload, key__params=key.params).exclude(settled={})
    return [
        Row(
            key=Key(**w.key),
            completed=False,
            outcome="running",
            peaks=w.settled,
            open=True,
            at=w.opened_at.timestamp(),
        )
        for w in found
    ]
