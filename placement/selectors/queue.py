"""The page "Now" as one frozen value of parts, each with a version that changes when anything that it shows changes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from calibration.domain.samples import PASSING
from placement.models import Cycle, Device, Node
from placement.selectors import devices, now_lists, wording
from placement.selectors.asked import Asked
from placement.selectors.now_lists import Finished, Running, Waiting
from placement.selectors.tanks import Tank

DIGEST = 12  # hex digits of one part's version
PARTS = ("banners", "devices", "waiting", "running", "finished")


@dataclass(frozen=True, slots=True)
class Banner:
    """Something that everybody must know. ``since`` is shown as a time where there is one."""

    tone: str
    text: str
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class QueuePage:
    """All that the page shows, figures rounded as shown; a list that was not asked for is None."""

    banners: tuple[Banner, ...]
    tanks: tuple[Tank, ...]
    waiting: Waiting | None
    running: Running | None
    finished: Finished | None
    held: bool

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what is good to know and nobody has to act on."""
        return tuple(banner.text for banner in self.banners if banner.tone == "info")

    @property
    def versions(self) -> dict[str, str]:
        """Return a short digest per part: equal versions look equal."""
        shown = (self.banners, self.tanks, self.waiting, self.running, self.finished)
        return {name: digest(part)[:DIGEST] for name, part in zip(PARTS, shown, strict=True)}


def digest(shown: object) -> str:
    """Return a short digest of a frozen value."""
    return hashlib.blake2b(repr(shown).encode(), digest_size=8).hexdigest()


def joined(versions: dict[str, str]) -> str:
    """Return the versions of all parts as one word."""
    return "".join(versions[name] for name in PARTS)


def changed(versions: dict[str, str], seen: str) -> tuple[str, ...]:
    """Return which parts a page that shows ``seen`` shows otherwise: all where that word is none of ours."""
    if len(seen) != DIGEST * len(PARTS):
        return PARTS
    had = {name: seen[at * DIGEST : (at + 1) * DIGEST] for at, name in enumerate(PARTS)}
    return tuple(name for name in PARTS if had[name] != versions[name])


def page(*, sees_commands: bool, notice: str = "", asked: Asked | None = None, viewer: int = 0) -> QueuePage:
    """Return what is asked for; operators see command names of outsiders. ``notice`` says whose account jobs run as.

    ``viewer`` is the id of whoever asks for their own jobs.
    """
    asked = Asked() if asked is None else asked
    active = devices.active_jobs()
    shown = banners(notice)
    lists = asked.states
    return QueuePage(
        banners=shown,
        tanks=devices.all_tanks(active, sees_commands=sees_commands),
        waiting=now_lists.waiting(asked, viewer) if "waiting" in lists else None,
        running=now_lists.running(asked, viewer, active) if "running" in lists else None,
        finished=now_lists.finished(asked, viewer) if "finished" in lists else None,
        held=any(b.tone == "hold" for b in shown),
    )


def banners(notice: str = "") -> tuple[Banner, ...]:
    """Return what everybody must know: holds, an absent broker, simulated devices, accounts."""
    found: list[Banner] = []
    cycle = Cycle.objects.filter(pk=1).first()
    if cycle is not None and cycle.held_by:
        text = f"The queue is {wording.held(cycle.held_by, cycle.held_until, cycle.held_why)}. Nothing starts."
        found.append(Banner("hold", text, cycle.held_at, cycle.held_until))
    for node in Node.objects.order_by("name"):
        if node.broker_away_since is not None:
            text = f"The message broker is away; {node.name} goes on without it, jobs are still watched."
            found.append(Banner("warn", text, node.broker_away_since))
        if node.watchdog_note:
            found.append(Banner("warn", node.watchdog_note))
        lasting = [str(note) for note in wording.listing(node.notes) if PASSING not in str(note)]
        found += [Banner("info", f"{node.name}: {note.rstrip('.')}.") for note in lasting]
    simulated = list(Device.objects.filter(simulated=True, retired=False).values_list("name", flat=True))
    if simulated:
        verb = "is" if len(simulated) == 1 else "are"
        text = f"{', '.join(sorted(simulated))} {verb} simulated: real processes, pretended device memory."
        found.append(Banner("info", text))
    if notice:
        found.append(Banner("info", notice))
    return tuple(found)
