"""A simulated device as a job sees it: memory that a real process says it holds, gone when it dies.

Standard library only and complete in itself, for any Python from 3.8: ``python -S simgpu.py run ...``.
The folder named by TIDEGATE_SIMULATED holds ``devices.json`` and, per device, ``UUID.lock`` and a folder
``UUID/`` with one file ``PID.START_TICKS`` per process: bytes, busy share (0..1) and job in one line of text.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import mmap
import os
import sys
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", 1):
    UNITS[f"{_letter}B"] = UNITS[f"{_letter.lower()}B"] = 1000**_power
    UNITS[f"{_letter}iB"] = 1024**_power


class NoDevice(RuntimeError):
    """There is no such device to be seen from this process."""


class OutOfMemory(RuntimeError):
    """CUDA out of memory."""


class Spec(NamedTuple):
    """One simulated device; ``capacity`` in bytes."""

    uuid: str
    number: int
    capacity: int


class Claim(NamedTuple):
    """What one live process holds on one device, in bytes."""

    pid: int
    size: int
    busy: float
    job: str


class Point(NamedTuple):
    """A level of memory (bytes) from a second on."""

    second: float
    size: int


def parse_size(text: str) -> int:
    """Return bytes of a text like 6GiB, 800MB or 1024. Raises ValueError that names the text."""
    number = text.strip().rstrip("BKMGTkmgti")
    try:
        size = round(float(number) * UNITS[text.strip()[len(number) :]])
    except (ValueError, KeyError, OverflowError):
        raise ValueError(f"{text!r} is not a size: write a number and B, KiB, MiB, GiB, MB or GB") from None
    if size < 0:
        raise ValueError(f"{text!r} is not a size: it is below zero")
    return size


def gib(size: int) -> str:
    """Return bytes for people, in GiB."""
    return f"{size / 2**30:.2f} GiB"


def start_ticks(pid: int) -> int | None:
    """Return when this process started (ticks since boot), None when it has ended or never was."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            raw = file.read()
        fields = raw[raw.rindex(b")") + 2 :].split()
        return None if fields[0] in (b"Z", b"X") else int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def claims(folder: str) -> list[Claim]:
    """Return what live processes hold in a device's folder. A file that cannot be understood is passed over.

    Raises OSError when the folder itself cannot be read.
    """
    found = []
    for name in os.listdir(folder):
        pid, _, ticks = name.partition(".")
        if not (pid.isdigit() and ticks.isdigit()) or start_ticks(int(pid)) != int(ticks):
            continue
        try:
            # Everybody may write in this folder: no waiting on a pipe, no following a link elsewhere.
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(os.path.join(folder, name), flags)
            try:
                size, busy, job = os.read(descriptor, 512).decode().split(" ", 2)
            finally:
                os.close(descriptor)
            claim = Claim(int(pid), int(size), min(1.0, max(0.0, float(busy))), job.strip())
        except (OSError, ValueError):
            continue
        if 0 <= claim.size <= 1 << 50:  # nobody holds more, and no database the sum
            found.append(claim)
    return found


