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
PIECE = 6  # hex digits of a piece of a part, and of what holds its pieces together
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
        """Return a short word per part: equal versions look equal. Pieces that move alone have digits of their own."""
        shown = (self.banners, self.tanks, self.waiting, self.running, self.finished)
        found = {name: digest(part)[:DIGEST] for name, part in zip(PARTS, shown, strict=True)}
        frames = {"devices": tuple(tank.ident for tank in self.tanks)}
        if self.running is not None:
            ids = tuple(row.id for row in self.running.rows)
            frames["running"] = (*ids, self.running.count, self.running.stretch)
        for name, frame in frames.items():
            found[name] = "".join(digest(one)[:PIECE] for one in (frame, *self.pieces(name)))
        return found

    def pieces(self, name: str) -> tuple[object, ...]:
        """Return what a part consists of where each piece can be sent alone: tanks, lines of running jobs."""
        if name == "devices":
            return self.tanks
        return self.running.rows if name == "running" and self.running is not None else ()


def digest(shown: object) -> str:
    """Return a short digest of a frozen value."""
    return hashlib.blake2b(repr(shown).encode(), digest_size=8).hexdigest()


def joined(versions: dict[str, str]) -> str:
    """Return the versions of all parts as one word."""
    return "_".join(versions[name] for name in PARTS)


def changed(versions: dict[str, str], seen: str) -> dict[str, tuple[int, ...]]:
    """Return which parts a page that shows ``seen`` shows otherwise: all where that word is none of ours.

    With each, which of its pieces; none where the whole part has to be sent.
    """
    words = seen.split("_")
    had = dict(zip(PARTS, words, strict=True)) if len(words) == len(PARTS) else {}
    return {name: _moved(versions[name], had.get(name, "")) for name in PARTS if had.get(name) != versions[name]}


def _moved(now: str, had: str) -> tuple[int, ...]:
    """Return the places of the pieces that differ; none where the part has no pieces, or not the same ones."""
    if len(now) != len(had) or now[:PIECE] != had[:PIECE] or len(now) == DIGEST:
        return ()
    starts = range(PIECE, len(now), PIECE)
    return tuple(at for at, start in enumerate(starts) if now[start : start + PIECE] != had[start : start + PIECE])


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
