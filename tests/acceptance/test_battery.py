"""The behaviour battery on one stand-in 24 GiB card: real service, real processes, a driver made of a text file."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.cards import GIB, MIB, Cards, Desk, during, stranger, until_told
from tests.machine_pace import within
from tests.nvml_stub import State, build
from tests.person import Refusal
from tests.service import live_service

ME = pwd.getpwuid(os.geteuid()).pw_name
CARD = "GPU-A"
pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, Cards]]:
    """A service on one card, for all rows."""
    folder = tmp_path_factory.mktemp("card")
    state = State(folder / "nvml.txt")
    cards = Cards(state, CARD)
    with live_service(simulate="", environment=state.environ(build(folder))) as service:
        yield Desk(service), cards


@pytest.fixture
def desk(bench: tuple[Desk, Cards]) -> Iterator[Desk]:
    desk, cards = bench
    desk.seen(CARD, used=0, state="ok")
    yield desk
    desk.cancel_all()
    cards.clear()
    desk.seen(CARD, used=0, state="ok")


@pytest.fixture
def cards(bench: tuple[Desk, Cards], desk: Desk) -> Cards:
    return bench[1]


def test_s1_what_a_stranger_holds_is_waited_for_named_and_never_anybody_else_s(desk: Desk, cards: Cards) -> None:
    with stranger() as pid:
        cards.hold(CARD, pid, 20 * GIB)
        desk.seen(CARD, used=20 * GIB)
        job = desk.submit("exec sleep 300", gib=8)
        seen = desk.waits(job, r"^Needs 8\.0 GiB; room on gpu0 is 3\.\d GiB; ")
        assert f"; 20.0 GiB held by pid {pid} (user {ME}), not a job of ours." in seen["headline"]
        room = next(c for c in seen["decision"]["candidates"][0]["checks"] if c["code"] == "no_room")["figures"]
        assert (room["need"], room["used"], room["free"], room["external"]) == (8 * GIB, 20 * GIB, 4 * GIB, 20 * GIB)
        assert room["total"] - room["used"] - room["kept"] - room["growth"] == room["room"]
        during(3, lambda: desk.waits(job, "^Needs 8"))  # the figure is of now, however long it lasts

        del cards.held[CARD][pid]
        cards.write()
        with within(2.5):
            leader = desk.running(job)

        cards.hold(CARD, pid, 2 * GIB)  # it comes back beside the job
        cards.hold(CARD, leader, 7 * GIB)
        desk.seen(CARD, used=9 * GIB, external=2 * GIB)
        assert desk.person.job(job)["used"][CARD] == 7 * GIB
    desk.cancel_all()
    kept = desk.sediment(job)
    assert kept is not None
    assert kept["peaks"]["vram"] == 7 * GIB


def test_s2_what_can_never_fit_is_refused_at_once_with_what_there_is(desk: Desk) -> None:
    before = desk.jobs_stored()
    with within(5.0), pytest.raises(Refusal) as refused:  # no look at the machine is waited for
        desk.submit("exec sleep 300", gib=80)
    assert refused.value.status in (400, 409, 422)
    assert re.search(r"Needs 80\.0 GiB; gpu0 can give at most 22\.9 GiB", str(refused.value.body))
    assert desk.jobs_stored() == before


def test_s3_a_job_that_has_not_allocated_yet_is_counted_as_if_it_had(desk: Desk, cards: Cards) -> None:
    first = desk.submit("exec sleep 301", gib=14)
    second = desk.submit("exec sleep 302", gib=14)
    leader = desk.running(first)
    said = rf"^Needs 14\.0 GiB; 24\.0 GiB declared on gpu0 less 14\.0 GiB leased by #{first} leaves 10\.0 GiB\.$"
    desk.waits(second, said)
    during(5, lambda: desk.waits(second, said))  # nothing is allocated, the card reads empty
    seen = desk.waits(second, said)
    room = next(c for c in seen["decision"]["candidates"][0]["checks"] if c["code"] == "no_room")
    assert not room["ok"]
    assert f"after 14.0 GiB kept for #{first} to grow" in room["sentence"]
    assert (room["figures"]["used"], room["figures"][f"growth_{first}"]) == (0, 14 * GIB)

    cards.hold(CARD, leader, 14 * GIB)
    desk.seen(CARD, used=14 * GIB)
    desk.waits(second, said)
    desk.person.call(f"/api/v1/jobs/{first}/cancel", {})
    desk.person.wait_for(first, "finished")
    during(2, lambda: desk.waits(second, "^Needs 14"))  # its memory has not come back yet
    del cards.held[CARD][leader]
    cards.write()
    desk.running(second)


def test_s4_a_false_declaration_is_flagged_and_what_is_really_there_decides(desk: Desk, cards: Cards) -> None:
    first = desk.submit("exec sleep 303", gib=4)
    cards.hold(CARD, desk.running(first), 20 * GIB)
    told = desk.flagged(first, "above")
    assert told == "uses 20.0 GiB on gpu0, above the 4.0 GiB that it was granted"
    second = desk.submit("exec sleep 304", gib=8)
    seen = desk.waits(second, r"^Needs 8\.0 GiB; ")
    assert re.search(r"room on gpu0 is 3\.\d GiB|less 20\.0 GiB leased by #\d+ leaves 4\.0 GiB", seen["headline"])
    during(3, lambda: desk.waits(second, "^Needs 8"))
    assert desk.person.job(first)["state"] == "running"  # nothing ran out, so nobody is stopped


def test_s5_three_that_fit_together_run_together(desk: Desk, cards: Cards) -> None:
    jobs = [desk.submit(f"exec sleep {305 + n}", gib=7) for n in range(3)]
    leaders = [desk.running(job) for job in jobs]
    for leader in leaders:
        cards.hold(CARD, leader, 7 * GIB - 100 * MIB)
    desk.seen(CARD, used=21 * GIB - 300 * MIB)
    states = {job: desk.person.job(job) for job in jobs}
    assert {seen["state"] for seen in states.values()} == {"running"}
    assert {seen["used"][CARD] for seen in states.values()} == {7 * GIB - 100 * MIB}


def test_a_first_run_of_a_known_command_ends_and_is_charged_what_was_seen(
    desk: Desk, cards: Cards, tmp_path: Path
) -> None:
    """X24: a declaration far below the truth does not found the next charge."""
    command = until_told(tmp_path / "end")
    first = desk.submit(command, gib=4)
    leader = desk.running(first)
    cards.hold(CARD, leader, 7 * GIB)
    desk.seen(CARD, used=7 * GIB)
    desk.read_again(CARD, 2)
    (tmp_path / "end").touch()
    desk.person.wait_for(first, "finished")
    del cards.held[CARD][leader]
    cards.write()
    second = desk.submit(command, gib=4)
    seen = desk.person.wait_for(second, "finished")
    assert seen["charges"][CARD]["at_start"] == 7 * GIB
    assert "vram: declared 4.0 GiB, but 7.0 GiB was seen" in seen["estimate"]["notes"]
