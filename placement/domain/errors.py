"""What the scheduler raises: each error carries the sentence that a person reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class PlacementError(Exception):
    """Tidegate could not do this."""

    def __str__(self) -> str:
        return super().__str__() or (type(self).__doc__ or "")


class Refused(PlacementError):
    """Tidegate does not do this.

    ``sentence`` says what was wrong, with the figures; ``fields`` has a sentence per form field.
    """

    def __init__(self, sentence: str, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.fields: dict[str, str] = dict(fields or {})


class Infeasible(Refused):
    """No declared device or node could ever serve this; ``checks`` says what each could give at most."""

    def __init__(self, sentence: str, checks: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(sentence)
        self.checks: list[dict[str, Any]] = [dict(check) for check in checks]


class NotYours(Refused):
    """The person may not do this: it needs another role, or belongs to somebody else."""


class NotFound(Refused):
    """There is no such thing, or none that this person may know of."""


class UnreadableSecret(Refused):
    """Sealed values cannot be opened with the key at hand."""
