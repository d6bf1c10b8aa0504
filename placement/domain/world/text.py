"""Sentences for people: words and figures, the same for the same input."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from calibration.domain.resources import MIB, gib
from placement.domain.world.reservations import Booked, Room
from placement.domain.world.snapshot import Hold, Pool, Running

NAMED = 3  # how many holders or outsiders a sentence names
OUTSIDER_WORTH_NAMING = 64 * MIB


def seconds(value: float) -> str:
    """Return a duration as people say it: ``0.4 s``, ``12 min``, ``3.5 h``; one without a bound cannot be told."""
    if not math.isfinite(value):
        return "an unknown time"
    if abs(value) < 10:
        return f"{value:.1f} s"
    if abs(value) < 100:
        return f"{value:.0f} s"
    if abs(value) < 6000:
        return f"{value / 60:.0f} min"
    return f"{value / 3600:.1f} h" if abs(value) < 360_000 else f"{value / 86400:.1f} days"


def names(words: Sequence[str]) -> str:
    """Return ``a``, ``a and b``, ``a, b and c``, ``a, b, c and 2 more``."""
    shown = list(words[:NAMED])
    if len(words) > NAMED:
        return f"{', '.join(shown)} and {len(words) - NAMED} more"
    return " and ".join((", ".join(shown[:-1]), shown[-1])) if len(shown) > 1 else "".join(shown)


def jobs(ids: Iterable[int]) -> str:
    """Return job numbers as ``#38 and #39``, each once."""
    known = list(dict.fromkeys(ids))
    return names([f"#{i}" for i in known[:NAMED]] + [""] * (len(known) - NAMED))  # the rest is only counted


def whom(job: int, inside: int = 0) -> str:
    """Return ``#38``, or ``what #7 asks for`` where a running job waits for more."""
    return f"what #{inside} asks for" if inside else f"#{job}"


def pool_name(pool: Pool, many: bool) -> str:
    """Return ``gpu1``, ``gpu1 of atlas`` where there are many nodes, or ``the RAM of atlas``."""
    if pool.kind == "ram":
        return f"the RAM of {pool.node}"
    return f"{pool.name} of {pool.node}" if many else pool.name


def on(pool: Pool, many: bool) -> str:
    """Return the place with its preposition."""
    return f"{'in' if pool.kind == 'ram' else 'on'} {pool_name(pool, many)}"


def less(need: int, room: int) -> tuple[str, str]:
    """Return both figures with digits enough to tell them apart; room below zero reads as none."""
    left = max(0, room)
    return gib(need, left), gib(left, need)


def outsiders(pool: Pool) -> str:
    """Return who else holds memory there and how much, "" where nobody does worth naming."""
    known = [
        (amount, f"{gib(amount)} held by pid {pid} (user {user or 'unknown'})")
        for pid, user, _, amount in pool.external_who
        if amount is not None and amount >= OUTSIDER_WORTH_NAMING
    ]
    if known:
        end = "not a job of ours" if len(known) == 1 else "not jobs of ours"
        return f"{names([words for _, words in known])}, {end}"
    if pool.external is not None and pool.external >= OUTSIDER_WORTH_NAMING:
        return f"{gib(pool.external)} held by processes that are not jobs of ours"
    if pool.unexplained is not None and pool.unexplained >= OUTSIDER_WORTH_NAMING:
        return f"{gib(pool.unexplained)} used by nobody that the process list names"
    return ""


def measured(need: int, pool: Pool, room: Room, many: bool, most: bool = False) -> str:
    """Return the measured ledger's answer: need, room, what is kept for whom to grow, and outsiders."""
    have = 0 if room.room is None else room.room
    asked, left = less(need, have)
    if most:
        sentence = f"Needs {asked}; most room is {left} {on(pool, many)}"
    else:
        sentence = f"Needs {asked}; room {on(pool, many)} is {left}"
    if need <= have:
        return f"{sentence}."
    if room.growth:
        sentence += f", after {gib(room.growth)} kept for {jobs(j for j, _ in room.holders)} to grow"
    who = outsiders(pool)
    back = "; memory of a run that ended is still coming back" if pool.draining else ""
    return f"{sentence}{f'; {who}' if who else ''}{back}."


def booked(need: int, pool: Pool, booking: Booked, many: bool) -> str:
    """Return the booked ledger's answer: declared, leased by whom, and what that leaves."""
    asked, left = less(need, booking.room)
    if not booking.leased:
        are = "is" if need <= booking.room else "is all that is"
        return f"Needs {asked}; {left} {are} declared {on(pool, many)}."
    rest = left if booking.room >= 0 else f"nothing: {gib(-booking.room)} too much is taken already"
    return f"Needs {asked}; {gib(booking.declared)} declared {on(pool, many)} less {_taken(booking)} leaves {rest}."


def _taken(booking: Booked) -> str:
    without = sum(amount for _, amount in booking.unheld)
    users = [job for job, _ in booking.unheld]
    holders = [job for job, _ in booking.holders if job not in users]
    parts = [f"{gib(booking.leased - without)} leased by {jobs(holders)}"] if holders else []
    if users:
        parts.append(f"{gib(without)} that {jobs(users)} {'uses' if len(users) == 1 else 'use'} without a lease")
    return " and ".join(parts)


def hold(what: str, hold: Hold, wall: float) -> str:
    """Return who holds what, for how long by now and until when."""
    end = "until released" if hold.until is None else f"{seconds(hold.until - wall)} to go"
    why = f": {hold.why.rstrip('.')}" if hold.why else ""
    return f"{what} has been held by {hold.who} for {_minutes(wall - hold.since)}, {end}{why}."


def _minutes(value: float) -> str:
    """Return how long something lasts already, in whole minutes: a sentence that says seconds is news each second."""
    if value < 60:
        return "less than a minute"
    return f"{value / 60:.0f} min" if value < 6000 else seconds(value)


def first_run(
    pool: Pool, left: int | None, wanted: int, share: float, many: bool, most: bool = False, beside: int = 0
) -> str:
    """Return what a first run asks of a device and what is left; ``beside`` is its RAM where both are one memory."""
    have = max(0, left or 0)
    asked, room = less(wanted, have)
    where = f"most is {room} {on(pool, many)}" if most else f"{on(pool, many)} {room} is left"
    least = f"{gib(beside)} of RAM and {share:.0%} of the rest" if beside else f"{share:.0%} of what is declared"
    sentence = f"First run: takes all that one device has left, and wants at least {least} ({asked}); {where}"
    if have >= wanted:
        return f"{sentence}."
    who = outsiders(pool)
    return f"{sentence}; {who}." if who else f"{sentence}."


def unsaid(devices: Sequence[str]) -> str:
    """Return what a job of which no need is known lacks on devices without readings."""
    return (
        f"Nothing measures {names(devices)}, so what a run needs there is never learned: "
        "say how much device memory it takes, or take the device alone."
    )


def devices(count: int) -> str:
    """Return a number of devices in words."""
    return f"{count} {'device' if count == 1 else 'devices'}"


def only_named(names_: Sequence[str]) -> str:
    """Return why devices without readings are not meant by a request that names no kind or backend."""
    are = "are" if len(names_) > 1 else "is"
    its = "their" if len(names_) > 1 else "its"
    return f"{names(names_)} {are} only for requests that name {its} kind or backend"


def settling(running: Running, pool: Pool, many: bool) -> str:
    """Return who is on its first run there and for how long by now."""
    return (
        f"#{running.job} has been on its first run {on(pool, many)} for {seconds(running.elapsed)}; "
        "nobody joins it before its use has settled."
    )
