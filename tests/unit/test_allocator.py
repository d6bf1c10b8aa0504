"""Steps of the tables run on one book each: what was granted counts for the next."""

from __future__ import annotations

from typing import Any

import pytest

from placement.domain.leasing import leases
from placement.domain.leasing.allocator import Bound, Granted, Impossible, Ledger, Rule, Unavailable, place
from placement.domain.leasing.ledger import opened
from placement.domain.leasing.slots import Slot
from placement.domain.world.devices import Backend, Kind
from tests.slots import GB, a_slot, an_ask, members, slots

NO, NEVER = "unavailable", "impossible"
Step = tuple[dict[str, Any], Any]


def run(devices: list[Slot], steps: list[Step]) -> None:
    """Ask for one after the other; (id, GB) pairs are expected, or one of the two refusals."""
    book = opened(devices)
    for number, (asked, expected) in enumerate(steps):
        ask = an_ask(**asked)
        answer = book.place(ask)
        if expected in (NO, NEVER):
            assert isinstance(answer, Unavailable if expected == NO else Impossible), (number, answer)
            assert answer.sentence.endswith(".")
            continue
        unit = 1 if "bytes" in asked else GB
        assert members(answer) == [(id, share * unit) for id, share in expected], number
        assert isinstance(answer, Granted)
        book, _ = book.grant(ask, answer, leases.job(number), 0.0)


def on(id: int, gb: float, **more: Any) -> dict[str, Any]:
    return {"gb": gb, "device_id": id, **more}


def test_one_device_best_fit() -> None:
    run(
        slots(8, 6, 10),
        [
            ({"gb": 5}, [(1, 5)]),
            ({"gb": 5}, [(0, 5)]),
            ({"gb": 3}, [(0, 3)]),
            ({"gb": 10}, [(2, 10)]),
            ({"gb": 11}, NEVER),
            ({"gb": 6}, NO),
        ],
    )


def test_one_device_by_its_id() -> None:
    run(
        slots(8, 8),
        [
            (on(1, 4), [(1, 4)]),
            (on(1, 5), NO),
            ({"bytes": 1, "device_id": 9}, NEVER),
            (on(1, 9), NEVER),
        ],
    )


@pytest.mark.parametrize(
    ("devices", "ask", "expected"),
    [
        pytest.param([80, 24], {"gb": 8, "exclusive": True}, [(1, 8)], id="alone on the smaller"),
        pytest.param([1 / 3], {"gb": 1 / 3}, NEVER, id="a third of a third"),
        pytest.param([1e-9], {"bytes": 1}, [(0, 1)], id="a byte of a byte"),
    ],
)
def test_one_device(devices: list[float], ask: dict[str, Any], expected: Any) -> None:
    run(slots(*devices), [(ask, expected)])


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        ({"gb": 6, "count": 2}, [(0, 3), (1, 3)]),
        ({"gb": 6, "max_devices": 3}, [(1, 6)]),
        ({"gb": 6, "max_devices": 3, "prefer_max": True}, [(0, 2), (1, 2), (2, 2)]),
        ({"gb": 12, "max_devices": 3}, [(1, 6), (2, 6)]),
        ({"gb": 18, "count": 3}, NEVER),
        ({"gb": 18, "count": 3, "even": False}, [(2, 8), (1, 6), (0, 4)]),
        ({"bytes": 10, "count": 3}, [(0, 4), (1, 3), (2, 3)]),
        ({"bytes": 4, "count": 4}, NEVER),
    ],
)
def test_groups(ask: dict[str, Any], expected: Any) -> None:
    run(slots(4, 6, 8), [(ask, expected)])


def test_a_busy_device_makes_a_group_smaller() -> None:
    run(
        slots(8, 8, 8),
        [(on(0, 7), [(0, 7)]), ({"gb": 6, "max_devices": 3, "prefer_max": True}, [(1, 3), (2, 3)])],
    )


def test_a_group_is_granted_wholly_or_takes_nothing() -> None:
    run(slots(8, 8), [(on(0, 7), [(0, 7)]), ({"gb": 8, "count": 2}, NO), (on(1, 8), [(1, 8)])])


def test_a_greater_number_is_granted_where_the_smaller_is_busy() -> None:
    run(slots(8, 8), [(on(0, 4), [(0, 4)]), (on(1, 4), [(1, 4)]), ({"gb": 8, "max_devices": 2}, [(0, 4), (1, 4)])])


ALONE = {"exclusive": True}


