"""An NVIDIA driver without a GPU: real pynvml on a small C library whose machine is a text file.

folder = build(tmp_path)
state = State(tmp_path / "nvml.txt")
state.write([Device("GPU-a", total=24 * GiB, used=3 * GiB, compute=[(pid, 3 * GiB)])])
subprocess.run([...], env={**os.environ, **state.environ(folder)})
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MIB = 2**20
NO_INSTANCE = 0xFFFFFFFF

UNINITIALIZED, NOT_SUPPORTED, NO_PERMISSION = 1, 3, 4
DRIVER_NOT_LOADED, GPU_IS_LOST, LIB_RM_VERSION_MISMATCH = 9, 15, 18

_built: dict[tuple[str, ...], Path] = {}


def build(folder: Path, *, defines: Sequence[str] = ()) -> Path:
    """Return a folder with libnvidia-ml.so.1, compiled once a process; ``defines``: WITHOUT_MEMORY_V2, _LIMITS."""
    key = tuple(defines)
    if key not in _built:
        place = Path(tempfile.mkdtemp(prefix="nvml-stub-"))
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        source = Path(__file__).with_name("stub.c")
        command = ["cc", "-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-Wl,-soname,libnvidia-ml.so.1"]
        command += [f"-D{name}" for name in defines]
        subprocess.run([*command, "-o", place / "libnvidia-ml.so.1", source], check=True)
        _built[key] = place / "libnvidia-ml.so.1"
    target = folder / ("nvml" + "".join(f"-{name}" for name in defines))
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(_built[key], target / "libnvidia-ml.so.1")
    return target


@dataclass
class Device:
    """One device. Bytes; ``used`` without ``reserved``; a process is (pid, bytes or None[, instances])."""

    uuid: str
    total: int = 24576 * MIB
    used: int = 0
    reserved: int = 0
    name: str = "NVIDIA Stub"
    compute: list[tuple[int | None, ...]] = field(default_factory=list)
    graphics: list[tuple[int | None, ...]] = field(default_factory=list)
    mps: list[tuple[int | None, ...]] = field(default_factory=list)
    sm: list[tuple[int, int]] = field(default_factory=list)  # (pid, percent)
    busy: int | None = 0  # percent
    fail: int = 0  # every call about this device answers this error
    fail_memory: int = 0
    mig: bool = False  # on: ``parts`` are its instances, each at its place, None where there is none
    parts: list[Device | None] = field(default_factory=list)


class State:
    """The file that the library reads at each call."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)

    def kept_limits(self) -> list[list[str]]:
        """Return what was set per group, oldest first: [device, group, soft, hard]."""
        kept = Path(f"{self.path}.limits")
        return [line.split() for line in kept.read_text().splitlines()] if kept.exists() else []

    def environ(self, library: Path) -> dict[str, str]:
        """Return the variables that make a new process meet this machine."""
        return {"LD_LIBRARY_PATH": str(library), "NVML_STUB_STATE": str(self.path)}

    def write(
        self,
        devices: Sequence[Device] = (),
        *,
        init: int = 0,
        every: int = 0,
        missing: Sequence[str] = (),
        block: tuple[int, float] | None = None,
        limits: int = 0,
        groups: Mapping[str, int] | None = None,
    ) -> None:
        """Replace the machine at once. ``block``: (the nth memory call of a process or 0 for every one, seconds).

        ``limits``: the answer to setting one per group; ``groups``: control group to the bytes that it uses.
        """
        lines = [f"init {init}", f"every {every}", *(f"missing {name}" for name in missing), f"limits {limits}"]
        lines += [f"group {path} {size}" for path, size in (groups or {}).items()]
        if block is not None:
            lines.append(f"block {block[0]} {block[1]}")
        whole = [(device, f"device {device.uuid}") for device in devices]
        parts = [
            (part, f"part {part.uuid} {device.uuid} {place}")
            for device in devices
            for place, part in enumerate(device.parts)
            if part is not None
        ]
        lines += [f"mig {device.uuid}" for device in devices if device.mig]
        for device, head in [*whole, *parts]:
            busy = -1 if device.busy is None else device.busy
            lines.append(
                f"{head} {device.total} {device.used} {device.reserved} "
                f"{device.fail} {device.fail_memory} {busy} {device.name}"
            )
            for kind in ("compute", "graphics", "mps"):
                for pid, size, *instances in getattr(device, kind):
                    gpu, part = instances or (NO_INSTANCE, NO_INSTANCE)
                    shown = -1 if size is None else size
                    lines.append(f"{kind} {device.uuid} {pid} {shown} {gpu} {part}")
            lines += [f"sm {device.uuid} {pid} {percent} 0 0" for pid, percent in device.sm]
        temporary = self.path.with_suffix(".new")
        temporary.write_text("\n".join(lines) + "\n")
        os.replace(temporary, self.path)
