"""What the filters of the page "Now" offer."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth import get_user_model

from placement.models import Device, Workload
from placement.selectors import hardware, wording
from placement.selectors.asked import NO_DEVICE, SORTS, STATES, Asked

MOST = 300  # options of one select; whoever is not among them is found by the address or the search

Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Select:
    """One select of the filters with what is chosen in it."""

    name: str
    label: str
    value: str
    options: Options


@dataclass(frozen=True, slots=True)
class Known:
    """What there is to choose from, the same for everybody."""

    users: Options
    workloads: Options
    devices: Options


@dataclass(frozen=True, slots=True)
class Choices:
    """All that the form of filters offers."""

    states: Options
    sorts: Options
    selects: tuple[Select, ...]


def known() -> Known:
    """Return people, workloads and devices by name."""
    people = get_user_model().objects.filter(is_active=True).order_by("username")
    devices = (
        Device.objects.filter(retired=False).select_related("node").order_by("node__name", "by_hand", "index", "name")
    )
    rows = hardware.placeable(devices[:MOST])
    many = len({row.node_id for row in rows}) > 1
    named = tuple((row.uuid, f"{row.name} of {row.node.name}" if many else row.name) for row in rows)
    return Known(
        users=tuple((name, name) for name in people.values_list("username", flat=True)[:MOST]),
        workloads=tuple((n, n) for n in Workload.objects.order_by("name").values_list("name", flat=True)[:MOST]),
        devices=(*named, (NO_DEVICE, "no device")),
    )


def of(asked: Asked, there: Known) -> Choices:
    """Return the form's choices; what is asked for is among them even where nobody offers it."""
    reasons = tuple(wording.CODES.items())
    selects = (
        _select("user", "Owner", asked.user, there.users),
        _select("workload", "Workload", asked.workload, there.workloads),
        _select("device", "Device", asked.device, there.devices),
        _select("reason", "Waits because", asked.reason, reasons),
    )
    return Choices(tuple(STATES.items()), tuple(SORTS.items()), selects)


def _select(name: str, label: str, value: str, options: Options) -> Select:
    if value and value not in dict(options):
        options = ((value, value), *options)
    return Select(name, label, value, options)
