"""A lease: the right to capacity, for as long as somebody holds it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from placement.domain.world.devices import DeviceKey


class Holding(enum.StrEnum):
    """What kind of holder it is. Those with an end of their own let go when it comes, the others when they end."""

    JOB = "job"
    RESIDENT = "resident"
    SESSION = "session"  # an object inside a running job
    ARTIFACT = "artifact"  # what a job declared to outlive it
    PERSON = "person"  # an interactive hold


WITH_AN_END = frozenset({Holding.ARTIFACT, Holding.PERSON})


@dataclass(frozen=True, slots=True)
class Holder:
    """Somebody who holds a lease. ``job`` is the job that it belongs to, whose process its life hangs on.

    ``until`` (unix seconds) is when an artifact or a person lets go at the latest; nobody else has an end.
    """

    kind: Holding
    name: str
    job: int | None = None
    until: float | None = None

    def __post_init__(self) -> None:
        if self.kind in WITH_AN_END and self.until is None:
            raise ValueError(f"{self.name} needs an end: nothing would ever end what a {self.kind} holds.")
        if self.kind not in WITH_AN_END and self.until is not None:
            raise ValueError(f"{self.name} holds until it ends; a {self.kind} has no other end.")

    def is_same(self, other: Holder) -> bool:
        """Return whether both are one holder; a later end does not make another one of it."""
        return self.kind is other.kind and self.name == other.name and self.job == other.job


def job(number: int) -> Holder:
    """Return a running job as the holder of what it started with."""
    return Holder(Holding.JOB, f"job {number}", number)


def session(number: int, name: str) -> Holder:
    """Return an object inside a running job."""
    return Holder(Holding.SESSION, f"{name} of job {number}", number)


def artifact(number: int, name: str, until: float) -> Holder:
    """Return what a job leaves behind, until a time."""
    return Holder(Holding.ARTIFACT, f"{name} of job {number}", number, until)


def resident(name: str) -> Holder:
    """Return a model server."""
    return Holder(Holding.RESIDENT, name)


def person(name: str, until: float) -> Holder:
    """Return somebody who has taken a device for themselves, until a time."""
    return Holder(Holding.PERSON, name, None, until)


@dataclass(frozen=True, slots=True)
class Part:
    """One device of a lease, with its bytes; ``alone``: nobody else may be there."""

    device: DeviceKey
    bytes: int
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Lease:
    """What is taken, by whom, since when (unix seconds).

    ``promise``: the bytes stay until the end, whatever is used; an estimate follows the charge. ``revoked`` says why
    its holders are being ended, "" while they are not: it counts until they have.
    """

    id: int
    parts: tuple[Part, ...]
    holders: tuple[Holder, ...]
    granted: float
    promise: bool = True
    revoked: str = ""

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    @property
    def job(self) -> int | None:
        """Return the job that it belongs to, None for a person's or a resident's."""
        return next((holder.job for holder in self.holders if holder.job is not None), None)

    @property
    def names(self) -> tuple[str, ...]:
        """Return what people call its holders."""
        return tuple([holder.name for holder in self.holders])

    def with_holder(self, holder: Holder) -> Lease:
        """Return it with one holder more; one who is there already gets the new end."""
        return replace(self, holders=(*self.without(holder).holders, holder))

    def without(self, holder: Holder) -> Lease:
        """Return it without this holder."""
        return replace(self, holders=tuple(h for h in self.holders if not h.is_same(holder)))
