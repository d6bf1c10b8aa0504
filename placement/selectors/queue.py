"""The queue page as one frozen value, and a version that changes when anything that it shows changes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from placement.domain.decision import Code
from placement.domain.jobs import State
from placement.models import Cycle, Device, Job, Node
from placement.selectors import devices, rows, wording
from placement.selectors.rows import FinishedRow, RunningRow, WaitingRow
from placement.selectors.tanks import Tank
from placement.selectors.waiting_rows import Lines

FINISHED_SHOWN = 20
WAITING_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Banner:
    """Something that everybody must know. ``since`` is shown as a time where there is one."""

    tone: str
    text: str
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class QueuePage:
    """All that the page shows, figures rounded as shown."""

    banners: tuple[Banner, ...]
    tanks: tuple[Tank, ...]
    waiting: tuple[WaitingRow, ...]
    waiting_count: int
    arrays: tuple[tuple[int, str, int], ...]  # id, name, and how many members wait for their array's turn
    running: tuple[RunningRow, ...]
    finished: tuple[FinishedRow, ...]
    next_start: datetime | None
    held: bool

    @property
    def version(self) -> str:
        """Return a short digest of what is shown: equal versions look equal."""
        return digest(self)


def digest(shown: object) -> str:
    """Return a short digest of a frozen value."""
    return hashlib.blake2b(repr(shown).encode(), digest_size=8).hexdigest()


def page(*, sees_commands: bool, notice: str = "") -> QueuePage:
    """Return the queue; operators see command names of outsiders. ``notice`` says whose account jobs run as."""
    active = devices.active_jobs()
    names = dict(Device.objects.values_list("uuid", "name"))
    queued = Job.objects.filter(state=State.QUEUED).order_by("-priority", "id")
    turns = _turns()
    single = queued.exclude(code=Code.ARRAY_LIMIT.value)
    waiting = tuple(_lines.of(single[:WAITING_SHOWN]))
    ended = (
        Job.objects.filter(state=State.FINISHED)
        .select_related("user")
        .only(*rows.ENDED)
        .order_by("-ended_at", "-id")[:FINISHED_SHOWN]
    )
    starts = [w.expected.at for w in waiting if w.expected and w.expected.at]
    shown = banners(notice)
    return QueuePage(
        banners=shown,
        tanks=devices.all_tanks(active, sees_commands=sees_commands),
        waiting=waiting,
        waiting_count=queued.count() if len(waiting) == WAITING_SHOWN else len(waiting) + sum(n for *_, n in turns),
        arrays=turns,
        running=tuple(rows.running(j, names) for j in active),
        finished=tuple(rows.finished(j) for j in ended),
        next_start=min(starts) if starts else None,
        held=any(b.tone == "hold" for b in shown),
    )


_lines = Lines(rows.waiting)


def _turns() -> tuple[tuple[int, str, int], ...]:
    """Return the arrays of which members wait for nothing but their turn: one line each, however many those are."""
    found = Job.objects.filter(array__isnull=False, state=State.QUEUED, code=Code.ARRAY_LIMIT.value)
    counted = found.values_list("array_id", "array__name").annotate(n=Count("pk")).order_by("array_id")
    return tuple(counted)


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
        found += [Banner("info", str(note)) for note in wording.listing(node.notes)]
    simulated = list(Device.objects.filter(simulated=True, retired=False).values_list("name", flat=True))
    if simulated:
        verb = "is" if len(simulated) == 1 else "are"
        text = f"{', '.join(sorted(simulated))} {verb} simulated: real processes, pretended device memory."
        found.append(Banner("info", text))
    if notice:
        found.append(Banner("info", notice))
    return tuple(found)
