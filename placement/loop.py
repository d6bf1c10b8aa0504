"""The loop of one node: nine steps, once a second and whenever somebody wakes it; pages see by digests what changed."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Sequence

from django.conf import settings
from django.db import close_old_connections
from django.utils import timezone

from placement.domain.pace import Pace
from placement.models import Node
from placement.services import admission, dispatching, forecasting, node_tick
from placement.services.node_tick import Agent

log = logging.getLogger(__name__)
_making = threading.Lock()
_MIN_GAP = 0.5  # seconds between two ticks that beat asked for; what a full queue of them repeats is dropped


def agent() -> Agent:
    """Return this process's agent, made on first use and after a fork; two threads that ask at once get the same."""
    with _making:
        return made_agent()


@functools.cache
def made_agent() -> Agent:
    """Make the agent; a driver that comes up slowly makes this slow."""
    return Agent(settings.NODE)


Send = Callable[[str, Sequence[dispatching.Start]], bool]
"""Tell a node's start worker what to launch; False when the broker is away."""
cycles = Pace(share=0.3, credit=0.3, longest=0.5)
"""Of the cycles that people and programs wake when they submit many jobs: one decides for all that came before it."""
looks = Pace(share=0.3, credit=0.3, longest=0.5)
"""Of the looks that ends of jobs wake: one sees all that ended before it."""


def tick(send: Send, *, asked_by_end: bool = False) -> bool:
    """Run all steps once; return whether it was this call's turn. ``asked_by_end``: an end of a job cannot wait."""
    mine = agent()

    def too_soon() -> bool:
        return not asked_by_end and time.monotonic() - mine.began < _MIN_GAP

    if too_soon():
        return False
    with mine.turn() as my_turn:
        if not my_turn or too_soon():  # it may have waited for its turn behind another
            return False
        node_tick.look(mine)  # 1 read, 2 attribute, 3 observe, 4 reap, 5 store
    admission.run_if_due(at_once=asked_by_end)  # 6 snapshot, 7 plan, 8 claim
    dispatch(send)  # 9 dispatch
    forecasting.run_if_due(admission.newest)
    ended = time.monotonic()
    looks.spent(ended - mine.began, ended)
    return True


def wake(send: Send) -> float:
    """Run steps 6 to 9 if somebody asked for a cycle; a stop that was asked for is passed on at once.

    Return 0, or in how many seconds to wake again: where many ask, they share a cycle.
    """
    began = time.monotonic()
    left = cycles.wait(began)
    if left:
        return left
    admission.run_if_due(wanted_only=True)
    dispatch(send)
    dispatching.pass_on_stops(settings.NODE)
    forecasting.run_if_due(admission.newest)
    ended = time.monotonic()
    cycles.spent(ended - began, ended)
    return 0.0


def dispatch(send: Send) -> None:
    """Send the starts that are due to the nodes that are to run them."""
    for node, starts in dispatching.due(settings.NODE):
        if not send(node, starts):
            broker_is(here=False)
            return
        dispatching.sent(node, starts)
        broker_is(here=True)


def tick_without_broker() -> None:
    """Run steps 1 to 5 because no tick came: readings, ends and the watchdog do not wait for the broker."""
    mine = agent()
    with mine.turn() as my_turn:
        if my_turn:
            node_tick.look(mine)
    broker_is(here=False)


def broker_is(*, here: bool) -> None:
    """Put on the node's row since when the broker has been away; nothing is written where that is known."""
    node = Node.objects.filter(name=settings.NODE)
    if here:
        node.exclude(broker_away_since=None).update(broker_away_since=None)
    else:
        node.filter(broker_away_since=None).update(broker_away_since=timezone.now())


def guarded(step: Callable[[], object]) -> None:
    """Run a step in a thread of its own loop: what it raises is logged, and its connection is put back in order."""
    try:
        step()
    except Exception:  # a thread that lives as long as the worker: the next round must come
        log.exception("the watcher's round failed", extra={"action": "watcher_failed"})
    finally:
        close_old_connections()
