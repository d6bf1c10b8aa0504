"""A wait cycle in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from calibration.domain.resources import gib
from placement.domain.leasing.cycles import Cycle, Link
from placement.domain.leasing.leases import Part
from placement.domain.world.asks import Ask
from placement.domain.world.devices import DeviceKey
from placement.domain.world.text import names as listed


def told(cycle: Cycle) -> str:
    """Return who holds what and waits for what, round the cycle, and what is done about it."""
    links = {link.request: link for link in cycle.links}
    if len(cycle.ring) < 2:
        return f"{_link(links[cycle.ring[0]], cycle.names, waits='asks')}: it would wait for itself."
    around = "; ".join(_link(links[number], cycle.names) for number in cycle.ring)
    return f"{around}. {_done(cycle, links)}"


def _link(link: Link, called: dict[DeviceKey, str], waits: str = "waits") -> str:
    holds = _held(link.holds, called) or "nothing"
    return f"job {link.job} holds {holds} and {waits} for {asked(link.ask, [called[d] for d in link.devices])}"


def _held(parts: Sequence[Part], called: dict[DeviceKey, str]) -> str:
    sizes: dict[DeviceKey, int] = {}
    for part in parts:
        sizes[part.device] = sizes.get(part.device, 0) + part.bytes
    return listed([f"{gib(size)} on {called.get(device, device[1])}" for device, size in sizes.items()])


def wish(ask: Ask) -> str:
    """Return an ask in a few words, of whatever devices there are: by its kind and backend."""
    if ask.device_id is not None:
        return asked(ask, [f"{ask.kind}{ask.device_id}"])
    kind = f"{ask.backend.upper()} {ask.kind.upper()}"
    return asked(ask, [f"{kind}s"]).replace(" of ", " ", 1) if ask.max_devices > 1 else asked(ask, [f"a {kind}"])


def asked(ask: Ask, devices: Sequence[str]) -> str:
    """Return an ask in a few words, with the devices that could serve it."""
    amount = gib(ask.group_bytes) if ask.group_bytes or not ask.per_device_bytes else ""
    each = f"{gib(ask.per_device_bytes)} each" if ask.per_device_bytes and ask.max_devices > 1 else ""
    if ask.per_device_bytes and not each:
        amount = gib(ask.group_bytes + ask.per_device_bytes)
    size = " and ".join(part for part in (amount, each) if part)
    few, many = ask.min_devices, ask.max_devices
    number = "" if many == 1 else f" {few} of" if few == many else f" {few} to {many} of"
    where = (
        devices[0] if len(devices) == 1 else f"{', '.join(devices[:-1])} or {devices[-1]}" if devices else "no device"
    )
    return f"{size} on{number} {where}{', alone' if ask.exclusive else ''}"


def _done(cycle: Cycle, links: dict[int, Link]) -> str:
    if cycle.revoked:
        who = listed([f"“{v.session}” of job {v.job}" for v in cycle.revoked])
        runs = "is" if len(cycle.revoked) == 1 else "are"
        return f"{who} {runs} run again: that loses the least."
    who = listed([f"job {links[number].job}" for number in cycle.refused])
    return f"None of the steps that would help can be run again; the youngest request is refused, that of {who}."
