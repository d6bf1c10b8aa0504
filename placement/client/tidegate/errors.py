"""What a call inside a job may end with besides a placement.

Answers are ordinary exceptions. What steers a step derives from BaseException: ``except Exception`` in a step must not
swallow it and let the step go on with memory that is no longer its own.
"""

from __future__ import annotations

from typing import Sequence


class Impossible(Exception):
    """It can never be granted. ``code`` says of which kind, ``arithmetic`` has the figures, a line for each device."""

    def __init__(self, sentence: str, code: str = "impossible", arithmetic: Sequence[str] = ()) -> None:
        super().__init__("\n  ".join([sentence, *arithmetic]))
        self.sentence = sentence
        self.code = code
        self.arithmetic: tuple[str, ...] = tuple(arithmetic)


class NotVisible(Impossible):
    """This process cannot see the device, whoever has room on it."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, "not_visible")


class Unavailable(Exception):
    """Nothing was granted, and nothing is reserved; another time it may be."""


class TimedOut(Unavailable, TimeoutError):
    """The time that the caller gave is over. ``reasons`` are the last that were heard."""

    def __init__(self, sentence: str, reasons: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.reasons: tuple[str, ...] = tuple(reasons)


class NotAllowed(Unavailable):
    """The service does not accept this job's token: the job has ended for it, or the token is another's."""


class Revoked(BaseException):
    """A lease was taken back, and the step cannot be run again: end what uses the memory."""


class SequenceChanged(BaseException):
    """A step that was run again did not make the same calls in the same order."""


class Restart(BaseException):
    """Unwinds a step whose leases were taken back, up to its ``session``, which runs it again."""

    def __init__(self, session: object, sentence: str) -> None:
        super().__init__(sentence)
        self.session = session
