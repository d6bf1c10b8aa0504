"""Your notices, and where they go besides pages."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables
from ninja import Query

from placement.api.nouns import Noun
from placement.api.shapes.kinds import Id
from placement.api.shapes.notice import (
    HookBody,
    HookChange,
    NoticeList,
    NoticesAsked,
    SeenBody,
    Settings,
    SettingsBody,
    SettingsSaid,
)
from placement.domain import notices as rules
from placement.domain.errors import NotFound, Refused
from placement.domain.submitting.submission import bad_characters
from placement.models import Role
from placement.selectors import notices as shown
from placement.services import delivering, notices

noun = Noun("Notices")


@noun.read("/notices", NoticeList)
def listed(request: HttpRequest, asked: Query[NoticesAsked]) -> dict[str, Any]:
    """Return your notices, newest first. Reading them here does not make them seen."""
    lines, older = shown.page(request.user, asked.before)
    names = ("id", "kind", "title", "sentence", "at", "job", "array", "unread")
    told = [{name: getattr(line, name) for name in names} for line in lines]
    return {"notices": told, "older": older, "unread": shown.bell(request.user).unread}


@noun.change("/notices/seen", NoticeList, Role.VIEWER, sample={"newest": 41})
def seen(request: HttpRequest, asked: SeenBody) -> dict[str, Any]:
    """Note up to which notice you have looked."""
    notices.saw(request.user, asked.newest)
    return listed(request, NoticesAsked())


@noun.read("/notices/settings", Settings)
def settings(request: HttpRequest) -> dict[str, Any]:
    """Return what you are told of, and where it goes."""
    choices, minutes = shown.choices(request.user)
    return {
        "kinds": [choice.kind for choice in choices if choice.on],
        "waited_min": minutes,
        "hooks": [
            {
                "id": hook.id,
                "name": hook.name,
                "shown": hook.shown,
                "on": hook.on,
                "kinds": [choice.kind for choice in hook.choices if choice.on],
                "last_at": hook.last_at,
                "last_ok": hook.last_ok,
                "last_sentence": hook.last_sentence,
                "waits": hook.waits,
            }
            for hook in shown.hooks(request.user)
        ],
    }


@noun.change(
    "/notices/settings", SettingsSaid, Role.VIEWER, method="PUT", sample={"kinds": ["failed"], "waited_min": 10}
)
def choose(request: HttpRequest, asked: SettingsBody) -> dict[str, Any]:
    """Set what you are told of in pages."""
    notices.choose(request.user, asked.kinds, asked.waited_min)
    return _done(request, "Saved.")


@noun.change(
    "/notices/hooks", SettingsSaid, status=201, sample={"address": "ntfy://my-topic", "kinds": ["finished", "failed"]}
)
@sensitive_variables("asked", "address")
def add(request: HttpRequest, asked: HookBody) -> dict[str, Any]:
    """Add a place that notices go to; checking its address can take some seconds."""
    if wrong := bad_characters(asked.name):
        raise Refused(wrong, {"name": wrong})
    try:
        address = rules.checked(asked.address)
        service = delivering.service_of(address)
    except ValueError as error:
        raise Refused(str(error), {"address": str(error)}) from error
    hook = notices.add_hook(request.user, address, asked.name, asked.kinds, service)
    return _done(request, f"{hook.name} is added. Send a test to see whether it arrives.")


@noun.change("/notices/hooks/{int:hook_id}", SettingsSaid, method="PUT", sample={"kinds": ["failed"], "on": True})
def edit(request: HttpRequest, hook_id: Id, asked: HookChange) -> dict[str, Any]:
    """Set what a place is told of, and whether."""
    notices.change_hook(request.user, _known(hook_id), asked.kinds, on=asked.on)
    return _done(request, "Saved.")


@noun.change("/notices/hooks/{int:hook_id}", SettingsSaid, method="DELETE")
def remove(request: HttpRequest, hook_id: Id) -> dict[str, Any]:
    """Forget a place and what was to go there."""
    notices.remove_hook(request.user, _known(hook_id))
    return _done(request, "It is removed.")


@noun.change("/notices/hooks/{int:hook_id}/test", SettingsSaid)
def test(request: HttpRequest, hook_id: Id) -> dict[str, Any]:
    """Send a test to a place."""
    notices.test_hook(request.user, _known(hook_id))
    return _done(request, "A test is on its way; how it went is told as last_sentence.")


def _known(hook_id: int) -> int:
    if hook_id >= 2**63:
        raise NotFound("There is no such place of yours.")
    return hook_id


def _done(request: HttpRequest, said: str) -> dict[str, Any]:
    return {"message": said, "settings": settings(request)}
