"""Workloads: defined from a text, on record; and what a submission of one starts from."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from placement.domain.errors import NotFound, Refused, UnreadableSecret
from placement.domain.submitting import workloads
from placement.domain.submitting.submission import bad_characters
from placement.models import AuditEntry, Workload
from placement.services import audit, cycle_row, members, secrets


def define(user: Any, text: str) -> tuple[Workload, bool]:
    """Store a workload, or bring one of this name up to date; return it and whether it is new. For operators."""
    if user is not None:
        members.need(user, "operate")
    return _store(user, workloads.parse(text))


def save(user: Any, table: Mapping[str, Any], seen: str, keep: Collection[str] = ()) -> Workload:
    """Store a workload from a form's table, as TOML has it. For operators.

    ``seen`` is the state (see ``state``) that the form was filled from, "" for a new workload: what others changed
    since is never overwritten. Variables named in ``keep`` stay as they are sealed; those of the table go before them.
    """
    members.need(user, "operate")
    definition = workloads.check(table)
    with cycle_row.changing():
        row = Workload.objects.filter(name=definition.name).first()
        if row is not None and not seen:
            said = f"There is a workload called {row.name} already; edit that one, or take another name."
            raise Refused(said, {"name": said})
        if seen and (row is None or state(row) != seen):
            raise Refused(_overtaken(definition.name, row))
        kept = {n: v for n, v in _variables(row).items() if n in keep} if keep and row is not None else {}
        return _store(user, replace(definition, environment={**kept, **definition.environment}))[0]


def state(row: Workload) -> str:
    """Return a digest of all that defines a workload."""
    fields = [f.attname for f in row._meta.concrete_fields if f.name not in ("id", "owner", "created_at")]
    told = repr([bytes(v) if isinstance(v, memoryview) else v for v in (getattr(row, name) for name in fields)])
    return hashlib.blake2b(told.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def definition_of(row: Workload) -> workloads.Definition:
    """Return a stored workload as it was defined, without its variables."""
    apart = ("files", "parameters", "environment", "placement")
    values = {f.name: getattr(row, f.name) for f in fields(workloads.Definition) if f.name not in apart}
    values["placement"] = row.placement or {}
    return workloads.Definition(**values, files=tuple(row.files), parameters=tuple(row.parameters))


def variables(row: Workload | None) -> list[str]:
    """Return the names of its variables; [] where they cannot be opened."""
    try:
        return sorted(_variables(row))
    except UnreadableSecret:
        return []


def _variables(row: Workload | None) -> dict[str, str]:
    return secrets.unseal(bytes(row.environment)) if row is not None and row.environment else {}


def _overtaken(name: str, row: Workload | None) -> str:
    if row is None:
        return f"{name} was removed while you wrote. Your text is kept here; save again to define it anew."
    last = AuditEntry.objects.filter(subject=f"workload {name}", action="define_workload").order_by("-id").first()
    who = f" by {last.who}" if last else ""
    return f"{name} was changed{who} while you wrote. Your text is kept here; look at theirs, then save again."


def _store(user: Any, definition: workloads.Definition) -> tuple[Workload, bool]:
    values = asdict(definition)
    values["files"], values["parameters"] = list(definition.files), [dict(p) for p in definition.parameters]
    values["retry_policy"] = dict(definition.retry_policy)
    values["placement"] = dict(definition.placement) or None
    values["environment"] = secrets.seal(definition.environment)
    name = values.pop("name")
    with cycle_row.changing():
        values["demo"] = False
        row, created = Workload.objects.update_or_create(
            name=name, defaults=values, create_defaults={**values, "owner": user}
        )
        shown = {k: v for k, v in values.items() if k not in ("environment", "demo")}
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
    if row is None:
        return {}
    return {"gpu": row.gpu, "exclusive": row.exclusive, "workers": row.workers, **(row.placement or {})}
