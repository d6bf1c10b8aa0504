"""The quick verdict is the gate's own: both are asked about worlds of every kind, and agree about each job."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement.domain.admission.decision import Check, Code, Decision, Verdict
from placement.domain.admission.demands import Part, waiting_demand
from placement.domain.admission.gate import decide_on, look, started
from placement.domain.admission.places import Board, Place
from placement.domain.knobs import Knobs
from placement.domain.planning.bars import Bar, Guard, asking, bar_for
from placement.domain.planning.plan import ordered, plan
from placement.domain.planning.pressing import Pressing
from placement.domain.world.asks import Ask
from placement.domain.world.devices import Backend, Kind
from placement.domain.world.known_asks import Known, Pending
from placement.domain.world.requests import Exclusive
from placement.domain.world.snapshot import Device, Hold, KeptPlan, Node, Running, Snapshot, Waiting
from tests.builders import EXACT, GIB, PoolState, a_device, a_node, a_ram, a_running, a_snapshot, a_waiting, an_estimate
from tests.examples import examples

WALL = 1_700_000_000.0
HOLDS = st.sampled_from([None] * 12 + [Hold("ann", WALL - 9), Hold("ann", WALL - 9, WALL + 50), Hold("ann", 0.0, 5.0)])
EXCLUSIVE = st.sampled_from([Exclusive.NO] * 8 + [Exclusive.DEVICE, Exclusive.MACHINE])
LATER = tuple(Known(Ask(Kind.GPU, Backend.CUDA, group_bytes=size * GIB), 0.0) for size in (12, 9, 3))
SIZES = st.sampled_from([None, 0, 1, 2, 3, 5, 8, 11, 12, 16, 20, 23, 24, 25, 40])


@st.composite
def devices(draw: st.DrawFn, node: str, index: int) -> Device:
    total = draw(st.sampled_from([24, 24, 24, 40, 12]))
    used = draw(st.sampled_from([0, 0, 1, 4, 8, 12]))
    more = {
        "declared": total * GIB - draw(st.sampled_from([0, 0, 0, 3, 12])) * GIB,
        "exclusive_only": draw(st.integers(0, 11)) == 0,
        "draining": draw(st.integers(0, 19)) == 0,
        "measurable": draw(st.integers(0, 7)) != 0,
        "any_gpu": draw(st.integers(0, 3)) != 0,
        "more_backends": draw(st.sampled_from([(), (), ("OPENCL",), ("OPENCL", "XLA")])),
        "hold": draw(HOLDS),
        "node": node,
        "reserved": draw(st.sampled_from([None, None, GIB // 2])),
        "unexplained": draw(st.sampled_from([0, 0, used * GIB])),
    }
    device = a_device(total * GIB, used * GIB, index=index, **more)
    pool = replace(device.pool, draining=draw(st.integers(0, 9)) == 0)
    state = draw(st.sampled_from([PoolState.OK] * 14 + [PoolState.LOST, PoolState.STALE, PoolState.NOT_READY]))
    if state is PoolState.NOT_READY:
        pool = replace(pool, total=None, free=None, used=None, age=None, state=state)
    elif state is not PoolState.OK:
        pool = replace(pool, state=state, age=9.0)
    return replace(device, pool=pool)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    total = draw(st.sampled_from([32, 64, 64]))
    ram = a_ram(total * GIB, draw(st.sampled_from([0, 4, 30, 60])) % total * GIB, node=name)
    made = [draw(devices(name, index)) for index in range(draw(st.integers(0, 3)))]
    if made and draw(st.integers(0, 9)) == 0:  # one body of memory for both
        made = [replace(made[0], pool=replace(ram, name="gpu0"))]
    return a_node(
        *made,
        ram=ram,
        name=name,
        state=draw(st.sampled_from(["ready"] * 12 + ["draining", "gone", "stale"])),
        hold=draw(HOLDS),
        ram_pressure=draw(st.integers(0, 11)) == 0,
        disk_free=draw(st.sampled_from([None, 1 << 45, 1 << 45, 0])) if draw(st.integers(0, 9)) == 0 else None,
    )


@st.composite
def runs(draw: st.DrawFn, job: int, there: tuple[Node, ...]) -> Running:
    node = draw(st.sampled_from(there))
    on = draw(st.sampled_from([None, *node.devices])) if node.devices else None
    held, used = draw(st.sampled_from([1, 2, 4, 8])) * GIB, draw(st.sampled_from([None, 0, 1, 4])) or 0
    run = a_running(
        job,
        held,
        draw(st.sampled_from([None, 0, used * GIB])),
        device=None if on is None else on.index,
        ram=draw(st.integers(0, 6)) * GIB,
        ram_used=draw(st.sampled_from([None, 0, GIB])),
        at_start=held + draw(st.sampled_from([0, 0, 4 * GIB])),
        node=node.name,
        elapsed=draw(st.sampled_from([0.0, 30.0, 99.5, 150.0, 500.0])),
        limit=draw(st.sampled_from([None, 100.0, 200.0])),
        cold=on is not None and draw(st.integers(0, 7)) == 0,
        exclusive=draw(EXCLUSIVE) if on is not None else Exclusive.NO,
        arrival=draw(st.integers(0, 9)),
    )
    if on is not None and on.pool.kind != "ram" and len(node.devices) > 1 and draw(st.integers(0, 3)) == 0:
        second = node.devices[on.index - 1]  # it holds as much of another device
        run = replace(
            run, devices=(*run.devices, second.uuid), charges={**run.charges, second.uuid: run.charges[on.uuid]}
        )
    if on is None or on.pool.kind == "ram":
        return replace(run, charges={"ram": run.charges["ram"]}, devices=(on.uuid,) if on else ())
    margins = {on.uuid: draw(st.sampled_from([0, GIB // 8, 2 * GIB])), "ram": draw(st.sampled_from([0, GIB]))}
    return replace(run, margins=margins)


@st.composite
def jobs(draw: st.DrawFn, job: int, there: tuple[Node, ...]) -> Waiting:
    gpu, node = draw(st.integers(0, 4)) != 0, draw(st.sampled_from(there))
    size = draw(SIZES)
    ram = draw(st.sampled_from([None, 0, 1, 2, 4, 16, 40, 70]))
    exclusive = draw(EXCLUSIVE)
    estimate = an_estimate(
        None if size is None else size * GIB,
        None if ram is None else ram * GIB,
        margin=draw(st.sampled_from([0, GIB // 16, GIB])),
        gpu=gpu,
    )
    if draw(st.integers(0, 5)) == 0:
        pools = {kind: replace(pool, at_least=7 * GIB) for kind, pool in estimate.pools.items()}
        estimate = replace(estimate, pools=pools)
    if said := draw(st.sampled_from([0, 0, 3, 20])):
        estimate = replace(estimate, pools={k: replace(p, said=said * GIB) for k, p in estimate.pools.items()})
    named = draw(st.sampled_from([None, None, None, *node.devices])) if gpu else None
    kept = draw(st.sampled_from([None] * 5 + [1050.0, 990.0]))
    several = gpu and named is None and draw(st.integers(0, 2)) == 0
    least = draw(st.integers(1, 3))
    exactly = draw(st.sampled_from([None, None, (size or 4) * GIB])) if gpu else None
    together = exactly is not None and several and draw(st.booleans())
    uuids = tuple(device.uuid for device in node.devices)[: least if several else 1]
    return a_waiting(
        job,
        gpu=gpu,
        estimate=estimate,
        exclusive=exclusive if gpu or exclusive is not Exclusive.DEVICE else Exclusive.NO,
        node=draw(st.sampled_from([None, None, node.name])),
        device=named.uuid if named else None,
        hold=draw(HOLDS),
        no_account=draw(st.sampled_from([""] * 15 + ["No account."])),
        limit=draw(st.sampled_from([None, 20.0, 60.0, 400.0])),
        learned=draw(st.sampled_from([None, 30.0, 300.0])),
        priority=draw(st.integers(0, 1)),
        later=draw(st.sampled_from([(), LATER[:1], LATER[1:2], LATER[1:]])),
        plan=KeptPlan(node.name, uuids if gpu else (), kept) if kept else None,
        group=(least, least + draw(st.integers(0, 2))) if several else None,
        prefer_max=several and draw(st.booleans()),
        each=None if together else exactly,
        together=exactly if together else None,
        backend=draw(st.sampled_from([None] * 4 + ["CUDA", "OPENCL"])) if gpu else None,
    )


@st.composite
def requests(draw: st.DrawFn, number: int, there: tuple[Node, ...], running: tuple[Running, ...]) -> Pending:
    job = draw(st.sampled_from(running))
    devices = next(node.devices for node in there if node.name == job.node)
    return Pending(
        id=number,
        ask=Ask(Kind.GPU, Backend.CUDA, group_bytes=draw(st.sampled_from([2, 9, 12])) * GIB, node=job.node),
        since=WALL - draw(st.sampled_from([5.0, 5.0, 599.0, 900.0])),
        job=job.job,
        order=draw(st.sampled_from([0, 0, 3])),
        devices=tuple(d.uuid for d in devices),
    )


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    there = tuple(draw(nodes(name)) for name in ("atlas", "boreas")[: draw(st.integers(1, 2))])
    running = tuple(draw(runs(100 + n, there)) for n in range(draw(st.integers(0, 5))))
    waiting = tuple(draw(jobs(n, there)) for n in range(1, draw(st.integers(2, 9))))
    many = draw(st.integers(0, 3)) if running else 0
    asked = tuple(draw(requests(n, there, running)) for n in range(1, many + 1))
    turned = {"overtaking": "none"} if draw(st.integers(0, 7)) == 0 else {}
    knobs = draw(st.sampled_from([EXACT, Knobs()]))
    if turned:
        knobs = Knobs.with_overrides(turned)
    queue_hold = draw(st.sampled_from([None] * 20 + [Hold("ann", 0.0)]))
    return a_snapshot(*there, running=running, waiting=waiting, knobs=knobs, queue_hold=queue_hold, asked=asked)


def in_full(snapshot: Snapshot) -> tuple[list[Decision], Bar | None]:
    """Return every job's decision at its turn and the plan that is kept, each question asked in full at each place."""
    board, bar, first, found = Board(snapshot), None, None, []
    pressing = Pressing(board)
    for waiting in ordered(snapshot):
        aside = None if bar is None else asking(Guard(board, bar), waiting)
        if snapshot.knobs.overtaking == "none" and first is not None:
            aside = nobody_passes
        decision = decide_on(board, waiting, pressing.asking(waiting, aside))
        found.append(decision)
        if decision.grant is not None:
            board.admit(started(board, waiting, decision.grant))
        elif all(check.ok for check in decision.whole) and decision.code is not Code.PLACEMENT_PRESSURE:
            first = first or waiting.job
            if bar is None and decision.code is not Code.SET_ASIDE:
                demand = waiting_demand(waiting)
                made = bar_for(board, waiting, [look(board, demand, p) for p in board.places(demand.request)])
                bar = made if isinstance(made, Bar) else None
                board.aside = frozenset(bar.look.place.uuids if bar else ())
    return found, bar


