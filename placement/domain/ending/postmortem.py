"""Who is to blame for a death of memory: the run, a neighbour, or somebody who never asked. By figures alone."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from calibration.domain.resources import gib

BEFORE_S = 60.0
"""Seconds before the end in which growth counts."""
WORTH = 256 << 20
"""Bytes: less than this above a grant, or of growth, blames nobody."""
_PLENTY = 8  # a part of main memory that nobody takes between two looks


class Blame(enum.StrEnum):
    """What the figures say; what is not known blames nobody."""

    OWN = "own"
    VICTIM = "victim"
    CROWDED = "crowded"  # everybody was within their own: together it was too much
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Look:
    """One look at one pool: ``at`` in unix seconds, bytes by owner ("job:7") and in all; None is unknown."""

    at: float
    used: int | None
    owners: Mapping[str, int | None]

    @property
    def others(self) -> int | None:
        """Return the bytes of nobody of ours."""
        known = [amount for amount in self.owners.values() if amount is not None]
        if self.used is None or len(known) < len(self.owners):
            return None
        return max(0, self.used - sum(known))


@dataclass(frozen=True, slots=True)
class Case:
    """A run that died of memory in one pool. Bytes; None is unknown.

    ``granted`` is what it was granted, ``used`` the most that is known of its end, ``asked`` what it was refused,
    ``at_cap`` that it met a cap of its own. ``granted_to`` is by owner. ``outsiders`` are (pid, user, name, bytes) of
    who holds memory without being a job, the largest first. ``looks`` are in the order of time. ``main`` is the size of
    the pool where it is main memory: there all jobs together have a limit, too, which no outsider fills.
    """

    owner: str
    granted: int | None
    used: int | None
    looks: Sequence[Look] = ()
    asked: int | None = None
    at_cap: bool = False
    granted_to: Mapping[str, int] = field(default_factory=dict)
    outsiders: Sequence[tuple[int, str, str, int | None]] = ()
    main: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Who is to blame and the sentence that says so, "" where there is nothing to tell. Bytes."""

    blame: Blame
    told: str
    used: int | None = None
    granted: int | None = None
    who: str = ""
    grew: int | None = None


@dataclass(frozen=True, slots=True)
class _Grower:
    who: str  # as it is told: "#12", "an outsider (pid 81, user eve)"
    grew: int
    now: int
    granted: int | None
    beyond: bool  # past what it was granted; an outsider was granted nothing


def find(case: Case) -> Finding:
    """Return whose growth took the memory that a run lacked."""
    last = [look.owners.get(case.owner) for look in case.looks[-3:]]
    seen = [amount for amount in (case.used, *last) if amount is not None]
    used = max(seen) if seen else None
    growers = sorted(_growers(case), key=lambda one: (one.beyond, one.grew), reverse=True)
    other = growers[0] if growers else None
    own = _own(case, used)
    if own:
        also = f" Meanwhile {_told(other)}." if other and other.beyond else ""
        return _finding(Blame.OWN, f"{own}{also}", case, used, other)
    if other and other.beyond:
        return _finding(Blame.VICTIM, f"{_told(other, first=True)}{_itself(case, used)}.", case, used, other)
    if case.granted is None or used is None or not case.looks:
        return Finding(Blame.UNKNOWN, "", used, case.granted)
    more = f"; {_told(other)}, within its grant" if other else ""
    return _finding(
        Blame.CROWDED, f"Nobody was past what they were granted{_itself(case, used)}{more}.", case, used, other
    )


def _own(case: Case, used: int | None) -> str:
    """Return how it went past its own, "" where it did not."""
    granted, asked = case.granted, case.asked or 0
    if granted is not None and used is not None:
        if used > granted + WORTH:
            return f"Own over-use: {gib(used, granted)} of {gib(granted, used)}."
        if used + asked > granted + WORTH:
            return f"Own over-use: {gib(asked)} more asked on top of {gib(used)}, of {gib(granted)} granted."
    return "Own over-use: it met its own cap." if case.at_cap else ""


def _growers(case: Case) -> list[_Grower]:
    """Return who grew in the minute before, by so much that it counts."""
    if not case.looks:
        return []
    end = case.looks[-1]
    looks = [look for look in case.looks if end.at - look.at <= BEFORE_S]
    found: list[_Grower] = []
    for owner, now in end.owners.items():
        if owner == case.owner or now is None:
            continue
        grew = now - min(_of(look, owner) for look in looks)
        granted = case.granted_to.get(owner)
        if grew >= WORTH:
            found.append(_Grower(_name(owner), grew, now, granted, granted is not None and now > granted + WORTH))
    fullest = max((look.used for look in looks[-3:] if look.used is not None), default=None)
    if case.main is not None and fullest is not None and case.main - fullest >= case.main // _PLENTY:
        return found  # the machine had room: what was met is the limit of all jobs together
    before = [look.others for look in looks]
    known = [amount for amount in before if amount is not None]
    if known and end.others is not None and end.others - min(known) >= WORTH:
        found.append(_Grower(_outsider(case), end.others - min(known), end.others, None, True))
    return found


def _of(look: Look, owner: str) -> int:
    """Return what an owner used; who is not there used nothing, and an unknown size counts as no growth."""
    amount = look.owners.get(owner, 0)
    return (1 << 62) if amount is None else amount


def _name(owner: str) -> str:
    kind, _, number = owner.partition(":")
    return f"#{number}" if kind == "job" else owner


def _outsider(case: Case) -> str:
    if not case.outsiders:
        return "somebody who is no job of ours"
    pid, user, _, _ = case.outsiders[0]
    one = f"pid {pid}, user {user or 'unknown'}"
    return f"an outsider ({one})" if len(case.outsiders) == 1 else f"what is not ours (most of it: {one})"


def _told(one: _Grower | None, *, first: bool = False) -> str:
    if one is None:
        return ""
    past = "" if one.granted is None or not one.beyond else f", to {gib(one.now)} of {gib(one.granted)} granted"
    words = f"{one.who} grew by {gib(one.grew)} in the minute before{past}"
    return words[0].upper() + words[1:] if first else words


def _itself(case: Case, used: int | None) -> str:
    if used is None or case.granted is None:
        return ""
    return f"; this one used {gib(used, case.granted)} of {gib(case.granted, used)}"


def _finding(blame: Blame, told: str, case: Case, used: int | None, other: _Grower | None) -> Finding:
    return Finding(blame, told, used, case.granted, other.who if other else "", other.grew if other else None)
