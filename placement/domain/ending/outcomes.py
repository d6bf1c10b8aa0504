"""How a run ended: what we did to it first, then the evidence, and its exit code last."""

from __future__ import annotations

import re
import signal as signals
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from calibration.domain.resources import gib
from calibration.domain.samples import RAM
from placement.domain.jobs import Outcome

Feeds = Literal["need", "lower_bound", "nothing"]
Memory = Literal["ram", "vram"]

LAST_LINES = 40  # a memory error earlier in the log was survived, so it did not end the run
RECEIPT_COUNTS_S = 60.0  # a refusal longer before the end was survived, too: receipts tell of caught ones
LIMIT_REACHED = 512 << 20  # bytes below a driver's limit: it gives memory out in steps, and keeps some for contexts

_VRAM = re.compile(
    r"(CUDA|HIP|XPU)( error:)? out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaMalloc failed: out of memory"
    r"|torch(\.cuda)?\.OutOfMemoryError|RESOURCE_EXHAUSTED: Out of memory|OOM when allocating tensor"
    r"|OutOfMemoryError: Out of memory allocating|cudaErrorMemoryAllocation",
    re.IGNORECASE,
)
_RAM = re.compile(r"^(MemoryError\b|terminate called after throwing.*std::bad_alloc|.*Cannot allocate memory)", re.M)
_CUPY_LIMIT = re.compile(r"Out of memory allocating .*limit set to", re.IGNORECASE)
_TORCH = re.compile(
    r"Tried to allocate ([\d.]+) (KiB|MiB|GiB)\..*?of which ([\d.]+) (KiB|MiB|GiB) is free\..*?allowed; ", re.S
)
_UNIT = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of an end. ``code`` and ``signal`` both None: nobody saw it end.

    ``stopped_by`` is why the runner sent signals ("cancel", "time_limit", "watchdog", "" when it sent none),
    ``requested`` the stop on record and ``requested_by`` who asked. ``killed``: the grace passed and SIGKILL went
    out. ``oom_kill_delta`` is the machine's counter of kills for memory since the start. ``group`` are the counters of
    the job's own control group, as its runner told them or, where nobody saw the end, as they stand: "oom" (its own
    limit could not be met), "oom_kill" and "oom_group_kill", with "memory_max" and "memory_peak" in bytes.
    ``container`` is what its engine said of it at the end ("oom_killed": at its own limit, "limit" in bytes).
    ``cap_receipt`` is what was written when memory was refused ("cap", "asked", "used", "free" in bytes, any may be
    missing), ``receipt_age_s`` how long before the end that was; ``driver_limit`` the driver's own for this job
    ("limit", "used" in bytes). ``watchdog`` is its evidence ("sentence", "pool"), ``lost`` why nobody saw the end, or
    what came since.
    """

    code: int | None = None
    signal: int | None = None
    start_error: str = ""
    stopped_by: str = ""
    killed: bool = False
    requested: str = ""
    requested_by: str = ""
    oom_kill_delta: int | None = None
    group: Mapping[str, Any] | None = None
    container: Mapping[str, Any] | None = None
    cap_receipt: Mapping[str, Any] | None = None
    receipt_age_s: float | None = None
    driver_limit: Mapping[str, Any] | None = None
    log_tail: str = ""
    lost: str = ""
    watchdog: Mapping[str, Any] | None = None
    time_limit_s: float | None = None
    said: str = ""  # what was said when we ended it ourselves: an unused hold, one that kept what was taken back
    leftovers: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome, why, and what it teaches: only a completed run founds a need, memory deaths name the memory."""

    outcome: Outcome
    sentence: str
    feeds: Feeds
    memory: Memory | None = None
    notes: tuple[str, ...] = field(default=())


def not_started(why: str) -> str:
    """Return the sentence of a run that never began; a runner's own account of it begins with the same words."""
    return f"Could not be started: {why.removeprefix('could not start: ').rstrip('.')}."


def decide_outcome(e: Evidence) -> Verdict:
    """Return the one outcome of a run."""
    found = _ours(e) or _unseen(e) or _memory(e) or _by_code(e)
    if not e.leftovers:
        return found
    count = "1 process was" if e.leftovers == 1 else f"{e.leftovers} processes were"
    notes = (*found.notes, f"{count} left behind.")
    return Verdict(found.outcome, found.sentence, found.feeds, found.memory, notes)


