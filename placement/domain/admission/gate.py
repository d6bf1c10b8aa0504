"""Is it safe to start this now, and where? One job against one snapshot, with every question's answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from calibration.domain.charge import cap
from calibration.domain.estimate import Basis
from calibration.domain.resources import gib
from placement.domain.admission import answers, checks, prerequisites
from placement.domain.admission.choosing import best_fit
from placement.domain.admission.decision import Candidate, Check, Code, Decision, Grant, Verdict
from placement.domain.admission.demands import Demand, Part, is_promise, waiting_demand
from placement.domain.admission.many_devices import all_places
from placement.domain.admission.nowhere import no_place, only_named
from placement.domain.admission.places import Board, Place, in_force
from placement.domain.world import text
from placement.domain.world.requests import Gpu, Request
from placement.domain.world.snapshot import Charge, Running, Snapshot, Waiting

SETS_SHOWN = 8  # of the sets of devices that a group could take
Aside = Callable[[Place, tuple[Part, ...]], Check | None]
"""Asks at a place that is otherwise free whether a start there would delay an older job's plan."""


@dataclass(frozen=True, slots=True)
class Look:
    """One place looked at for one demand."""

    place: Place
    parts: tuple[Part, ...]
    candidate: Candidate
    ok: bool
    near: tuple[bool, int, int, int]  # smaller is nearer to a start
    request: Request


def decide(snapshot: Snapshot, waiting: Waiting) -> Decision:
    """Return what the gate says of this job alone; plans of older jobs are not asked."""
    return decide_on(Board(snapshot), waiting)


def decide_on(board: Board, waiting: Waiting, aside: Aside | None = None) -> Decision:
    """Return the decision against the board as it stands; ``aside`` is asked wherever all else says yes."""
    demand = waiting_demand(waiting)
    looks = _looks(board, demand)
    if aside is not None:
        looks = [_asked(one, aside) if one.ok else one for one in looks]
    asked = [one.candidate.checks[0] for one in looks]  # the table's first question
    whole = (*about_job(board, waiting), about_ever(board, demand, asked))
    whole = tuple(sorted(whole, key=lambda c: c.code.rank))
    ready = [one for one in looks if one.ok]
    refused = next((c for c in whole if not c.ok), None)
    if refused is None and ready:
        ready.sort(key=lambda one: best_fit(demand.request, one.place, one.parts))
        best = next((one for one in ready if _allowed(board, waiting, one)), ready[0])
        start = _start(waiting, whole, best, looks)
        refused = None if start.grant is None else prerequisites.beyond(waiting, board.holdings, start.grant)
        if refused is None:
            return start
        whole = tuple(sorted((*whole, refused), key=lambda c: c.code.rank))
    ordered = _shown(waiting, [one.candidate for one in sorted(looks, key=_near)])
    if refused is not None:
        return Decision(waiting.job, Verdict.WAIT, refused.sentence, refused.code, whole, ordered)
    leading = ordered[0]
    first = leading.objections[0]
    headline = _headline(board, first, looks, leading)
    return Decision(waiting.job, Verdict.WAIT, headline, first.code, whole, ordered)


def _looks(board: Board, demand: Demand) -> list[Look]:
    """Return every place looked at; of a group that fits nowhere with as few devices as it may, only such sets.

    With more it asks for no less of any of them, unless they share an amount.
    """
    request = demand.request
    places: Sequence[Place] = all_places(board, demand)
    if request.gpu is Gpu.GROUP and request.group_memory is None:
        few = [look(board, demand, p) for p in places if len(p.devices) == request.min_devices]
        if not any(one.ok for one in few):
            return few
    return [look(board, demand, place) for place in places]


def _allowed(board: Board, waiting: Waiting, one: Look) -> bool:
    """Return whether a group may have so many devices under its owner's quota; of others the best place decides."""
    if waiting.request.gpu is not Gpu.GROUP or waiting.conditions is None:
        return True
    return prerequisites.beyond(waiting, board.holdings, granted(one.place, one.parts)) is None


def _shown(waiting: Waiting, ordered: list[Candidate]) -> tuple[Candidate, ...]:
    """Return the places that a decision tells of; of a group's many sets of devices only the nearest."""
    return tuple(ordered[:SETS_SHOWN] if waiting.request.gpu is Gpu.GROUP else ordered)


