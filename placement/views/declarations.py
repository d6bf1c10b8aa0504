"""What admins declare of nodes and devices, and operators hold or drain."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from placement.domain.errors import Refused
from placement.forms.declarations import HoldForm, NewDeviceForm, NodeForm, form_of
from placement.models import Device, Node, Role
from placement.selectors import device, devices
from placement.services import declaring, nodes
from placement.views import devices as overview
from placement.views import wake
from placement.views.device import show
from placement.views.door import done, door

KINDS = ("node", "device")


@door(Role.ADMIN, ("POST",))
def preview(request: HttpRequest, kind: str, ident: int) -> HttpResponse:
    """Return what an edit would do to running jobs, before it is saved."""
    row, form = _bound(request, kind, ident)
    context: dict[str, Any] = {"form": form, "row": row, "kind": kind}
    if form.is_valid():
        context["changes"] = form.changes()
        preview_of = nodes.preview_device if kind == "device" else nodes.preview_node
        context["effects"] = preview_of(row, context["changes"]) if context["changes"] else []
    return render(request, "placement/_effects.html", context)


@door(Role.ADMIN, ("POST",))
def edit(request: HttpRequest, kind: str, ident: int) -> HttpResponse:
    """Save a declaration; in force at the next decision."""
    row, form = _bound(request, kind, ident)
    if not form.is_valid():
        return show(request, row, form)
    changes = form.changes()

    def act() -> str:
        if not changes:
            return ""
        change = nodes.edit_device if kind == "device" else nodes.edit_node
        said = change(request.user, row.pk, changes, expected=form.expected(changes))
        wake.soon()
        return " ".join([f"{row.name} is saved.", *(said or [])])

    return done(request, device.page_of(row), act)


@door(Role.ADMIN, ("POST",))
def add(request: HttpRequest) -> HttpResponse:
    """Declare a device that no probe finds."""
    form = NewDeviceForm(request.POST, nodes=devices.nodes())
    if form.is_valid():
        try:
            made = declaring.add(request.user, int(form.cleaned_data["node"] or 0), form.said())
        except Refused as error:
            form.refuse(error)
        else:
            wake.soon()
            said = f"{made.name} is declared: jobs are put there by its bookings alone."
            return done(request, device.page_of(made), lambda: said)
    return overview.show(request, form)


@door(Role.ADMIN, ("POST",))
def remove(request: HttpRequest, ident: int) -> HttpResponse:
    """Take back a device that was declared by hand."""
    row = devices.device(ident)
    if row is None:
        raise Http404(f"There is no device {ident}.")
    try:
        said = declaring.remove(request.user, ident)
    except Refused as error:
        messages.error(request, error.sentence)
        return redirect(device.page_of(row))
    wake.soon()
    return done(request, "devices", lambda: said)


@door(Role.OPERATOR, ("POST",))
def hold(request: HttpRequest, kind: str, ident: int) -> HttpResponse:
    """Let nothing new start on a node or device, for some hours or until released."""
    form = HoldForm(request.POST)

    def act() -> None:
        if not form.is_valid():
            raise Refused("The hours must be a number above zero; leave them empty to hold until released.")
        hours = form.cleaned_data["hours"]
        until = timezone.now() + timedelta(hours=hours) if hours else None
        nodes.hold(request.user, _kind(kind), ident, until=until, why=form.cleaned_data["why"])

    return _operate(request, kind, ident, act, "Held: what runs there goes on, nothing new starts.")


@door(Role.OPERATOR, ("POST",))
def release(request: HttpRequest, kind: str, ident: int) -> HttpResponse:
    """End a hold."""
    return _operate(request, kind, ident, lambda: nodes.release(request.user, _kind(kind), ident), "Released.")


@door(Role.OPERATOR, ("POST",))
def drain(request: HttpRequest, kind: str, ident: int) -> HttpResponse:
    """Let what runs end and nothing new start, or end that."""
    on = request.POST.get("on") == "1"
    said = "Draining: what runs may end, nothing new starts." if on else "Takes new jobs again."
    return _operate(request, kind, ident, lambda: nodes.drain(request.user, _kind(kind), ident, on), said)


def _operate(request: HttpRequest, kind: str, ident: int, act: Callable[[], None], said: str) -> HttpResponse:
    def and_wake() -> None:
        act()
        wake.soon()

    row = _find(kind, ident)
    return done(request, device.page_of(row) if row else "devices", and_wake, said)


def _find(kind: str, ident: int) -> Device | Node | None:
    return devices.device(ident) if _kind(kind) == "device" else devices.node(ident)


def _bound(request: HttpRequest, kind: str, ident: int) -> tuple[Any, Any]:
    row = _find(kind, ident)
    if row is None:
        raise Http404(f"There is no {kind} {ident}.")
    form = form_of(row, request.POST) if kind == "device" else NodeForm(request.POST, node=row)
    return row, form


def _kind(kind: str) -> str:
    if kind not in KINDS:
        raise Http404("It is a node or a device.")
    return kind
