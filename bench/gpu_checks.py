"""What can only be verified on a machine with an NVIDIA GPU, in one run of a few minutes; each line says what is so.

python -m bench.gpu_checks [--torch PYTHON]... [--jax PYTHON] [--device 0] [--markdown FILE]

--torch may be given twice, for a torch before 2.10 and a newer one. What a check lacks (a second device, root, JAX) is
said in its line. Ends with 0 where all that was checked is as expected, 1 where something is not, 3 where nothing is
wrong but something could not be checked. Uses at most a few GiB of the device; run it on an idle one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import gpu_bodies as bodies
from calibration.probes import limits
from calibration.probes.nvml_device import pynvml

ROOT = Path(__file__).resolve().parent.parent
GIB, MIB = 1 << 30, 1 << 20
GROUPS = Path("/sys/fs/cgroup")
WITHIN_S = 120


class Lacks(Exception):
    """Something that a check needs is not here; the message says what."""


@dataclass
class Bench:
    """What the checks are run with; ``told`` collects (check, verdict, what was found)."""

    torch: Sequence[str]
    jax: str
    device: int
    told: list[tuple[str, str, str]] = field(default_factory=list)

    def handle(self) -> Any:
        """Return the driver's handle of the device."""
        return pynvml.nvmlDeviceGetHandleByIndex(self.device)

    def of(self, pid: int, device: int | None = None) -> int | None:
        """Return the bytes that the driver shows for a process on a device, None where it shows none."""
        handle = self.handle() if device is None else pynvml.nvmlDeviceGetHandleByIndex(device)
        found = [p.usedGpuMemory for p in pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle) if p.pid == pid]
        return found[0] if found else None

    def free(self) -> int:
        """Return the device's free bytes."""
        return int(pynvml.nvmlDeviceGetMemoryInfo(self.handle()).free)

    def a_torch(self) -> str:
        """Return a Python with torch. Raises Lacks."""
        if not self.torch:
            raise Lacks("no Python with a CUDA build of torch was named (--torch)")
        return self.torch[-1]


