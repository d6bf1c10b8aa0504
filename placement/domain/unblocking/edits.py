"""What a waiting job could ask for instead so that it starts: always less, and each thing by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from calibration.domain.estimate import Basis, Estimate
from calibration.domain.resources import MIB
from placement.domain.admission.demands import promised
from placement.domain.planning.plan import Cycle
from placement.domain.unblocking.changes import Edited
from placement.domain.world.requests import Exclusive, Gpu
from placement.domain.world.snapshot import Waiting

ForWorkers = Callable[[int], Estimate]
Declaring = Callable[[str, int], Estimate]
OnDevices = Callable[[int], Estimate]
Found = TypeVar("Found")

MOST_WORKERS = 64  # as a preview looks for
_MINUTE = 60.0  # seconds; limits are told in whole ones
_SPARE = 30.0  # seconds that a limit is shorter than the time that is left: a click comes later than what it answers
_STEP = 64 * MIB  # smaller amounts are looked for in such steps


def found_by(
    cycle: Cycle,
    waiting: Waiting,
    tried: Callable[[Edited], Found | None],
    for_workers: ForWorkers | None,
    declaring: Declaring | None,
    on_devices: OnDevices | None,
) -> Iterator[Found]:
    """Yield what ``tried`` says of each edit with which it starts, of each kind the one that asks for most."""
    if for_workers is not None:
        for count in range(min(waiting.workers - 1, MOST_WORKERS), 0, -1):
            if found := tried(Edited(for_workers(count), workers=count)):
                yield found
                break
    if waiting.request.exclusive is not Exclusive.NO and (found := tried(Edited(beside=True))):
        yield found
    named = waiting.request.node is not None or waiting.request.device is not None
    if named and (found := tried(Edited(anywhere=True))):
        yield found
    if (limit := _short_enough(cycle, waiting)) and (found := tried(Edited(limit=limit))):
        yield found
    if on_devices is not None and waiting.request.gpu is Gpu.GROUP:
        for count in range(waiting.request.min_devices - 1, 0, -1):
            if found := tried(Edited(on_devices(count), devices=count)):
                yield found
                break
    for name in ("per_device_memory", "group_memory"):
        if found := _reserved(waiting, name, tried):
            yield found
    if declaring is not None:
        for kind in ("vram", "ram"):
            if found := _declared(waiting, kind, declaring, tried):
                yield found


def _short_enough(cycle: Cycle, waiting: Waiting) -> float | None:
    """Return a time limit, in whole minutes, with which it would be over before an older job's plan; None for none.

    Where runs like it are known to take longer, it would only be cut off.
    """
    if cycle.bar is None:
        return None
    left = cycle.bar.at - cycle.snapshot.at - _SPARE
    limit = left // _MINUTE * _MINUTE
    if limit < _MINUTE or (waiting.limit is not None and waiting.limit <= limit):
        return None
    return None if waiting.learned is not None and waiting.learned > limit else limit


def _declared(
    waiting: Waiting, kind: str, declaring: Declaring, tried: Callable[[Edited], Found | None]
) -> Found | None:
    """Return the largest smaller declaration that starts, None where the charge does not stand on one."""
    pool = waiting.estimate.pools.get(kind)
    if pool is None or pool.basis is not Basis.DECLARED or not pool.need:
        return None
    if kind == "vram" and (waiting.request.gpu is Gpu.NONE or waiting.request.exact):
        return None
    return _largest(pool.need, lambda amount: tried(Edited(declaring(kind, amount), declared={kind: amount})))


def _reserved(waiting: Waiting, name: str, tried: Callable[[Edited], Found | None]) -> Found | None:
    """Return the largest smaller amount to reserve that starts: of each device, or of the group together."""
    amount = getattr(waiting.request, name)
    if amount is None:
        return None

    def with_less(less: int) -> Found | None:
        edit = Edited(reserved={name: less})
        return tried(replace(edit, estimate=promised(edit.made(waiting).request, waiting.estimate)))

    return _largest(amount, with_less)


def _largest(before: int, tried: Callable[[int], Found | None]) -> Found | None:
    """Return what the largest amount finds that is less than before, in whole steps; None where none does."""
    low, high, best = 0, (before - 1) // _STEP, None
    while low < high:
        middle = (low + high + 1) // 2
        found = tried(middle * _STEP)
        if found is None:
            high = middle - 1
        else:
            low, best = middle, found
    return best
