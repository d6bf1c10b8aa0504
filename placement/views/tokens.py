"""Tokens for programs: one's own, and everybody's for admins."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.debug import sensitive_variables

from placement.domain.errors import Refused
from placement.models import Role, Scope
from placement.selectors import access
from placement.selectors import tokens as lines
from placement.services import tokens
from placement.views.door import done, door

SCOPES = {
    Scope.READ: "looks at what everybody sees, and at your own jobs",
    Scope.SUBMIT: "submits jobs and stops your own",
    Scope.FULL: "everything that you may do",
}
LASTING = (("7", "a week"), ("30", "30 days"), ("90", "90 days"), ("365", "a year"), ("", "until it is revoked"))


@door(methods=("GET", "HEAD", "POST"))
@sensitive_variables("text", "made")
def page(request: HttpRequest) -> HttpResponse:
    """Show tokens; make one and show its text, once."""
    if request.method != "POST":
        return _show(request)
    name, scope, days = (request.POST.get(field, "") for field in ("name", "scope", "days"))
    typed = {"name": name, "scope": scope, "days": days}
    try:
        made = tokens.make(request.user, name, scope, _days(days))
    except Refused as error:
        wrong = error.fields or {"": error.sentence}
        return _show(request, typed=typed, wrong=wrong, status=422)
    return _show(request, made=made)


@door(methods=("POST",))
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """End a token."""
    return done(request, "tokens", lambda: tokens.revoke(request.user, token_id))


def _days(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        return -1.0  # the service says what can be taken


def _show(request: HttpRequest, *, status: int = 200, **more: Any) -> HttpResponse:
    admin = access.at_least(request.user, Role.ADMIN)
    own = lines.of(request.user)
    context = {
        "own": own,
        "others": tuple(one for one in lines.of() if one.user != request.user.get_username()) if admin else (),
        "admin": admin,
        "scopes": [(scope.value, words) for scope, words in SCOPES.items()],
        "lasting": LASTING,
        "typed": {"name": "", "scope": Scope.SUBMIT.value, "days": "90"},
        "address": request.build_absolute_uri("/").rstrip("/"),
        **more,
    }
    return render(request, "placement/tokens.html", context, status=status)
