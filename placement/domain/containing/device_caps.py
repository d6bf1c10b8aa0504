"""What keeps a job within its device memory, on what evidence: the driver, an instance, MPS, a framework, or nobody.

The best that holds is told. Without a limit of the kernel or a receipt a job is watched, not capped.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calibration.domain.resources import gib

UNREAD = "booked only: nothing measures this device, so nobody watches or caps the job there"


class CapKind(enum.StrEnum):
    """From the strongest down. ``FRAMEWORK`` holds for what a framework allocates, and for those who applied it."""

    DRIVER = "driver"
    INSTANCE = "instance"
    MPS = "mps"
    FRAMEWORK = "framework"
    WATCHED = "watched"
    UNREAD = "unread"  # nobody measures the device, so nobody can tell what the job holds of it, or stop it


@dataclass(frozen=True, slots=True)
class Applied:
    """One process's receipt that a framework took a limit. Bytes; ``pool`` is what it may allocate.

    ``processes``: how many share the cap as the process was told, None where each took all of it. ``together``: the
    limit is on all of the job's processes at once, contexts included.
    """

    pid: int
    framework: str
    pool: int | None = None
    processes: int | None = None
    together: bool = False


@dataclass(frozen=True, slots=True)
class Given:
    """All that is known of the caps on a job's memory on one device; bytes.

    ``driver_limit`` is the driver's own record for the job's control group, ``instance`` the size of a MIG instance,
    ``mps`` what was told to clients of an MPS server that was alive. ``on_device`` are the job's processes there, None
    where the driver does not tell. ``kept``: variables of frameworks that the submission set itself. A ``simulated``
    device refuses what is above the cap itself.
    """

    cap: int | None
    driver_limit: int | None = None
    driver_why_not: str = ""
    instance: int | None = None
    mps: int | None = None
    armed: Sequence[int] = ()
    applied: Sequence[Applied] = ()
    on_device: Sequence[int] | None = None
    context: int = 0
    context_runs: int = 0
    shim_off: bool = False
    kept: Sequence[str] = ()
    simulated: bool = False
    ended: bool = False
    unread: bool = False


@dataclass(frozen=True, slots=True)
class CapStand:
    """What is in force. ``bytes`` is what the job can hold at most under it, None where nothing holds it."""

    kind: CapKind
    bytes: int | None
    sentence: str
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """Return plain values to store."""
        return {
            "kind": self.kind.value,
            "bytes": self.bytes,
            "sentence": self.sentence,
            "evidence": dict(self.evidence),
        }


def cap_in_force(given: Given) -> CapStand:
    """Return the strongest cap that holds, with its evidence."""
    if given.unread:
        return CapStand(CapKind.UNREAD, None, UNREAD)
    context = {"context": given.context, "context_runs": given.context_runs}
    if given.driver_limit is not None:
        told = f"capped by the driver at {gib(given.driver_limit)}"
        return CapStand(CapKind.DRIVER, given.driver_limit, told, {"driver_limit": given.driver_limit})
    if given.instance is not None:
        told = f"capped by its MIG instance, which has {gib(given.instance)}"
        return CapStand(CapKind.INSTANCE, given.instance, told, {"instance": given.instance})
    if given.mps is not None:
        told = f"capped by the MPS server at {gib(given.mps)}"
        return CapStand(CapKind.MPS, given.mps, told, {"mps": given.mps})
    found = _evidence(given) | context
    if given.cap is None:
        return CapStand(CapKind.WATCHED, None, "no cap", found)
    if given.simulated:
        told = f"capped by the simulated device at {gib(given.cap)}"
        return CapStand(CapKind.FRAMEWORK, given.cap, told, found)
    bare = _without_receipt(given)
    if given.applied and not bare:
        return _framework(given, found)
    return CapStand(CapKind.WATCHED, None, f"watched, not capped: {_why(given, bare)}", found)


def _evidence(given: Given) -> dict[str, Any]:
    found: dict[str, Any] = {"armed": sorted(given.armed), "applied": sorted(one.pid for one in given.applied)}
    if given.driver_why_not:
        found["driver"] = given.driver_why_not
    if given.kept:
        found["kept"] = sorted(given.kept)
    if given.on_device is not None:
        found["on_device"] = sorted(given.on_device)[:50]
    return found


def _without_receipt(given: Given) -> list[int]:
    """Return the job's processes that are on the device and told nothing of a limit."""
    told = {one.pid for one in given.applied}
    return sorted(pid for pid in given.on_device or () if pid not in told)


def _framework(given: Given, found: Mapping[str, Any]) -> CapStand:
    names = " and ".join(sorted({one.framework for one in given.applied}))
    count = _processes(len(given.applied))
    pools = [one.pool for one in given.applied]
    known = [pool for pool in pools if pool is not None]
    if len(known) < len(pools):
        return CapStand(CapKind.FRAMEWORK, None, f"capped in {names} (receipt of {count})", found)
    if all(one.together for one in given.applied):
        return CapStand(
            CapKind.FRAMEWORK, max(known), f"capped in {names} at {gib(max(known))} (receipt of {count})", found
        )
    most = sum(pool + given.context for pool in known)
    if len(known) == 1:
        told = f"capped in {names} at {gib(known[0])} and its context (receipt of {count})"
    elif given.cap is not None and most <= given.cap:
        told = f"capped in {names} at {gib(given.cap)} together (receipt of {count})"
    else:
        told = (
            f"capped in {names} at up to {gib(max(known))} each (receipt of {count}); "
            f"nobody said how many share {gib(given.cap)}, so their sum is watched"
        )
    return CapStand(CapKind.FRAMEWORK, most, told, found)


def _why(given: Given, bare: Sequence[int]) -> str:
    if given.applied:
        shown = ", ".join(str(pid) for pid in bare[:3]) + (", …" if len(bare) > 3 else "")
        have = "have" if len(bare) > 1 else "has"
        return (
            f"of its processes on the device pid {shown} {have} no receipt ({_processes(len(given.applied))} told one)"
        )
    if given.armed:
        came = "never used the device" if given.ended else "has not used the device yet"
        return f"torch {came} (it would be told then; armed in {_processes(len(given.armed))})"
    if given.shim_off:
        return "the submission turned the shim off"
    if given.ended or given.on_device:
        return "no receipt came"
    return "no receipt came so far"


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"
