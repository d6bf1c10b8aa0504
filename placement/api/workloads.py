"""Workloads: listed, looked at, defined and removed."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query

from calibration.domain import keys
from placement.api.nouns import Noun
from placement.api.shapes.workload import (
    DefineBody,
    KeyAsked,
    WorkloadAnswer,
    WorkloadList,
    WorkloadSaid,
    WorkloadsAsked,
)
from placement.domain.errors import NotFound, Refused
from placement.domain.submitting import workload_text
from placement.domain.submitting.submission import bad_characters
from placement.models import Role
from placement.selectors import subjects, workload_page, workloads
from placement.selectors.subjects import Subject
from placement.selectors.workload_page import Learned
from placement.services import workloads as definitions
from placement.views import wake

noun = Noun("Workloads")
SAMPLE = {"toml": 'name = "train"\ncommand = "python train.py --size {size}"\ngpu = "one"\n'}


@noun.read("/workloads", WorkloadList)
def listed(request: HttpRequest, asked: Query[WorkloadsAsked]) -> dict[str, Any]:
    """Return all that was learned or defined, 25 at a time."""
    text = asked.q.replace("\0", "").strip()
    page = workloads.page(request.user, text=text, which=asked.which, order=asked.order, number=asked.page)
    return {
        "workloads": [_line(one) for one in page.lines],
        "never_run": [_line(one) for one in page.unrun],
        "more": page.more,
    }


@noun.read("/workloads/{str:ident}", WorkloadAnswer)
def look(request: HttpRequest, ident: str, asked: Query[KeyAsked]) -> dict[str, Any]:
    """Return a workload with its sets of parameters and what is pinned; by id, or by name where it has one."""
    subject, found = learned(ident, asked.key)
    sees = subjects.sees_typed(request.user, subject)
    return {
        "workload": {
            "id": subject.id,
            "title": subject.title,
            "named": subject.named,
            "defined": subject.definition is not None,
            "person": subject.runner or None,
            "key": found.digest,
            "kinds": list(found.kinds),
            "parameters": [
                {"key": one.digest, "text": one.text, "runs": one.runs} for one in subjects.params(subject, sees=sees)
            ],
            "pins": [
                {"kind": pin.kind, "amount": pin.amount, "who": pin.who, "at": pin.at, "whole": pin.whole}
                for pin in workload_page.pins(subject, found.kinds)
            ],
            "script": subject.script if sees else None,
        }
    }


@noun.read("/workloads/{str:ident}/definition", None, Role.SUBMITTER, plain=True)
def definition(request: HttpRequest, ident: str) -> HttpResponse:
    """Return a definition as TOML; sealed variables are named, not told."""
    row = found_subject(ident).definition
    if row is None:
        raise NotFound("Nothing is defined under this address.")
    text = workload_text.write(definitions.definition_of(row), definitions.variables(row))
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


@noun.change("/workloads", WorkloadSaid, Role.OPERATOR, sample=SAMPLE)
def define(request: HttpRequest, asked: DefineBody) -> dict[str, Any]:
    """Define a workload, or bring the one of this name up to date."""
    if wrong := bad_characters(asked.toml):
        raise Refused(wrong, {"toml": wrong})
    try:
        row, created = definitions.define(request.user, asked.toml)
    except Refused as error:
        raise Refused(error.sentence, {"toml": error.sentence}) from error
    wake.soon()
    said = f"{row.name} is {'defined' if created else 'up to date'}."
    return {"message": said, "id": keys.named(row.name)}


@noun.change("/workloads/{str:ident}", WorkloadSaid, Role.OPERATOR, method="DELETE")
def remove(request: HttpRequest, ident: str) -> dict[str, Any]:
    """Take a definition away; its jobs, and what was learned from them, stay."""
    subject = found_subject(ident)
    if subject.definition is None:
        raise NotFound("Nothing is defined under this address.")
    definitions.remove(request.user, subject.definition.name)
    wake.soon()
    return {"message": f"{subject.title} is no workload any more. What was learned stays.", "id": subject.id}


def found_subject(ident: str) -> Subject:
    """Return the subject of an id, or of a name. Raise NotFound."""
    subject = subjects.find(ident) if len(ident) == 32 else None
    if subject is None and len(ident) <= 100 and not bad_characters(ident):
        subject = subjects.find(keys.named(ident))
    if subject is None:
        raise NotFound("Nothing was learned or defined under this address.")
    return subject


def learned(ident: str, key: str) -> tuple[Subject, Learned]:
    """Return a subject with what is known of one set of its parameters. Raise NotFound."""
    subject = found_subject(ident)
    found = None if bad_characters(key) else workload_page.learned(subject, key)
    if found is None:
        raise NotFound("It was never run with these parameters.")
    return subject, found


def _line(one: workloads.Line) -> dict[str, Any]:
    return {
        "id": one.id,
        "title": one.title,
        "named": one.named,
        "parameters": one.kinds,
        "runs": one.runs,
        "failed": one.failed,
        "last_at": one.last,
    }
