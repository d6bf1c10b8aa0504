"""The whole service on a driver that keeps silent, loses a card, counts anew or hangs; the driver is a text file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.cards import GIB, MIB, Cards, Desk, during, until_told
from tests.nvml_stub import GPU_IS_LOST, LIB_RM_VERSION_MISMATCH, State, build
from tests.service import live_service
from tests.wait import until

A, B = "GPU-A", "GPU-B"
KNOBS = {"stale_seconds": 2.0}
pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, Cards]]:
    """A service on two cards; readings older than two seconds admit nothing."""
    folder = tmp_path_factory.mktemp("cards")
    state = State(folder / "nvml.txt")
    cards = Cards(state, A, B)
    with live_service(simulate="", environment=state.environ(build(folder)), knobs=KNOBS) as service:
        yield Desk(service), cards


@pytest.fixture
def desk(place: tuple[Desk, Cards]) -> Iterator[Desk]:
    desk, cards = place
    desk.seen(A, used=0, state="ok")
    yield desk
    cards.clear()
    desk.cancel_all()
    for card in (A, B):
        until(lambda card=card: desk.pool(card)["state"] == "ok", 40, f"{card} to be read again", 0.2)


@pytest.fixture
def cards(place: tuple[Desk, Cards], desk: Desk) -> Cards:
    return place[1]


def test_a_size_that_is_not_reported_is_unknown_and_holds_its_whole_charge(
    desk: Desk, cards: Cards, tmp_path: Path
) -> None:
    first = desk.submit(until_told(tmp_path / "end"), gib=12, device=A)
    leader = desk.running(first)
    cards.base[A] = 14 * GIB  # the card says so, the process list does not
    cards.hold(A, leader, None)
    desk.flagged(first, "device memory is not reported")
    seen = desk.person.job(first)
    assert seen["used"][A] is None
    assert seen["charges"][A]["held"] == 12 * GIB
    second = desk.submit("exec sleep 311", gib=9, device=A)
    told = desk.waits(second, "^Needs 9")
    room = next(c for c in told["decision"]["candidates"][0]["checks"] if c["code"] == "no_room")["figures"]
    assert (room["free"], room[f"growth_{first}"]) == (10 * GIB, 12 * GIB)
    during(2, lambda: desk.waits(second, "^Needs 9"))

    (tmp_path / "end").touch()
    assert desk.person.wait_for(first, "finished")["outcome"] == "completed"
    cards.clear()
    desk.running(second)
    kept = desk.sediment(first)
    assert kept is not None
    assert sorted(kept["peaks"]) == ["ram"]


def test_a_lost_card_is_closed_alone_and_opens_by_itself(desk: Desk, cards: Cards) -> None:
    on_b = desk.submit("exec sleep 312", gib=4, device=B)
    cards.hold(B, desk.running(on_b), 4 * GIB)
    desk.seen(B, used=4 * GIB)

    cards.fail[B] = GPU_IS_LOST
    cards.write()
    desk.seen(B, state="lost")
    desk.flagged(on_b, "its device is lost")
    wants_b = desk.submit("exec sleep 313", gib=4, device=B)
    desk.waits(wants_b, r"^gpu1 is lost, last read .* ago \(GPU is lost\)\.")
    wants_any = desk.submit("exec sleep 314", gib=4)
    cards.hold(A, desk.running(wants_any), 4 * GIB)
    assert desk.person.job(wants_any)["device"] == A
    cards.order = [A]  # after a while the driver counts one card
    cards.write()
    during(2, lambda: desk.waits(wants_b, "^gpu1 is lost"))
    desk.seen(A, used=4 * GIB)
    assert desk.person.job(on_b)["state"] == "running"
    assert desk.person.job(on_b)["charges"][B]["held"] == 4 * GIB

    cards.fail, cards.order = {}, [A, B]
    cards.write()
    desk.running(wants_b, timeout=40)
    assert desk.person.job(on_b)["used"][B] == 4 * GIB


def test_leases_follow_the_card_when_the_driver_counts_anew(desk: Desk, cards: Cards) -> None:
    command = 'echo "sees $CUDA_VISIBLE_DEVICES of $CUDA_DEVICE_ORDER, $TIDEGATE_DEVICE_UUIDS"; exec sleep 315'
    first = desk.submit(command, gib=4, device=B)
    leader = desk.running(first)
    assert desk.first_line(first) == f"sees 1 of PCI_BUS_ID, {B}"
    cards.hold(A, leader, 3 * GIB)
    desk.flagged(first, r"^uses 3\.0 GiB on gpu0, which it does not lease \(it leases gpu1\)$")
    assert desk.pool(A)["free"] == 21 * GIB

    del cards.held[A][leader]
    cards.order = [B, A]
    cards.hold(B, leader, 2 * GIB)
    desk.seen(B, used=2 * GIB)
    assert desk.pool(A)["used"] == 0
    assert desk.person.job(first)["used"][B] == 2 * GIB
    second = desk.submit(command, gib=5, device=B)
    desk.running(second)
    assert desk.first_line(second) == f"sees 0 of PCI_BUS_ID, {B}"


def test_a_driver_updated_under_the_service_closes_the_cards_and_not_the_machine(desk: Desk, cards: Cards) -> None:
    cards.options = {"init": LIB_RM_VERSION_MISMATCH, "every": LIB_RM_VERSION_MISMATCH}
    cards.write()
    for card in (A, B):
        assert "version mismatch" in desk.seen(card, state="unreadable")["message"]
    # The last good figures count as long as any others would; then they are too old to start on.
    until(lambda: (desk.pool(A)["age_s"] or 0) > KNOBS["stale_seconds"], 20, "the reading to grow old", 0.1)
    waiting = desk.submit("exec sleep 316", gib=1)
    desk.waits(waiting, r"^No fresh measurement of gpu[01] for .*version mismatch")
    without = desk.submit("echo done", gib=None, gpu="none")
    assert desk.person.wait_for(without, "finished")["outcome"] == "completed"
    desk.waits(waiting, "^No fresh measurement")

    cards.clear()
    desk.running(waiting, timeout=45)  # the driver is asked again after pauses of up to 30 s


def test_a_driver_that_hangs_stops_starts_and_nothing_else(desk: Desk, cards: Cards) -> None:
    running = desk.submit("exec sleep 317", gib=2)
    cards.hold(A, desk.running(running), 2 * GIB)
    desk.seen(A, used=2 * GIB)
    threads = Path(f"/proc/{desk.service.pid('tick')}/task")
    before = len(list(threads.iterdir()))

    cards.options = {"block": (0, 60)}
    cards.write()
    until(lambda: (desk.pool(A)["age_s"] or 0) > KNOBS["stale_seconds"], 20, "the reading to grow old", 0.1)
    waiting = desk.submit("exec sleep 318", gib=2)
    desk.waits(waiting, r"^No fresh measurement of gpu[01] for .*has not answered a call for more than")
    asked = time.monotonic()
    desk.person.call(f"/api/v1/jobs/{running}/cancel", {})
    assert desk.person.wait_for(running, "finished")["outcome"] == "cancelled"
    assert time.monotonic() - asked < 20  # the call hangs for 60
    assert "No fresh measurement" in desk.person.read("/")
    without = desk.submit("echo done", gib=None, gpu="none")
    assert desk.person.wait_for(without, "finished")["outcome"] == "completed"
    during(4, lambda: desk.waits(waiting, "^No fresh measurement"))
    assert len(list(threads.iterdir())) <= before + 1

    cards.clear()
    desk.running(waiting)


def test_what_the_driver_keeps_for_itself_is_no_use(desk: Desk, cards: Cards) -> None:
    """An empty card shows 904 MiB as used to the older call; "alone" and a large need start on both."""
    cards.reserved, cards.base = 904 * MIB, {A: 8 * MIB, B: 8 * MIB}
    cards.write()
    read = desk.seen(A, reserved=904 * MIB)
    assert (read["used"], read["free"]) == (8 * MIB, 24 * GIB - 912 * MIB)
    desk.running(desk.submit("exec sleep 319", gib=2, device=A, exclusive="device"))
    desk.running(desk.submit("exec sleep 320", gib=21.5, device=B))
    desk.cancel_all()

    cards.options = {"missing": ["nvmlDeviceGetMemoryInfo_v2"]}
    cards.write()
    read = desk.seen(A, reserved=None)
    assert (read["used"], read["free"]) == (912 * MIB, 24 * GIB - 912 * MIB)
    desk.running(desk.submit("exec sleep 319", gib=2, device=A, exclusive="device"))
    desk.running(desk.submit("exec sleep 320", gib=21.5, device=B))
