from __future__ import annotations

from typing import Any

import pytest

from placement.domain.leasing import leases
from placement.domain.leasing.allocator import Granted, Impossible, Unavailable
from placement.domain.leasing.leases import Holder, Holding, Lease
from placement.domain.leasing.ledger import Book, NoLease, opened
from tests.slots import GB, a_slot, an_ask, slots

GPU0, GPU1 = ("atlas", "GPU-0"), ("atlas", "GPU-1")


JOB = leases.job(1)


def take(book: Book, gb: float, holder: Holder = JOB, promise: bool = True, **more: Any) -> tuple[Book, Lease]:
    ask = an_ask(gb, **more)
    answer = book.place(ask)
    assert isinstance(answer, Granted), answer.sentence
    return book.grant(ask, answer, holder, 10.0, promise)


def test_a_group_is_one_lease_until_the_last_of_its_holders_lets_go() -> None:
    book, lease = take(opened(slots(4, 4)), 8, count=2)
    book = book.hold(lease.id, leases.session(1, "weights"))
    book, released = book.let_go(lease.id, leases.job(1))

    assert (list(book.leases), released) == ([lease.id], None)
    assert isinstance(book.place(an_ask(bytes=1)), Unavailable)

    book, released = book.let_go(lease.id, leases.session(1, "weights"))

    assert released is not None
    assert not book.leases
    assert isinstance(book.place(an_ask(8, count=2)), Granted)


def test_a_lease_is_released_exactly_once() -> None:
    book, lease = take(opened(slots(8)), 8)
    book, released = book.let_go(lease.id, leases.job(1))
    again, twice = book.let_go(lease.id, leases.job(1))

    assert released is not None
    assert twice is None
    assert again is book


def test_whoever_does_not_hold_it_cannot_let_it_go() -> None:
    book, lease = take(opened(slots(8)), 8)
    after, released = book.let_go(lease.id, leases.job(2))

    assert released is None
    assert after.leases == book.leases
    assert after.slots == book.slots


def test_a_second_hold_of_the_same_holder_is_none() -> None:
    book, lease = take(opened(slots(8)), 8)
    book, released = book.hold(lease.id, leases.job(1)).let_go(lease.id, leases.job(1))

    assert released is not None


def test_a_grant_counts_from_the_moment_it_is_made() -> None:
    book, lease = take(opened(slots(8)), 8)
    book, _ = book.let_go(lease.id, leases.job(1))
    book, _ = take(book, 4, leases.job(2))

    assert isinstance(book.place(an_ask(5)), Unavailable)
    assert isinstance(book.place(an_ask(4)), Granted)


def test_what_fits_is_granted_beside_what_does_not() -> None:
    book, _ = take(opened(slots(8)), 4)

    assert isinstance(book.place(an_ask(8)), Unavailable)
    assert isinstance(book.place(an_ask(4)), Granted)


def test_an_answer_of_before_is_not_granted_twice() -> None:
    book, ask = opened(slots(8)), an_ask(8)
    answer = book.place(ask)
    assert isinstance(answer, Granted)
    book, _ = book.grant(ask, answer, leases.job(1), 0.0)

    with pytest.raises(ValueError, match="GPU-0 no longer gives 8000000000 bytes"):
        book.grant(ask, answer, leases.job(2), 0.0)


def test_a_closed_node_grants_nothing_and_keeps_who_is_there() -> None:
    book, lease = take(opened(slots(8)), 4)
    answer = book.place(an_ask(1))
    assert isinstance(answer, Granted)
    book = book.close("atlas", "the node is being shut down")

    refused = book.place(an_ask(1))
    assert isinstance(refused, Unavailable)
    assert "gpu0 takes nothing new (the node is being shut down)" in refused.sentence
    with pytest.raises(ValueError):
        book.grant(an_ask(1), answer, leases.job(2), 0.0)
    assert book.on(GPU0) == (lease,)
    book, released = book.let_go(lease.id, leases.job(1))
    assert released is not None
    assert isinstance(book.place(an_ask(1)), Unavailable)
    assert isinstance(book.close("atlas", "").place(an_ask(1)), Granted)


def test_each_device_is_there_once_and_each_id_once_of_a_kind_and_node() -> None:
    with pytest.raises(ValueError, match="gpu0 of atlas is declared twice"):
        opened([a_slot(0), a_slot(0)])
    assert len(opened([a_slot(0), a_slot(0, node="borea")]).slots) == 2


def test_a_job_that_ends_lets_go_with_its_sessions_and_leaves_its_artifacts_until_their_end() -> None:
    book, first = take(opened(slots(24)), 4, leases.job(7))
    book, second = take(book, 4, leases.session(7, "step"))
    book, third = take(book, 4, leases.session(7, "weights"))
    book = book.hold(third.id, leases.artifact(7, "weights", until=100.0))
    book, other = take(book, 4, leases.job(8))

    book, released = book.job_ended(7)

    assert [lease.id for lease in released] == [first.id, second.id]
    assert set(book.leases) == {third.id, other.id}
    assert book.leases[third.id].job == 7
    assert sorted(book.slots[GPU0].holders) == ["job 8", "weights of job 7"]
    assert book.expired(99.9)[1] == ()
    book, released = book.expired(100.0)
    assert [lease.id for lease in released] == [third.id]


