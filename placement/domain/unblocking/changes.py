"""What may change about a waiting job, its machines or its neighbours, each as a step from one snapshot to the next.

A step is pure: it says what the gate would then see. Bytes and seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from calibration.domain.estimate import Estimate
from placement.domain.admission.places import Board
from placement.domain.jobs import Outcome, State
from placement.domain.planning.future import frees
from placement.domain.world.conditions import After, Tie
from placement.domain.world.pressure import marks_of
from placement.domain.world.requests import Exclusive, fewer
from placement.domain.world.snapshot import Device, Node, Pool, Snapshot, Waiting


class Change(Protocol):
    """One step; ``job`` is the waiting job for whose sake it is taken."""

    def on(self, snapshot: Snapshot, job: int) -> Snapshot:
        """Return the snapshot after the step."""
        ...


@dataclass(frozen=True, slots=True)
class Ends:
    """Running jobs end and give their memory back; nobody else changes."""

    jobs: tuple[int, ...]

    def on(self, snapshot: Snapshot, job: int) -> Snapshot:
        """Return the snapshot without these jobs, what they used free again."""
        gone = frozenset(self.jobs)
        board = Board(snapshot)
        nodes = tuple(_without(board, node, gone) for node in snapshot.nodes)
        left = tuple(r for r in snapshot.running if r.job not in gone)
        return replace(snapshot, nodes=nodes, running=left)


@dataclass(frozen=True, slots=True)
class Released:
    """A person's hold goes: of the "queue", this "job", a "node" or a "device"; by itself at ``until`` (unix s)."""

    what: str
    who: str = ""
    until: float | None = None
    node: str = ""
    device: str | None = None
    name: str = ""

    def on(self, snapshot: Snapshot, job: int) -> Snapshot:
        """Return the snapshot without the hold."""
        if self.what == "queue":
            return replace(snapshot, queue_hold=None)
        if self.what == "job":
            return swapped(snapshot, replace(mine(snapshot, job), hold=None))
        return _at_place(snapshot, self.node, self.device, hold=None)


@dataclass(frozen=True, slots=True)
class Opened:
    """A node or device that is being emptied takes new jobs again."""

    node: str
    device: str | None
    name: str

    def on(self, snapshot: Snapshot, job: int) -> Snapshot:
        """Return the snapshot with the place open."""
        if self.device is not None:
            return _at_place(snapshot, self.node, self.device, draining=False)
        return _at_place(snapshot, self.node, None, state="ready")


@dataclass(frozen=True, slots=True)
class Met:
    """The jobs that it waits for end as asked."""

    ties: tuple[Tie, ...]

    def on(self, snapshot: Snapshot, job: int) -> Snapshot:
        """Return the snapshot after those have ended, whether they wait or run now."""
        ended = frozenset(tie.on for tie in self.ties)
        after = Ends(tuple(ended)).on(snapshot, job)
        after = replace(after, waiting=tuple(w for w in after.waiting if w.job not in ended))
        waiting = mine(after, job)
        by = waiting.conditions
        if by is None:
            return after
        met = tuple(_met(tie) if tie.on in ended else tie for tie in by.after)
        return swapped(after, replace(waiting, conditions=replace(by, after=met)))


@dataclass(frozen=True, slots=True)
class Comes:
    """The second (unix) comes before which it was not to start."""

    at: float

    def on(self, snapshot: Snapshot, job: int) -> Snapshot:
        """Return the snapshot in which it has come for this job."""
        waiting = mine(snapshot, job)
        if waiting.conditions is None:
            return snapshot
        return swapped(snapshot, replace(waiting, conditions=replace(waiting.conditions, not_before=None)))


