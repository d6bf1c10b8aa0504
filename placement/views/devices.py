"""Devices: live charts of every pool, and what admins declare."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone

from calibration import selectors as history
from calibration.domain.lineage import SERVICE
from calibration.domain.samples import RAM
from placement.charts import pools
from placement.domain.errors import Refused
from placement.forms.declarations import DeviceForm, HoldForm, NodeForm
from placement.models import Device, Job, Node, Role
from placement.selectors import access, devices, kept
from placement.selectors.queue import digest
from placement.selectors.tanks import Tank
from placement.services import nodes
from placement.views import wake
from placement.views.door import done, door

KINDS = ("node", "device")

_kept: kept.Kept[tuple[Tank, ...]] = kept.Kept()


@door()
def page(request: HttpRequest) -> HttpResponse:
    """Show every pool."""
    span = request.GET.get("range", "10m")
    span = span if span in history.SPANS else "10m"
    admin = access.at_least(request.user, Role.ADMIN)
    forms = {}
    if admin:
        for node in devices.nodes():
            forms[node.name, RAM] = NodeForm(node=node)
            forms |= {(node.name, d.uuid): DeviceForm(device=d) for d in node.devices.all() if not d.retired}
    context = {**_context(request, span, forms), "machines": devices.machines()}
    return render(request, "placement/devices.html", context)


@door(part_of="devices")
def table(request: HttpRequest) -> HttpResponse:
    """Return the live figures below the charts, 204 when the page shows them already."""
    operates = access.at_least(request.user, Role.OPERATOR)
    tanks = _kept.get(operates, lambda: devices.all_tanks(sees_commands=operates), anyhow=kept.POLLED)
    version = digest(tanks)
    if request.GET.get("v") == version:
        return HttpResponse(status=204)
    return render(request, "placement/_pools.html", {"tanks": [(t, None, None) for t in tanks], "version": version})


@door()
def series(request: HttpRequest, node: str, pool: str) -> HttpResponse:
    """Return a chart's data: all of a range, or what came after ``since`` (unix seconds)."""
    if not devices.pool_exists(node, pool):
        raise Http404("There is no such pool.")
    span = history.SPANS.get(request.GET.get("range", "10m"))
    since = request.GET.get("since")
    if span is None or (since is not None and not (since.isascii() and since.isdecimal() and len(since) < 12)):
        sentence = f"range is one of {', '.join(history.SPANS)}; since is in whole unix seconds."
        return JsonResponse({"error": {"code": "bad_request", "message": sentence}}, status=400)
    found = history.series(node, pool, span, int(time.time()), int(since) if since else None)
    declared = devices.declared(node, pool)
    answer = pools.figure(found, _names(found.owners), declared)
    return JsonResponse(answer)


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
    if form.is_valid():
        changes = form.changes()

        def act() -> str:
            if not changes:
                return ""
            change = nodes.edit_device if kind == "device" else nodes.edit_node
            said = change(request.user, row.pk, changes, expected=form.expected(changes))
            wake.soon()
            return " ".join([f"{row.name} is saved.", *(said or [])])

        return done(request, "devices", act)
    return _with_errors(request, row, form)


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
        wake.soon()

    return done(request, "devices", act, "Held: what runs there goes on, nothing new starts.")


@door(Role.OPERATOR, ("POST",))
def release(request: HttpRequest, kind: str, ident: int) -> HttpResponse:
    """End a hold."""
    return _operate(request, lambda: nodes.release(request.user, _kind(kind), ident), "Released.")


@door(Role.OPERATOR, ("POST",))
def drain(request: HttpRequest, kind: str, ident: int) -> HttpResponse:
    """Let what runs end and nothing new start, or end that."""
    on = request.POST.get("on") == "1"
    said = "Draining: what runs may end, nothing new starts." if on else "Takes new jobs again."
    return _operate(request, lambda: nodes.drain(request.user, _kind(kind), ident, on), said)


def _operate(request: HttpRequest, act: Callable[[], None], said: str) -> HttpResponse:
    def and_wake() -> None:
        act()
        wake.soon()

    return done(request, "devices", and_wake, said)


def _context(request: HttpRequest, span: str, forms: dict[tuple[str, str], Any]) -> dict[str, Any]:
    operates = access.at_least(request.user, Role.OPERATOR)
    tanks = devices.all_tanks(sees_commands=operates)
    rows = devices.by_key()
    return {
        "tanks": [(tank, rows.get((tank.node, tank.pool)), forms.get((tank.node, tank.pool))) for tank in tanks],
        "version": digest(tanks),
        "range": span,
        "ranges": [("10m", "10 min"), ("1h", "1 h"), ("24h", "24 h"), ("30d", "30 d")],
        "operator": operates,
        "admin": access.at_least(request.user, Role.ADMIN),
    }


def _bound(request: HttpRequest, kind: str, ident: int) -> tuple[Any, Any]:
    row: Device | Node | None = devices.device(ident) if _kind(kind) == "device" else devices.node(ident)
    if row is None:
        raise Http404(f"There is no {kind} {ident}.")
    form = DeviceForm(request.POST, device=row) if kind == "device" else NodeForm(request.POST, node=row)
    return row, form


def _with_errors(request: HttpRequest, row: Device | Node, form: Any) -> HttpResponse:
    key = (row.node.name, row.uuid) if isinstance(row, Device) else (row.name, RAM)
    return render(request, "placement/devices.html", _context(request, "10m", {key: form}), status=422)


def _kind(kind: str) -> str:
    if kind not in KINDS:
        raise Http404("It is a node or a device.")
    return kind


def _names(owners: dict[str, Any]) -> dict[str, str]:
    ids = {int(o[4:]): o for o in owners if o.startswith("job:") and o[4:].isdecimal()}
    jobs = Job.objects.filter(pk__in=ids).values_list("pk", "name")
    return {SERVICE: "Tidegate itself", **{ids[pk]: f"#{pk} {name}" for pk, name in jobs}}
