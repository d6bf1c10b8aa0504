"""The default connection on another database, and several threads at once on whichever it is."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
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
    in_a_file = connections["default"].vendor == "sqlite"
    try:
        if in_a_file:
            Path(other["NAME"]).write_bytes(_tables())
        else:
            call_command("migrate", interactive=False, verbosity=0)
        yield
    finally:
        if not in_a_file:  # a file is its test's own
            call_command("flush", interactive=False, verbosity=0)
        connections["default"].close()
        connections.settings["default"] = before
        connections["default"] = mine


@cache
def _tables() -> bytes:
    """Return a migrated, empty SQLite database: each test that wants one of its own would migrate for a second."""
    with tempfile.TemporaryDirectory() as folder:
        here = connections["default"]
        file = Path(folder) / "tables.sqlite3"
        before, here.settings_dict["NAME"] = here.settings_dict["NAME"], str(file)
        try:
            call_command("migrate", interactive=False, verbosity=0)
        finally:
            here.close()
            here.settings_dict["NAME"] = before
        return file.read_bytes()


def together(*calls: Callable[[], T]) -> list[T]:
    """Return what the calls return when each runs in a thread of its own, all let go at the same moment."""
    gate = threading.Barrier(len(calls))
    results: dict[int, T] = {}
    errors: list[BaseException] = []

    def one(number: int, call: Callable[[], T]) -> None:
        try:
            gate.wait(60)
            results[number] = call()
        except BaseException as error:  # told by the thread that waits for all
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=one, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(calls))]
