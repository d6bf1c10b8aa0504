"""What a job is expected to need, read from sediment, kept per key until the store changes."""

from __future__ import annotations

from calibration import rows
from calibration.domain.estimate import Estimate, estimate
from calibration.domain.knobs import Knobs
from calibration.domain.sediment import Key, Row
from placement.domain.admission.demands import promised
from placement.domain.submitting.taken import Kind, exactly
from placement.domain.world.durations import quantile
from placement.models import Job

_LIMIT = 4096
_kept: dict[tuple[object, ...], object] = {}
_kept_version = -1


def key_of(job: Job) -> Key:
    """Return what a job is learned under."""
    return Key(job.key_workload, job.key_fingerprint, job.key_params, job.key_script, max(1, job.workers))


def estimate_of(job: Job, version: int, knobs: Knobs) -> Estimate:
    """Return the estimate of a stored or unsaved job at a version of the store (see calibration.rows.version).

    Of a group it is what each device is expected to need; what is reserved exactly stands in its place.
    """
    if job.kind == Kind.HOLD:
        return exactly(None if job.gpu == "none" else job.declared_vram or 0, job.declared_ram or 0)
    declared = _given(ram=job.declared_ram, vram=job.declared_vram)
    hint = _given(ram=job.workload.hint_ram, vram=job.workload.hint_vram) if job.workload else {}
    needs = frozenset({"ram"} if job.gpu == "none" else {"ram", "vram"})
    key = key_of(job)
    request = job.request() if job.devices_wanted else None
    name = ("estimate", key, tuple(declared.items()), tuple(hint.items()), needs, knobs, request)
    found = _cached(name, version)
    if found is None:
        found = estimate(
            key,
            _rows(key, version),
            hint=hint or None,
            declared=declared or None,
            pinned=rows.pinned(key) or None,
            needs=needs,
            knobs=knobs,
        )
        if request is not None:
            found = promised(request, found)
        _kept[name] = found
    assert isinstance(found, Estimate)
    return found


def learned_duration(job: Job, version: int) -> float | None:
    """Return the 90 % quantile of seconds that runs of the key took, else of the user's last 50, else None."""
    seconds = seen_durations(job, version)
    return quantile(seconds, 0.9) if seconds else None


def seen_durations(job: Job, version: int) -> tuple[float, ...]:
    """Return the seconds that runs of the key took, else of the user's last 50, shortest first; () for none."""
    name = ("durations", job.key_workload, job.key_params, job.user_id)
    found = _cached(name, version)
    if found is None:
        found = tuple(sorted(rows.durations(job.key_workload, job.key_params, job.user.get_username())))
        _kept[name] = found
    assert isinstance(found, tuple)
    return found


def _rows(key: Key, version: int) -> list[Row]:
    name: tuple[object, ...] = ("rows", key.workload, key.params, key.script)
    found = _cached(name, version)
    if found is None:
        if not rows.seen(key):  # a sweep brings a thousand such keys of one script at once
            name = ("rows", key.workload, None, key.script)
            found = _cached(name, version)
        if found is None:
            found = rows.rows_for(key)
        _kept[name] = found
    assert isinstance(found, list)
    return found


def _cached(name: tuple[object, ...], version: int) -> object | None:
    global _kept_version
    if version != _kept_version or len(_kept) > _LIMIT:
        _kept.clear()
        _kept_version = version
    return _kept.get(name)


def forget() -> None:
    """Forget what is kept."""
    _kept.clear()


def _given(**amounts: int | None) -> dict[str, int]:
    return {kind: amount for kind, amount in amounts.items() if amount is not None}


def seconds_to_peak(job: Job, version: int, kind: str) -> float | None:
    """Return the longest time that a completed run of the key took to its peak of one kind, None if none is known."""
    key = key_of(job)
    seconds = [
        row.seconds_to_peak[kind]
        for row in _rows(key, version)
        if row.completed and row.key == key and kind in row.seconds_to_peak
    ]
    return max(seconds, default=None)
