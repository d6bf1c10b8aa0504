"""What the submit form shows before anybody typed: an earlier job, a workload, or what this person used last."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from placement.forms import placement
from placement.forms.fields import seconds_text
from placement.models import Role, Workload
from placement.selectors import access, again, submit
from placement.selectors.again import Again
from placement.selectors.submit import Choices

PASSED_ON = ("command", "sweep", "cwd", "name")  # fields that an address may fill in


def earlier(user: AbstractBaseUser, asked: Mapping[str, str]) -> Again | None:
    """Return the job that an address names to be used again, None where it names none. Raise NotFound, NotYours."""
    number = asked.get("again", "").strip().lstrip("#")
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        return None
    return again.of(user, int(number), asked.get("whole") == "1")


def initial(
    user: AbstractBaseUser, asked: Mapping[str, str], old: Again | None, found: Workload | None, choices: Choices
) -> dict[str, Any]:
    """Return the first values of the form's fields."""
    first: dict[str, Any] = {
        "form_key": secrets.token_urlsafe(24),
        "kind": "workload" if found else "command",
        "cwd": choices.directories[0] if choices.directories else "",
        "workers": 1,
        "exclusive": "no",
        "min_devices": "2",
        "memory": "auto",
        "priority": 0,
    }
    if found is not None:
        first |= from_workload(found, first["cwd"])
    first |= {name: asked[name] for name in PASSED_ON if asked.get(name)}
    chosen = submit.preselect(user, asked.get("command", ""), found.name if found else "")
    first |= {"gpu": chosen.gpu, **chosen.group}
    if old is not None:
        first |= old.fields
        if old.variables:
            first |= {"kept_from": old.job, "keep": True}
    if first["priority"] > 0 and not access.at_least(user, Role.OPERATOR):
        first["priority"] = 0
    return first


def from_workload(found: Workload, cwd: str) -> dict[str, Any]:
    """Return what a workload fills in; where it names no directory, the one given stays."""
    return {
        "workload": found.name,
        "cwd": found.cwd or cwd,
        "setup": found.setup,
        "workers": found.workers,
        "exclusive": found.exclusive,
        "image": found.image,
        "engine": found.engine,
        "reserves": found.reserves,
        **placement.shown(found.gpu, found.placement or {}),
        "time_limit_s": seconds_text(found.time_limit_s),
    }
