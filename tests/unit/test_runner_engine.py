"""An engine's program is asked: what it says, its code, and that neither a slow one nor many open files disturb it."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator

import pytest

from placement.runner.engine import ask

ENV = {"PATH": os.defpath}


@pytest.fixture
def many_files() -> Iterator[None]:
    """Hold so many files open that the next has a number above what select() takes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1200:
        pytest.skip(f"this machine allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    held = [os.open(os.devnull, os.O_RDONLY)]
    while held[-1] < 1030:
        held.append(os.dup(held[0]))
    yield
    for number in held:
        os.close(number)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_what_it_says_and_its_code_come_back() -> None:
    assert ask(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], ENV) == (3, "out\nerr")
    assert ask(["/nowhere/docker"], ENV) == (None, "/nowhere/docker: No such file or directory")


def test_a_process_with_a_thousand_open_files_hears_it_too(many_files: None) -> None:
    assert ask(["/bin/sh", "-c", "echo out"], ENV) == (0, "out")


def test_one_that_does_not_end_is_ended() -> None:
    began = time.monotonic()
    assert ask(["/bin/sleep", "60"], ENV, 0.2) == (None, "it took too long")
    assert time.monotonic() - began < 30