def look(board: Board, demand: Demand, place: Place) -> Look:
    """Return every answer about one place, in the table's order; remembered until the node changes."""
    memo = board.memo[place.node.name]
    key = (demand, place.order)
    if key not in memo:
        parts = board.parts(demand, place)
        asked = _questions(board, demand, place, parts)
        candidate = Candidate(
            node=place.node.name,
            devices=place.uuids,
            label=place.label,
            checks=asked,
            room={p.pool.pool: p.ledger.left(p.margin) for p in parts},
            need={p.pool.pool: p.need for p in parts if p.need is not None},
        )
        known = all(p.need is not None for p in parts)
        ok = known and all(c.ok for c in asked)
        memo[key] = Look(place, parts, candidate, ok, nearness(candidate), demand.request)
    found: Look = memo[key]
    return found


def _questions(board: Board, demand: Demand, place: Place, parts: tuple[Part, ...]) -> tuple[Check, ...]:
    by_pool = [answers.pool(board, place, part) for part in parts]
    return (
        answers.ever(board, demand, place),
        *checks.standing_of(board, place),
        *(reading for reading, _, _, _ in by_pool),
        checks.pressure_of(board, place.node),
        *answers.company(board, demand, place),
        *(first for _, first, _, _ in by_pool if first is not None),
        *(booked for _, _, booked, _ in by_pool if booked is not None),
        *(measured for _, _, _, measured in by_pool if measured is not None),
    )


def barred(board: Board, waiting: Waiting) -> bool:
    """Return whether ``about_job`` says no; most jobs have nothing that could, and cost nothing."""
    plain = waiting.hold is None and not waiting.no_account and waiting.conditions is None
    if plain and board.snapshot.queue_hold is None:
        return False
    return not all(check.ok for check in about_job(board, waiting))


def about_job(board: Board, waiting: Waiting) -> tuple[Check, ...]:
    """Return what stands against the job itself or the whole queue, passed questions too."""
    wall, queue = board.snapshot.wall, board.snapshot.queue_hold
    found = []
    if queue is not None and in_force(queue, wall):
        found.append(Check(Code.HELD, False, text.hold("The queue", queue, wall), checks.held_by(queue)))
    else:
        found.append(Check(Code.HELD, True, "The queue is open."))
    own = waiting.hold
    if own is not None and in_force(own, wall):
        found.append(Check(Code.JOB_HELD, False, text.hold("This job", own, wall), checks.held_by(own)))
    else:
        found.append(Check(Code.JOB_HELD, True, "Nobody holds this job."))
    if waiting.no_account:
        found.append(Check(Code.NO_ACCOUNT, False, waiting.no_account, {"user": waiting.user}))
    else:
        found.append(Check(Code.NO_ACCOUNT, True, "There is an account to run it as."))
    found += prerequisites.asked(waiting, board.holdings, wall)
    return tuple(found)


def about_ever(board: Board, demand: Demand, asked: Sequence[Check]) -> Check:
    """Return whether any place could ever serve, with what each could give at most."""
    if not asked:
        return Check(Code.INFEASIBLE, False, no_place(board, demand))
    if any(check.ok for check in asked):
        return Check(Code.INFEASIBLE, True, "At least one place could serve when it is free.")
    shown = sorted(asked, key=lambda c: c.shortfall)
    unsaid = dict.fromkeys(str(check.figures[checks.UNSAID]) for check in shown if checks.UNSAID in check.figures)
    rest = dict.fromkeys(check.sentence for check in shown if checks.UNSAID not in check.figures)
    said = [*([text.unsaid(list(unsaid))] if unsaid else []), *rest]  # many sets fail at one device
    words = " ".join(said[: text.NAMED])
    many = "sets of devices" if demand.request.gpu is Gpu.GROUP else "places"
    more = f" {len(said) - text.NAMED} more {many} give less." if len(said) > text.NAMED else ""
    request = demand.request
    where = "" if request.node is None and request.device is None else " where it asks to run"
    closed = only_named(board, request)
    return Check(
        Code.INFEASIBLE,
        False,
        f"Can never start{where}. {words}{more}{closed}",
        shown[0].figures,
        "",
        shown[0].shortfall,
    )


def nearness(candidate: Candidate) -> tuple[bool, int, int, int]:
    """Return the key of the leading rule: few kinds of objection, then late in the table, then little short.

    A place that could never serve is never near.
    """
    against = candidate.objections
    if not against:
        return False, 0, -len(Code), 0
    kinds = {c.code for c in against}
    first, short = min(c.code.rank for c in against), max(c.shortfall for c in against)
    return Code.INFEASIBLE in kinds, len(kinds), -first, short


def _near(one: Look) -> tuple[bool, int, int, int]:
    return one.near


