"""The page "Memory": whose it is, process by process."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from placement.models import Role
from placement.selectors import access, attribution, kept
from placement.selectors.attribution import Machine
from placement.selectors.queue import digest
from placement.views.door import door

_kept: kept.Kept[tuple[Machine, ...]] = kept.Kept()


@door()
def page(request: HttpRequest) -> HttpResponse:
    """Show every pool with its owners and their processes."""
    machines = _read(request)
    return render(request, "placement/attribution.html", {"machines": machines, "version": digest(machines)})


@door(part_of="attribution")
def fragment(request: HttpRequest) -> HttpResponse:
    """Return the same part, 204 when the page shows it already."""
    machines = _read(request, anyhow=kept.POLLED)
    version = digest(machines)
    if request.GET.get("v") == version:
        return HttpResponse(status=204)
    return render(request, "placement/_attribution.html", {"machines": machines, "version": version})


def _read(request: HttpRequest, *, anyhow: float = 0.0) -> tuple[Machine, ...]:
    """Return what this person may see: all operators see the same."""
    operates = access.at_least(request.user, Role.OPERATOR)
    viewer = 0 if operates else (request.user.pk or 0)
    return _kept.get(viewer, lambda: attribution.page(viewer, sees_commands=operates), anyhow=anyhow)