@pytest.mark.parametrize(
    ("devices", "steps"),
    [
        pytest.param(
            slots(8, 8),
            [
                (ALONE, [(0, 0)]),
                ({"gb": 1}, [(1, 1)]),
                (ALONE, NO),
                ({"bytes": 1, "device_id": 0}, NO),
            ],
            id="alone on the first",
        ),
        pytest.param(
            slots(8, 8, alone=(0,)),
            [
                ({"gb": 1}, [(0, 1)]),
                ({"gb": 1}, [(1, 1)]),
                ({"gb": 8}, NO),
                ({"gb": 7}, [(1, 7)]),
            ],
            id="a device for one at a time is as good as any",
        ),
        pytest.param(slots(8, alone=(0,)), [({"gb": 1}, [(0, 1)]), ({"gb": 1}, NO)], id="for one at a time"),
        pytest.param(slots(8), [({"bytes": 1}, [(0, 1)]), ({"bytes": 1, **ALONE}, NO)], id="not beside a byte"),
        pytest.param(slots(10, 10, alone=(1,)), [({"gb": 3}, [(0, 3)])], id="ties by id"),
        pytest.param(
            slots(8, 8),
            [({"gb": 8}, [(0, 8)]), ({"bytes": 1, "count": 2}, [(1, 1), (0, 0)])],
            id="a byte on two: the full one has no share of it",
        ),
    ],
)
def test_alone(devices: list[Slot], steps: list[Step]) -> None:
    run(devices, steps)


def test_who_holds_two_devices_alone_leaves_nothing_there() -> None:
    ask = an_ask(count=2, exclusive=True)
    book = opened(slots(8, 8))
    answer = book.place(ask)
    assert members(answer) == [(0, 0), (1, 0)]
    assert isinstance(answer, Granted)
    book, _ = book.grant(ask, answer, leases.job(1), 0.0)

    assert [slot.available for slot in book.slots.values()] == [0, 0]


@pytest.mark.parametrize(
    ("measured", "ledger", "by"),
    [(3 * GB, Ledger.MEASURED, 3 * GB), (7 * GB, Ledger.BOOKED, GB), (6 * GB, Ledger.BOOKED, 0)],
)
def test_the_smaller_room_binds_and_each_member_says_which_and_by_how_much(
    measured: int, ledger: Ledger, by: int
) -> None:
    answer = place(an_ask(3), [a_slot(0, 8, leased=2 * GB, leases=1, measured=measured)])

    assert isinstance(answer, Granted)
    assert answer.primary.bound.ledger is ledger
    assert answer.primary.bound.by == by
    assert not answer.booked_alone


def test_best_fit_is_by_the_smaller_room() -> None:
    assert members(place(an_ask(3), [a_slot(0, 8), a_slot(1, 24, measured=4 * GB)])) == [(1, 3 * GB)]


def test_a_device_that_no_probe_reads_is_granted_as_booked_and_says_so() -> None:
    answer = place(an_ask(3), [a_slot(0, 8)])

    assert isinstance(answer, Granted)
    assert answer.booked_alone
    assert answer.primary.bound == Bound(8 * GB, None)
    assert answer.primary.bound.by is None


def test_a_refusal_names_for_each_device_the_rule_and_who_is_in_the_way() -> None:
    busy = [
        a_slot(0, 8, leased=7 * GB, leases=1, holders=("job 7",)),
        a_slot(1, 8, measured=GB, users=("pid 12",)),
        a_slot(2, 8, leases=1, alone=True, holders=("job 9",)),
        a_slot(3, 8, shut="its reading is 40 s old"),
        a_slot(4, 4),
    ]
    answer = place(an_ask(6), busy)

    assert isinstance(answer, Unavailable)
    assert [(o.name, o.rule, o.holders, o.bound.room) for o in answer.obstacles] == [
        ("gpu0", Rule.BOOKED, ("job 7",), GB),
        ("gpu1", Rule.MEASURED, ("pid 12",), GB),
        ("gpu2", Rule.HELD_ALONE, ("job 9",), 8 * GB),
        ("gpu3", Rule.SHUT, (), 8 * GB),
    ]
    assert answer.sentence == (
        "Needs 5.6 GiB on a CUDA GPU: gpu0 has 954 MiB left of what is declared beside job 7; no probe reads it; "
        "gpu1 has 954 MiB of measured room beside pid 12, 6.5 GiB less than is booked free; "
        "gpu2 is held by job 9 alone; 1 more device."
    )


def test_a_group_that_lacks_one_device_is_told_of_that_one() -> None:
    busy = [a_slot(0, 8), a_slot(1, 8, leases=2, leased=GB, holders=("job 1", "job 2"))]
    answer = place(an_ask(8, count=2, exclusive=True), busy)

    assert isinstance(answer, Unavailable)
    assert [(o.name, o.rule) for o in answer.obstacles] == [("gpu1", Rule.NOT_EMPTY)]
    assert answer.sentence == (
        "Needs 3.7 GiB, alone, on each of 2 CUDA GPUs, and 1 has it now: "
        "gpu1 is wanted alone, and job 1 and job 2 are there."
    )


def test_a_device_for_one_job_at_a_time_is_not_said_to_be_wanted_alone() -> None:
    answer = place(an_ask(1), [a_slot(0, 8, leases=1, leased=GB, holders=("job 1",), exclusive_only=True)])
    assert answer.sentence.endswith("gpu0 takes one job at a time, and job 1 is there.")