def _ours(e: Evidence) -> Verdict | None:
    """Return the outcome where we decided it ourselves."""
    if e.start_error:
        return Verdict(Outcome.START_FAILED, not_started(e.start_error), "nothing")
    how = "killed after the grace" if e.killed else _ended(e)
    why = e.stopped_by
    if not why and (_signal(e) in (signals.SIGTERM, signals.SIGKILL) or _nothing_seen(e)):
        why = e.requested  # asked for on record, and it ended that way or unseen
    if why == "watchdog":
        found = e.watchdog or {}
        told = str(found.get("sentence") or "The watchdog stopped it: it was above its charge and memory ran out.")
        return Verdict(Outcome.CAP_EXCEEDED, told, "lower_bound", "ram" if found.get("pool") == RAM else "vram")
    if why == "unused":
        return Verdict(Outcome.CANCELLED, e.said or "Nothing used what it held, so it ended.", "nothing")
    if why == "revoked":
        return Verdict(Outcome.CANCELLED, e.said or "Ended: it kept memory that was taken back.", "lower_bound")
    if why == "time_limit":
        limit = "" if e.time_limit_s is None else f" of {e.time_limit_s:g} s"
        return Verdict(Outcome.TIMED_OUT, f"Reached its time limit{limit}: {how}.", "lower_bound")
    if e.lost and not e.requested and (why == "signal" or (not why and _signal(e) == signals.SIGTERM)):
        return Verdict(Outcome.LOST, f"Lost: {how}, and {e.lost}.", "lower_bound")  # as a shutdown ends everything
    if why:
        asked = f"Cancelled by {e.requested_by}" if e.requested_by else "Cancelled"
        return Verdict(Outcome.CANCELLED, f"{asked}: {how}.", "lower_bound")
    return None


def _unseen(e: Evidence) -> Verdict | None:
    if not _nothing_seen(e):
        return None
    why = e.lost or "its processes are gone and left no exit record"
    if killed := _group(e):  # the kernel's counters outlive the runner, which is why nobody else tells
        return replace(killed, sentence=f"{killed.sentence} That is from its control group: {why.rstrip('.')}.")
    return Verdict(Outcome.LOST, f"Lost: {why.rstrip('.')}.", "lower_bound")


def _nothing_seen(e: Evidence) -> bool:
    return e.code is None and e.signal is None


def _memory(e: Evidence) -> Verdict | None:
    """Return the outcome where memory ended the run; one that ended with code 0 survived what it was refused.

    The strongest evidence first: counters of its own group, what proves a cap, what its last lines say, and what the
    kernel says of the whole machine. A process of it that the kernel killed counts whatever its shell said afterwards:
    where a group dies as a whole nobody could have said anything.
    """
    if e.code == 0 and e.signal is None:
        return _group(e)
    tail = "\n".join(e.log_tail.splitlines()[-LAST_LINES:])
    return _container(e) or _group(e) or _refused(e, tail) or _told(tail) or _machine(e)


def _container(e: Evidence) -> Verdict | None:
    if e.container is None or e.container.get("oom_killed") is not True:
        return None
    limit = _bytes(e.container.get("limit"))
    if limit is None:
        return Verdict(Outcome.OUT_OF_MEMORY, "Its container was killed for lack of RAM.", "lower_bound", "ram")
    told = f"RAM limit exceeded: its container was killed at its own limit of {gib(limit)}."
    return Verdict(Outcome.CAP_EXCEEDED, told, "lower_bound", "ram")


def _group(e: Evidence) -> Verdict | None:
    count = _kills(e)
    if e.group is None or not count:
        return None
    limit, peak = _bytes(e.group.get("memory_max")), _bytes(e.group.get("memory_peak"))
    if e.group.get("oom"):
        told = "RAM limit exceeded: the kernel killed it at its own limit"
        told += "" if limit is None else f" of {gib(limit)}"
        told += "." if peak is None else f"; at most {gib(peak)} were in use."
        return Verdict(Outcome.CAP_EXCEEDED, told, "lower_bound", "ram")
    below = "" if limit is None else f", below its own limit of {gib(limit)}"
    whose = "the machine's or what all jobs may have of it"
    told = f"RAM ran out, {whose}: the kernel killed {_processes(count)} of this one{below}."
    return Verdict(Outcome.OUT_OF_MEMORY, told, "lower_bound", "ram")


def _refused(e: Evidence, tail: str) -> Verdict | None:
    """Return what a refusal proves: the cap where the device had what was asked, the device where it had not."""
    says = _VRAM.search(tail) is not None
    recent = e.receipt_age_s is None or e.receipt_age_s <= RECEIPT_COUNTS_S or says
    if e.cap_receipt is not None and recent and (found := _receipt(e.cap_receipt)):
        return found
    if e.driver_limit is not None and says:
        limit, used = _bytes(e.driver_limit.get("limit")), _bytes(e.driver_limit.get("used"))
        if limit is not None and used is not None and used >= limit - LIMIT_REACHED:
            told = f"It met the driver's limit of {gib(limit)} ({gib(used, limit)} used)."
            return Verdict(Outcome.CAP_EXCEEDED, told, "lower_bound", "vram")
    if _CUPY_LIMIT.search(tail) or _torch_cap(tail):
        told = "It asked for more device memory than its cap; the device had room."
        return Verdict(Outcome.CAP_EXCEEDED, told, "lower_bound", "vram")
    if e.cap_receipt is not None and recent:
        told = "GPU out of memory (card or cap): it was refused memory, and whether the card had it is not known."
        return Verdict(Outcome.OUT_OF_MEMORY, told, "lower_bound", "vram")
    return None


