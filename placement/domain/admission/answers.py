"""Answers about a place, each kept until a start changes what it is about: a burst asks little anew."""

from __future__ import annotations

from placement.domain.admission import checks
from placement.domain.admission.company import company as company_of
from placement.domain.admission.decision import Check
from placement.domain.admission.demands import Demand, Part
from placement.domain.admission.places import Board, Place
from placement.domain.world.requests import Exclusive


def ever(board: Board, demand: Demand, place: Place) -> Check:
    """Return ``checks.ever``, asked once per cycle: who is there makes no difference."""
    fixed, request = board.fixed[place.node.name], demand.request
    shared = request.per_device_memory, request.group_memory, request.even
    key = "ever", demand.ram, demand.vram, request.exclusive, shared, place.order
    if key not in fixed:
        fixed[key] = checks.ever(board, demand, place)
    found: Check = fixed[key]
    return found


def company(board: Board, demand: Demand, place: Place) -> tuple[Check, ...]:
    """Return ``checks.company``, asked once until somebody joins whose presence it is about."""
    fixed, name, wanted = board.fixed[place.node.name], place.node.name, demand.request.exclusive
    who = board.on_node(name) if wanted is Exclusive.MACHINE else board.alone_on(name)
    there = len(who), 0 if not place.devices else len(board.on_place(place))
    key = "company", place.order, wanted, demand.request.inside
    if key not in fixed or fixed[key][0] != there:
        fixed[key] = there, tuple(company_of(board, demand, place))
    found: tuple[Check, ...] = fixed[key][1]
    return found


def pool(board: Board, place: Place, part: Part) -> tuple[Check, Check | None, Check | None, Check | None]:
    """Return what is asked of one pool: its reading, room for a first run, the booked and the measured room."""
    known, key = part.ledger.answers, ("asked", part.need, part.least, part.margin, part.all)
    if key not in known:
        own = None if part.pool is place.node.ram else part.pool.pool
        device = next((d for d in place.devices if d.pool.pool == own), None)
        read = checks.reading_of(board, part.pool, device)
        first = checks.first_run_room(board, part) if part.all else None
        room = checks.measured(board, part) if read.ok else None
        known[key] = read, first, checks.booked(board, part), room
    found: tuple[Check, Check | None, Check | None, Check | None] = known[key]
    return found
