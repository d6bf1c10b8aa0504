"""Devices: declared by admins, held and drained by operators, their history for everybody."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query

from calibration import selectors as history
from placement.api import devices_told
from placement.api.nouns import Noun
from placement.api.shapes.device import (
    DeviceAnswer,
    DeviceBody,
    DeviceList,
    DeviceMade,
    DeviceRemoved,
    DeviceSaid,
    DrainBody,
    Effects,
    Series,
    SeriesAsked,
)
from placement.api.shapes.kinds import Id
from placement.api.shapes.queue import HoldBody
from placement.domain.errors import NotFound
from placement.models import Device, Role
from placement.selectors import devices
from placement.services import declaring, nodes
from placement.views import wake

noun = Noun("Devices")
SAMPLE = {"declared": "20 GiB", "exclusive_only": False}
BY_HAND = {"kind": "tpu", "backends": ["xla"], "index": 0, "declared": "16 GB", "exclusive_only": True}


@noun.read("/devices", DeviceList)
def listed(request: HttpRequest) -> dict[str, Any]:
    """Return all devices with their newest readings."""
    return {"devices": [device for node in devices_told.nodes(request.user) for device in node["devices"]]}


@noun.read("/devices/{int:device_id}", DeviceAnswer)
def look(request: HttpRequest, device_id: Id) -> dict[str, Any]:
    """Return one device."""
    return {"device": devices_told.device(request.user, _found(device_id))}


@noun.read("/devices/{int:device_id}/series", Series)
def series(request: HttpRequest, device_id: Id, asked: Query[SeriesAsked]) -> dict[str, Any]:
    """Return the history of a device's memory, by owner."""
    row = _found(device_id)
    return of_pool(row.node.name, row.uuid, asked)


@noun.change("/devices/{int:device_id}", DeviceSaid, Role.ADMIN, method="PATCH", sample=SAMPLE)
def declare(request: HttpRequest, device_id: Id, asked: DeviceBody) -> dict[str, Any]:
    """Change what is declared of a device; in force at the next decision."""
    _found(device_id)
    said = nodes.edit_device(request.user, device_id, asked.given(), expected=asked.seen())
    return _done(request, device_id, " ".join(["It is saved.", *said]))


@noun.change("/nodes/{int:node_id}/devices", DeviceSaid, Role.ADMIN, status=201, sample=BY_HAND)
def add(request: HttpRequest, node_id: Id, asked: DeviceMade) -> dict[str, Any]:
    """Declare a device that no probe finds; jobs are put there by its bookings alone."""
    row = declaring.add(request.user, node_id if node_id < 2**63 else 0, asked.given())
    return _done(request, row.pk, f"{row.name} is declared.")


@noun.change("/devices/{int:device_id}", DeviceRemoved, Role.ADMIN, method="DELETE")
def remove(request: HttpRequest, device_id: Id) -> dict[str, Any]:
    """Take back a device that was declared by hand; refused, with who, while somebody holds some of it."""
    said = declaring.remove(request.user, _found(device_id).pk)
    wake.soon()
    return {"message": said}


@noun.change("/devices/{int:device_id}/preview", Effects, Role.ADMIN, sample=SAMPLE)
def preview(request: HttpRequest, device_id: Id, asked: DeviceBody) -> dict[str, Any]:
    """Say what a change would do to running jobs; nothing is changed."""
    return {"effects": nodes.preview_device(_found(device_id), asked.given())}


@noun.change("/devices/{int:device_id}/hold", DeviceSaid, Role.OPERATOR, sample={"why": "new cooler", "hours": 4})
def hold(request: HttpRequest, device_id: Id, asked: HoldBody) -> dict[str, Any]:
    """Let nothing new start on a device, for some hours or until released; what runs goes on."""
    _found(device_id)
    nodes.hold(request.user, "device", device_id, until=until(asked), why=asked.why)
    return _done(request, device_id, "Held: what runs there goes on, nothing new starts.")


@noun.change("/devices/{int:device_id}/release", DeviceSaid, Role.OPERATOR)
def release(request: HttpRequest, device_id: Id) -> dict[str, Any]:
    """End a hold."""
    _found(device_id)
    nodes.release(request.user, "device", device_id)
    return _done(request, device_id, "Released.")


@noun.change("/devices/{int:device_id}/drain", DeviceSaid, Role.OPERATOR, sample={"on": True})
def drain(request: HttpRequest, device_id: Id, asked: DrainBody) -> dict[str, Any]:
    """Let what runs on a device end and nothing new start; or end that."""
    _found(device_id)
    nodes.drain(request.user, "device", device_id, asked.on)
    return _done(request, device_id, drained(asked.on))


def of_pool(node: str, pool: str, asked: SeriesAsked) -> dict[str, Any]:
    """Return a pool's history."""
    found = history.series(node, pool, history.SPANS[asked.range], int(time.time()), asked.since)
    return {
        "step": found.step,
        "at": list(found.at),
        "total": list(found.total),
        "used": list(found.used),
        "booked": list(found.booked),
        "kept": list(found.kept),
        "owners": {owner: list(amounts) for owner, amounts in found.owners.items()},
    }


def until(asked: HoldBody) -> Any:
    """Return when a hold ends, None: when it is released."""
    return timezone.now() + timedelta(hours=asked.hours) if asked.hours else None


def drained(on: bool) -> str:
    """Return what was done."""
    return "Draining: what runs may end, nothing new starts." if on else "Takes new jobs again."


def _found(device_id: int) -> Device:
    row = devices.device(device_id) if device_id < 2**63 else None
    if row is None:
        raise NotFound(f"There is no device {device_id}.")
    return row


def _done(request: HttpRequest, device_id: int, said: str) -> dict[str, Any]:
    wake.soon()
    return {"message": said, "device": devices_told.device(request.user, _found(device_id))}
