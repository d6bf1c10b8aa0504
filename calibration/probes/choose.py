"""The instrument of one node: which probes it has, and one look through all of them."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from calibration.domain.one_pool import sharing
from calibration.domain.samples import RAM, PoolSample, PoolState, ProcessSample, Reading
from calibration.probes.cgroup import RamCapacity, ram_capacity
from calibration.probes.guard import Guarded
from calibration.probes.nvml import Nvml, NvmlLook
from calibration.probes.procfs import ProcWalk, boot_id
from calibration.probes.pss import PssReader, exact_sizes
from calibration.probes.simulated import SimulatedDevices

ProbeLine = tuple[str, bool, str]
"""(what is probed, whether it works, one sentence)."""

_SWEEP_EVERY = 60  # readings


class Instrument:
    """Reads one node. Keeps caches between readings, so one instrument serves one loop at a time.

    ``simulate`` ("2x24GiB") replaces the real devices, so that no job meets a card it was not measured on.
    ``expected`` are devices known from before: they are in every reading, whether they answer or not.
    """

    def __init__(
        self,
        node: str,
        *,
        simulate: str = "",
        simulated_dir: str | os.PathLike[str] | None = None,
        proc_root: str = "/proc",
        cgroup_root: str = "/sys/fs/cgroup",
        sys_root: str = "/sys",
        nvml: bool = True,
        expected: Iterable[PoolSample] = (),
        pss_every_s: float = 5.0,
        pss_budget_ms: float = 50.0,
    ) -> None:
        """Raises ValueError for a simulation that cannot be understood or has no folder."""
        if simulate and simulated_dir is None:
            raise ValueError("simulated devices need a folder: simulated_dir is not set")
        self.node = node
        self.proc_root, self.cgroup_root, self.sys_root = proc_root, cgroup_root, sys_root
        self._boot_id = boot_id(proc_root)
        self._walk = ProcWalk(proc_root)
        self._pss = PssReader(proc_root, every_s=pss_every_s, budget_ms=pss_budget_ms)
        self._expected = [pool for pool in expected if not pool.simulated]
        self.simulated = SimulatedDevices(simulated_dir, simulate, node) if simulate and simulated_dir else None
        self._nvml: Guarded[NvmlLook] | None = None
        self._driver: Nvml | None = None
        if nvml and self.simulated is None:
            self._driver = Nvml(expected=self._expected)
            self._nvml = Guarded(self._driver.look)
        self._count = 0
        self._sizes: tuple[int, ...] = ()  # of devices, as last read
        self.one_pool: frozenset[str] = frozenset()  # devices of which an admin says that they share main memory

    def forget(self, uuids: Collection[str]) -> None:
        """Leave devices that are gone for good out of what is read."""
        self._expected = [pool for pool in self._expected if pool.pool not in uuids]
        if self._driver is not None:
            self._driver.forget(uuids)

    def read(self, owned: Collection[int] = (), timeout_s: float = 0.5) -> Reading:
        """Return one look. ``owned`` are pids whose memory is read exactly, their children with them.

        Waits at most ``timeout_s`` for a driver. A device whose figures are older keeps the ``read_at`` they
        were read at. Never raises for a process or a device; OSError when /proc cannot be listed at all.
        """
        began = time.perf_counter()
        processes = self._walk.walk()
        processes.update(self._pss.apply(processes, with_descendants(processes, owned)))
        devices, notes = self._devices(timeout_s)
        self._sizes = tuple(d.total for d in devices if d.total and not d.simulated) or self._sizes
        capacity = self._capacity()
        ram = _ram_pool(capacity, time.monotonic())
        pools = sharing({pool.pool: pool for pool in (ram, *devices)}, self.one_pool)
        return Reading(
            node=self.node,
            boot_id=self._boot_id,
            at=time.monotonic(),  # the last step, so that no pool seems to have been read after it
            wall=time.time(),
            pools=pools,
            processes=_with_vram(processes, devices),
            notes=(*capacity.remarks, *notes, *self._pss_note()),
            capacity_note=capacity.note,
            cost_ms=(time.perf_counter() - began) * 1000,
        )

    def needs(self, pids: Collection[int]) -> int | None:
        """Return the bytes of RAM that these processes need now, in between two looks; None where nobody knows."""
        return self._pss.now(pids)

    def ram(self) -> PoolSample:
        """Return main memory alone, now: a few short reads."""
        return _ram_pool(self._capacity(), time.monotonic())

    def _capacity(self) -> RamCapacity:
        return ram_capacity(self.proc_root, self.cgroup_root, self.sys_root, self._sizes)

    def probe_report(self) -> list[ProbeLine]:
        """Return what works on this machine, one line a probe, for a person who misses something."""
        reading = self.read(timeout_s=2.0)
        ram, listed = reading.pools[RAM], os.getpid() in reading.processes
        exact = exact_sizes(self.proc_root)
        lines: list[ProbeLine] = [
            ("processes", listed, f"{len(reading.processes)} processes read in {self.proc_root}"),
            (
                "process memory",
                exact,
                "proportional sizes are exact"
                if exact
                else "resident sizes only: "
                "smaps_rollup of own processes cannot be read, so shared pages count more than once",
            ),
            ("main memory", ram.state is PoolState.OK, _ram_sentence(ram, reading.capacity_note)),
        ]
        devices = [pool for pool in reading.pools.values() if pool.kind == "vram"]
        kind = "simulated devices" if self.simulated else "NVIDIA devices"
        if not devices:
            answered = self.simulated is not None or self._nvml is None
            word = "none asked for" if answered else "; ".join(reading.notes) or "none"
            lines.append((kind, answered, word))
        for pool in devices:
            size = "size unknown" if pool.total is None else f"{pool.total / 2**30:.1f} GiB"
            word = f"{pool.name} {pool.model} {pool.pool}, {size}"
            parts = any(one.parent == pool.pool for one in devices)  # then its own figures are none of ours to read
            works = pool.state is PoolState.OK or (pool.state is PoolState.HEADING and parts)
            lines.append((kind, works, f"{word}: {pool.message or pool.state.value}"))
        return lines

    def _devices(self, timeout_s: float) -> tuple[list[PoolSample], list[str]]:
        if self.simulated is not None:
            self._count += 1
            if self._count % _SWEEP_EVERY == 0:
                self.simulated.sweep()
            return self.simulated.look(), []
        if self._nvml is None:
            return [_unread(pool, "NVIDIA devices are not read here") for pool in self._expected], []
        look, _age, stuck = self._nvml.look(timeout_s)
        word = f"the NVIDIA driver has not answered a call for more than {timeout_s:g} s" if stuck else ""
        word = word or (self._nvml.error and f"the NVIDIA driver could not be asked: {self._nvml.error}")
        if look is None:
            return [_unread(pool, word) for pool in self._expected], [word]
        notes = [*([look.message] if look.message else []), *look.notes, *([word] if word else [])]
        if not word:
            return look.pools, notes
        return [replace(pool, message=word) for pool in look.pools], notes

    def _pss_note(self) -> tuple[str, ...]:
        left = self._pss.left_over
        return (f"{left} exact memory readings put off to the next second: too many for one",) if left else ()


def with_descendants(processes: Mapping[int, ProcessSample], owned: Collection[int]) -> set[int]:
    """Return the owned pids and whatever they have started since their owner was last looked at."""
    found = {pid for pid in owned if pid in processes}
    if not found:
        return found
    children: dict[int, list[int]] = {}
    for pid, sample in processes.items():
        children.setdefault(sample.ppid, []).append(pid)
    todo = list(found)
    while todo:
        for pid in children.get(todo.pop(), ()):
            if pid not in found:
                found.add(pid)
                todo.append(pid)
    return found


def _with_vram(processes: dict[int, ProcessSample], devices: Iterable[PoolSample]) -> dict[int, ProcessSample]:
    vram: dict[int, dict[str, int | None]] = {}
    for pool in devices:
        for pid, size in pool.processes:
            vram.setdefault(pid, {})[pool.pool] = size
    for pid, sizes in vram.items():
        if pid in processes:  # one that has ended since stays in the device's own list
            processes[pid] = replace(processes[pid], vram=sizes)
    return processes


def _unread(pool: PoolSample, word: str) -> PoolSample:
    return replace(pool, state=PoolState.UNREADABLE, message=word, processes=(), busy=None)


def _ram_pool(capacity: RamCapacity, at: float) -> PoolSample:
    total, free = capacity.total, capacity.available
    if total is None or free is None:
        word = "; ".join(capacity.remarks) or "the memory of this machine could not be read"
        return PoolSample(RAM, "ram", "RAM", PoolState.UNREADABLE, total=total, message=word)
    used = total - free
    return PoolSample(
        RAM, "ram", "RAM", PoolState.OK, total=total, free=free, used=used, read_at=at, files=capacity.files
    )


def _ram_sentence(ram: PoolSample, note: str) -> str:
    if ram.total is None or ram.free is None:
        return ram.message
    whose = "of this host" if note == "host" else f"allowed by the control group {note}"
    return f"{ram.total / 2**30:.1f} GiB {whose}, {ram.free / 2**30:.1f} GiB available"
