"""The gate's questions about one place, each answered with a sentence and its figures."""

from __future__ import annotations

from collections.abc import Iterator

from calibration.domain.resources import MIB, total
from calibration.domain.samples import PoolState
from placement.domain.admission.decision import Check, Code, Figures
from placement.domain.admission.demands import Demand, Part, gives
from placement.domain.admission.places import Board, Place, in_force, name_of
from placement.domain.knobs import Knobs
from placement.domain.world import text
from placement.domain.world.pressure import limit_of, marks_of
from placement.domain.world.snapshot import Device, Hold, Node, Pool

GIVEN_UP = ("gone", "stale", "joining")
UNSAID = "on"
"""The figure of a check that lacks an amount: the device that nobody measures."""


def standing(board: Board, place: Place) -> Iterator[Check]:
    """Yield what an operator or the node's own health says, whatever the job asks."""
    node, wall = place.node, board.snapshot.wall
    hold, what = node.hold, node.name
    for device in place.devices:
        if in_force(device.hold, wall):
            hold, what = device.hold, name_of(device, board.many)
            break
    if hold is not None and in_force(hold, wall):
        yield Check(Code.HELD, False, text.hold(what, hold, wall), held_by(hold))
    else:
        yield Check(Code.HELD, True, f"Nobody holds {what}.")
    empties = [name_of(device, board.many) for device in place.devices if device.draining]
    if node.state == "draining" or empties:
        drained = node.name if node.state == "draining" else empties[0]
        yield Check(Code.DRAINING, False, f"{drained} is draining: what runs may finish, nothing new starts.")
    else:
        yield Check(Code.DRAINING, True, f"{place.label} takes new jobs.")
    for device in place.devices:
        if device.own is not None:
            yield reading(board, device.own, device)  # its memory is the node's, but it has to be there itself
    yield from _health_of(board, node)


def _health_of(board: Board, node: Node) -> tuple[Check, ...]:
    """Return whether the node is there and works, asked once per cycle."""
    fixed = board.fixed[node.name]
    if "health" not in fixed:
        fixed["health"] = tuple(_health(node, board.knobs))
    found: tuple[Check, ...] = fixed["health"]
    return found


def _health(node: Node, knobs: Knobs) -> Iterator[Check]:
    yield _alive(node, knobs.node_stale_seconds)
    yield _working(node, knobs.node_no_work_seconds)
    low = knobs.disk_low_mib * MIB
    if node.disk_free is None:
        yield Check(Code.DISK_LOW, True, f"How much disk {node.name} has left is unknown.", {"free": None, "low": low})
    else:
        enough = node.disk_free >= low
        free, mark = text.less(node.disk_free, low)
        words = f"{node.name} has {free} of disk left for runs; below {mark} nothing starts."
        short = 0 if enough else low - node.disk_free
        yield Check(Code.DISK_LOW, enough, words, {"free": node.disk_free, "low": low}, shortfall=short)
    count = {"free": node.processes_free, "reserve": knobs.process_reserve}
    if node.processes_free is None:
        yield Check(Code.PROCESS_LIMIT, True, f"{node.name} states no limit on processes.", count)
    else:
        words = (
            f"{node.name} may still make {node.processes_free} processes; below {knobs.process_reserve} nothing starts."
        )
        yield Check(Code.PROCESS_LIMIT, node.processes_free >= knobs.process_reserve, words, count)


def standing_of(board: Board, place: Place) -> tuple[Check, ...]:
    """Return ``standing``, asked once per cycle."""
    fixed = board.fixed[place.node.name]
    if place.order not in fixed:
        fixed[place.order] = tuple(standing(board, place))
    found: tuple[Check, ...] = fixed[place.order]
    return found


def pressure_of(board: Board, node: Node) -> Check:
    """Return ``pressure``, asked once per cycle."""
    fixed = board.fixed[node.name]
    if "pressure" not in fixed:
        fixed["pressure"] = pressure(board, node)
    found: Check = fixed["pressure"]
    return found


def reading_of(board: Board, pool: Pool, device: Device | None) -> Check:
    """Return ``reading``, asked once per cycle."""
    fixed, key = board.fixed[pool.node], ("reading", pool.pool)
    if key not in fixed:
        fixed[key] = reading(board, pool, device)
    found: Check = fixed[key]
    return found


