"""The default connection on another database, and several threads at once on whichever it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from django.core.management import call_command
from django.db import connections

from scheduler_site import environ

T = TypeVar("T")


@contextmanager
def on(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use the database of a URL as the default one, migrated and empty, in this and in new threads."""
    monkeypatch.setenv("TIDEGATE_OTHER_DATABASE", url)
    other = environ.database("TIDEGATE_OTHER_DATABASE", Path("unused"))
    before, mine = connections.settings["default"], connections["default"]
    connections.settings["default"] = connections.configure_settings({"default": other})["default"]
    del connections["default"]
    try:
        call_command("migrate", interactive=False, verbosity=0)
        yield
    finally:
        call_command("flush", interactive=False, verbosity=0)
        connections["default"].close()
        connections.settings["default"] = before
        connections["default"] = mine


def together(*calls: Callable[[], T]) -> list[T]:
    """Return what the calls return when each runs in a thread of its own, all let go at the same moment."""
    gate = threading.Barrier(len(calls))
    results: dict[int, T] = {}
    errors: list[BaseException] = []

    def one(number: int, call: Callable[[], T]) -> None:
        try:
            gate.wait(10)
            results[number] = call()
        except BaseException as error:  # told by the thread that waits for all
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=one, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(calls))]