def _told(tail: str) -> Verdict | None:
    if _VRAM.search(tail):
        told = "GPU out of memory (card or cap): its last lines say so, and nothing proves which of the two."
        return Verdict(Outcome.OUT_OF_MEMORY, told, "lower_bound", "vram")
    if _RAM.search(tail):
        return Verdict(Outcome.OUT_OF_MEMORY, "Its last lines say that RAM ran out.", "lower_bound", "ram")
    return None


def _machine(e: Evidence) -> Verdict | None:
    """Return what the kernel's counter says of a SIGKILL that nobody here sent; it counts the whole machine."""
    if _signal(e) != signals.SIGKILL:
        return None
    killed = "Killed by something else (SIGKILL): nobody here sent it"
    if e.oom_kill_delta is None:
        return Verdict(Outcome.FAILED, f"{killed}. Host out of memory? The kernel does not say.", "lower_bound")
    if not e.oom_kill_delta:
        return Verdict(
            Outcome.FAILED, f"{killed}, and the kernel killed nothing for lack of RAM meanwhile.", "lower_bound"
        )
    count = _processes(e.oom_kill_delta)
    if e.group is not None and _bytes(e.group.get("oom_kill")) == 0:
        told = f"{killed}. For lack of RAM the kernel killed {count} meanwhile, but none of it."
        return Verdict(Outcome.FAILED, told, "lower_bound")
    told = f"{killed}. For lack of RAM the kernel killed {count} on this machine meanwhile: most likely this one."
    return Verdict(Outcome.OUT_OF_MEMORY, told, "lower_bound", "ram")


def _kills(e: Evidence) -> int:
    group = e.group or {}
    return max(_bytes(group.get("oom_kill")) or 0, _bytes(group.get("oom_group_kill")) or 0)


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def _receipt(receipt: Mapping[str, Any]) -> Verdict | None:
    """Return what a receipt proves, None where it lacks a figure that would."""
    cap, asked, free, used = (_bytes(receipt.get(k)) for k in ("cap", "asked", "free", "used"))
    if free is None or asked is None:
        return None
    if free < asked:
        told = f"The device ran out: {gib(asked, free)} asked, {gib(free, asked)} free on it."
        return Verdict(Outcome.OUT_OF_MEMORY, told, "lower_bound", "vram")
    parts = [f"{gib(asked)} asked", *([] if used is None else [f"{gib(used)} used"]), f"{gib(free)} free on the device"]
    cap_words = "its cap" if cap is None else f"its cap of {gib(cap)}"
    return Verdict(Outcome.CAP_EXCEEDED, f"It ran past {cap_words} ({', '.join(parts)}).", "lower_bound", "vram")


def _bytes(value: object) -> int | None:
    """Return a figure of a receipt; a job can write one, so anything else than a count is unknown."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _torch_cap(tail: str) -> bool:
    """Return whether a torch message proves the cap: a limit was set, and the device had what was asked."""
    found = _TORCH.search(tail)
    if found is None:
        return False
    asked = float(found[1]) * _UNIT[found[2]]
    return float(found[3]) * _UNIT[found[4]] >= asked


_OF_SHELLS = {126: ", which a shell has for: found, but not to be run", 127: ", which a shell has for: not found"}
"""What codes mean by the custom of shells (POSIX, "Exit Status for Commands"); a program may use them otherwise."""


def _by_code(e: Evidence) -> Verdict:
    number = _signal(e)
    if e.code == 0 and e.signal is None:
        return Verdict(Outcome.COMPLETED, "Completed with code 0.", "need")
    if number == signals.SIGTERM:
        told = f"Killed from outside by {_name(number)}: nobody here sent it."
        return Verdict(Outcome.FAILED, told, "lower_bound")
    if e.signal is not None:
        return Verdict(Outcome.FAILED, f"Ended by {_name(e.signal)}.", "lower_bound")
    meaning = _OF_SHELLS.get(e.code or 0, "")
    return Verdict(Outcome.FAILED, f"Failed with code {e.code}{meaning}.", "lower_bound")


def _signal(e: Evidence) -> int | None:
    """Return the signal that ended it; a shell reports one as 128 + number."""
    if e.signal is not None:
        return abs(e.signal)
    if e.code is not None and e.code < 0:
        return -e.code
    return e.code - 128 if e.code is not None and 128 < e.code <= 192 else None


def _ended(e: Evidence) -> str:
    number = _signal(e)
    if number is not None:
        return f"ended by {_name(number)}"
    return "its processes are gone" if e.code is None else f"ended with code {e.code}"


def _name(number: int) -> str:
    try:
        return signals.Signals(abs(number)).name
    except ValueError:
        return f"signal {number}"