def held_by(hold: Hold) -> Figures:
    """Return the figures of a hold."""
    return {"who": hold.who, "since": hold.since, "until": hold.until}


def _alive(node: Node, limit: float) -> Check:
    age = node.tick_age
    figures = {"age": age, "limit": limit}
    if node.state in GIVEN_UP:
        return Check(Code.NODE_STALE, False, f"{node.name} is {node.state}: its worker is not there.", figures)
    if age is None:
        return Check(Code.NODE_STALE, False, f"{node.name} has not finished a look at itself yet.", figures)
    if not 0 <= age <= limit:
        words = f"{node.name} was last heard of {text.seconds(age)} ago; {text.seconds(limit)} are allowed."
        return Check(Code.NODE_STALE, False, words, figures)
    return Check(Code.NODE_STALE, True, f"{node.name} was heard of {text.seconds(age)} ago.", figures)


def _working(node: Node, limit: float) -> Check:
    age = node.work_age
    figures = {"age": age, "limit": limit}
    if age is not None and not 0 <= age <= limit:
        words = f"The start worker of {node.name} has taken no message for {text.seconds(age)}."
        return Check(Code.NODE_NO_WORK, False, words, figures)
    return Check(Code.NODE_NO_WORK, True, f"The start worker of {node.name} takes work.", figures)


def reading(board: Board, pool: Pool, device: Device | None) -> Check:
    """Return whether the pool's figures may be decided on: there, fresh, of a device that answers."""
    limit, name = board.knobs.stale_seconds, text.pool_name(pool, board.many)
    figures = {"age": pool.age, "limit": limit, "state": pool.state.value}
    told = f" ({pool.message.rstrip('.')})" if pool.message else ""
    if device is not None and not device.measurable:
        if device.twice:
            return Check(Code.NO_READING, False, device.twice, figures, pool.pool)
        words = f"No probe can read {name}: declared capacity alone decides there."
        return Check(Code.NO_READING, True, words, figures, pool.pool)
    if pool.state is PoolState.LOST:
        since = "" if pool.age is None else f", last read {text.seconds(pool.age)} ago"
        return Check(Code.DEVICE_LOST, False, f"{name} is lost{since}{told}.", figures, pool.pool)
    if pool.state is PoolState.GONE:
        return Check(Code.DEVICE_LOST, False, f"{name} is gone{told}.", figures, pool.pool)
    if pool.state in (PoolState.HEADING, PoolState.UNMEASURED):
        return Check(Code.NO_READING, False, f"{name} is closed: {pool.message.rstrip('.')}.", figures, pool.pool)
    if pool.state in (PoolState.NOT_READY, PoolState.UNSUPPORTED) or pool.age is None:
        return Check(Code.NO_READING, False, f"There is no reading of {name} yet{told}.", figures, pool.pool)
    if pool.state is PoolState.STALE or not 0 <= pool.age <= limit:
        old, allowed = text.seconds(pool.age), text.seconds(limit)
        words = f"No fresh measurement of {name} for {old}{told}; {allowed} are allowed."
        return Check(Code.STALE_READING, False, words, figures, pool.pool)
    if pool.free is None:
        words = f"How much of {name} is free is not known{told}."
        return Check(Code.NO_READING, False, words, figures, pool.pool)
    words = f"The last reading of {name} is {text.seconds(pool.age)} old."
    return Check(Code.STALE_READING, True, words, figures, pool.pool)


def pressure(board: Board, node: Node) -> Check:
    """Return whether the node's RAM is out of its high mark (and below the low one again)."""
    ram, (high, low) = node.ram, marks_of(node.ram_marks, board.knobs)
    figures: dict[str, int | float | str | None] = {"used": ram.used, "total": ram.total, "high": high, "low": low}
    share = f"{ram.used / ram.total:.0%} used" if ram.used is not None and ram.total else "use unknown"
    if (limit := limit_of(ram.declared, ram.total)) is not None:
        uses = [r.charges[ram.pool].used for r in board.on_node(node.name) if ram.pool in r.charges]
        figures |= {"jobs_use": total(uses), "declared": limit}
        at_least = "at least " if None in uses else ""
        known = sum(amount for amount in uses if amount is not None)
        share += f", and {at_least}{known / limit:.0%} of what is declared is used by jobs"
    if not node.ram_pressure:
        return Check(Code.RAM_PRESSURE, True, f"RAM of {node.name}: {share}.", figures, ram.pool)
    words = f"RAM of {node.name} is short: {share}; above {high:.1%} nothing starts until it is below {low:.1%}."
    return Check(Code.RAM_PRESSURE, False, words, figures, ram.pool)


