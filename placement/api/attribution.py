"""Whose memory it is: pool by pool, owner by owner, process by process, and by which rule."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from placement.api.nouns import Noun
from placement.api.shapes.attribution import AttributionList
from placement.models import Role
from placement.selectors import access, attribution

noun = Noun("Devices")


@noun.read("/attribution", AttributionList)
def look(request: HttpRequest) -> dict[str, Any]:
    """Return every pool with its owners and their processes, and why a process belongs to its owner.

    Names of processes are there for operators, and of your own jobs.
    """
    operates = access.at_least(request.user, Role.OPERATOR)
    return {"pools": attribution.as_json(request.user.pk or 0, sees_commands=operates)}
