"""The wait cycles that a job was in, as they were: who held what, who wanted what, and whom it cost what."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from calibration.domain.resources import gib
from placement.models import Job
from placement.selectors.wording import listing, mapping, whole

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Stop:
    """One request of the round. ``after`` are the jobs that it waited for, ``word`` what became of it."""

    request: int
    job: int
    step: str
    mine: bool
    holds: tuple[str, ...]
    asks: str
    after: tuple[int, ...]
    word: str
    tone: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """One cycle: the round in its order, and how many more requests waited for one in it.

    ``why``: by which rule it was chosen who gives way.
    """

    id: int
    at: datetime
    stops: tuple[Stop, ...]
    more: int
    why: str


def of(job: Job) -> tuple[Drawn, ...]:
    """Return the cycles that the job was in, the newest first."""
    return tuple(_drawn(row.pk, row.at, mapping(row.told), job.pk) for row in job.wait_cycles.order_by("-pk")[:SHOWN])


def _drawn(number: int, at: datetime, told: dict[str, Any], mine: int) -> Drawn:
    links = {link["request"]: link for link in listing(told.get("links"))}
    ring = [links[one] for one in listing(told.get("ring")) if one in links] or list(links.values())
    revoked = {victim["request"]: victim for victim in listing(told.get("revoked"))}
    refused = set(listing(told.get("refused")))
    order = [*ring, *(link for key, link in links.items() if link not in ring and key in {*revoked, *refused})]
    stops = []
    for link in order:
        key = link["request"]
        word, tone = ("run again", "wait") if key in revoked else ("refused", "stop") if key in refused else ("", "")
        stops.append(
            Stop(
                request=key,
                job=link["job"],
                step=str(link.get("step") or ""),
                mine=link["job"] == mine,
                holds=tuple(_held(link)),
                asks=str(link.get("asks") or gib(link["wants"])),
                after=tuple(dict.fromkeys(links[one]["job"] for one in link["waits_for"] if one in links)),
                word=word or "went on",
                tone=tone or "ok",
            )
        )
    return Drawn(number, at, tuple(stops), len(links) - len(stops), _why(list(revoked.values()), len(stops)))


def _held(link: dict[str, Any]) -> list[str]:
    found: dict[str, tuple[int, bool]] = {}
    for part in link["holds"]:
        size, alone = found.get(part["device"], (0, False))
        found[part["device"]] = size + part["bytes"], alone or part["alone"]
    return [f"{gib(size)} on {device}{', alone' if alone else ''}" for device, (size, alone) in found.items()]


def _why(revoked: list[dict[str, Any]], count: int) -> str:
    if not revoked:
        if count < 2:
            return "It would have waited for itself, so it was refused."
        return "No step that would have helped could be run again, so the youngest request was refused."
    size = sum(whole(victim.get("bytes")) or 0 for victim in revoked)
    loss = sum(float(victim.get("loss") or 0.0) for victim in revoked)
    held = f", held for {loss / size:,.0f} s" if size else ""
    return f"Running it again lost the least of all that would have helped: {gib(size)}{held}."