def ever(board: Board, demand: Demand, place: Place) -> Check:
    """Return whether the place could serve if nothing else were there: what each pool gives at most."""
    worst: Check | None = None
    figures: dict[str, int | float | str | None]
    for part in board.parts(demand, place):
        pool, least = part.pool, part.least
        name = text.pool_name(pool, board.many)
        if part.at_most is None or least <= part.at_most:
            continue
        if part.unsaid:
            figures = {"declared": pool.declared, "alone": "device", UNSAID: name}
            worst = worst or Check(Code.INFEASIBLE, False, text.unsaid([name]), figures, pool.pool)
            continue
        given = gives(part) or 0
        asked, most = text.less(least, given)
        figures = {
            "need": least,
            "at_most": given,
            "declared": pool.declared,
            "total": pool.total,
        }
        words = f"Needs {asked}; {name} can give at most {most}."
        whole = bool(place.devices) and least <= min(pool.declared, pool.total or pool.declared)
        if whole and pool.kind != "ram":
            words += " Take the device alone to get all of it."
            figures["alone"] = "device"
        check = Check(Code.INFEASIBLE, False, words, figures, pool.pool, least - given)
        worst = worst or check
    return worst or Check(Code.INFEASIBLE, True, f"{place.label} could serve when it is free.")


def first_run_room(board: Board, part: Part) -> Check:
    """Return whether enough of the device is left for a run of which nothing is known."""
    share = board.knobs.cold_start_share
    wanted = part.least
    left = part.need
    if part.pool.draining:
        words = f"{text.pool_name(part.pool, board.many)} is still getting memory back from a run that ended."
        words += " A first run is charged all that is left, so it waits until that is known."
        return Check(Code.COLD_START_ROOM, False, words, {"left": left, "wanted": wanted}, part.pool.pool)
    words = text.first_run(part.pool, left, wanted, share, board.many, beside=part.beside)
    figures = {"left": left, "wanted": wanted, "share": share, "declared": part.pool.declared}
    short = max(0, wanted - (left or 0))
    return Check(Code.COLD_START_ROOM, short == 0, words, figures, part.pool.pool, short)


def booked(board: Board, part: Part) -> Check | None:
    """Return the booked ledger's answer; None where the need hangs on a room that is unknown."""
    if part.need is None:
        return None
    booking = part.ledger.booking()
    short = max(0, part.need - booking.room)
    figures: dict[str, int | float | str | None] = {
        "need": part.need,
        "declared": booking.declared,
        "leased": booking.leased,
        "room": booking.room,
    }
    figures.update({f"leased_{job}": lease for job, lease in booking.holders})
    words = text.booked(part.need, part.pool, booking, board.many)
    return Check(Code.BOOKED, short == 0, words, figures, part.pool.pool, short)


def measured(board: Board, part: Part) -> Check | None:
    """Return the measured ledger's answer; None where the pool cannot be measured or is not known now."""
    room = part.ledger.room(part.margin)
    if part.need is None or room.room is None or not part.ledger.measurable:
        return None
    short = max(0, part.need - room.room)
    figures: dict[str, int | float | str | None] = {
        "need": part.need,
        "total": room.total,
        "used": room.used,
        "withheld": room.withheld,
        "free": room.free,
        "floor": room.kept.floor,
        "cushion": room.kept.cushion,
        "kept": room.kept.kept,
        "growth": room.growth,
        "room": room.room,
        "external": part.pool.external,
    }
    figures.update({f"growth_{job}": growth for job, growth in room.holders})
    words = text.measured(part.need, part.pool, room, board.many)
    return Check(Code.NO_ROOM, short == 0, words, figures, part.pool.pool, short)
