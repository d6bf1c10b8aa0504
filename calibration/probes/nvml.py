"""NVIDIA devices through pynvml: each on its own, and three answers for three kinds of silence."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from calibration.domain.one_pool import SHARES, is_one_pool
from calibration.domain.samples import PoolSample, PoolState
from calibration.probes.nvml_device import instances, memory, processes, pynvml, utilisation

BACK_OFF_S = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses between attempts at a driver that does not answer; the last one repeats."""


_OF_THE_LIBRARY = (pynvml.NVML_ERROR_UNINITIALIZED, pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)


@dataclass(frozen=True, slots=True)
class NvmlLook:
    """What the driver answered. ``library``: "absent", "not_ready", "ok" or "error"; ``message`` its word.

    ``pools`` holds every device that answered and every device known from before, readable or not.
    """

    library: str
    message: str
    pools: list[PoolSample]
    notes: tuple[str, ...] = ()


class Nvml:
    """Reads all devices in one look. Never raises; belongs to one thread at a time.

    The driver's state belongs to a process: after a fork it is opened anew. ``expected`` are devices known
    from earlier (a restart, say): they stay in every look, whatever the driver says. With MIG on a device's
    instances are looked at instead of it, and it stays as their heading.
    """

    def __init__(
        self,
        *,
        expected: Iterable[PoolSample] = (),
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._wall = wall
        self._known = {pool.pool: pool for pool in expected}
        self._old_memory: set[str] = set()  # devices that know the first memory call only
        self._seen_us: dict[str, int] = {}
        self._opened_by: int | None = None
        self._failures = 0
        self._again_at = float("-inf")
        self._lost_again_at: float | None = None
        self._last = ("absent", "")
        self._forgotten: set[str] = set()

    def forget(self, uuids: Iterable[str]) -> None:
        """Leave these out from the next look on, unless the driver lists them again; from any thread."""
        self._forgotten |= set(uuids)

    def look(self) -> NvmlLook:
        """Return all devices as they answer now; a driver that is away is asked again after a pause."""
        now = self._clock()
        while self._forgotten:
            self._known.pop(self._forgotten.pop(), None)
        if self._lost_again_at is not None and now >= self._lost_again_at:
            self._close()  # a card that fell off the bus may need a fresh session to be seen again
            self._lost_again_at = None
        for attempt in (1, 2):
            if self._opened_by != os.getpid():
                if self._opened_by is None and now < self._again_at:
                    return self._silent()
                try:
                    pynvml.nvmlInit()
                except pynvml.NVMLError as error:
                    return self._away(error, now)
                self._opened_by = os.getpid()
            try:
                look = self._devices()
            except pynvml.NVMLError as error:
                self._close()
                if error.value == pynvml.NVML_ERROR_UNINITIALIZED and attempt == 1:
                    continue  # a session that a fork or another user of the library has ended
                return self._away(error, now)
            self._failures = 0
            self._again_at = float("-inf")
            return look
        return self._silent()

    def _close(self) -> None:
        if self._opened_by == os.getpid():
            try:
                pynvml.nvmlShutdown()
            except pynvml.NVMLError:
                pass  # there is nothing left to close
        self._opened_by = None

    def _away(self, error: Any, now: float) -> NvmlLook:
        self._opened_by = None
        self._again_at = now + BACK_OFF_S[min(self._failures, len(BACK_OFF_S) - 1)]
        self._failures += 1
        if error.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
            self._last = ("absent", "no NVIDIA GPU: the driver's library is not installed")
        elif error.value in (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, pynvml.NVML_ERROR_NOT_READY):
            self._last = ("not_ready", f"the NVIDIA driver is not ready: {error}")
        else:
            word = f"the NVIDIA driver cannot be used: {str(error).rstrip('.')}"
            if error.value == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
                word += "; after a driver update reboot, or reload the driver and restart this node's service"
            self._last = ("error", word)
        return self._silent()

    def _silent(self) -> NvmlLook:
        library, message = self._last
        pools = [self._without(pool, PoolState.UNREADABLE, message) for pool in self._known.values()]
        return NvmlLook(library, message, pools)

    def _without(self, pool: PoolSample, state: PoolState, word: str) -> PoolSample:
        """Keep a known device that gives no figures now, with the moment and the driver's word."""
        since = pool.since if pool.state is state and pool.since is not None else self._wall()
        kept = replace(pool, state=state, message=word, since=since, busy=None, processes=(), process_busy=())
        self._known[pool.pool] = kept
        return kept

    def _devices(self) -> NvmlLook:
        """Raises NVMLError only where the driver as a whole does not answer."""
        answered: dict[str, PoolSample] = {}
        words: dict[int, Any] = {}
        told: set[str] = set()  # devices that said which instances they have
        for index in range(pynvml.nvmlDeviceGetCount()):
            uuid = None
            try:
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                uuid = pynvml.nvmlDeviceGetUUID(handle)
                parts = instances(handle)
                told.add(uuid)
                if parts is None:
                    answered[uuid] = self._known[uuid] = self._device(handle, uuid, index)
                else:
                    answered[uuid] = self._heading(handle, uuid, index, len(parts))
                    answered |= self._instances(parts, uuid, index)
            except pynvml.NVMLError as error:
                if error.value in _OF_THE_LIBRARY:
                    raise  # no word about this device but about the whole library
                words[index] = error
                if uuid is not None:
                    known = self._known.get(uuid) or _blank(uuid, index)
                    answered[uuid] = self._without(replace(known, index=index), *_verdict(error))
        notes = [
            f"the device with number {index} does not answer and was never seen before: {error}"
            for index, error in words.items()
            if all(pool.index != index for pool in self._known.values())
        ]
        for uuid, pool in list(self._known.items()):
            if uuid not in answered and pool.parent in told:
                answered[uuid] = self._without(pool, PoolState.GONE, "this MIG instance was removed")
            elif uuid not in answered:
                at_its_place = words.get(pool.index) if pool.index is not None else None
                word = str(at_its_place or "the driver no longer lists it")
                answered[uuid] = self._without(pool, PoolState.LOST, word)
        if self._lost_again_at is None and any(p.state is PoolState.LOST for p in answered.values()):
            self._lost_again_at = self._clock() + BACK_OFF_S[-1]
        self._last = ("ok", "")
        return NvmlLook("ok", "", list(answered.values()), tuple(notes))

    def _heading(self, handle: Any, uuid: str, index: int, count: int) -> PoolSample:
        """Return a device whose instances are the devices. Its own figures, where it tells them, are their sum."""
        word = f"MIG on, {count} instance{'s' if count > 1 else ''}" if count else "MIG on, no instances"
        found = replace(
            _blank(uuid, index),
            state=PoolState.HEADING,
            model=pynvml.nvmlDeviceGetName(handle),
            read_at=self._clock(),
            message=word,
        )
        try:
            total, free, reserved = memory(handle, uuid, self._old_memory)
            found = replace(found, total=total, free=free, used=_used(total, free, reserved), reserved=reserved)
        except pynvml.NVMLError as error:
            if error.value in _OF_THE_LIBRARY:
                raise  # that it may not be asked is common: the sum over all instances needs privilege
        self._known[uuid] = found
        return found

    def _instances(self, parts: Iterable[tuple[int, Any]], parent: str, index: int) -> dict[str, PoolSample]:
        found: dict[str, PoolSample] = {}
        for place, handle in parts:
            uuid = None
            try:
                uuid = pynvml.nvmlDeviceGetUUID(handle)
                looked = replace(self._device(handle, uuid, index), name=f"gpu{index}.{place}", parent=parent)
                found[uuid] = self._known[uuid] = looked
            except pynvml.NVMLError as error:
                if error.value in _OF_THE_LIBRARY:
                    raise
                if uuid is not None:
                    blank = replace(_blank(uuid, index), name=f"gpu{index}.{place}", parent=parent)
                    found[uuid] = self._without(self._known.get(uuid) or blank, *_verdict(error))
        return found

    def _device(self, handle: Any, uuid: str, index: int) -> PoolSample:
        at = self._clock()  # before the call: a call that hung brings figures from before it hung
        found = replace(_blank(uuid, index), read_at=at, model=pynvml.nvmlDeviceGetName(handle))
        if is_one_pool(found.model):
            found = replace(found, state=PoolState.UNMEASURED, shares=True, message=SHARES)
        else:
            found = self._measured(found, handle)
        lists, word = processes(handle)
        busy, per_process = utilisation(handle, uuid, self._seen_us)
        return replace(found, message=word or found.message, busy=busy, processes=lists, process_busy=per_process)

    def _measured(self, found: PoolSample, handle: Any) -> PoolSample:
        """Return the device with its memory, or with the word that it does not tell how much it has."""
        try:
            total, free, reserved = memory(handle, found.pool, self._old_memory)
        except pynvml.NVMLError as error:
            known = self._known.get(found.pool)
            if error.value != pynvml.NVML_ERROR_NOT_SUPPORTED or (known and known.total):
                raise  # one that told its memory before is in trouble, not of another kind
            return replace(found, state=PoolState.UNMEASURED, message=f"cannot be measured: {error}")
        if total <= 0:
            return replace(
                found, state=PoolState.UNMEASURED, message="cannot be measured: the driver tells a size of 0"
            )
        used = _used(total, free, reserved)
        return replace(found, state=PoolState.OK, total=total, free=free, used=used, reserved=reserved)


def _used(total: int, free: int, reserved: int | None) -> int:
    """Return what is in use. Derived: drivers differ in whether the figure of that name includes what they reserve."""
    return max(0, total - free - (reserved or 0))


def _blank(uuid: str, index: int) -> PoolSample:
    return PoolSample(uuid, "vram", f"gpu{index}", PoolState.UNREADABLE, index=index, backend="CUDA")


def _verdict(error: Any) -> tuple[PoolState, str]:
    if error.value == pynvml.NVML_ERROR_GPU_IS_LOST:
        return PoolState.LOST, str(error)
    return PoolState.UNREADABLE, f"cannot be measured: {error}"
