"""Who starts where, who waits and why: a pure function of the snapshot."""

from __future__ import annotations

from collections.abc import Hashable

from placement.domain.bars import Bar, asking, bar_for, rank
from placement.domain.decision import Check, Code, Decision, Verdict
from placement.domain.gate import Aside, decide_on, look, started
from placement.domain.places import Board, Demand, Part, Place, waiting_demand
from placement.domain.prerequisites import Holdings, applied
from placement.domain.snapshot import Snapshot, Waiting


def plan(snapshot: Snapshot) -> Plan:
    """Return who starts, asked in queue order; a start is charged before the next job is asked."""
    cycle = Cycle(snapshot)
    queue = ordered(snapshot)
    decided = [cycle.consider(waiting) for waiting in queue]
    return Plan(cycle, queue, tuple(d for d in decided if d.verdict is Verdict.START))


def ordered(snapshot: Snapshot) -> tuple[Waiting, ...]:
    """Return the queue in its order: priority with ageing, then arrival."""
    hours = snapshot.knobs.ageing_hours
    return tuple(sorted(snapshot.waiting, key=lambda w: rank(w, hours)))


def would(snapshot: Snapshot, waiting: Waiting) -> Decision:
    """Return what the next cycle would say of this job at the end of the queue; asking changes nothing."""
    return after_queue(snapshot).ask(waiting)


def after_queue(snapshot: Snapshot) -> Cycle:
    """Return the cycle after everybody who waits has had a turn; ask it about any further jobs."""
    cycle = Cycle(snapshot)
    for waiting in ordered(snapshot):
        cycle.consider(waiting)
    return cycle


class Plan:
    """One cycle's answer: who starts, the plan that is kept for the head, and on request why another one waits.

    ``board`` is the machine as it stands after the starts; whoever waits is explained against it.
    """

    def __init__(self, cycle: Cycle, queue: tuple[Waiting, ...], starts: tuple[Decision, ...]) -> None:
        self.queue = queue
        self.starts = starts
        self._cycle = cycle
        self._jobs = {waiting.job: waiting for waiting in queue}
        self._said = {decision.job: decision for decision in starts}

    @property
    def board(self) -> Board:
        """Return the snapshot with this cycle's starts in it."""
        return self._cycle.board

    @property
    def bar(self) -> Bar | None:
        """Return the plan that nothing younger may delay, None where nobody has one."""
        return self._cycle.bar

    def why_no_plan(self, job: int) -> str:
        """Return why the job could be given no plan, "" where it has one or its turn for one did not come."""
        return self._cycle.planless_jobs.get(job, "")

    def explain(self, job: int) -> Decision:
        """Return the full decision about a job of the queue."""
        if job not in self._said:
            self._said[job] = self._cycle.refused(self._jobs[job])
        return self._said[job]

    def decisions(self) -> tuple[Decision, ...]:
        """Return every job's decision, in queue order."""
        return tuple(self.explain(waiting.job) for waiting in self.queue)


class Cycle:
    """One pass over the queue: the board so far, the plan to be kept, and answers for equal jobs."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.board = Board(snapshot)
        self.holdings = Holdings(snapshot.running)
        self.bar: Bar | None = None
        self._first_waiting: int | None = None  # under strict order nobody passes it
        self._answers: dict[Hashable, Decision] = {}
        self.planless_jobs: dict[int, str] = {}
        self._planless: dict[Demand, str] = {}  # why a demand gets no plan while the board stands as it does

    def consider(self, waiting: Waiting) -> Decision:
        """Return the job's decision, and charge its start or make its plan."""
        decision = self.ask(waiting)
        if decision.grant is not None:
            running = started(self.board, waiting, decision.grant)
            self.board.admit(running)
            self.holdings.add(running)
            self._answers.clear()
            self._planless.clear()
        elif all(check.ok for check in decision.whole):
            self._first_waiting = self._first_waiting or waiting.job
            if self.bar is None and decision.code is not Code.SET_ASIDE:
                self._make_plan(waiting)
        return decision

    def ask(self, waiting: Waiting) -> Decision:
        """Return the job's decision against the board as it stands, its own conditions included."""
        return applied(self._room_for(waiting), waiting, self.holdings, self.snapshot.wall)

    def _room_for(self, waiting: Waiting) -> Decision:
        demand = waiting_demand(waiting)
        if waiting.hold is not None or waiting.no_account:
            return decide_on(self.board, waiting, self._aside(waiting))
        known = self._answers.get(demand)
        if known is None:
            known = self._answers[demand] = decide_on(self.board, waiting)
        aside = self._aside(waiting)
        if known.grant is not None and aside is not None:
            # Only what fits can delay a plan, and only then does it matter how long this one lasts.
            key = (demand, waiting.limit, waiting.learned)
            known = self._answers.get(key) or decide_on(self.board, waiting, aside)
            self._answers[key] = known
        if known.job == waiting.job:
            return known
        return Decision(
            waiting.job, known.verdict, known.headline, known.code, known.whole, known.candidates, known.grant
        )

    def refused(self, waiting: Waiting) -> Decision:
        """Return why a job that was asked and did not start waits, as things stand after the last start."""
        decision = self.ask(waiting)
        if decision.grant is None:
            return decision
        # What others took since its turn can shrink a first run's share, and so make it fit beside the plan.
        said = decide_on(self.board, waiting, self._next_time)
        return applied(said, waiting, self.holdings, self.snapshot.wall)

    def _next_time(self, place: Place, parts: tuple[Part, ...]) -> Check:
        job = self.bar.job if self.bar is not None else self._first_waiting
        what = "Did not fit" if job is None else f"Would have delayed #{job}"
        words = f"{what} when its turn came; it is asked again in the next cycle."
        return Check(Code.SET_ASIDE, False, words, {"for": job})

    def _make_plan(self, waiting: Waiting) -> None:
        demand: Demand = waiting_demand(waiting)
        if waiting.plan is None and demand in self._planless:
            self.planless_jobs[waiting.job] = self._planless[demand]
            return
        looks = [look(self.board, demand, place) for place in self.board.places(demand.request)]
        made = bar_for(self.board, waiting, looks)
        if isinstance(made, Bar):
            self.bar = made
            self._answers.clear()
        else:
            self.planless_jobs[waiting.job] = made
            if waiting.plan is None:
                self._planless[demand] = made

    def _aside(self, waiting: Waiting) -> Aside | None:
        if self.snapshot.knobs.overtaking == "none" and self._first_waiting is not None:
            first = self._first_waiting

            def strict(place: Place, parts: tuple[Part, ...]) -> Check:
                words = f"Strict order: #{first} goes first, and nobody overtakes it."
                return Check(Code.SET_ASIDE, False, words, {"for": first})

            return strict
        return None if self.bar is None else asking(self.board, self.bar, waiting)