def _asked(one: Look, aside: Aside) -> Look:
    check = aside(one.place, one.parts)
    if check is None:
        return one
    candidate = replace(one.candidate, checks=(*one.candidate.checks, check))
    return replace(one, candidate=candidate, ok=check.ok, near=nearness(candidate))


def _headline(board: Board, first: Check, looks: list[Look], leading: Candidate) -> str:
    """Return the first objection's sentence; "most room" where no other place has more."""
    one = next(o for o in looks if o.candidate is leading)
    part = next((p for p in one.parts if p.pool.pool == first.pool), None)
    if len(looks) < 2 or len(one.place.devices) > 1 or part is None or part is not one.parts[0]:
        return first.sentence
    lefts = [o.parts[0].ledger.left(o.parts[0].margin) or 0 for o in looks]
    if (part.ledger.left(part.margin) or 0) < max(lefts):
        return first.sentence
    if first.code is Code.NO_ROOM and part.need is not None:
        return text.measured(part.need, part.pool, part.ledger.room(part.margin), board.many, most=True)
    if first.code is Code.COLD_START_ROOM:
        share = board.knobs.cold_start_share
        return text.first_run(part.pool, part.need, part.least, share, board.many, most=True, beside=part.beside)
    return first.sentence


def _start(waiting: Waiting, whole: tuple[Check, ...], best: Look, looks: list[Look]) -> Decision:
    grant = granted(best.place, best.parts)
    part = best.parts[0]
    left = part.ledger.left(part.margin)
    count = len(best.place.devices)
    if count > 1:
        needs = [gib(p.need) for p in best.parts[:count]]
        each = f"{needs[0]} on each" if len(set(needs)) == 1 else text.names(needs)
        headline = f"Starts on {best.place.label}: {'takes' if part.all else 'needs'} {each}."
    elif part.all:
        headline = f"Starts on {best.place.label} as a first run: takes the {gib(part.need)} that are left."
    else:
        headline = f"Starts on {best.place.label}: needs {gib(part.need, left)}, room is {gib(left, part.need)}."
    if not part.ledger.measurable:
        headline = f"{headline.rstrip('.')}, by the bookings alone: nothing measures it."
    others = sorted((o for o in looks if o is not best), key=_near)
    ordered = _shown(waiting, [best.candidate, *(o.candidate for o in others)])
    return Decision(waiting.job, Verdict.START, headline, None, whole, ordered, grant)


def granted(place: Place, parts: Sequence[Part]) -> Grant:
    """Return what a start at the place is given."""
    return Grant(
        node=place.node.name,
        devices=tuple(p.pool.pool for p in parts if p.pool.kind != "ram") or place.uuids,
        charges={p.pool.pool: p.need or 0 for p in parts},
        caps={p.pool.pool: _cap(p) for p in parts if p.ledger.measurable},  # where nobody looks none can be kept
        margins={p.pool.pool: p.margin for p in parts},
        basis=min(p.basis for p in parts).word,
    )


def _cap(part: Part) -> int:
    """Return the cap; above the charge also for a first run's RAM, which is a share, not all that was left."""
    basis = Basis.DECLARED if part.cold and part.pool.kind == "ram" else part.basis
    total = part.pool.declared if part.pool.total is None else part.pool.total
    return cap(part.need or 0, total, basis)


def started(board: Board, waiting: Waiting, grant: Grant) -> Running:
    """Return the job as it stands the moment it is admitted: whole charge held, and nothing of it in the readings."""
    vram = None if waiting.request.gpu is Gpu.NONE else waiting.estimate.pools.get("vram")
    cold = waiting.request.gpu is not Gpu.NONE and (vram is None or vram.need is None)
    if cold:  # on devices that nobody measures it has the whole by what is declared, and never settles
        cold = all(d.measurable for d in board.nodes[grant.node].devices if d.uuid in grant.devices)
    ram = board.nodes[grant.node].ram.pool
    charges = {
        pool: Charge(n, n, 0, n, promise=is_promise(waiting.estimate, pool == ram)) for pool, n in grant.charges.items()
    }
    return Running(
        job=waiting.inside or waiting.job,
        name=waiting.name,
        user=waiting.user,
        node=grant.node,
        charges=charges,
        devices=grant.devices,
        basis=grant.basis,
        cold=cold,
        exclusive=waiting.request.exclusive,
        elapsed=0.0,
        limit=waiting.limit,
        learned=waiting.learned,
        margins=grant.margins,
        arrival=waiting.arrival,
        priority=waiting.priority,
        array=waiting.conditions.array if waiting.conditions else 0,
        more=bool(waiting.inside),
    )
