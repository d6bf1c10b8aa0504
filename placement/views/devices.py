"""All pools at a glance: what is in each now and lately, and how each is declared."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from placement.forms.declarations import NewDeviceForm
from placement.models import Role
from placement.selectors import access, devices, kept
from placement.selectors.queue import digest
from placement.selectors.tanks import Tank
from placement.views.device import RANGES
from placement.views.door import door

_kept: kept.Kept[tuple[Tank, ...]] = kept.Kept()


@door()
def page(request: HttpRequest) -> HttpResponse:
    """Show every pool."""
    return show(request)


def show(request: HttpRequest, form: NewDeviceForm | None = None) -> HttpResponse:
    """Return the page, with a form for a new device that was sent and is wrong, or a fresh one."""
    span = request.GET.get("range", "10m")
    tanks = devices.all_tanks(sees_commands=access.at_least(request.user, Role.OPERATOR))
    rows = devices.by_key()
    context: dict[str, Any] = {
        "tanks": tanks,
        "declared": [(tank, rows[tank.node, tank.pool]) for tank in tanks if (tank.node, tank.pool) in rows],
        "version": digest(tanks),
        "range": span if span in RANGES else "10m",
        "ranges": RANGES.items(),
        "operator": access.at_least(request.user, Role.OPERATOR),
        "machines": devices.machines(),
        "refused": form is not None,
    }
    if access.at_least(request.user, Role.ADMIN):
        context["new"] = form or NewDeviceForm(nodes=devices.nodes())
    return render(request, "placement/devices.html", context, status=200 if form is None else 422)


@door(part_of="devices")
def table(request: HttpRequest) -> HttpResponse:
    """Return the live tanks, 204 when the page shows them already."""
    operates = access.at_least(request.user, Role.OPERATOR)
    tanks = _kept.get(operates, lambda: devices.all_tanks(sees_commands=operates), anyhow=kept.POLLED)
    version = digest(tanks)
    if request.GET.get("v") == version:
        return HttpResponse(status=204)
    return render(request, "placement/_pools.html", {"tanks": tanks, "version": version})
