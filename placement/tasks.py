"""Celery's way in: each task says "look now"; what to do is read from the database."""

from __future__ import annotations

import functools
import logging
from typing import Any

from celery import shared_task

from placement import loop, watcher
from placement.runner.warm import Nursery
from placement.services import retention, starting
from placement.wakes import send_start, wake_all

__all__ = ["prune", "start", "tick", "wake", "wake_all"]

log = logging.getLogger(__name__)


@shared_task(name="placement.tasks.tick", ignore_result=True)
def tick() -> None:
    """Run this node's loop once."""
    watcher.saw_tick(send_start)
    loop.tick(send_start)
    watcher.follow()


@shared_task(name="placement.tasks.wake", ignore_result=True)
def wake() -> None:
    """Run a cycle if somebody asked for one since the last, and dispatch; soon instead of now where many ask."""
    if left := loop.wake(send_start):
        watcher.wake_later(left)


@shared_task(name="placement.tasks.start", bind=True, ignore_result=True, max_retries=5, default_retry_delay=0.2)
def start(self: Any, starts: list[tuple[int, int]] | int, attempt: int | None = None) -> None:
    """Launch the runners of admitted attempts; a row that is not there yet is asked for again.

    A message from before an update names one job and its attempt.
    """
    wanted = [(starts, attempt or 1)] if isinstance(starts, int) else [(job, number) for job, number in starts]
    said, missing = starting.start_all(wanted, _nursery().launch)
    for job, sentence in said:
        log.info("#%s: %s", job, sentence, extra={"action": "start"})
    if missing:
        raise self.retry(args=(missing,), exc=starting.NoRow(f"There is no job #{missing[0][0]} yet."))


@functools.cache
def _nursery() -> Nursery:
    """Return this pool process's nursery; it is made at the first start, so no fork shares it."""
    return Nursery()


@shared_task(name="placement.tasks.prune", ignore_result=True)
def prune() -> None:
    """Delete what is past its keep."""
    retention.prune()
