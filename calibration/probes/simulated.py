"""Simulated devices as the instrument sees them: real processes whose device memory is made up."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from calibration.domain.samples import PoolSample, PoolState
from calibration.probes import simgpu

LARGEST = 1 << 50  # bytes of one device; a sum of larger ones would fit into no database


def parse_spec(spec: str) -> list[int]:
    """Return the capacity in bytes of each device of a text like ``2x24GiB,1x80GiB``.

    Raises ValueError with a sentence that shows the form.
    """
    capacities: list[int] = []
    for part in filter(None, (piece.strip() for piece in spec.split(","))):
        match = re.fullmatch(r"(?:(\d{1,3})\s*[x×]\s*)?(\d.*)", part)
        try:
            size = simgpu.parse_size(match[2]) if match else 0
        except ValueError:
            size = 0
        count = int(match[1] or 1) if match else 0
        if not count or not 0 < size <= LARGEST:
            raise ValueError(f"{part!r} is not a number of devices and their memory, such as 2x24GiB or 1x80GiB")
        capacities += [size] * count
    return capacities


class SimulatedDevices:
    """Devices of a made-up size in a folder that every account may write to, as all may use a GPU."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        spec: str,
        node: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the folder ready. Raises ValueError for the text and OSError for the folder."""
        self.folder = Path(folder)
        self._clock = clock
        name = re.sub(r"[^A-Za-z0-9.-]", "-", node)
        self.devices = [
            simgpu.Spec(f"SIM-{name}-{index}", index, capacity) for index, capacity in enumerate(parse_spec(spec))
        ]
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o1777)
        for device in self.devices:
            claims = self.folder / device.uuid
            claims.mkdir(exist_ok=True)
            claims.chmod(0o1777)
            # Made here, and opened there without creating: a lock is the service's, not the first job's.
            lock = self.folder / f"{device.uuid}.lock"
            lock.touch()
            lock.chmod(0o644)
        table = self.folder / "devices.json"
        entries = [{"uuid": d.uuid, "index": d.number, "capacity": d.capacity} for d in self.devices]
        simgpu.write_file(str(table), json.dumps(entries, indent=1))
        table.chmod(0o644)

    def look(self) -> list[PoolSample]:
        """Return every device with what live processes hold on it. Never waits for a job, never raises."""
        return [self._pool(device) for device in self.devices]

    def sweep(self) -> None:
        """Remove what dead processes left behind; nothing counts it, it only takes room."""
        for device in self.devices:
            for path in (self.folder / device.uuid).glob("*.*"):
                pid, _, ticks = path.name.partition(".")
                if pid.isdigit() and str(simgpu.start_ticks(int(pid))) != ticks:
                    with contextlib.suppress(OSError):
                        path.unlink()

    def _pool(self, device: simgpu.Spec) -> PoolSample:
        pool = PoolSample(
            pool=device.uuid,
            kind="vram",
            name=f"gpu{device.number}",
            state=PoolState.UNREADABLE,
            total=device.capacity,
            index=device.number,
            model=f"simulated {device.capacity / 2**30:.4g} GiB",
            backend="CUDA",
            simulated=True,
        )
        at = self._clock()
        try:
            claims = sorted(simgpu.claims(str(self.folder / device.uuid)))
        except OSError as error:
            return replace(pool, message=f"cannot be measured: {error}")
        used = sum(claim.size for claim in claims)
        return replace(
            pool,
            state=PoolState.OK,
            free=max(0, device.capacity - used),
            used=used,
            read_at=at,
            busy=min(1.0, sum((claim.busy for claim in claims), 0.0)),
            processes=tuple((claim.pid, claim.size) for claim in claims),
            process_busy=tuple((claim.pid, claim.busy) for claim in claims),
        )