def nobody_passes(place: Place, parts: tuple[Part, ...]) -> Check:
    return Check(Code.SET_ASIDE, False, "Strict order.")


def asking_all(snapshot: Snapshot) -> Snapshot:
    """Return the world with everybody known to ask for much, and everybody who runs waiting for more."""
    there = {node.name: tuple(d.uuid for d in node.devices) for node in snapshot.nodes}
    ask = Ask(Kind.GPU, Backend.CUDA, group_bytes=12 * GIB)
    asked = tuple(
        Pending(n, replace(ask, node=r.node), WALL - 5, r.job, devices=there[r.node])
        for n, r in enumerate(snapshot.running, 1)
        if there[r.node]
    )
    waiting = tuple(replace(w, later=LATER[: 1 + w.job % 2], hold=None) for w in snapshot.waiting)
    return replace(snapshot, asked=asked, waiting=waiting)


@settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(st.one_of(worlds(), worlds().map(asking_all)))
def test_the_quick_verdict_is_that_of_the_gate_in_full(snapshot: Snapshot) -> None:
    quick = plan(snapshot)
    decisions, bar = in_full(snapshot)
    assert quick.starts == tuple(d for d in decisions if d.verdict is Verdict.START)
    assert (quick.bar and (quick.bar.job, quick.bar.at, quick.bar.look.place.order, quick.bar.shown)) == (
        bar and (bar.job, bar.at, bar.look.place.order, bar.shown)
    )
    started_now = {d.job for d in quick.starts}
    for decision in quick.decisions():
        assert (decision.verdict is Verdict.START) is (decision.job in started_now)
        assert decision.headline
    held = {d.job for d in decisions if d.code is Code.SET_ASIDE}
    assert {w.job for w in quick.queue if quick.waits_aside(w.job)} == held
    assert set(quick.pressed) == {d.job for d in decisions if d.code is Code.PLACEMENT_PRESSURE}
