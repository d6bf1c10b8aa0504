"""Workloads: defined from a text, on record; and what a submission of one starts from."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from placement.domain import workloads
from placement.domain.errors import NotFound
from placement.domain.submission import bad_characters
from placement.models import Workload
from placement.services import audit, cycle_row, members, secrets


def define(user: Any, text: str) -> tuple[Workload, bool]:
    """Store a workload, or bring one of this name up to date; return it and whether it is new. For operators."""
    if user is not None:
        members.need(user, "operate")
    definition = workloads.parse(text)
    fields = asdict(definition)
    fields["files"], fields["parameters"] = list(definition.files), [dict(p) for p in definition.parameters]
    fields["retry_policy"] = dict(definition.retry_policy)
    fields["environment"] = secrets.seal(definition.environment)
    name = fields.pop("name")
    with cycle_row.changing():
        row, created = Workload.objects.update_or_create(name=name, defaults={**fields, "demo": False})
        shown = {k: v for k, v in fields.items() if k != "environment"}
        audit.record(user, "define_workload", f"workload {name}", variables=sorted(definition.environment), **shown)
    return row, created


def remove(user: Any, name: str) -> None:
    """Take a workload away; its jobs and what they taught stay. For operators."""
    if user is not None:
        members.need(user, "operate")
    with cycle_row.changing():
        if not Workload.objects.filter(name=name).delete()[0]:
            raise NotFound(f"There is no workload called {name}.")
        audit.record(user, "remove_workload", f"workload {name}")


def defaults(name: object) -> dict[str, Any]:
    """Return what a submission of a workload starts from where it says nothing itself."""
    asked = isinstance(name, str) and name and not bad_characters(name)  # the draft says what is wrong with it
    row = Workload.objects.filter(name=name).first() if asked else None
    return {} if row is None else {"gpu": row.gpu, "exclusive": row.exclusive, "workers": row.workers}
