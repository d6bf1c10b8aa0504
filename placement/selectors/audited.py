"""Who changed what: entries by key and filter, and what each says of a change: what differs, with units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from calibration.domain.resources import MIB, gib
from placement.models import AuditEntry
from placement.selectors.lists import SEARCHED, Page, page_of
from placement.selectors.wording import mapping


@dataclass(frozen=True, slots=True)
class Asked:
    """Which entries somebody wants to see; "" stands for all. ``text`` is looked for in whom or what they are about."""

    who: str = ""
    action: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        """Return whether anything is asked for."""
        return bool(self.who or self.action or self.text)


def entries(asked: Asked, before: int | None, after: int | None = None) -> Page[AuditEntry]:
    """Return entries below (or above) a key, newest first. Of those asked for, among the newest 50,000 of all."""
    found = AuditEntry.objects.all()
    if asked:
        newest = AuditEntry.objects.order_by("-id").values_list("pk", flat=True).first() or 0
        found = found.filter(pk__gt=newest - SEARCHED)
    if asked.who:
        found = found.filter(who=asked.who)
    if asked.action:
        found = found.filter(action=asked.action)
    if asked.text:
        found = found.filter(Q(subject__icontains=asked.text) | Q(who__icontains=asked.text))
    return page_of(found, before, after)


def actions() -> tuple[str, ...]:
    """Return every action that was ever taken, by name: from one to the next in the index, however many entries."""
    found: list[str] = []
    ordered = AuditEntry.objects.order_by("action").values_list("action", flat=True)
    while (after := ordered.filter(action__gt=found[-1] if found else "").first()) is not None:
        found.append(after)
    return tuple(found)


def words(detail: Any) -> str:
    """Return the detail of an entry as one line; of a before and an after only what differs, "" where there is none."""
    body = mapping(detail)
    parts = []
    if "before" in body and "after" in body:
        parts += _change(body["before"], body["after"])
    elif "after" in body or "before" in body:
        parts += [f"{name} {_value(body[name])}" for name in ("before", "after") if name in body]
    parts += [f"{_name(name)}: {_value(value)}" for name, value in body.items() if name not in ("before", "after")]
    return "; ".join(parts)


def _change(before: Any, after: Any) -> list[str]:
    if not isinstance(before, dict) or not isinstance(after, dict):
        return [f"{_value(before)} → {_value(after)}"]
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return [f"{_name(name)}: {_value(before.get(name))} → {_value(after.get(name))}" for name in names]


def _name(name: Any) -> str:
    return str(name).replace("_", " ")


def _value(value: Any) -> str:
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return gib(value) if value >= MIB else str(value)
    if isinstance(value, dict):
        return ", ".join(f"{_name(name)} {_value(one)}" for name, one in value.items())
    return ", ".join(map(_value, value)) if isinstance(value, list) else str(value)
