"""The same trouble once a minute, other trouble at once."""

from __future__ import annotations

import logging
import sys

import pytest

from scheduler_site.quiet import OnceAMinute


class Told:
    """A handler's filter with a clock that the test moves, and the lines that came through."""

    def __init__(self) -> None:
        self.now, self.lines = 0.0, list[str]()
        self.filter = OnceAMinute(lambda: self.now)

    def say(self, level: int, text: str, *args: object, error: Exception | None = None, name: str = "x") -> None:
        info = None
        if error is not None:
            try:
                raise error
            except Exception:
                info = sys.exc_info()
        record = logging.LogRecord(name, level, "f.py", 1, text, args, info)
        if self.filter.filter(record):
            self.lines.append(record.getMessage())


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_full_disk_met_each_second_is_told_once_a_minute_with_how_often(told: Told) -> None:
    for second in range(121):
        told.now = float(second)
        full = OSError(28, "No space left on device")
        told.say(logging.ERROR, "Task tick[%s] raised unexpected: disk", second, error=full)
    assert told.lines == [
        "Task tick[0] raised unexpected: disk",
        "Task tick[60] raised unexpected: disk (and 59 times more since it was last told)",
        "Task tick[120] raised unexpected: disk (and 59 times more since it was last told)",
    ]


def test_each_other_trouble_is_told_at_once(told: Told) -> None:
    told.say(logging.WARNING, "#%s cannot be asked to stop", 7)
    told.say(logging.WARNING, "#%s cannot be asked to stop", 8)
    told.say(logging.ERROR, "failed", error=OSError(28, "full"))
    told.say(logging.ERROR, "failed", error=OSError(5, "broken"))
    told.say(logging.ERROR, "failed", error=ValueError("full"))
    told.say(logging.ERROR, "failed", error=OSError(28, "full"), name="y")
    assert len(told.lines) == 6


def test_news_that_is_no_trouble_is_never_held_back(told: Told) -> None:
    for _ in range(3):
        told.say(logging.INFO, "started")
    assert told.lines == ["started"] * 3


def test_what_was_told_is_forgotten_after_its_minute(told: Told) -> None:
    for number in range(2000):
        told.now = number / 10
        told.say(logging.WARNING, "trouble %s", number)
    assert len(told.filter._said) <= 600 + 1
    assert len(told.lines) == 2000