def test_the_impossible_says_the_arithmetic() -> None:
    answer = place(an_ask(18, count=3), slots(4, 6, 8))

    assert isinstance(answer, Impossible)
    assert [(m.name, m.bytes, m.serves) for m in answer.devices] == [
        ("gpu0", 4 * GB, True),
        ("gpu1", 6 * GB, True),
        ("gpu2", 8 * GB, True),
    ]
    assert answer.sentence == (
        "Asked for 16.8 GiB on 3 CUDA GPUs, which is 5.6 GiB on each of 3; at most there is 3.7 GiB on gpu0, "
        "5.6 GiB on gpu1 and 7.5 GiB on gpu2; divided by room (even=False) it would fit."
    )


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        ({"gb": 1, "device_id": 9}, "Asked for 954 MiB on the CUDA GPU 9, and no declared device is that; there is "),
        ({"gb": 1, "node": "borea"}, "on a CUDA GPU of node borea, and no declared device is that; "),
        ({"gb": 1, "label": "fast"}, "on a CUDA GPU labelled fast, and no declared device is that; "),
        ({"gb": 90}, "at most there is 7.5 GiB on each of 5 devices."),
        ({"gb": 40, "max_devices": 3}, "37.3 GiB on 1 to 3 CUDA GPUs, which is 37.3 GiB on each of 1, or 12.4 GiB on"),
        ({"bytes": 8 * GB + 1}, "Asked for 8,000,000,001 B on a CUDA GPU; at most there is 8,000,000,000 B on each of"),
        ({"exclusive": True, "count": 6}, "Asked for no memory on 6 CUDA GPUs, alone"),
    ],
)
def test_sentences_of_the_impossible(ask: dict[str, Any], said: str) -> None:
    answer = place(an_ask(**ask), slots(8, 8, 8, 8, 8))

    assert isinstance(answer, Impossible)
    assert said in answer.sentence


def test_what_the_idle_device_cannot_have_by_measure_is_impossible_though_it_is_declared() -> None:
    assert isinstance(place(an_ask(8), [a_slot(0, 8, measured=6 * GB, measured_most=7 * GB)]), Impossible)
    assert isinstance(place(an_ask(7), [a_slot(0, 8, measured=6 * GB, measured_most=7 * GB)]), Unavailable)


def test_kinds_backends_and_labels() -> None:
    mixed = [
        a_slot(0, 8, backends=(Backend.ROCM, Backend.OPENCL)),
        a_slot(0, 8, kind=Kind.TPU, backends=(Backend.XLA, Backend.CUDA)),
        a_slot(1, 24, labels=frozenset({"fast"})),
    ]

    assert members(place(an_ask(1), mixed)) == [(1, GB)]
    assert members(place(an_ask(1, label="fast"), mixed)) == [(1, GB)]
    assert members(place(an_ask(1, backend=Backend.OPENCL), mixed)) == [(0, GB)]
    assert members(place(an_ask(1, kind=Kind.TPU), mixed)) == [(0, GB)]
    assert isinstance(place(an_ask(1, kind=Kind.TPU, backend=Backend.ROCM), mixed), Impossible)


def test_a_group_stays_on_one_node() -> None:
    two = [a_slot(0, 8, node="atlas"), a_slot(0, 8, node="borea"), a_slot(1, 8, node="borea")]
    answer = place(an_ask(4, count=2), two)
    assert isinstance(answer, Granted)
    assert {member.device[0] for member in answer.members} == {"borea"}

    never = place(an_ask(4, count=3), two)
    assert isinstance(never, Impossible)
    assert never.sentence.endswith(
        "on each of gpu0 of atlas, gpu0 of borea and gpu1 of borea; a group stays on one node."
    )


@pytest.mark.parametrize(
    ("rooms", "ask", "expected"),
    [
        pytest.param([10, 6, 8], {"gb": 5, "max_devices": 3}, [(1, 5)], id="one device is the even division"),
        pytest.param([4, 6, 8], {"gb": 9, "max_devices": 3}, [(1, 5.4), (0, 3.6)], id="few, the tightest, by room"),
        pytest.param([4, 6, 8], {"gb": 9, "max_devices": 3, "prefer_max": True}, [(2, 4), (1, 3), (0, 2)], id="many"),
        pytest.param(
            [4, 6, 8], {"gb": 10, "count": 2, "per_device_bytes": 2 * GB}, [(2, 8), (1, 6)], id="each gets its least"
        ),
        pytest.param([4, 6, 8], {"gb": 12, "count": 3, "per_device_bytes": 3 * GB}, NEVER, id="too much in all"),
    ],
)
def test_uneven_shares(rooms: list[float], ask: dict[str, Any], expected: Any) -> None:
    run(slots(*rooms), [(ask | {"even": False}, expected)])
