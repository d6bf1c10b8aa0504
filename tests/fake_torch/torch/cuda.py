"""CUDA without a device: what was queued runs once, when a device is first used."""

import os
from types import SimpleNamespace

_queued = []
_ready = False
_inside = False
fractions = {}
held = {}
peak = {}


def _devices():
    rows = [row.rpartition(":") for row in os.environ.get("FAKE_TORCH_DEVICES", "").split(",") if row]
    return [SimpleNamespace(uuid=uuid, total_memory=int(size)) for uuid, _, size in rows]


def _lazy_call(call):
    if _ready:
        call()
    else:
        _queued.append(call)


def init():
    global _ready, _inside
    if _ready or _inside:
        return
    _inside = True
    while _queued:
        _queued.pop(0)()  # what a call raises reaches the job, as it does in torch
    _ready, _inside = True, False


def is_initialized():
    return _ready


def device_count():
    return len(_devices())


def get_device_properties(device):
    return _devices()[device]


def mem_get_info(device):
    total = int(os.environ.get("FAKE_TORCH_LIMIT", _devices()[device].total_memory))
    return total, total


def set_per_process_memory_fraction(fraction, device=None):
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1 or os.environ.get("FAKE_TORCH_BREAKS"):
        raise ValueError("Invalid fraction value")
    fractions[device] = fraction


def memory_reserved(device=0):
    return held.get(device, 0)


def max_memory_reserved(device=0):
    return peak.get(device, 0)


def take(size, device=0):
    """Reserve bytes on a device, as a tensor would."""
    from . import _C, OutOfMemoryError

    init()
    total = _devices()[device].total_memory
    allowed = int(total * fractions.get(device, 1.0))
    free = int(os.environ.get("FAKE_TORCH_FREE", total))
    if held.get(device, 0) + size > allowed or size > free:
        for observer in _C.observers:
            observer(device, size, allowed, free)
        raise OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size / 2**30:.2f} GiB.")
    held[device] = held.get(device, 0) + size
    peak[device] = max(peak.get(device, 0), held[device])
