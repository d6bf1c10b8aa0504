"""What has to change in the declared devices of a node after a look at the machine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from calibration.domain.resources import gib
from calibration.domain.samples import PoolSample, PoolState
from placement.domain.declaring.declarations import folded

_CLOSED = (PoolState.HEADING, PoolState.UNMEASURED)  # there, and no place for a job: declared so that it is seen
_TELLS = (PoolState.OK, PoolState.UNSUPPORTED, *_CLOSED)


@dataclass(frozen=True, slots=True)
class Known:
    """A declared device, as stored."""

    uuid: str
    node: str
    name: str
    index: int
    model: str
    backend: str
    declared: int
    measurable: bool
    simulated: bool
    retired: bool
    parent: str = ""
    heading: bool = False
    shares: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """The fields of one device to store; ``new`` where it is not declared yet. ``sentence`` tells people."""

    uuid: str
    fields: Mapping[str, str | int | bool]
    sentence: str
    new: bool = False


@dataclass(slots=True)
class _Names:
    """Names in use on the node; a number is given once."""

    taken: set[str] = field(default_factory=set)  # folded

    def take(self, wanted: str) -> str:
        name, number = wanted, 0
        while folded(name) in self.taken:
            # An instance beside the one whose place it took keeps the place in its name.
            name, number = f"{wanted}-{number + 2}" if "." in wanted else f"gpu{number}", number + 1
        self.taken.add(folded(name))
        return name


def changes(
    node: str, known: Sequence[Known], found: Sequence[PoolSample], leased: Collection[str] = ()
) -> list[Change]:
    """Return what to store, [] when nothing has changed. ``known`` may hold devices of other nodes too.

    A new device is declared with what it reports; a known one keeps its name and declaration, whatever its
    number is now. A real device that is missing stays: it is lost, not gone. A simulated one retires, and so does an
    instance that was removed, once nobody has it ``leased``.
    """
    by_uuid = {device.uuid: device for device in known}
    here = {pool.pool for pool in found}
    over = {pool.pool for pool in found if pool.state is PoolState.GONE and pool.pool not in leased}
    names = _Names({folded(d.name) for d in known if d.node == node and not d.retired and d.uuid not in over})
    result = [
        Change(d.uuid, {"retired": True}, f"{d.name} is gone: its instance was removed.")
        for d in known
        if d.uuid in over and d.node == node and not d.retired
    ]
    for pool in found:
        device = by_uuid.get(pool.pool)
        change = _declare(node, pool, names) if device is None else _update(node, device, pool, names)
        if change is not None:
            result.append(change)
    for device in known:
        if device.node == node and device.simulated and not device.retired and device.uuid not in here:
            result.append(Change(device.uuid, {"retired": True}, f"{device.name} is no longer simulated here."))
    return result


def _declare(node: str, pool: PoolSample, names: _Names) -> Change | None:
    closed = pool.state in _CLOSED
    if pool.state not in _TELLS or (pool.total is None and not closed):
        return None  # nothing to declare it with yet; the next good reading does
    fields = _as_listed(node, pool) | {"name": names.take(pool.name), "declared": pool.total or 0}
    said = f"{fields['name']} found: {pool.model or pool.pool}, "
    said += f"{pool.message}." if closed or pool.shares else f"{gib(pool.total)} declared."
    return Change(pool.pool, fields, said, new=True)


def _update(node: str, device: Known, pool: PoolSample, names: _Names) -> Change | None:
    if pool.state not in _TELLS:
        return None
    fields: dict[str, str | int | bool] = {}
    for name, value in _as_listed(node, pool).items():
        if getattr(device, name) != value:
            fields[name] = value
    said = f"{device.name} is listed as number {pool.index} now: {pool.model or pool.pool}."
    if pool.total and not device.declared and pool.state is PoolState.OK:
        fields["declared"] = pool.total  # it could not be measured before
        said = f"{device.name} can be measured now: {gib(pool.total)} declared."
    elif {"heading", "shares", "parent"} & fields.keys():
        said = f"{device.name} is read in another way now: {pool.message or pool.model or pool.pool}."
    if device.retired or device.node != node:
        fields["name"] = names.take(device.name)
        said = f"{fields['name']} is back: {pool.model or pool.pool}."
    if pool.simulated and "model" in fields and pool.total is not None:
        fields["declared"] = pool.total  # its size is an option of the start: another one is another device
        said = f"{device.name} is simulated with {gib(pool.total)} now."
    return Change(device.uuid, fields, said) if fields else None


def _as_listed(node: str, pool: PoolSample) -> dict[str, str | int | bool]:
    listed: dict[str, str | int | bool] = {
        "node": node,
        "model": pool.model[:100],
        "simulated": pool.simulated,
        "measurable": pool.state is not PoolState.UNSUPPORTED,
        "retired": False,
        "parent": pool.parent,
        "heading": pool.state is PoolState.HEADING,
        "shares": pool.shares,
    }
    if pool.index is not None:
        listed["index"] = pool.index
    if pool.backend:
        listed["backend"] = pool.backend[:16]
    return listed
