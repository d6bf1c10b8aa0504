"""People, for admins: roles, Unix accounts, quotas, new users."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from placement.domain.errors import Refused
from placement.forms.declarations import PersonForm, QuotaForm
from placement.models import Role
from placement.selectors import people
from placement.services import accounts, members
from placement.views import wake
from placement.views.door import done, door


@door(Role.ADMIN)
def page(request: HttpRequest) -> HttpResponse:
    """Show everybody."""
    return _show(request)


@door(Role.ADMIN, ("POST",))
def add(request: HttpRequest) -> HttpResponse:
    """Make a user and show their first login link, once."""
    name, role = request.POST.get("name", ""), request.POST.get("role", "")
    try:
        user, token = members.add_user(request.user, name, role)
    except Refused as error:
        messages.error(request, error.sentence)
        return redirect("people")
    return _show(request, user, token)


@door(Role.ADMIN, ("POST",))
def link(request: HttpRequest, user_id: int) -> HttpResponse:
    """Show a new one-time login link for somebody."""
    user = _found(user_id)
    return _show(request, user, members.make_link(user))


@door(Role.ADMIN, ("POST",))
def edit(request: HttpRequest, user_id: int) -> HttpResponse:
    """Change somebody's role and account."""
    user, form = _found(user_id), PersonForm(request.POST)

    @transaction.atomic  # a refused account leaves the role as it was
    def act() -> str:
        if not form.is_valid():
            raise Refused("Role and account could not be read; choose a role and an account of this machine.")
        data = form.cleaned_data
        member = getattr(user, "member", None)
        if member is None or data["role"] != member.role or user.is_superuser:
            members.set_role(request.user, user, data["role"])
        if data["account"] != (member.account if member else ""):
            members.set_account(request.user, user, data["account"], root=data["root"])
        wake.soon()
        return f"{user.get_username()} is saved."

    return done(request, "people", act)


@door(Role.ADMIN, ("POST",))
def quota(request: HttpRequest, user_id: int) -> HttpResponse:
    """Limit what somebody's jobs may hold at once; what cannot be read is shown again with what is wrong with it."""
    user = _found(user_id)
    form = QuotaForm(request.POST, member=getattr(user, "member", None))
    if form.is_valid():
        try:
            members.set_quota(request.user, user, **form.cleaned_data)
        except Refused as error:
            form.refuse(error.fields, error.sentence)
    if form.errors:
        messages.error(request, f"The quota of {user.get_username()} stays as it was. What is wrong is said beside it.")
        return _show(request, typed=(user.pk, form))
    wake.soon()
    messages.success(request, f"The quota of {user.get_username()} is saved.")
    return redirect("people")


@door(Role.ADMIN, ("POST",))
def let_in(request: HttpRequest, user_id: int) -> HttpResponse:
    """Keep somebody out, or let them in again."""
    user, active = _found(user_id), request.POST.get("active") == "1"
    word = "may come in again" if active else "is kept out; their jobs go on"

    def act() -> str:
        members.set_active(request.user, user, active)
        return f"{user.get_username()} {word}."

    return done(request, "people", act)


def _found(user_id: int) -> Any:
    user = people.person(user_id) if user_id < 2**63 else None
    if user is None:
        raise Http404("There is no such user.")
    return user


def _show(
    request: HttpRequest, user: Any = None, token: str = "", typed: tuple[int, QuotaForm] | None = None
) -> HttpResponse:
    text = request.GET.get("q", "").strip()[:150]
    context: dict[str, Any] = {
        "q": text,
        "people": [_as_typed(person, typed) for person in people.people(text)],
        "wrong": typed,
        "roles": [role.value for role in Role],
        "mapping": accounts.worker_is_root(),
        "usual": people.usual_quota(),
    }
    if token:
        context["new_user"] = user
        context["new_link"] = request.build_absolute_uri(reverse("login-link", args=[token]))
    return render(request, "placement/people.html", context, status=422 if typed else 200)


def _as_typed(person: people.PersonLine, typed: tuple[int, QuotaForm] | None) -> people.PersonLine:
    """Return a person's line with the quota as somebody just typed it, where it was refused."""
    if typed is None or typed[0] != person.id:
        return person
    return replace(person, **{f"quota_{name}": typed[1][name].value() or "" for name in ("jobs", "vram", "ram")})
