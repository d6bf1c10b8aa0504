"""What the machine has of main memory: the host's figures, cut to the limits of our own control groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from calibration.probes.numa import device_nodes

HOST = "host"


@dataclass(frozen=True, slots=True)
class RamCapacity:
    """Main memory in bytes; None where it could not be read.

    ``note`` is what made the total: "host", or the path of the limiting group. ``reclaimable`` is the part of
    ``available`` that a ZFS cache holds now. ``remarks`` are sentences about what could not be read. ``files`` are
    the host's files that live in memory (/dev/shm and other tmpfs) and shared segments, whoever made them.
    """

    total: int | None
    available: int | None
    note: str = HOST
    reclaimable: int = 0
    remarks: tuple[str, ...] = ()
    files: int | None = None


@dataclass(frozen=True, slots=True)
class _Group:
    """One control group with memory files: where it is, how it is called, and the names of its files."""

    folder: Path
    name: str
    limit: str
    current: str
    cache_prefix: str  # v1 tells its own and its children's cache apart; the limit binds the sum


def ram_capacity(
    proc_root: str = "/proc",
    cgroup_root: str = "/sys/fs/cgroup",
    sys_root: str = "/sys",
    devices: Collection[int] = (),
) -> RamCapacity:
    """Return total = the smallest of host and group limits, and available = the smallest of what each leaves.

    File cache and reclaimable slab of a group count as available; a group whose cache cannot be read gives
    limit - current, which is too little rather than too much. ``devices`` are sizes of devices: a node of the
    machine without processors that has one of them is that device's memory and no RAM. Never raises.
    """
    remarks: list[str] = []
    host, available, reclaimable, files = _host(Path(proc_root), remarks)
    for node in device_nodes(sys_root, devices):
        host = None if host is None else max(0, host - node.total)
        available = None if available is None else max(0, available - node.available)
        remarks.append(f"memory of node {node.number}, {node.total / 2**30:.1f} GiB, is a device's and no RAM")
    total, note = host, HOST
    for group in _groups(Path(proc_root), Path(cgroup_root)):
        limit = _limit(group, remarks)
        if limit is None or host is None or limit >= host:
            continue  # a limit above the host's memory never binds
        if total is None or limit < total:
            total, note = limit, group.name
        left = _left(group, limit, remarks)
        available = None if left is None or available is None else min(available, left)
    if available is not None and total is not None:
        available = min(available, total)
    return RamCapacity(total, available, note, reclaimable, tuple(remarks), files)


def _host(proc: Path, remarks: list[str]) -> tuple[int | None, int | None, int, int | None]:
    found: dict[str, int] = {}
    try:
        for line in (proc / "meminfo").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in ("MemTotal", "MemAvailable", "Shmem"):
                found[name] = int(rest.split()[0]) * 1024
    except (OSError, ValueError, IndexError) as error:
        remarks.append(f"the memory of this machine could not be read: {error}")
    cache = _zfs_cache(proc)
    available = found.get("MemAvailable")
    if cache:
        gib = cache / 2**30
        remarks.append(f"{gib:.1f} GiB held by the ZFS cache can be taken back and are counted as available")
    free = None if available is None else available + cache
    return found.get("MemTotal"), free, cache, found.get("Shmem")


def _zfs_cache(proc: Path) -> int:
    """Return bytes that ZFS gives back under pressure; the kernel does not count them as available."""
    found: dict[str, int] = {}
    try:
        for line in (proc / "spl/kstat/zfs/arcstats").read_text().splitlines():
            fields = line.split()
            if len(fields) == 3 and fields[0] in ("size", "c_min"):
                found[fields[0]] = int(fields[2])
    except (OSError, ValueError):
        return 0
    return max(0, found["size"] - found["c_min"]) if len(found) == 2 else 0


def _groups(proc: Path, root: Path) -> Iterator[_Group]:
    """Yield our own group and its ancestors as far as they are visible from here, the root last.

    In a container the path may name folders that only the host sees; those are passed over, and the root of
    what is mounted is the container's own group.
    """
    try:
        lines = (proc / "self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        parts = PurePosixPath(path).relative_to("/").parts if path.startswith("/") else ()
        parts = tuple(part for part in parts if part != "..")
        if hierarchy == "0" and not controllers:
            base = root if (root / "cgroup.controllers").exists() else root / "unified"
            names = ("memory.max", "memory.current", "")
        elif "memory" in controllers.split(","):
            base = root / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
        else:
            continue
        for depth in range(len(parts), -1, -1):
            folder = base.joinpath(*parts[:depth])
            if (folder / names[0]).exists():
                yield _Group(folder, "/" + "/".join(parts[:depth]), *names)


def _limit(group: _Group, remarks: list[str]) -> int | None:
    """Return the group's limit in bytes, None where it has none."""
    try:
        text = (group.folder / group.limit).read_text().strip()
        return None if text == "max" else int(text)
    except (OSError, ValueError) as error:
        remarks.append(f"the memory limit of {group.name} could not be read and is not counted: {error}")
        return None


def _left(group: _Group, limit: int, remarks: list[str]) -> int | None:
    """Return limit less what the group holds and cannot give back; None where its use is unknown."""
    try:
        current = int((group.folder / group.current).read_text())
    except (OSError, ValueError) as error:
        remarks.append(f"the memory use of {group.name} could not be read: {error}")
        return None
    cache = 0
    wanted = {f"{group.cache_prefix}{kind}" for kind in ("inactive_file", "active_file")}
    wanted.add("slab_reclaimable")
    try:
        for line in (group.folder / "memory.stat").read_text().splitlines():
            name, _, value = line.partition(" ")
            if name in wanted:
                cache += int(value)
    except (OSError, ValueError) as error:
        cache = 0
        remarks.append(f"the file cache of {group.name} could not be read and counts as used: {error}")
    return max(0, limit - max(0, current - cache))
