"""One pool's page: its live part, its chart's data, and the same as files."""

from __future__ import annotations

import time
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.shortcuts import render

from calibration import selectors as history
from calibration.domain.samples import RAM
from placement.charts import export, pools
from placement.forms.declarations import Declaration, NodeForm, form_of
from placement.forms.taking import TakeForm
from placement.models import Device, Node, Role
from placement.selectors import access, device, devices, hardware, kept
from placement.selectors.device import PoolPage
from placement.selectors.queue import digest
from placement.views.door import door

RANGES = {"10m": "10 min", "1h": "1 h", "24h": "24 h", "30d": "30 d"}
STEPS = {1: "each second", 10: "the fullest second of each 10 s", 300: "the fullest second of each 5 min"}

_kept: kept.Kept[PoolPage | None] = kept.Kept()


@door()
def page(request: HttpRequest, node: str, pool: str) -> HttpResponse:
    """Show one pool."""
    return show(request, _row(node, pool), None)


@door(part_of="device-page")
def fragment(request: HttpRequest, node: str, pool: str) -> HttpResponse:
    """Return the part that changes, 204 when the page shows it already."""
    found, version = _live(request, _row(node, pool), anyhow=kept.POLLED)
    if request.GET.get("v") == version:
        return HttpResponse(status=204)
    return render(request, "placement/_device.html", {"page": found, "version": version, "node": node, "pool": pool})


@door()
def series(request: HttpRequest, node: str, pool: str) -> HttpResponse:
    """Return a chart's data: all of a range, or what came after ``since`` (unix seconds); ``small`` has fewer lines."""
    if not devices.pool_exists(node, pool):
        raise Http404("There is no such pool.")
    span = history.SPANS.get(request.GET.get("range", "10m"))
    since = request.GET.get("since")
    if span is None or (since is not None and not (since.isascii() and since.isdecimal() and len(since) < 12)):
        sentence = f"range is one of {', '.join(history.SPANS)}; since is in whole unix seconds."
        return JsonResponse({"error": {"code": "bad_request", "message": sentence}}, status=400)
    now = int(time.time())
    found = history.series(node, pool, span, now, int(since) if since else None)
    answer = pools.figure(
        found,
        device.names(found.owners),
        devices.declared(node, pool),
        shown=(now - span.seconds, now),
        whole="small" not in request.GET,
        most=pools.MOST if since is None else len(found.owners),  # whoever asked knows who is summed
        marks=hardware.marks(pool, now - span.seconds) if since is None else (),
    )
    return JsonResponse({**answer, "says": STEPS.get(found.step, f"each {found.step} s")})


@door()
def table(request: HttpRequest, node: str, pool: str) -> HttpResponseBase:
    """Send all points of a range as CSV, at the finest step that is kept so long."""
    name, span, word = _asked(request, node, pool)
    owners, points = history.finest(node, pool, span, int(time.time()))
    lines = export.table(owners, device.names(owners), points)
    return _file(StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8"), f"{name}-{word}.csv")


@door()
def drawing(request: HttpRequest, node: str, pool: str) -> HttpResponse:
    """Send the chart of a range as one page that opens without this service."""
    name, span, word = _asked(request, node, pool)
    now = int(time.time())
    found = history.series(node, pool, span, now)
    figure = pools.figure(
        found, device.names(found.owners), devices.declared(node, pool), shown=(now - span.seconds, now)
    )
    written = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now))
    note = f"{RANGES[word]} until {written}; {STEPS.get(found.step, '')}. Bytes in GiB."
    whole = export.page(figure, f"{name} of {node}", note)
    return _file(HttpResponse(whole, content_type="text/html; charset=utf-8"), f"{name}-{word}.html")


def show(request: HttpRequest, row: Device | Node, form: Declaration | None) -> HttpResponse:
    """Return the page, with a form that was sent and is wrong, or a fresh one."""
    node, pool = (row.node.name, row.uuid) if isinstance(row, Device) else (row.name, RAM)
    found, version = _live(request, row)
    span = request.GET.get("range", "10m")
    refused = form is not None
    if form is None and access.at_least(request.user, Role.ADMIN):
        form = form_of(row) if isinstance(row, Device) else NodeForm(node=row)
    operates = access.at_least(request.user, Role.OPERATOR)
    context: dict[str, Any] = {
        "row": row,
        "kind": "device" if isinstance(row, Device) else "node",
        "form": form,
        "page": found,
        "version": version,
        "node": node,
        "pool": pool,
        "siblings": device.siblings(node, pool),
        "range": span if span in RANGES else "10m",
        "ranges": RANGES.items(),
        "operator": operates,
        "take": TakeForm() if access.at_least(request.user, Role.SUBMITTER) else None,
        "events": device.events(row) if operates else None,
    }
    return render(request, "placement/device.html", context, status=422 if refused else 200)


def _row(node: str, pool: str) -> Device | Node:
    row = devices.by_key().get((node, pool))
    if row is None:
        raise Http404("There is no such pool.")
    return row


def _live(request: HttpRequest, row: Device | Node, *, anyhow: float = 0.0) -> tuple[PoolPage, str]:
    operates = access.at_least(request.user, Role.OPERATOR)
    found = _kept.get(
        (type(row).__name__, row.pk, operates),
        lambda: device.page(row, 0, sees_commands=operates),
        anyhow=anyhow,
    )
    if found is None:
        raise Http404("There is no such pool any more.")
    return found, digest(found)


def _asked(request: HttpRequest, node: str, pool: str) -> tuple[str, history.Span, str]:
    """Return the pool's name, fit for a file, and the range that is asked for."""
    word = request.GET.get("range", "10m")
    if not devices.pool_exists(node, pool) or word not in RANGES:
        raise Http404(f"There is no such pool, or no such range; ranges are {', '.join(RANGES)}.")
    row = devices.by_key().get((node, pool))
    name = row.name if isinstance(row, Device) else f"{node}-{pool}"
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in name)
    return plain.lstrip(".") or "pool", history.SPANS[word], word


def _file(answer: HttpResponseBase, name: str) -> Any:
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
