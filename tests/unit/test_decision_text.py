"""Sentences, and when a decision is news."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from placement.domain.admission.gate import decide
from placement.domain.admission.history import worth_writing
from placement.domain.admission.wire import decision_json
from placement.domain.world import text
from placement.domain.world.requests import Exclusive
from placement.domain.world.snapshot import Charge, Hold, Pool
from tests.builders import GIB, MIB, a_device, a_node, a_pool, a_ram, a_running, a_snapshot, a_waiting


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.4, "0.4 s"), (60.0, "60 s"), (720.0, "12 min"), (9000.0, "2.5 h"), (864000.0, "10.0 days")],
)
def test_durations(value: float, words: str) -> None:
    assert text.seconds(value) == words


@pytest.mark.parametrize(
    ("words", "want"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
        (["a", "b", "c", "d", "e"], "a, b, c and 2 more"),
    ],
)
def test_names(words: list[str], want: str) -> None:
    assert text.names(words) == want


@pytest.mark.parametrize(
    ("pool", "want"),
    [
        pytest.param(a_pool(24 * GIB), "", id="nobody"),
        pytest.param(
            a_pool(24 * GIB, external_who=((9, "u2", "p", 2 * GIB), (8, "u3", "q", GIB))),
            "2.0 GiB held by pid 9 (user u2) and 1.0 GiB held by pid 8 (user u3), not jobs of ours",
            id="two",
        ),
        pytest.param(
            a_pool(24 * GIB, external=None, external_who=((9, "u2", "p", None),), unexplained=3 * GIB),
            "3.0 GiB used by nobody that the process list names",
            id="sizes hidden by the driver are not shown as zero",
        ),
    ],
)
def test_outsiders(pool: Pool, want: str) -> None:
    assert text.outsiders(pool) == want


def test_the_booked_sentence_names_who_leases() -> None:
    running = tuple(a_running(n, 4 * GIB, 0) for n in (38, 39))
    node = a_node(a_device(24 * GIB, declared=10 * GIB))
    headline = decide(a_snapshot(node, running=running), a_waiting(1, 3 * GIB)).headline
    assert headline == "Needs 3.0 GiB; 10.0 GiB declared on gpu0 less 8.0 GiB leased by #38 and #39 leaves 2.0 GiB."


def test_what_is_used_without_a_lease_is_told_apart_from_leases() -> None:
    first, left = a_running(38, 4 * GIB, 0), a_running(39, device=None)
    left = replace(left, devices=("GPU-0",), charges={"GPU-0": Charge(0, 3 * GIB, 3 * GIB, 0)}, more=True)
    node = a_node(a_device(24 * GIB, 3 * GIB, declared=10 * GIB))
    said = "Needs 4.0 GiB; 10.0 GiB declared on gpu0 less {} leaves {}."
    both = decide(a_snapshot(node, running=(first, left)), a_waiting(1, 4 * GIB)).headline
    assert both == said.format("4.0 GiB leased by #38 and 3.0 GiB that #39 uses without a lease", "3.0 GiB")
    also = replace(left, job=40, charges={"GPU-0": Charge(0, 4 * GIB, 4 * GIB, 0)})
    alone = decide(a_snapshot(node, running=(left, also)), a_waiting(1, 4 * GIB)).headline
    assert alone == said.format("7.0 GiB that #40 and #39 use without a lease", "3.0 GiB")
    much = replace(left, charges={"GPU-0": Charge(0, 12 * GIB, 12 * GIB, 0)})
    over = decide(a_snapshot(node, running=(much,)), a_waiting(1, 4 * GIB)).headline
    rest = "nothing: 2.0 GiB too much is taken already"
    assert over == said.format("12.0 GiB that #39 uses without a lease", rest), "the sum adds up"


def test_ram_is_named_by_its_node() -> None:
    node = a_node(ram=a_ram(8 * GIB, 6 * GIB))
    headline = decide(a_snapshot(node), a_waiting(1, ram=3 * GIB, gpu=False)).headline
    assert headline == "Needs 3.0 GiB; room in the RAM of atlas is 2.0 GiB."


def test_with_several_nodes_a_device_is_named_with_its_node() -> None:
    nodes = (
        a_node(a_device(24 * GIB, 20 * GIB)),
        a_node(a_device(24 * GIB, 22 * GIB, node="borea"), name="borea"),
    )
    headline = decide(a_snapshot(*nodes), a_waiting(1, 8 * GIB)).headline
    assert headline == "Needs 8.0 GiB; most room is 4.0 GiB on gpu0 of atlas."


def body(used: int = 16 * GIB, **more: Any) -> dict[str, Any]:
    """Return the stored form of a decision on a job of 10 GiB."""
    snapshot = a_snapshot(a_node(a_device(24 * GIB, used)), running=more.pop("running", ()))
    return decision_json(decide(snapshot, a_waiting(1, 10 * GIB, **more)))


@pytest.mark.parametrize(
    ("before", "now", "since", "news"),
    [
        pytest.param(None, body(), 0.0, True, id="the first"),
        pytest.param({}, body(), 0.0, True, id="nothing stored"),
        pytest.param(body(), body(), 60.0, False, id="the same"),
        pytest.param(body(), body(16 * GIB + 200 * MIB), 60.0, False, id="a figure moved a little"),
        pytest.param(body(), body(17 * GIB), 60.0, True, id="a figure moved by much"),
        pytest.param(body(), body(17 * GIB), 9.0, False, id="too soon"),
        pytest.param(body(), body(2 * GIB), 1.0, True, id="a start is never too soon"),
        pytest.param(
            body(), body(running=(a_running(7, GIB, GIB, exclusive=Exclusive.DEVICE),)), 60.0, True, id="another code"
        ),
    ],
)
def test_what_is_news(before: dict[str, Any] | None, now: dict[str, Any], since: float, news: bool) -> None:
    assert worth_writing(before, now, since) is news


@pytest.mark.parametrize(
    ("lasts", "words"),
    [(-1.0, "less than a minute"), (59.9, "less than a minute"), (83.0, "1 min"), (84.0, "1 min"), (9000.0, "2.5 h")],
)
def test_how_long_somebody_holds_is_news_once_a_minute(lasts: float, words: str) -> None:
    said = text.hold("This job", Hold(who="ann", since=1000.0, until=None, why="data"), 1000.0 + lasts)
    assert said == f"This job has been held by ann for {words}, until released: data."
