"""Who changed what, for admins; and the knobs that they may turn."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest
from ninja import Query

from placement.api.nouns import Noun
from placement.api.shapes.admin import AuditAsked, EntryList, KnobBody, KnobList, KnobSaid, KnobsAsked
from placement.domain.errors import NotFound, Refused
from placement.models import Role
from placement.selectors import audited, tuned
from placement.services import tuning
from placement.views import wake

noun = Noun("Audit and knobs")


@noun.read("/audit", EntryList, Role.ADMIN)
def audit(request: HttpRequest, asked: Query[AuditAsked]) -> dict[str, Any]:
    """Return who changed what, newest first, 50 at a time; of those asked for, among the newest 50,000."""
    wanted = audited.Asked(*(text.replace("\0", "").strip() for text in (asked.who, asked.action, asked.text)))
    page = audited.entries(wanted, asked.before, asked.after if asked.before is None else None)
    return {
        "entries": [
            {
                "id": row.pk,
                "at": row.at,
                "who": row.who,
                "action": row.action,
                "subject": row.subject,
                "detail": row.detail,
                "words": audited.words(row.detail),
            }
            for row in page.lines
        ],
        "older": page.older,
        "newer": page.newer,
    }


@noun.read("/knobs", KnobList, Role.ADMIN)
def knobs(request: HttpRequest, asked: Query[KnobsAsked]) -> dict[str, Any]:
    """Return every knob with unit, bounds, default and who turned it."""
    return {"knobs": _told(asked.q, asked.turned)}


@noun.change("/knobs/{str:name}", KnobSaid, Role.ADMIN, method="PUT", sample={"value": 0.9})
def turn(request: HttpRequest, name: str, asked: KnobBody) -> dict[str, Any]:
    """Set a knob; in force at the next decision."""
    return _turned(request, name, asked.value if isinstance(asked.value, str) else json.dumps(asked.value))


@noun.change("/knobs/{str:name}", KnobSaid, Role.ADMIN, method="DELETE")
def reset(request: HttpRequest, name: str) -> dict[str, Any]:
    """Put a knob back to its default."""
    return _turned(request, name, None)


def _turned(request: HttpRequest, name: str, text: str | None) -> dict[str, Any]:
    if name not in tuning.NAMES:
        raise NotFound(f"There is no knob {name[:60]!r}.")
    try:
        said = tuning.turn(request.user, name, text)
    except Refused as error:
        raise Refused(error.sentence, {"value": error.sentence}) from error
    wake.soon()
    return {"message": said, "knob": next(knob for knob in _told() if knob["name"] == name)}


def _told(text: str = "", turned: bool = False) -> list[dict[str, Any]]:
    return [
        {
            "name": knob.name,
            "subject": subject.title,
            "help": knob.help,
            "unit": knob.unit,
            "value": _figure(knob.value),
            "default": _figure(knob.default),
            "accepts": knob.accepts,
            "choices": list(knob.choices),
            "turned": knob.turned,
            "who": knob.who or None,
            "at": knob.at,
        }
        for subject in tuned.subjects(text, turned=turned)
        for knob in subject.knobs
    ]


def _figure(text: str) -> int | float | str:
    try:
        return json.loads(text)  # type: ignore[no-any-return]
    except ValueError:
        return text
