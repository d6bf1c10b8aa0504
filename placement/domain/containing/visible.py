"""Which devices a command sees: a variable for each interface that has one, and ours that name them all.

What nobody could try on such hardware: the numbers that hide all of Level Zero's devices and all TPUs. Both leave out a
number that no device has; an empty value would count as not set.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

OF_BACKEND = {"ROCM": "ROCR_VISIBLE_DEVICES", "XPU": "ZE_AFFINITY_MASK"}
"""Masks by number, besides CUDA's. There is none for OPENCL and MPS; a TPU has its own, by whatever it is used."""
TPU = "TPU_VISIBLE_CHIPS"
HIDES = {"ROCR_VISIBLE_DEVICES": "-1", "ZE_AFFINITY_MASK": "9999", TPU: "-1"}


class Seen(NamedTuple):
    """A device as the command is shown it: its UUID, its driver's number or None, what it offers."""

    uuid: str
    number: int | None
    backends: tuple[str, ...] = ("CUDA",)
    kind: str = "GPU"


def masks_of(device: Seen) -> set[str]:
    """Return the variables by whose numbers a device is shown or hidden; none for OPENCL and MPS."""
    masks = {"CUDA": "CUDA_VISIBLE_DEVICES", **OF_BACKEND}
    found = {masks[word] for word in device.backends if word in masks}
    return found | ({TPU} if device.kind == "TPU" else set())


def device_variables(devices: Sequence[Seen], *, by_uuid: bool = False, there: Collection[str] = ()) -> dict[str, str]:
    """Return which devices the command sees, the first as its number 0, and what hides all others from it.

    ``there`` are the backends, and "TPU", of all devices declared on the node: what is not there needs no hiding. An
    index and a UUID cannot stand side by side: where one has no index, as a MIG instance, CUDA's go by UUID, as they do
    with ``by_uuid``.
    """
    cuda = [one for one in devices if "CUDA" in one.backends]
    by_uuid = by_uuid or any(one.number is None or one.uuid.startswith("MIG-") for one in cuda)
    listed = ",".join(one.uuid if by_uuid else str(one.number) for one in cuda)
    variables = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": listed}  # "" hides every device from CUDA
    for backend, name in OF_BACKEND.items():
        own = [one for one in devices if backend in one.backends]
        if own:
            variables[name] = _numbers(own, in_order=backend == "XPU") or HIDES[name]
        elif backend in there or (backend == "ROCM" and not cuda):
            variables[name] = HIDES[name]
    if rocm := [one for one in devices if "ROCM" in one.backends]:
        # The lower filter counts first and renumbers, so what comes after it counts from 0, and CUDA's name is one more
        # of its names.
        variables["HIP_VISIBLE_DEVICES"] = ",".join(str(number) for number in range(len(rocm)))
        if not cuda and "CUDA" not in there:
            variables["CUDA_VISIBLE_DEVICES"] = variables["HIP_VISIBLE_DEVICES"]
    elif "ROCR_VISIBLE_DEVICES" in variables:
        variables["HIP_VISIBLE_DEVICES"] = "-1"
    if tpu := [one for one in devices if one.kind == "TPU"]:
        variables[TPU] = _numbers(tpu, in_order=True) or HIDES[TPU]
    elif "TPU" in there:
        variables[TPU] = HIDES[TPU]
    variables["TIDEGATE_DEVICE_UUIDS"] = ",".join(one.uuid for one in devices)
    variables["TIDEGATE_DEVICE_INDICES"] = "" if cuda and by_uuid else _numbers(devices)
    return variables | _by_backend(devices, {*there} - {"TPU"}, cuda_by_uuid=bool(cuda) and by_uuid)


def _by_backend(devices: Sequence[Seen], there: set[str], *, cuda_by_uuid: bool) -> dict[str, str]:
    """Return the same lists for each backend that not all of them offer: positions are counted among those who do."""
    found = {}
    for backend in sorted({word for one in devices for word in one.backends} | there):
        own = [one for one in devices if backend in one.backends]
        if len(own) < len(devices):
            found[f"TIDEGATE_{backend}_UUIDS"] = ",".join(one.uuid for one in own)
            found[f"TIDEGATE_{backend}_INDICES"] = "" if cuda_by_uuid and backend == "CUDA" else _numbers(own)
    return found


def _numbers(devices: Sequence[Seen], *, in_order: bool = False) -> str:
    """Return the numbers, "" where one is not known: what no number names is shown to nobody, and 0 is another device.

    ``in_order`` where the driver keeps to its own order, whatever the list says.
    """
    known = [one.number for one in devices if one.number is not None]
    if len(known) < len(devices):
        return ""
    return ",".join(str(number) for number in (sorted(known) if in_order else known))