def test_a_person_holds_until_an_end_that_can_be_moved() -> None:
    book, lease = take(opened(slots(8)), 0, leases.person("ann", 50.0), exclusive=True)
    book = book.hold(lease.id, leases.person("ann", 80.0))

    assert isinstance(book.place(an_ask(1)), Unavailable)
    assert book.expired(79.0)[1] == ()
    assert len(book.expired(80.0)[1]) == 1


def test_a_resident_holds_until_it_ends() -> None:
    book, _ = take(opened(slots(8)), 6, leases.resident("llama"))

    assert book.ended(leases.resident("other"))[1] == ()
    assert not book.ended(leases.resident("llama"))[0].leases


@pytest.mark.parametrize(
    ("kind", "until"), [(Holding.ARTIFACT, None), (Holding.PERSON, None), (Holding.JOB, 5.0), (Holding.RESIDENT, 5.0)]
)
def test_who_has_an_end_and_who_has_none(kind: Holding, until: float | None) -> None:
    with pytest.raises(ValueError):
        Holder(kind, "x", 1, until)


def test_a_revoked_lease_counts_until_its_holders_have_ended_and_gets_no_new_one() -> None:
    book, lease = take(opened(slots(8)), 8)
    book = book.revoke(lease.id, "ann needs it")

    assert isinstance(book.place(an_ask(1)), Unavailable)
    with pytest.raises(ValueError, match="ann needs it"):
        book.hold(lease.id, leases.session(1, "late"))
    book, released = book.job_ended(1)
    assert [gone.revoked for gone in released] == ["ann needs it"]
    assert isinstance(book.place(an_ask(8)), Granted)


def test_a_lease_that_is_gone() -> None:
    with pytest.raises(NoLease, match="no lease 3"):
        opened(slots(8)).hold(3, leases.job(1))


def test_capacity_lowered_below_what_is_leased_is_overbooked_and_grants_nothing_new() -> None:
    book, lease = take(opened(slots(8)), 6)
    book = book.declare(GPU0, 4 * GB)

    assert book.overbooked == {GPU0: 2 * GB}
    assert list(book.leases) == [lease.id]
    assert isinstance(book.place(an_ask(bytes=1)), Unavailable)
    assert isinstance(book.place(an_ask(5)), Impossible)
    assert book.declare(GPU0, 8 * GB).overbooked == {}
    book, _ = book.let_go(lease.id, leases.job(1))
    assert book.overbooked == {}
    assert isinstance(book.place(an_ask(4)), Granted)


def test_a_grant_is_missing_from_the_measured_room_until_the_next_reading() -> None:
    book, lease = take(opened([a_slot(0, 24, measured=10 * GB)]), 6)
    assert book.slots[GPU0].room == 4 * GB

    book, _ = book.let_go(lease.id, leases.job(1))
    assert book.slots[GPU0].room == 4 * GB  # what was measured then; the memory may be there still

    assert book.measure({GPU0: 10 * GB}).slots[GPU0].room == 10 * GB
    assert book.measure({GPU0: None}).slots[GPU0].room == 24 * GB


def test_a_reading_of_a_device_that_is_not_declared_changes_nothing() -> None:
    book = opened(slots(8))

    assert book.measure({GPU1: 5}) == book


def test_an_estimate_follows_its_charge_and_a_promise_does_not() -> None:
    book, promised = take(opened(slots(8, 8)), 4, device_id=0)
    book, guessed = take(book, 4, leases.job(2), promise=False, device_id=1)

    book = book.follow(guessed.id, {GPU1: 3 * GB})
    assert book.slots[GPU1].leased == 3 * GB
    assert book.follow(guessed.id, {GPU1: 9 * GB}).overbooked == {GPU1: GB}
    with pytest.raises(ValueError, match="promise of 4000000000 bytes"):
        book.follow(promised.id, {GPU0: 3 * GB})


def test_a_device_for_one_at_a_time_is_held_alone() -> None:
    book, lease = take(opened(slots(8, alone=(0,))), 1)

    assert [part.alone for part in lease.parts] == [True]
    assert isinstance(book.place(an_ask(1)), Unavailable)


def test_a_book_is_opened_again_from_its_leases() -> None:
    book, _ = take(opened(slots(8, 8)), 4, count=2)
    book, _ = take(book, 1, leases.job(2))

    assert opened(slots(8, 8), book.leases.values()) == book


def test_the_old_book_stays_as_it_was() -> None:
    before = opened(slots(8))
    after, _ = take(before, 8)

    assert before.slots[GPU0].leased == 0
    assert not before.leases
    assert after.slots[GPU0].leased == 8 * GB
