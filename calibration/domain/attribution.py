"""Attribution: bytes per owner per pool, from one reading and what is known of owners' processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from .lineage import SERVICE, owners_of
from .resources import known, total
from .samples import RAM, Attribution, Claim, Identity, PoolState, ProcessSample, Reading

__all__ = ["ENDED", "SERVICE", "attribute", "device_use", "elsewhere", "unexplained_growth"]

ENDED = "(ended)"
"""Name shown for a process that the driver still lists though it is gone."""

_DEAD = frozenset("ZXx")
_OUTSIDERS_SHOWN = 5


def attribute(
    reading: Reading,
    claims: Sequence[Claim],
    *,
    marker_of: Callable[[int], str | None] | None = None,
    container_of: Callable[[str], str | None] | None = None,
    service: int | None = None,
) -> Attribution:
    """Return who uses what in this reading. Amounts are bytes; None is unknown, and makes its sum unknown.

    ``marker_of`` reads out of a pid's environment whose it says it is; it is asked only where nothing better
    answers, and proves nothing for an owner that has no process of its own yet. ``container_of`` names the owner that
    the container of a control group's path is labelled with. Main memory of an owner with a group of its own is what
    the kernel counts there, and what its processes outside of it need. Memory of a device that has none of its own is
    use of main memory, too, and no group counts it. A runner's own memory is charged
    to the service, and so are the processes below the pid ``service``, which started the service.
    In a pool that was not read every owner's use is unknown.
    """
    disputes: dict[int, tuple[str, str]] = {}
    rules = owners_of(reading, claims, marker_of, container_of, disputes, service)
    counted = {claim.owner: claim.group_ram for claim in claims if claim.group_ram is not None}
    by_owner: dict[str, list[ProcessSample]] = {claim.owner: [] for claim in claims}
    for pid, (owner, _) in rules.items():
        by_owner.setdefault(owner, []).append(reading.processes[pid])
    owners: dict[str, dict[str, int | None]] = {owner: {} for owner in by_owner}
    external: dict[str, int | None] = {}
    who: dict[str, tuple[tuple[int, str, str, int | None], ...]] = {}
    unexplained: dict[str, int | None] = {}
    held = _amounts(reading)
    taken = _of_main_memory(reading, held)
    for name, pool in reading.pools.items():
        amounts = held[name]
        for owner, processes in by_owner.items():
            if amounts is not None and pool.kind == RAM and owner in counted:
                outside_it = (amounts.get(p.pid, 0) for p in processes if rules[p.pid][1] != "cgroup")
                on_devices = (taken.get(p.pid, 0) for p in processes if rules[p.pid][1] == "cgroup")
                owners[owner][name] = total((counted[owner], *outside_it, *on_devices))
                continue
            owners[owner][name] = None if amounts is None else total(amounts.get(p.pid, 0) for p in processes)
        if amounts is None:
            external[name], who[name], unexplained[name] = None, (), None
            continue
        outside = {pid: amount for pid, amount in amounts.items() if pid not in rules}
        ours = total(owners[owner][name] for owner in owners)
        external[name], unexplained[name] = _rest(pool.used, ours, outside.values())
        who[name] = _largest(reading, outside)
    return Attribution(
        owners=owners,
        members={owner: _alive(reading, processes) for owner, processes in by_owner.items()},
        rules=rules,
        external=external,
        external_who=who,
        unexplained=unexplained,
        exact={
            owner: all(p.ram_exact for p in _living(processes) if owner not in counted or rules[p.pid][1] != "cgroup")
            for owner, processes in by_owner.items()
        },
        amounts={name: amounts for name, amounts in held.items() if amounts is not None},
        cached={owner: known(p.cached for p in processes) for owner, processes in by_owner.items()},
        disputes=disputes,
    )


def device_use(amounts: Mapping[str, int | None], devices: Iterable[str]) -> int | None:
    """Return the bytes used on the fullest of an owner's own devices, None when one of them is unknown."""
    used = [amounts.get(device) for device in devices]
    return None if None in used else max((amount for amount in used if amount is not None), default=0)


def elsewhere(amounts: Mapping[str, int | None], devices: Iterable[str]) -> dict[str, int]:
    """Return the bytes that an owner uses on devices that are not its own; main memory is nobody's device."""
    own = {*devices, RAM}
    return {pool: amount for pool, amount in amounts.items() if pool not in own and amount}


def unexplained_growth(before: int | None, during: int | None, after: int | None) -> int | None:
    """Return the unexplained bytes that came and went with a run, None when one of the figures is unknown."""
    if before is None or during is None or after is None:
        return None
    return max(0, min(during - before, during - after))


def _amounts(reading: Reading) -> dict[str, dict[int, int | None] | None]:
    """Return bytes per pid for each pool, None for one that was not read."""
    found: dict[str, dict[int, int | None] | None] = {
        name: {} if pool.state is PoolState.OK else None for name, pool in reading.pools.items()
    }

    def put(name: str, pid: int, amount: int | None) -> None:
        amounts = found.get(name)
        if amounts is None or reading.pools[name].kind == RAM:
            return
        before = amounts.get(pid)
        # One process in two lists is one process: the larger figure, and a figure beats none.
        amounts[pid] = amount if before is None else before if amount is None else max(before, amount)

    for process in reading.processes.values():
        for name, amount in process.vram.items():
            put(name, process.pid, amount)
    for name, pool in reading.pools.items():
        if found[name] is not None and pool.kind == RAM:
            found[name] = {p.pid: 0 if p.state in _DEAD else p.ram for p in reading.processes.values()}
        for pid, amount in pool.processes:
            put(name, pid, amount)
    ram = found.get(RAM)
    if ram is not None:
        for pid, amount in _of_main_memory(reading, found).items():
            ram[pid] = total((ram.get(pid, 0), amount))
    return found


def _of_main_memory(reading: Reading, held: Mapping[str, Mapping[int, int | None] | None]) -> dict[int, int | None]:
    """Return the bytes per pid on devices that share main memory: what a process holds there is no resident size."""
    found: dict[int, int | None] = {}
    for name, pool in reading.pools.items():
        for pid, amount in (held[name] or {}).items() if pool.shares else ():
            found[pid] = total((found.get(pid, 0), amount))
    return found


def _rest(used: int | None, ours: int | None, outside: Iterable[int | None]) -> tuple[int | None, int | None]:
    """Return what outsiders use and what nothing explains, together no more than ours leave."""
    others = total(outside)
    if used is None or ours is None:
        return others, None
    left = max(0, used - ours)
    if others is None:
        return None, None
    # Resident sizes of outsiders count shared pages several times.
    others = min(others, left)
    return others, left - others


def _largest(reading: Reading, outside: Mapping[int, int | None]) -> tuple[tuple[int, str, str, int | None], ...]:
    found: list[tuple[int, str, str, int | None]] = []
    for pid, amount in outside.items():
        if amount == 0:
            continue
        process = reading.processes.get(pid)
        user = "" if process is None else process.user or ("" if process.uid is None else str(process.uid))
        found.append((pid, user, ENDED if process is None else process.name, amount))
    found.sort(key=lambda one: (one[3] is None, -(one[3] or 0), one[0]))  # unknown sizes last
    return tuple(found[:_OUTSIDERS_SHOWN])


def _living(processes: Iterable[ProcessSample]) -> list[ProcessSample]:
    return [process for process in processes if process.state not in _DEAD]


def _alive(reading: Reading, processes: Iterable[ProcessSample]) -> frozenset[Identity]:
    return frozenset(Identity(reading.boot_id, p.pid, p.start_ticks) for p in _living(processes))