@dataclass(frozen=True, slots=True)
class Edited:
    """Its person asks for something else. None: as it is. ``declared`` in bytes by kind, with the estimate then.

    ``devices`` is the least that its group takes; ``reserved`` the exact bytes, by the name of a request's field.
    """

    estimate: Estimate | None = field(default=None, repr=False)
    workers: int | None = None
    limit: float | None = None  # wall-clock seconds
    declared: Mapping[str, int] = field(default_factory=dict)
    devices: int | None = None
    reserved: Mapping[str, int] = field(default_factory=dict)
    beside: bool = False  # no longer alone on its device or machine
    anywhere: bool = False  # no longer on one named node or device

    def on(self, snapshot: Snapshot, job: int) -> Snapshot:
        """Return the snapshot with the job as it would be."""
        return swapped(snapshot, self.made(mine(snapshot, job)))

    def made(self, waiting: Waiting) -> Waiting:
        """Return the job as it would be."""
        request = waiting.request
        if self.beside:
            request = replace(request, exclusive=Exclusive.NO)
        if self.anywhere:
            request = replace(request, node=None, device=None)
        if self.devices is not None:
            request = fewer(request, self.devices)
        if self.reserved:
            request = replace(request, **self.reserved)  # type: ignore[arg-type]  # bytes, by name
        return replace(
            waiting,
            request=request,
            workers=self.workers or waiting.workers,
            limit=waiting.limit if self.limit is None else self.limit,
            estimate=self.estimate or waiting.estimate,
        )


def after(snapshot: Snapshot, job: int, steps: tuple[Change, ...]) -> Snapshot:
    """Return the snapshot after all steps, in their order."""
    for step in steps:
        snapshot = step.on(snapshot, job)
    return snapshot


def mine(snapshot: Snapshot, job: int) -> Waiting:
    """Return the waiting job of this number; KeyError where it does not wait."""
    for waiting in snapshot.waiting:
        if waiting.job == job:
            return waiting
    raise KeyError(job)


def swapped(snapshot: Snapshot, waiting: Waiting) -> Snapshot:
    """Return the snapshot with one waiting job changed."""
    return replace(snapshot, waiting=tuple(waiting if w.job == waiting.job else w for w in snapshot.waiting))


def _back(board: Board, node: Node, gone: frozenset[int]) -> Mapping[str, int]:
    """Return the measured bytes that come back to each pool of a node when these jobs end, by pool id."""
    found = {}
    for pool in (node.ram, *(device.pool for device in node.devices)):
        given = frees(board.ledger(pool))
        found[pool.pool] = sum(amount for job, amount in given.items() if job in gone)
    return found


def _without(board: Board, node: Node, gone: frozenset[int]) -> Node:
    if not any(r.job in gone for r in board.on_node(node.name)):
        return node
    given = _back(board, node, gone)
    ram = _freed(node.ram, given)
    devices = tuple(replace(device, pool=_freed(device.pool, given)) for device in node.devices)
    short = node.ram_pressure
    if short and ram.used is not None and ram.total:
        short = ram.used > marks_of(node.ram_marks, board.knobs)[1] * ram.total
    return replace(node, ram=ram, devices=devices, ram_pressure=short)


def _freed(pool: Pool, given: Mapping[str, int]) -> Pool:
    amount = given.get(pool.pool, 0)
    if not amount:
        return pool
    return replace(
        pool,
        free=None if pool.free is None else pool.free + amount,
        used=None if pool.used is None else max(0, pool.used - amount),
    )


def _at_place(snapshot: Snapshot, node: str, device: str | None, **changes: object) -> Snapshot:
    def changed(one: Node) -> Node:
        if one.name != node:
            return one
        if device is None:
            return replace(one, **changes)  # type: ignore[arg-type]  # the callers name fields of both
        devices: tuple[Device, ...] = tuple(
            replace(d, **changes) if d.uuid == device else d  # type: ignore[arg-type]
            for d in one.devices
        )
        return replace(one, devices=devices)

    return replace(snapshot, nodes=tuple(changed(one) for one in snapshot.nodes))


def _met(tie: Tie) -> Tie:
    outcome = Outcome.FAILED if tie.when is After.FAILED else Outcome.COMPLETED
    return replace(tie, state=State.FINISHED, outcome=outcome)
