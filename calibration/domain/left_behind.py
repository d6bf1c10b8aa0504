"""Memory that stays when its process is gone: it belongs to nobody, but who had it is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from .resources import MIB

WORTH_TELLING = 64 * MIB
"""Bytes: less than this comes and goes with every process, as drivers and the kernel tidy up."""


@dataclass(frozen=True, slots=True)
class Left:
    """Bytes that nobody's process explains any more; ``owner`` had them until ``until`` (unix seconds)."""

    owner: str
    bytes: int
    until: float


@dataclass(frozen=True, slots=True)
class Pool:
    """What one pool's looks have shown so far. ``base`` are unexplained bytes from before anything was left behind.

    ``fresh`` are those that the newest look found: many are back by the next one, and are told only if they are not.
    """

    base: int = 0
    left: tuple[Left, ...] = ()
    fresh: frozenset[str] = frozenset()

    @property
    def told(self) -> tuple[Left, ...]:
        """Return what has outlived its process by more than one look."""
        return self.within(None)

    def within(self, unexplained: int | None) -> tuple[Left, ...]:
        """Return the same as far as so many unexplained bytes go: some may still be listed under an ended process."""
        left = self.left if unexplained is None else _within(self.left, unexplained - self.base)
        return tuple(one for one in left if one.owner not in self.fresh and one.bytes >= WORTH_TELLING)


def after(
    before: Pool,
    unexplained: tuple[int | None, int | None],
    owners: Iterable[tuple[str, int | None, int | None]],
    at: float,
) -> Pool:
    """Return the pool after one more look; ``unexplained`` and each owner's bytes as they were and are now.

    An owner's bytes that went while as many came that no process explains are left behind by it. What goes later
    goes from those that came last: what has stayed longest stays. An unknown figure says nothing.
    """
    was, now = unexplained
    if now is None or was is None:
        return before
    base = min(now, before.base if before.left else was)
    left = list(before.left)
    rise = now - was
    found: set[str] = set()
    for owner, had, has in sorted(owners):
        part = min(rise, had - has) if had is not None and has is not None else 0
        if part < WORTH_TELLING:
            continue
        rise -= part
        known = next((one for one in left if one.owner == owner), None)
        if known is not None:
            left.remove(known)
        left.append(Left(owner, part + (known.bytes if known else 0), at))
        found.add(owner)
    return Pool(base, _within(left, now - base), frozenset(found))


def _within(left: Iterable[Left], room: int) -> tuple[Left, ...]:
    """Return what of it can still be there, when so many bytes more than before are unexplained."""
    kept = []
    for one in left:
        size = min(one.bytes, max(0, room))
        room -= size
        if size:
            kept.append(replace(one, bytes=size))
    return tuple(kept)
