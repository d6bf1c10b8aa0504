"""Why each waiting job waits, on its row and in its history: a new reason at once, moved figures in turn.

At once as far as a second goes: of a crowd that is new in one cycle the rest follows in the next. Figures that only
moved are a round behind, and the row says since when it says so.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max
from django.utils import timezone

from calibration import clock
from placement.domain.admission.decision import Code, Decision
from placement.domain.admission.history import worth_writing
from placement.domain.admission.wire import decision_json, devices_json, estimate_json
from placement.domain.forecasting.told import judged
from placement.domain.jobs import State
from placement.domain.planning.plan import Plan
from placement.domain.world.snapshot import Waiting
from placement.models import DecisionRecord, Job
from placement.services import causes

_REFRESH = 10.0  # seconds after which ages on a waiting job's row are brought up to date
_FEWEST = 64  # so many are looked at again in each cycle, whatever it costs
_ROUNDS = 8  # of a longer queue such a part: a round within ``_REFRESH``, as long as ``_LONGEST`` suffices
_LONGEST = 0.25  # seconds that a cycle spends on those who were told something already
_AT_ONCE = 1.0  # and on those who are to be told at once
_BY_USE = frozenset({Code.QUOTA, Code.ARRAY_LIMIT})  # reasons that are about what others hold
_CHUNK = 400  # rows that one statement names


@dataclass(slots=True)
class _Told:
    """What this process last said of a job: when (snapshot clock), and what it would have to be told again for."""

    at: float
    sign: Hashable
    world: Hashable
    gist: int
    uses: Hashable = None  # of a quota or an array, where that is the reason


_told: dict[int, _Told] = {}
_written: dict[int, DecisionRecord] = {}  # what the history of a waiting job last said


def forget_all_but(waiting: Iterable[int]) -> None:
    """Forget what was said of jobs that do not wait any more."""
    kept = set(waiting)
    for job in [job for job in _told if job not in kept]:
        del _told[job]
    for job in [job for job in _written if job not in kept]:
        del _written[job]


def explain(plan: Plan) -> None:
    """Write down why jobs wait: of those that are new or wait for another kind of reason, and of some others in turn.

    So are those told at once whose quota or array is the reason, when somebody takes or gives back some of it. Equal
    jobs share one explanation and one statement. Starts are the caller's.
    """
    world = plan.world()
    pages = _Pages(plan, world)
    at_once, in_turn = _due(plan, world)
    for those, longest in ((at_once, _AT_ONCE), (in_turn, _LONGEST)):
        began = time.monotonic()
        for number, waiting in enumerate(those):
            if number >= _FEWEST and time.monotonic() - began > longest:
                break
            pages.add(waiting)
    pages.write()


def started(decisions: Sequence[Decision]) -> None:
    """Write the last line of the history of jobs that start."""
    now = timezone.now()
    DecisionRecord.objects.bulk_create(_record(d, decision_json(d), now) for d in decisions)


def _due(plan: Plan, world: Hashable) -> tuple[list[Waiting], list[Waiting]]:
    """Return who is to be told at once, and who is next in turn: first those around whom something has changed."""
    at_once: list[Waiting] = []
    by_use: list[tuple[float, int, Waiting]] = []
    others: list[tuple[bool, float, int, Waiting]] = []
    for number, waiting in enumerate(plan.waits()):
        if waiting.inside:  # told on the row of the request
            continue
        known = _told.get(waiting.job)
        if known is None or known.sign != plan.sign(waiting):
            at_once.append(waiting)
        elif known.uses is not None and known.uses != plan.uses(waiting):
            by_use.append((known.at, number, waiting))
        else:
            others.append((known.world == world, known.at, number, waiting))
    count = max(_FEWEST, -(-len(others) // _ROUNDS))
    chosen = others if len(others) <= count else heapq.nsmallest(count, others)
    at_once += [waiting for *_, waiting in sorted(by_use, key=lambda one: one[:2])]  # longest untold first
    return at_once, [waiting for *_, waiting in chosen]


class _Pages:
    """Explanations of one cycle, grouped by what they say."""

    def __init__(self, plan: Plan, world: Hashable) -> None:
        self._plan, self._world, self._knobs = plan, world, plan.board.knobs
        self._at, self._now = plan.board.snapshot.at, timezone.now()
        self._bodies: dict[Hashable, tuple[dict[str, Any], int]] = {}
        self._groups: dict[Hashable, tuple[dict[str, Any], list[int]]] = {}
        self._explained: list[tuple[Waiting, Decision]] = []

    def add(self, waiting: Waiting) -> None:
        """Explain one job."""
        self._explained.append((waiting, judged(self._plan, waiting.job)))

    def write(self) -> None:
        """Put everything on rows and into histories."""
        _recall([waiting.job for waiting, _ in self._explained])
        causes_of = causes.of_infeasible([d.job for _, d in self._explained if d.code is Code.INFEASIBLE])
        history: list[DecisionRecord] = []
        for waiting, decision in self._explained:
            body, gist = self._body(decision, causes_of.get(decision.job, ""))
            last = _written.get(waiting.job)
            since = (self._now - last.at).total_seconds() if last else 0.0
            if worth_writing(last.body if last else None, body, since, self._knobs):
                record = _written[waiting.job] = _record(decision, body, self._now)
                history.append(record)
            self._row(waiting, decision, body, gist)
        DecisionRecord.objects.bulk_create(history, batch_size=_CHUNK)
        for shown, jobs in self._groups.values():
            for first in range(0, len(jobs), _CHUNK):
                waiting_rows = Job.objects.filter(pk__in=jobs[first : first + _CHUNK], state=State.QUEUED)
                waiting_rows.update(decided_at=self._now, **shown)

    def _body(self, decision: Decision, cause: str) -> tuple[dict[str, Any], int]:
        """Return a decision as rows keep it, made once for equal ones, and its gist."""
        key = id(decision.whole), id(decision.candidates), decision.headline, cause, decision.planned
        if key not in self._bodies:
            body = decision_json(decision)
            body["headline"] = f"{decision.headline} {cause}".strip()
            self._bodies[key] = body, _gist(body["headline"], decision)
        return self._bodies[key]

    def _row(self, waiting: Waiting, decision: Decision, body: dict[str, Any], gist: int) -> None:
        known, sign = _told.get(waiting.job), self._plan.sign(waiting)
        uses = self._plan.uses(waiting) if decision.code in _BY_USE else None
        if known is not None and (known.gist, known.sign) == (gist, sign) and self._at - known.at < _REFRESH:
            known.world, known.uses = self._world, uses
            return
        _told[waiting.job] = _Told(self._at, sign, self._world, gist, uses)
        key = id(body), id(waiting.estimate)
        if key not in self._groups:
            shown = {
                "decision": body,
                "headline": body["headline"][:500],
                "code": body["code"] or "",
                "plan": _plan_of(decision),
                "estimate": estimate_json(waiting.estimate),
            }
            self._groups[key] = shown, []
        self._groups[key][1].append(waiting.job)


def _plan_of(decision: Decision) -> dict[str, Any]:
    planned = decision.planned
    if planned is None or not planned.keeps or planned.at is None:
        return {}
    return {"node": planned.node, **devices_json(planned.devices), "at": planned.at, "epoch": clock.epoch()}


def _gist(headline: str, decision: Decision) -> int:
    """Return a number that changes with anything but ages: those are floats, sizes are integers."""
    checks = [decision.whole, *(one.checks for one in decision.candidates)]
    told = tuple(
        (c.code.value, c.ok, c.shortfall, *(v for v in c.figures.values() if not isinstance(v, float)))
        for asked in checks
        for c in asked
    )
    places = tuple((one.node, one.devices) for one in decision.candidates)
    plan = decision.planned and (decision.planned.node, decision.planned.devices, decision.planned.at)
    return hash((headline, decision.code, places, told, plan))


def _record(decision: Decision, body: dict[str, Any], now: datetime) -> DecisionRecord:
    return DecisionRecord(
        job_id=decision.job,
        at=now,
        verdict=body["verdict"],
        code=body["code"] or "",
        headline=decision.headline[:500],
        body=body,
    )


def _recall(jobs: Sequence[int]) -> None:
    """Read back the newest line of the history of jobs that this process has not told anything yet."""
    unknown = [job for job in jobs if job not in _written]
    for first in range(0, len(unknown), _CHUNK):
        some = DecisionRecord.objects.filter(job__in=unknown[first : first + _CHUNK]).values("job")
        newest = [row["newest"] for row in some.annotate(newest=Max("pk"))]
        for record in DecisionRecord.objects.filter(pk__in=newest):
            _written[record.job_id] = record
