"""The one sentence of a job that waits for memory: how much is missing, of how much, and where the most is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibration.domain.resources import gib
from calibration.domain.samples import RAM
from placement.selectors.wording import listing, mapping, whole

ROOM = ("no_room", "booked", "cold_start_room")
"""Reasons that are a figure short of another one."""


def sentence(decision: Any) -> str:
    """Return "Waits for 2.1 GiB: it needs 8.2 GiB on one device, and the most room is 6.1 GiB on gpu1."

    "" where the reason of a stored decision is no such figure, or its figures are not there.
    """
    body = mapping(decision)
    places = [mapping(place) for place in listing(body.get("candidates"))]
    if not places or body.get("code") not in ROOM:
        return ""
    nearest = _lack(places[0])
    if nearest is None:
        return ""
    if places[0].get("devices"):  # of several devices the gate's own sentence names the one that lacks it
        return ""
    if nearest.pool == RAM or not places[0].get("device"):
        where = str(places[0].get("node") or "the node")
        return f"Waits for {gib(nearest.short)} of RAM: {nearest.needs}, and {where} has {nearest.has}."
    lacks = [lack for place in places if (lack := _lack(place)) is not None and lack.pool != RAM]
    most = min(lacks, key=lambda lack: lack.short)
    if len(places) == 1:
        return f"Waits for {gib(most.short)}: {most.needs}, and {most.label} has {most.has}."
    return f"Waits for {gib(most.short)}: {most.needs} on one device, and {most.most}."


@dataclass(frozen=True, slots=True)
class Lack:
    """What one place lacks: the check that is furthest from a yes. Bytes."""

    code: str
    pool: str
    label: str
    need: int
    room: int

    @property
    def short(self) -> int:
        """Return the bytes that are missing."""
        return self.need - self.room

    @property
    def needs(self) -> str:
        """Return what has to be there."""
        first = self.code == "cold_start_room"
        return (
            f"a first run needs {gib(self.need, self.room)} free" if first else f"it needs {gib(self.need, self.room)}"
        )

    @property
    def has(self) -> str:
        """Return what the one place has."""
        left = gib(self.room, self.need)
        return f"{left} that is not leased" if self.code == "booked" else f"room for {left}"

    @property
    def most(self) -> str:
        """Return what the place with the most has."""
        what = "that is not leased" if self.code == "booked" else "room"
        return f"the most {what} is {gib(self.room, self.need)} on {self.label}"


def _lack(place: Mapping[str, Any]) -> Lack | None:
    """Return what a place lacks, None where it lacks something else than room, or a figure is not known."""
    found = []
    for check in (mapping(one) for one in listing(place.get("checks"))):
        if check.get("ok"):
            continue
        figures = mapping(check.get("figures"))
        need = whole(figures.get("need", figures.get("wanted")))
        room = whole(figures.get("room", figures.get("left")))
        if check.get("code") not in ROOM or need is None or room is None:
            return None
        pool, label = str(check.get("pool") or ""), str(place.get("label") or "it")
        found.append(Lack(str(check["code"]), pool, label, need, max(0, room)))
    leads = [lack for lack in found if lack.pool != RAM] or found
    return max(leads, key=lambda lack: lack.short, default=None)
