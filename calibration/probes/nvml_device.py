"""What one NVIDIA device tells: its memory, the processes on it, and how busy they keep it."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

with warnings.catch_warnings():
    # The package of this name warns that its code now comes from nvidia-ml-py, which is what it installs.
    warnings.filterwarnings("ignore", message="The pynvml package is deprecated", category=FutureWarning)
    import pynvml  # type: ignore[import-untyped]

__all__ = ["instances", "memory", "merged", "processes", "pynvml", "utilisation"]

Entry = tuple[int, int | None, object]
"""(pid, bytes or None, the instance of the device it runs on)."""
NO_INSTANCE = (0xFFFFFFFF, 0xFFFFFFFF)
"""What stands for the instance where a device has none, or the driver does not say."""
_NOT_TOLD = 0xFFFFFFFFFFFFFFFF

_LISTS = (
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetGraphicsRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses",
)
_NO_SUCH_LIST = (
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
)
_FATAL = (
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_GPU_IS_LOST,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
)

_OLD_DRIVER = (
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
)


def memory(handle: Any, uuid: str, old: set[str]) -> tuple[int, int, int | None]:
    """Return (total, free, reserved) in bytes; reserved is None where only the first call exists.

    ``old`` keeps the devices that know that call alone: one is read the same way for good, so no figure
    jumps by the reserved part between two looks. Raises NVMLError.
    """
    if uuid not in old:
        try:
            second = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
            return int(second.total), int(second.free), int(second.reserved)
        except pynvml.NVMLError as error:
            if error.value not in _OLD_DRIVER:
                raise
    first = pynvml.nvmlDeviceGetMemoryInfo(handle)
    old.add(uuid)
    return int(first.total), int(first.free), None


def merged(lists: Iterable[Iterable[Entry]]) -> tuple[tuple[int, int | None], ...]:
    """Return each pid once, sorted: of several lists the larger figure, and a known one beats None.

    A pid is added up only over different instances; an entry that names none is about the whole of them.
    """
    found: dict[int, dict[object, int | None]] = {}
    for entries in lists:
        for pid, size, instance in entries:
            sizes = found.setdefault(pid, {})
            sizes[instance] = _larger(sizes.get(instance), size)
    best: dict[int, int | None] = {}
    for pid, sizes in found.items():
        parts = [size for instance, size in sizes.items() if instance != NO_INSTANCE]
        known = [size for size in parts if size is not None]
        best[pid] = _larger(sizes.get(NO_INSTANCE), sum(known) if parts and len(known) == len(parts) else None)
    return tuple(sorted(best.items()))


def instances(handle: Any) -> list[tuple[int, Any]] | None:
    """Return (place, handle) of each MIG instance of a device, None where MIG is off or unknown to it.

    Raises NVMLError where the error concerns the device or the whole driver.
    """
    try:
        on, _pending = pynvml.nvmlDeviceGetMigMode(handle)
        places = pynvml.nvmlDeviceGetMaxMigDeviceCount(handle) if on else 0
    except pynvml.NVMLError as error:
        if error.value in _FATAL:
            raise
        return None
    if not on:
        return None
    found = []
    for place in range(places):
        try:
            found.append((place, pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)))
        except pynvml.NVMLError as error:
            if error.value in _FATAL:
                raise  # otherwise nothing is made at this place
    return found


def _larger(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def processes(handle: Any) -> tuple[tuple[tuple[int, int | None], ...], str]:
    """Return (processes, word); the word says that a list could not be read.

    Raises NVMLError where the error concerns the device or the whole driver.
    """
    lists: list[list[Entry]] = []
    word = ""
    for name in _LISTS:
        try:
            found = _list(name, handle)
        except pynvml.NVMLError as error:
            if error.value in _FATAL:
                raise
            if error.value not in _NO_SUCH_LIST or name == _LISTS[0]:
                word = f"its process list cannot be read: {error}"
            continue
        lists.append([(p.pid, p.usedGpuMemory, (p.gpuInstanceId, p.computeInstanceId)) for p in found])
    return merged(lists), word


def _list(name: str, handle: Any) -> list[Any]:
    """Ask for one list in its third form, else in its second, else in its first, as older drivers know it."""
    for form in ("_v3", "_v2"):
        try:
            return list(getattr(pynvml, f"{name}{form}")(handle))
        except pynvml.NVMLError as error:
            if error.value != pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
                raise
    return _first_form(name, handle)


class _First(ctypes.Structure):
    """A process as the first form of the call tells it: without instances."""

    _fields_ = (("pid", ctypes.c_uint), ("size", ctypes.c_ulonglong))


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    usedGpuMemory: int | None
    gpuInstanceId: int = NO_INSTANCE[0]
    computeInstanceId: int = NO_INSTANCE[1]


def _first_form(name: str, handle: Any) -> list[Any]:
    """Ask without a number, past pynvml, whose function of that name is the third form by now. Raises NVMLError."""
    call = pynvml._nvmlGetFunctionPointer(name)
    count = ctypes.c_uint(0)
    answer = call(handle, ctypes.byref(count), None)
    if answer == pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
        count.value = 2 * count.value + 5  # some may have come meanwhile
        room = (_First * count.value)()
        answer = call(handle, ctypes.byref(count), room)
    else:
        room = (_First * 0)()
    if answer != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(answer)
    return [_Process(p.pid, None if p.size == _NOT_TOLD else p.size) for p in room[: count.value]]


def utilisation(handle: Any, uuid: str, seen_us: dict[str, int]) -> tuple[float | None, tuple[tuple[int, float], ...]]:
    """Return (share of time in which kernels ran, the same per pid), None and () where the driver is silent.

    ``seen_us`` keeps per device the time stamp up to which the driver has told of processes.
    """
    busy: float | None = None
    per_process: dict[int, float] = {}
    try:
        busy = pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
    except pynvml.NVMLError:
        pass  # no figure is an answer here: nothing of what is gated depends on it
    try:
        for sample in pynvml.nvmlDeviceGetProcessUtilization(handle, seen_us.get(uuid, 0)):
            seen_us[uuid] = max(seen_us.get(uuid, 0), sample.timeStamp)
            if sample.pid:
                per_process[sample.pid] = max(per_process.get(sample.pid, 0.0), sample.smUtil / 100)
    except pynvml.NVMLError:
        pass  # an empty buffer is an error to the driver
    return busy, tuple(sorted(per_process.items()))
