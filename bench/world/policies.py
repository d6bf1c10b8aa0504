"""The policies by name."""

from __future__ import annotations

from collections.abc import Callable

from bench.world.engine import World
from bench.world.rules import Need, Rule, counted, free_now, reserved, whole
from bench.world.runs import Job

Needs = Callable[[Rule, World, Job], Need | None]


def _after_a_kill(then: Needs) -> Needs:
    """A job that was killed takes a device of its own."""

    def needs(rule: Rule, world: World, job: Job) -> Need | None:
        return Need(world.capacity, alone=True) if job.kills else then(rule, world, job)

    return needs


def _all(rule: Rule, world: World, job: Job) -> Need:
    return Need(world.capacity, alone=True)


@_after_a_kill
def _declared(rule: Rule, world: World, job: Job) -> Need:
    return Need(job.row.declared)


@_after_a_kill
def _true(rule: Rule, world: World, job: Job) -> Need:
    return Need(job.peak)


@_after_a_kill
def _learned(rule: Rule, world: World, job: Job) -> Need:
    """The largest peak of the key and a margin; nothing known of it: alone."""
    seen = rule.peaks.get(job.row.key)
    return Need(min(world.capacity, max(seen) + rule.margin)) if seen else Need(world.capacity, alone=True)


@_after_a_kill
def _reference(rule: Rule, world: World, job: Job) -> Need:
    """The same, but an unknown job takes an empty device without a charge, so that others may join it at once."""
    seen = rule.peaks.get(job.row.key)
    return Need(min(world.capacity, max(seen) + rule.margin)) if seen else Need(0.0, empty=True)


@_after_a_kill
def _idle_machine(rule: Rule, world: World, job: Job) -> Need | None:
    """The same, but an unknown job waits until nothing runs anywhere."""
    return None if world.runs and not rule.peaks.get(job.row.key) else _reference(rule, world, job)


def _longest(job: Job) -> float:
    return -job.solo


def _largest(job: Job) -> float:
    return -job.solo * job.peak * job.row.devices


def _smallest(job: Job) -> float:
    return job.solo * job.peak * job.row.devices


POLICIES: dict[str, Callable[[str], Rule]] = {
    "exclusive-fifo": lambda name: Rule(name, _all, whole, "fifo"),
    "declared-fifo": lambda name: Rule(name, _declared, counted, "fifo", counts=True),
    "declared-skip": lambda name: Rule(name, _declared, counted, counts=True),
    "naive-free-now": lambda name: Rule(name, _declared, free_now, polls=True),
    "carma": lambda name: Rule(name, _declared, free_now, "fifo", polls=True, roomiest=True, grace=45.0),
    "gate-reference": lambda name: Rule(name, _reference, reserved, margin=1500.0),
    "gate-reference-idle": lambda name: Rule(name, _idle_machine, reserved, margin=1500.0),
    "gate-fifo": lambda name: Rule(name, _learned, reserved, "fifo", margin=512.0),
    "gate-skip": lambda name: Rule(name, _learned, reserved, margin=512.0),
    "gate-easy": lambda name: Rule(name, _learned, reserved, "easy", margin=512.0),
    "oracle-easy": lambda name: Rule(name, _true, reserved, "easy", true=True),
    "oracle-fifo": lambda name: Rule(name, _true, reserved, true=True),
    "oracle-lpt": lambda name: Rule(name, _true, reserved, _longest, true=True),
    "oracle-big": lambda name: Rule(name, _true, reserved, _largest, true=True),
    "oracle-sjf": lambda name: Rule(name, _true, reserved, _smallest, true=True),
}
