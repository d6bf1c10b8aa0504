"""A machine in simulated time: jobs that ask, hold, ask for more, crash and are revoked, and the memory they take.

The allocator and the book are the real ones. The memory of each device is a model: what leases have taken so far, what
strangers have, and what comes back late. The order is the simplest that lets everybody end: requests from inside
jobs, then the others, oldest first; younger ones pass until one has waited for ``PATIENCE``.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from placement.domain.leasing import leases
from placement.domain.leasing.allocator import Granted, Impossible, Unavailable
from placement.domain.leasing.leases import Holder, Holding, Lease
from placement.domain.leasing.ledger import opened
from placement.domain.leasing.slots import Slot
from placement.domain.world.asks import Ask
from placement.domain.world.devices import Backend, DeviceKey, Kind
from tests.slots import check_grant

DEVICES, PATIENCE, LOOKED_AT = 8, 300.0, 24
UNIT = 1 << 20
SIZES = (8_000, 16_000, 24_000, 24_000, 24_000, 24_000, 48_000, 80_000)
Resolve = Callable[["World"], bool]


@dataclass(slots=True)
class Wait:
    """A request that waits: a job's first (``part`` 0), one from inside it, or a person's."""

    arrival: int
    job: int
    part: int
    ask: Ask
    since: float
    holder: Holder


@dataclass(slots=True)
class Job:
    number: int
    asks: list[Ask]
    crashes_in: int | None  # the part in which it crashes
    sessions: list[tuple[int, Holder]] = field(default_factory=list)


@dataclass
class World:
    """Everything at one moment. ``outcomes`` has one word for each job that is over, ``said`` the sentences."""

    jobs: int
    seed: int
    resolve: Resolve
    now: float = 0.0
    outcomes: dict[int, str] = field(default_factory=dict)
    said: dict[int, str] = field(default_factory=dict)
    queue: list[Wait] = field(default_factory=list)
    running: dict[int, Job] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.order = 0
        self.declared = {("atlas", f"GPU-{i}"): size * UNIT for i, size in enumerate(SIZES)}
        self.used: dict[DeviceKey, dict[int, int]] = {device: {} for device in self.declared}
        self.strangers = dict.fromkeys(self.declared, 0)
        self.late: dict[DeviceKey, list[tuple[float, int]]] = {device: [] for device in self.declared}
        self.book = opened(
            Slot(device, i, Kind.GPU, (Backend.CUDA,), size, exclusive_only=i == 1, measured=None if i == 2 else size)
            for i, (device, size) in enumerate(self.declared.items())
        )

    def run(self) -> None:
        """Let everything happen until no job is left."""
        at = 0.0
        for number in range(self.jobs):
            at += self.rng.expovariate(1 / 26)
            self.at(at, lambda number=number: self.arrive(number))  # type: ignore[misc]
        while self.events or self.queue:
            if self.events:
                self.now, _, happen = heapq.heappop(self.events)
                happen()
            else:
                raise AssertionError(f"{len(self.queue)} requests wait for ever: {self.queue[0]}")
            while self.cycle():
                pass

    def at(self, when: float, what: Callable[[], None]) -> None:
        self.order += 1
        heapq.heappush(self.events, (when, self.order, what))

    def soon(self, mean: float, what: Callable[[], None]) -> None:
        self.at(self.now + self.rng.expovariate(1 / mean), what)

    def arrive(self, number: int) -> None:
        """Bring a job, and now and then one of the things that a machine goes through."""
        rng = self.rng
        if rng.random() < 0.05:
            self.strangers_move()
        if rng.random() < 0.02:
            self.declare()
        if rng.random() < 0.03 and self.book.leases:
            self.revoke(rng.choice(list(self.book.leases.values())))
        if rng.random() < 0.02:
            self.wait(-number - 1, 0, self.an_ask(alone=True), leases.person(f"person {number}", self.now + 200))
        asks = [self.an_ask() for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        if number % 20 < 2:  # two that take the same two devices one after the other, each the other's first
            first, second = (self.most_of(2 + (number % 2 + i) % 2) for i in range(2))
            asks = [Ask(Kind.GPU, Backend.CUDA, group_bytes=UNIT), first, second]
        crash = rng.randrange(len(asks)) if rng.random() < 0.15 else None
        self.running[number] = Job(number, asks, crash)
        self.wait(number, 0, asks[0], leases.job(number))

    def wait(self, job: int, part: int, ask: Ask, holder: Holder) -> None:
        self.order += 1
        self.queue.append(Wait(self.order, job, part, ask, self.now, holder))

    def an_ask(self, alone: bool = False) -> Ask:
        rng = self.rng
        most = rng.choice([1, 1, 1, 1, 2, 2, 3, 4, 8])
        size = int(rng.choice([200, 2_000, 6_000, 20_000]) * UNIT * rng.uniform(0.2, 1.5)) * max(1, most // 2)
        if rng.random() < 0.01:
            size *= 50
        return Ask(
            Kind.GPU,
            Backend.CUDA,
            group_bytes=size,
            per_device_bytes=rng.choice([0, 0, 300 * UNIT]),
            min_devices=rng.randint(1, most),
            max_devices=most,
            exclusive=alone or rng.random() < 0.05,
            device_id=rng.randrange(DEVICES) if most == 1 and rng.random() < 0.2 else None,
            prefer_max=rng.random() < 0.3,
            even=rng.random() < 0.8,
        )

    def most_of(self, id: int) -> Ask:
        return Ask(Kind.GPU, Backend.CUDA, group_bytes=SIZES[id] * UNIT * 2 // 3, device_id=id)

    def granted(self, wait: Wait, lease: Lease) -> None:
        self.soon(4, lambda: self.takes(lease))
        if wait.holder.kind is Holding.PERSON:
            assert wait.holder.until is not None
            self.at(wait.holder.until, self.expire)
            return
        job = self.running[wait.job]
        if wait.part:
            job.sessions.append((lease.id, wait.holder))
            if self.rng.random() < 0.2:
                keeps = leases.artifact(job.number, f"result {wait.part}", self.now + 120)
                self.book = self.book.hold(lease.id, keeps)
                self.at(self.now + 120, self.expire)
        self.soon(60, lambda: self.part_over(job, wait.part))

    def part_over(self, job: Job, part: int) -> None:
        """End a part of a job: it crashes, asks for more, or is done."""
        if self.running.get(job.number) is not job:
            return
        if job.crashes_in == part:
            self.end(job.number, "crashed")
        elif part + 1 < len(job.asks):
            if job.number % 2 and job.sessions and self.rng.random() < 0.5:
                number, holder = job.sessions.pop()
                self.let_go(number, holder)
            self.step(job, part + 1)
        else:
            self.end(job.number, "done")

    def step(self, job: Job, part: int) -> None:
        """Ask for more. Every other job does so in one session, which can be run again from its start."""
        name = "work" if job.number % 2 == 0 else f"step {part}"
        self.wait(job.number, part, job.asks[part], leases.session(job.number, name))

    def run_again(self, number: int) -> None:
        """Take from a job all that its session holds, and let it begin that anew."""
        job = self.running[number]
        self.queue = [wait for wait in self.queue if wait.job != number]
        for lease, holder in job.sessions:
            self.let_go(lease, holder)
        job.sessions.clear()
        self.seen["run again"] += 1
        self.soon(1, lambda: self.step(job, 1) if self.running.get(number) is job else None)

    def end(self, number: int, how: str, said: str = "") -> None:
        """End a job with all that it holds and waits for."""
        if self.running.pop(number, None) is None and number >= 0:
            return
        self.outcomes[number] = how
        self.said[number] = said
        self.queue = [wait for wait in self.queue if wait.job != number]
        self.book, gone = self.book.job_ended(number)
        self.released(gone)

    def let_go(self, number: int, holder: Holder) -> None:
        self.book, gone = self.book.let_go(number, holder)
        self.released(() if gone is None else (gone,))

    def expire(self) -> None:
        self.book, gone = self.book.expired(self.now)
        self.released(gone)

    def released(self, gone: tuple[Lease, ...]) -> None:
        """Give memory back: some at once, some late."""
        for lease in gone:
            for part in lease.parts:
                size = self.used[part.device].pop(lease.id, 0)
                if size and self.rng.random() < 0.3:
                    self.late[part.device].append((self.now + 3, size))
                    self.at(self.now + 3, lambda: None)

    def takes(self, lease: Lease) -> None:
        """Let a holder take what it was promised, or part of it."""
        if lease.id in self.book.leases:
            share = self.rng.choice([1.0, 1.0, 0.6])
            for part in lease.parts:
                self.used[part.device][lease.id] = int(part.bytes * share)

    def revoke(self, lease: Lease) -> None:
        self.book = self.book.revoke(lease.id, "an operator took it back")
        for holder in lease.holders:
            if holder.kind is Holding.JOB and holder.job is not None:
                self.soon(5, lambda job=holder.job: self.end(job, "revoked", "an operator took it back"))  # type: ignore[misc]
            else:
                self.soon(5, lambda holder=holder: self.let_go(lease.id, holder))  # type: ignore[misc]

    def strangers_move(self) -> None:
        """Let a stranger take of the memory that nobody was promised, for a while."""
        device = self.rng.choice([device for device, slot in self.book.slots.items() if slot.measured is not None])
        self.strangers[device] += int(self.rng.uniform(0, 0.5) * max(0, self.room(device)))
        self.soon(100, lambda: self.strangers.update({device: 0}))

    def declare(self) -> None:
        """Let an admin lower a declaration, and think better of it."""
        device = self.rng.choice(list(self.declared))
        self.book = self.book.declare(device, self.declared[device] // 2)
        self.soon(100, lambda: self.declared_again(device))

    def declared_again(self, device: DeviceKey) -> None:
        self.book = self.book.declare(device, self.declared[device])

    def room(self, device: DeviceKey) -> int:
        """Return what a reading gives: free, less what holders have still to take."""
        self.late[device] = [(until, size) for until, size in self.late[device] if until > self.now]
        took = self.used[device]
        growth = sum(
            max(0, part.bytes - took.get(lease.id, 0))
            for lease in self.book.leases.values()
            for part in lease.parts
            if part.device == device
        )
        late = sum(size for _, size in self.late[device])
        return self.declared[device] - self.strangers[device] - sum(took.values()) - late - growth

    def cycle(self) -> bool:
        """Grant what fits, check each grant, give up on what can never be; return whether a wait was resolved."""
        self.book = self.book.measure(
            {device: self.room(device) for device, slot in self.book.slots.items() if slot.measured is not None}
        )
        self.queue.sort(key=lambda wait: (not wait.part, wait.arrival))
        for wait in list(self.queue[:LOOKED_AT]):
            if wait.holder.until is not None and wait.holder.until <= self.now:
                self.queue.remove(wait)  # a person whose time is over before it began
                continue
            answer = self.book.place(wait.ask)
            if isinstance(answer, Granted):
                before = self.book
                self.book, lease = self.book.grant(wait.ask, answer, wait.holder, self.now)
                check_grant(before.slots, self.book.slots, lease, wait.ask)
                self.queue.remove(wait)
                self.seen["granted"] += 1
                self.granted(wait, lease)
            elif isinstance(answer, Impossible):
                self.give_up(wait, "impossible", answer.sentence)
            else:
                self.explain(answer)
                if self.now - wait.since > PATIENCE and not wait.part:
                    break
        self.check_memory()
        return any(wait.part for wait in self.queue) and self.resolve(self)

    def give_up(self, wait: Wait, how: str, said: str) -> None:
        self.queue.remove(wait)
        if wait.job >= 0:
            self.end(wait.job, how, said)

    def explain(self, answer: Unavailable) -> None:
        """Look at the reason of some waits: working all out would be most of the time."""
        if self.rng.random() < 0.02:
            self.seen["explained"] += 1
            assert answer.obstacles
            assert answer.sentence.startswith("Needs ")

    def check_memory(self) -> None:
        for device, size in self.declared.items():
            assert sum(self.used[device].values()) + self.strangers[device] <= size