def write_file(path: str, text: str) -> None:
    """Write a file so that a reader sees the old text or the new one, never a part."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{os.urandom(4).hex()}")  # two threads may write at once
    with open(temporary, "w") as file:
        file.write(text)
    os.replace(temporary, path)


def visible(environ: Mapping[str, str]) -> list[Spec]:
    """Return the devices that this environment shows, in its order, as CUDA does it.

    An entry that names no device hides itself and all that follow. Raises NoDevice without a simulation.
    """
    folder = environ.get("TIDEGATE_SIMULATED", "")
    if not folder:
        raise NoDevice("No simulated devices: TIDEGATE_SIMULATED names no folder.")
    try:
        with open(os.path.join(folder, "devices.json")) as file:
            devices = [Spec(d["uuid"], d["index"], d["capacity"]) for d in json.load(file)]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise NoDevice(f"No simulated devices: {folder}/devices.json cannot be read ({error}).") from None
    if "CUDA_VISIBLE_DEVICES" not in environ:
        return devices
    shown: list[Spec] = []
    for entry in environ["CUDA_VISIBLE_DEVICES"].split(","):
        match = [device for device in devices if entry.strip() in (str(device.number), device.uuid)]
        if not match:
            break
        shown.extend(match)
    return shown


class Device:
    """One device of those visible here: by place among them, by UUID, or the first."""

    def __init__(self, which: int | str | None = None, environ: Mapping[str, str] | None = None) -> None:
        """Raises NoDevice with a sentence when there is none."""
        self._environ = os.environ if environ is None else environ
        devices = visible(self._environ)
        if not devices:
            hidden = self._environ.get("CUDA_VISIBLE_DEVICES", "")
            raise NoDevice(f"No CUDA device is visible here: CUDA_VISIBLE_DEVICES is {hidden!r}.")
        place = 0 if which is None else which
        match = [device for number, device in enumerate(devices) if place in (number, device.uuid)]
        if not match:
            raise NoDevice(f"There is no device {which!r} among the {len(devices)} that are visible here.")
        self.uuid, self.index, self.capacity = match[0]
        self.job = self._environ.get("TIDEGATE_JOB_ID", "")
        self.busy = 0.0
        self._folder = os.path.join(self._environ["TIDEGATE_SIMULATED"], self.uuid)

    def free(self) -> int:
        """Return bytes that no live process holds."""
        return max(0, self.capacity - sum(claim.size for claim in claims(self._folder)))

    def hold(self, size: int, busy: float | None = None) -> None:
        """Set what this process holds. Raises OutOfMemory above the device or this job's cap, level kept."""
        size = int(size)
        with self._locked():
            every = claims(self._folder)
            mine = sum(claim.size for claim in every if claim.pid == os.getpid())
            device_free = max(0, self.capacity - sum(claim.size for claim in every))
            asked = size - mine
            if asked > 0:
                job = sum(claim.size for claim in every if claim.job == self.job)
                self._check_cap(asked, job if self.job else mine, device_free)
                if asked > device_free:
                    raise OutOfMemory(
                        f"CUDA out of memory. Asked for {gib(asked)} on simulated gpu{self.index}, which has "
                        f"{gib(self.capacity)} in all and {gib(device_free)} free."
                    )
            self.busy = self.busy if busy is None else busy
            name = f"{os.getpid()}.{start_ticks(os.getpid())}"
            write_file(os.path.join(self._folder, name), f"{size} {self.busy:g} {self.job}\n")

    def _check_cap(self, asked: int, held: int, device_free: int) -> None:
        text = self._environ.get("TIDEGATE_VRAM_CAP_BYTES", "")
        cap = int(text) if text.isdigit() else 0
        if cap <= 0 or held + asked <= cap:
            return
        receipts = self._environ.get("TIDEGATE_RECEIPTS", "")
        if receipts:
            evidence = {"asked": asked, "held": held, "cap": cap, "device_free": device_free}
            text = json.dumps({**evidence, "device": self.uuid})
            with contextlib.suppress(OSError):  # lost evidence must not change what the job meets
                write_file(os.path.join(receipts, f"{os.getpid()}.vram-cap.json"), text)
        raise OutOfMemory(
            f"CUDA out of memory. Asked for {gib(asked)} on simulated gpu{self.index}; this job holds "
            f"{gib(held)} and its cap is {gib(cap)}, while the device has {gib(device_free)} free."
        )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(f"{self._folder}.lock", os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def parse_shape(text: str) -> list[Point]:
    """Return the points of a text like "0:1GiB,5:6GiB"; a bare size holds from the start."""
    points = []
    for part in text.split(","):
        second, colon, size = part.rpartition(":")
        points.append(Point(float(second) if colon else 0.0, parse_size(size)))
    if [point.second for point in points] != sorted(point.second for point in points):
        raise ValueError(f"{text!r} is not a shape: its seconds go back")
    return points


def level(shape: list[Point], at: float, linear: bool) -> int:
    """Return the bytes of a shape at a second: in steps, or along straight lines between its points."""
    before = [point for point in shape if point.second <= at]
    after = [point for point in shape if point.second > at]
    if not before:
        return 0
    (start, low), (stop, high) = before[-1], (after[0] if after else before[-1])
    return low if not linear or stop <= start else int(low + (high - low) * (at - start) / (stop - start))


class Ram:
    """Main memory that is really taken: touched private pages, in pieces so that it can shrink."""

    PIECE = 4 * 2**20

    def __init__(self) -> None:
        self._pieces: list[mmap.mmap] = []

    def hold(self, size: int) -> None:
        """Take or give back until ``size`` bytes are held, to the next whole piece."""
        while len(self._pieces) * self.PIECE >= size + self.PIECE:
            self._pieces.pop().close()
        while len(self._pieces) * self.PIECE < size:
            piece = mmap.mmap(-1, self.PIECE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            piece[:: mmap.PAGESIZE] = b"x" * (self.PIECE // mmap.PAGESIZE)
            self._pieces.append(piece)


def run(options: argparse.Namespace) -> int:
    """Hold memory over time as the options say; return the exit code. Raises NoDevice and OutOfMemory."""
    which = int(options.device) if options.device.isdigit() else options.device
    device = Device(which) if options.shape else None
    end = max((point.second for point in options.shape + options.ram), default=0.0)
    end = end if options.seconds is None else options.seconds
    ram, began, shown = Ram(), time.monotonic(), None
    while True:
        at = time.monotonic() - began
        vram, main_memory = (level(shape, at, options.linear) for shape in (options.shape, options.ram))
        if (vram, main_memory) != shown:
            ram.hold(main_memory)
            place = "no device"
            if device is not None:
                device.hold(vram, options.busy)
                place = f"gpu{device.index} {gib(vram)}, {gib(device.free())} free"
            if options.print:
                sys.stdout.write(f"t={at:.1f} s: {place}; RAM {gib(main_memory)}\n")
                sys.stdout.flush()
            shown = (vram, main_memory)
        if at >= end:
            return int(options.exit)
        time.sleep(min(0.1, max(0.005, end - at)))


def main(arguments: list[str]) -> int:
    """Run the command line; an error that a job would die of is one line on stderr and code 1."""
    parser = argparse.ArgumentParser(prog="simgpu.py", description="A job that holds memory over time.")
    add = parser.add_argument
    add("verb", choices=["run"])
    add("--device", default="0", help="place among the visible devices, or a UUID")
    add("--shape", type=parse_shape, default=[], help="device memory: 0:1GiB,5:6GiB; without: no device")
    add("--ram", type=parse_shape, default=[], help="main memory: 800MiB or 0:1MiB,5:800MiB")
    add("--seconds", type=float, help="how long to run; without: until the last point")
    add("--busy", type=float, default=0.0, help="share of time in which kernels run, 0 to 1")
    add("--linear", action="store_true", help="straight lines between the points instead of steps")
    add("--print", action="store_true", help="a line at each change")
    add("--exit", type=int, default=0, help="exit code at the end")
    try:
        return run(parser.parse_args(arguments))
    except (NoDevice, OutOfMemory) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