@contextmanager
def running(python: str, body: str, *arguments: object, **environ: str) -> Iterator[tuple[subprocess.Popen[str], Any]]:
    """Start a body, yield it with its line of JSON, and end it."""
    command = [python, "-c", body, *(str(one) for one in arguments)]
    surroundings = {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", **environ}
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, env=surroundings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                process.wait(WITHIN_S)
                errors.seek(0)
                last = (errors.read().strip().splitlines() or ["no word"])[-1]
                raise Lacks(f"{python} ended with {process.returncode}: {last[:200]}")
            yield process, json.loads(line)
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    with suppress(OSError):
                        pipe.close()


def gib(size: int | None) -> str:
    return "no figure" if size is None else f"{size / GIB:.2f} GiB"


Check = Callable[[Bench], "tuple[bool, str]"]


def sizes(b: Bench) -> tuple[bool, str]:
    """Driver's totals: the second memory call's reserved + used + free is its total, and what CUDA calls total"""
    first = pynvml.nvmlDeviceGetMemoryInfo(b.handle())
    second = pynvml.nvmlDeviceGetMemoryInfo(b.handle(), version=pynvml.nvmlMemory_v2)
    rest = second.total - second.free - second.used - second.reserved
    cuda = "CUDA's total: not asked"
    with suppress(Lacks), running(sys.executable, bodies.PLAIN, b.device, MIB) as (_, found):
        cuda = f"CUDA's total {gib(found['total'])}, the driver's less reserved {gib(second.total - second.reserved)}"
    told = f"total {gib(second.total)}, reserved {gib(second.reserved)}, first call's used holds it: "
    told += "yes" if first.used - second.used > second.reserved // 2 else "no"
    return abs(rest) <= MIB or abs(rest + second.reserved) <= MIB, f"{told}; remainder {rest} bytes; {cuda}"


def torch_cap(b: Bench) -> tuple[bool, str]:
    """torch above its fraction: the message has "allowed; ", and the observer is told asked, allowed and free"""
    with running(b.a_torch(), bodies.TORCH_CAP, b.device) as (_, found):
        seen = found["seen"][0] if found["seen"] else None
        proof = seen is not None and seen[3] >= seen[1]
        as_told = "allowed; " in found["said"] and (proof or not found["observer"])
        return as_told, f"torch {found['version']}: observer {seen}, free >= asked: {proof}; {found['said'][:160]}"


def torch_context(b: Bench) -> tuple[bool, str]:
    """A fraction for device 1 makes a context there before torch 2.10, and none after"""
    if pynvml.nvmlDeviceGetCount() < 2:
        raise Lacks("there is no second device")
    b.a_torch()
    told, right = [], True
    for python in b.torch:
        with running(python, bodies.TORCH_FRACTION, 1) as (process, found):
            time.sleep(1)
            held = b.of(process.pid, 1)
            old = tuple(int(part) for part in found["version"].split("+")[0].split(".")[:2]) < (2, 10)
            right &= (held is not None) is old
            told.append(f"torch {found['version']}: {gib(held)} on device 1")
    return right, "; ".join(told)


def context_size(b: Bench) -> tuple[bool, str]:
    """What a context costs: the driver's figure less what torch reserved lies within 64 MiB and 4 GiB"""
    with running(b.a_torch(), bodies.TORCH_HOLD, b.device) as (process, found):
        time.sleep(1)
        held = b.of(process.pid)
        if held is None:
            raise Lacks("the driver shows no figure for the process (another pid namespace?)")
        context = held - found["reserved"]
        return 64 * MIB <= context <= 4 * GIB, f"{context >> 20} MiB with torch {found['version']}"


def receipts(b: Bench) -> tuple[bool, str]:
    """Workers by fork, spawn, forkserver and torchrun each leave a receipt that the cap was applied"""
    python, told, right = b.a_torch(), [], True
    for how in ("fork", "spawn", "forkserver", "torchrun"):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "work.py"
            script.write_text(bodies.TORCH_RANK if how == "torchrun" else bodies.TORCH_WORKERS)
            command = [python, str(script), how]
            if how == "torchrun":
                command = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
            environ = {**os.environ, "PYTHONPATH": str(ROOT / "placement" / "shim"), "TIDEGATE_RECEIPTS": folder}
            environ |= {"TIDEGATE_VRAM_CAP_BYTES": str(4 * GIB), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
            environ["CUDA_VISIBLE_DEVICES"] = str(b.device)
            done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=WITHIN_S)
            count = len(list(Path(folder).glob("*.torch-applied.json")))
            if done.returncode and not count:
                raise Lacks(
                    f"{how} ended with {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1][:200]}"
                )
            right &= count == 2 and done.returncode == 0
            told.append(f"{how} {count} of 2" + (f" (code {done.returncode})" if done.returncode else ""))
    return right, ", ".join(told)


def address_space(b: Bench) -> tuple[bool, str]:
    """CUDA does not start under RLIMIT_AS of 32 GiB, so that limit is none for jobs"""
    with running(b.a_torch(), bodies.TORCH_ADDRESS_SPACE) as (_, found):
        return found["said"] != "it works", found["said"][:200]


def jax_fraction(b: Bench) -> tuple[bool, str]:
    """JAX keeps to the old name of the fraction, and without preallocation holds little before it is asked"""
    if not b.jax:
        raise Lacks("no Python with JAX was named (--jax)")
    total = int(pynvml.nvmlDeviceGetMemoryInfo(b.handle()).total)
    environ = {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".10", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    environ["CUDA_VISIBLE_DEVICES"] = str(b.device)
    with running(b.jax, bodies.JAX, total, **environ) as (process, found):
        within, above = found["said"]
        held = b.of(process.pid)
        told = f"JAX {found['version']}: 5 % {within}; 50 % {above[:120]}; the driver shows {gib(held)}"
        return within == "given" and above != "given", told


def recovery(b: Bench) -> tuple[bool, str]:
    """Free memory is back within 5 s of a kill"""
    before = b.free()
    with running(sys.executable, bodies.MANAGED.replace("cuMemAllocManaged", "cuMemAlloc_v2"), b.device, GIB) as (
        _, found,
    ):  # fmt: skip
        if found["codes"][2]:
            raise Lacks(f"CUDA does not start: codes {found['codes']}")
        held = before - b.free()
    began, back = time.monotonic(), None
    while time.monotonic() - began < 10 and back is None:
        if b.free() >= before - 64 * MIB:
            back = time.monotonic() - began
        time.sleep(0.02)
    return (
        back is not None and back <= 5,
        f"{gib(held)} held, back after {'more than 10' if back is None else f'{back:.2f}'} s",
    )


def managed(b: Bench) -> tuple[bool, str]:
    """Managed memory on the device that the driver does not show for its process is "unattributed" to us"""
    before = b.free()
    with running(sys.executable, bodies.MANAGED, b.device, 2 * GIB) as (process, found):
        if any(found["codes"]):
            raise Lacks(f"CUDA refused: codes {found['codes']}")
        time.sleep(1)
        held, taken = b.of(process.pid), before - b.free()
        return taken >= 2 * GIB, f"2 GiB managed: the device lost {gib(taken)}, its process is shown with {gib(held)}"


def driver_limit(b: Bench) -> tuple[bool, str]:
    """The driver keeps a control group within a limit: an allocation above it is refused, and the limit is the total"""
    if os.geteuid() != 0 or not (GROUPS / "cgroup.controllers").exists():
        raise Lacks("it takes root and the unified control groups at /sys/fs/cgroup")
    group = GROUPS / f"tidegate-check-{os.getpid()}"
    uuid = pynvml.nvmlDeviceGetUUID(b.handle())
    group.mkdir()
    try:
        answer = limits.set_limit(uuid, str(group), 4 * GIB)
        if not answer.able:
            raise Lacks(f"this driver keeps no limits: {answer.error}")
        if answer.error:
            return False, answer.error
        inside = f"with open('{group}/cgroup.procs', 'w') as file: file.write('0')\n"
        with running(sys.executable, inside + bodies.PLAIN, b.device, 6 * GIB) as (_, found):
            told = (
                f"6 GiB under 4 GiB: code {found['codes'][-1]} (2: out of memory), CUDA's total {gib(found['total'])}"
            )
        limits.clear(uuid, str(group))
        return found["codes"][-1] == 2, told
    finally:
        with suppress(OSError):
            group.rmdir()


CHECKS: tuple[Check, ...] = (
    sizes, torch_cap, torch_context, context_size, receipts, address_space, jax_fraction, recovery, managed,
    driver_limit,
)  # fmt: skip


def run(b: Bench) -> int:
    """Run every check and return the exit code."""
    try:
        pynvml.nvmlInit()
        b.handle()
        absent = ""
    except pynvml.NVMLError as error:
        absent = f"no NVIDIA device {b.device}: {error}"
    for check in CHECKS:
        try:
            if absent:
                raise Lacks(absent)
            right, found = check(b)
            verdict = "as expected" if right else "OTHERWISE"
        except Lacks as lacking:
            verdict, found = "not checked", str(lacking)
        except (pynvml.NVMLError, OSError, ValueError, subprocess.SubprocessError) as error:
            verdict, found = "OTHERWISE", f"{type(error).__name__}: {error}"
        b.told.append((" ".join((check.__doc__ or "").split()), verdict, found))
        print(f"{verdict}: {b.told[-1][0]}\n    {found}", flush=True)
    verdicts = {verdict for _, verdict, _ in b.told}
    return 1 if "OTHERWISE" in verdicts else 3 if "not checked" in verdicts else 0


def markdown(told: Sequence[tuple[str, str, str]]) -> str:
    """Return what was found as a table for docs/gpu-checks.md."""
    rows = [f"| {what} | {verdict} | {found.replace('|', '/')} |" for what, verdict, found in told]
    return "\n".join(["| check | verdict | found |", "|---|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_checks", description=__doc__)
    parser.add_argument("--torch", action="append", default=[], metavar="PYTHON")
    parser.add_argument("--jax", default="", metavar="PYTHON")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    options = parser.parse_args()
    bench = Bench(options.torch, options.jax, options.device)
    code = run(bench)
    if options.markdown:
        options.markdown.write_text(markdown(bench.told))
    sys.exit(code)
