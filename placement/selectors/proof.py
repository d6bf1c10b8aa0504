"""What is known of how a run ended, in words and figures: who was in the way, what was asked for, what is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibration.domain.resources import gib
from calibration.domain.samples import RAM
from placement.selectors.wording import listing, mapping, whole

LEARNED = {
    "need": "what the next run needs",
    "lower_bound": "a lower bound, where it used more than was known",
    "nothing": "nothing",
}
MEMORY = {"ram": "RAM", "vram": "device memory"}
STOPPED = {
    "cancel": "its cancellation",
    "time_limit": "its time limit",
    "watchdog": "the watchdog",
    "runner": "its runner",
}
BLAME = {
    "own": "its own over-use",
    "victim": "a victim: others took what it lacked",
    "crowded": "neither: everybody was within their own",
}
WORDS = {
    "feeds": "it teaches",
    "memory": "memory that ran out",
    "stopped_by": "stopped by",
    "killed": "ended only after the grace, by SIGKILL",
    "swept": "processes that had to be swept up",
    "max_rss_bytes": "largest process, by the kernel",
    "oom_kill_delta": "kills by the kernel for lack of memory meanwhile",
    "trimmed_bytes": "output that was cut away",
    "asked": "asked for when it was refused",
    "held": "held then",
    "device_free": "free on the device then",
    "cap": "its cap",
    "used": "used at its end",
    "granted": "granted",
    "free": "free in the pool then",
    "mark": "mark below which the watchdog acts",
    "next_charge": "what the next run is charged",
    "pool": "pool",
    "samples": "its last figures",
    "policy": "the watchdog's policy",
    "blame": "own fault or a victim",
    "told": "what its last minute shows",
    "grower": "who else grew",
    "grew": "by",
    "oom": "times its own limit could not be met",
    "oom_kill": "processes of it that the kernel killed",
    "oom_group_kill": "times the kernel ended all of it",
    "memory_max": "its own limit",
    "memory_peak": "most in use",
    "oom_killed": "its container was killed at its memory limit",
    "limit": "the container's memory limit",
    "not_freed": "not freed, and perhaps its own",
    "sentence": "the watchdog's finding",
    "retry": "run again",
    "no_retry": "not run again",
    "soon_over": "its end was announced",
    "warned_at": "announced that it ends for want of use, unused since",
    "start_error": "error at the start",
}
"""What each figure of the evidence is called; one that is not here is shown by its own name."""

SIZES = frozenset({"memory_max", "memory_peak"})
"""Figures in bytes whose names do not say so."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the evidence; ``exact`` is the figure in bytes."""

    name: str
    text: str
    exact: str = ""


def facts(evidence: Any, pools: Mapping[str, str], said: str = "") -> tuple[Fact, ...]:
    """Return what is known of an end; what is unknown or did not happen is left out.

    ``pools`` names them by id; a sentence that the page has already (``said``) is not told twice, nor is a
    figure that two witnesses have under one name.
    """
    found: list[Fact] = []
    for key, value in mapping(evidence).items():
        if isinstance(value, dict):
            found += facts(value, pools, said)
        elif (fact := _fact(str(key), value, pools)) is not None and fact.text.rstrip(".") not in said:
            found.append(fact)
    return tuple(dict.fromkeys(found))


def left_behind(leftovers: Any) -> tuple[str, ...]:
    """Return each process that outlived its run, in words."""
    return tuple(_process(one) for one in listing(leftovers))


def _fact(key: str, value: Any, pools: Mapping[str, str]) -> Fact | None:
    name = "looks in a row above its charge" if key == "samples" and isinstance(value, int) else WORDS.get(key, "")
    name = name or key.replace("_", " ")
    if value in (None, "", [], 0) or value is False:
        return None
    if value is True:
        return Fact(name, "yes")
    if key == "feeds":
        return Fact(name, LEARNED.get(str(value), str(value)))
    if key == "memory":
        return Fact(name, MEMORY.get(str(value), str(value)))
    if key == "stopped_by":
        return Fact(name, STOPPED.get(str(value), str(value)))
    if key == "pool":
        return Fact(name, "RAM" if value == RAM else pools.get(str(value), str(value)))
    amount = whole(value)
    if amount is not None and (amount >= 2**20 or key.endswith("_bytes") or key in SIZES):
        return Fact(name, gib(amount), f"{amount:,} bytes")
    if key == "blame":
        return Fact(name, BLAME[str(value)]) if value in BLAME else None
    if isinstance(value, list) and all(isinstance(part, int) and part >= 2**20 for part in value):
        return Fact(name, ", ".join(gib(part) for part in value))
    if isinstance(value, list):
        return Fact(name, ", ".join(str(part) for part in value))
    return Fact(name, str(value))


def _process(raw: Any) -> str:
    body = mapping(raw)
    if not body:
        return str(raw)
    return ", ".join(f"{name} {value}" for name, value in body.items() if value not in (None, ""))
