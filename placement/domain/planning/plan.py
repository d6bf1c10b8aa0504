"""Who starts where: a pure function of the snapshot. Verdicts are quick; why they are so is told on request."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property

from placement.domain.admission.decision import Check, Code, Decision, Grant
from placement.domain.admission.demands import Part, waiting_demand
from placement.domain.admission.gate import Aside, barred, decide_on, started
from placement.domain.admission.places import Board, Place
from placement.domain.admission.prerequisites import beyond
from placement.domain.admission.rooms import Fit, Rooms
from placement.domain.planning.bars import Bar, Guard, asking, rank
from placement.domain.planning.pressing import Pressing
from placement.domain.planning.prospects import Prospects
from placement.domain.planning.starts import Start, explained, grant_at
from placement.domain.world import text
from placement.domain.world.snapshot import Snapshot, Waiting


def plan(snapshot: Snapshot) -> Plan:
    """Return who starts, asked in queue order; a start is charged before the next job is asked."""
    cycle = Cycle(snapshot)
    queue = ordered(snapshot)
    for waiting in queue:
        cycle.consider(waiting)
    return Plan(cycle, queue)


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

    def __init__(self, cycle: Cycle, queue: tuple[Waiting, ...]) -> None:
        self.queue = queue
        self.grants: Mapping[int, Grant] = {start.waiting.job: start.grant for start in cycle.starts}
        self._cycle = cycle
        self._jobs = {waiting.job: waiting for waiting in queue}
        self._said: dict[int, Decision] = {}
        self._uses: dict[tuple[str, int], Hashable] = {}

    @cached_property
    def starts(self) -> tuple[Decision, ...]:
        """Return the decisions of those that start, in queue order, each with the figures of its turn."""
        return tuple(explained(self._cycle.snapshot, self._cycle.starts))

    @property
    def board(self) -> Board:
        """Return the snapshot with this cycle's starts in it."""
        return self._cycle.board

    @property
    def bar(self) -> Bar | None:
        """Return the plan that nothing younger may delay, None where nobody has one."""
        return self._cycle.bar

    @property
    def pressed(self) -> Mapping[int, float]:
        """Return the jobs that have room and wait because what they will ask for has none, for how many seconds."""
        return self._cycle.pressed

    def waits_aside(self, job: int) -> bool:
        """Return whether the job has room and waits only because it would delay an older one."""
        return job in self._cycle.aside

    def waits(self) -> Iterator[Waiting]:
        """Yield the jobs that were asked and do not start, in queue order."""
        return (waiting for waiting in self.queue if waiting.job not in self.grants)

    def sign(self, waiting: Waiting) -> Hashable:
        """Return the kind of reason for which a job waits, without its figures: cheap, and equal while it stands."""
        head = self.bar is not None and self.bar.job == waiting.job
        held = self.board.snapshot.queue_hold
        own = waiting.attempt, waiting.hold, waiting.no_account, waiting.conditions
        return head, self.waits_aside(waiting.job), waiting.job in self._cycle.pressed, held, own

    def uses(self, waiting: Waiting) -> Hashable:
        """Return who holds how much under its owner's quota and its array's limit, None where it has neither."""
        by = waiting.conditions
        if by is None or (by.quota is None and by.array_limit is None):
            return None
        key = "" if by.quota is None else waiting.user, by.array if by.array_limit is not None else 0
        if key not in self._uses:
            held, members = self.board.holdings.of_user(key[0]), self.board.holdings.of_array(key[1])
            sums = sum(size for _, size in held.vram), sum(size for _, size in held.ram)
            self._uses[key] = tuple(held.jobs), sums, tuple(members) if key[1] else ()
        return self._uses[key]

    def world(self) -> Hashable:
        """Return what else reasons hang on: which places are open, and whose jobs run there."""
        return self._cycle.world()

    def explain(self, job: int) -> Decision:
        """Return the full decision about a job of the queue."""
        if job in self.grants and job not in self._said:
            self._said.update((decision.job, decision) for decision in self.starts)
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
        self.bar: Bar | None = None
        self.aside: set[int] = set()
        self.pressed: dict[int, float] = {}  # have room, but what they will ask for has not; for how long at most
        self.starts: list[Start] = []
        self._rooms = Rooms(self.board)
        self._prospects = Prospects(self.board, self._rooms)
        self._guard: Guard | None = None
        self._pressing = Pressing(self.board)
        self._strict = snapshot.knobs.overtaking == "none"
        self._first: Waiting | None = None  # under strict order no job passes it
        self._answers: dict[Hashable, Decision] = {}

    def consider(self, waiting: Waiting) -> None:
        """Start the job and charge it, or let it wait; then it may be the one that gets the plan."""
        fitting = self._rooms.fitting(waiting)
        if not fitting:
            if self.bar is None and not barred(self.board, waiting):
                self._lead(waiting)
            return
        if barred(self.board, waiting):
            return
        unpressed = self._unpressed(waiting, fitting)
        if not unpressed:
            self.pressed[waiting.job] = self._pressing.longest(waiting, [(fit[0].place, fit[1]) for fit in fitting])
            return
        fitting = unpressed
        passing = self._passing(waiting, fitting)
        if not passing:
            self.aside.add(waiting.job)
            return
        grant = grant_at(self.board, waiting, passing)
        if beyond(waiting, self.board.holdings, grant) is not None:
            return  # a first run that would take more than its owner's quota leaves
        run = started(self.board, waiting, grant)
        self.board.admit(run)
        self._rooms.joined(run)
        self._pressing.served(waiting)
        self.starts.append(Start(waiting, grant, run, self.bar))

    def world(self) -> Hashable:
        """Return which places are open and which jobs run; equal while reasons differ in figures alone."""
        board = self.board
        return self._rooms.open(), frozenset(r.job for node in board.nodes for r in board.on_node(node))

    def may_start(self, waiting: Waiting) -> bool:
        """Return the verdict about any job as things stand now."""
        if waiting.conditions is not None:
            return self.ask(waiting).grant is not None
        fitting = self._unpressed(waiting, self._rooms.fitting(waiting))
        return bool(fitting) and not barred(self.board, waiting) and bool(self._passing(waiting, fitting))

    def _unpressed(self, waiting: Waiting, fitting: list[Fit]) -> list[Fit]:
        """Return those of the places with room where also what it will ask for could be served."""
        if not fitting or not self._pressing.concerns(waiting):
            return fitting
        return [fit for fit in fitting if self._pressing.holds(waiting, fit[0].place, fit[1]) is None]

    def _passing(self, waiting: Waiting, fitting: list[Fit]) -> list[Fit]:
        """Return those of the places with room where it delays nobody older."""
        if self._strict and self._first is not None and not waiting.inside:
            return []
        guard = self._guard
        if guard is None:
            return fitting
        return [fit for fit in fitting if not guard.delays(waiting, fit[0].place, *fit[1:]).harms]

    def _lead(self, waiting: Waiting) -> None:
        """Give the first job that fits nowhere its plan; one that could never start leads nobody."""
        if not self._rooms.ever(waiting):
            return
        if self._first is None:
            self._first = waiting
        self.bar = self._prospects.bar(waiting)
        if self.bar is not None:
            self._guard = Guard(self.board, self.bar)
            self.board.aside = frozenset(self.bar.look.place.uuids)

    def refused(self, waiting: Waiting) -> Decision:
        """Return why a job that was asked and did not start waits, as things stand after the last start."""
        decision = self.ask(waiting)
        if decision.grant is None:
            return decision
        # What others took since its turn can shrink a first run's share, and so make it fit beside the plan.
        return decide_on(self.board, waiting, self._pressing.asking(waiting, self._next_time))

    def _next_time(self, place: Place, parts: tuple[Part, ...]) -> Check:
        first = self.bar or self._first
        job = None if first is None else first.inside or first.job
        what = "Did not fit" if first is None else f"Would have delayed {text.whom(first.job, first.inside)}"
        words = f"{what} when its turn came; it is asked again in the next cycle."
        return Check(Code.SET_ASIDE, False, words, {"for": job})

    def ask(self, waiting: Waiting) -> Decision:
        """Return the job's full decision against the board as it stands, made once for equal demands."""
        by = waiting.conditions
        own_matter = waiting.hold is not None or waiting.no_account or (by is not None and by.after)
        if own_matter or self._pressing.concerns(waiting):
            # What stands, or could stand, against one job itself says nothing of the next.
            return decide_on(self.board, waiting, self._aside(waiting))
        own = None if by is None else (by, waiting.user, id(waiting.estimate))
        demand = waiting_demand(waiting)
        version = self.board.version, own
        known = self._answers.get((demand, version))
        if known is None:
            known = self._answers[demand, version] = decide_on(self.board, waiting)
        aside = self._aside(waiting)
        if known.grant is not None and aside is not None:
            # Only what fits can delay a plan, and only then does it matter how long this one lasts.
            key = (demand, version, waiting.limit, waiting.learned)
            known = self._answers.get(key) or decide_on(self.board, waiting, aside)
            self._answers[key] = known
        if known.job == waiting.job:
            return known
        whole, places = known.whole, known.candidates
        return Decision(waiting.job, known.verdict, known.headline, known.code, whole, places, known.grant)

    def _aside(self, waiting: Waiting) -> Aside | None:
        return self._pressing.asking(waiting, self._delaying(waiting))

    def _delaying(self, waiting: Waiting) -> Aside | None:
        if self._strict and self._first is not None and not waiting.inside:
            first = self._first

            def strict(place: Place, parts: tuple[Part, ...]) -> Check:
                words = f"Strict order: {text.whom(first.job, first.inside)} goes first, and nobody overtakes it."
                return Check(Code.SET_ASIDE, False, words, {"for": first.inside or first.job})

            return strict
        return None if self._guard is None else asking(self._guard, waiting)
