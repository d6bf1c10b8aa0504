from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from placement.api.shapes.kinds import Shape

Code = Literal[
    "invalid",
    "refused",
    "infeasible",
    "not_logged_in",
    "bad_token",
    "csrf",
    "role",
    "scope",
    "not_yours",
    "not_found",
    "method_not_allowed",
    "too_large",
    "too_many",
    "internal",
    "unavailable",
]


class Error(Shape):
    """What went wrong."""

    code: Code
    message: str = Field(description="One or more sentences for a person: what happened, the figures, what to do next.")
    fields: dict[str, str] = Field(description="A sentence per field that cannot be taken.")
    detail: dict[str, Any] = Field(description="More, where there is more: the checks of what can never fit.")


class ErrorAnswer(Shape):
    """The shape of every error."""

    error: Error
