"""Keeps torch within the cap of a job: waits for ``import torch``, sets a fraction when CUDA is first used, tells so.

Environment: TIDEGATE_VRAM_CAPS ("UUID=bytes,UUID=bytes", the devices that are seen, in order), TIDEGATE_VRAM_CAP_BYTES
(one figure for all), TIDEGATE_VRAM_CONTEXT_BYTES (what a process's context costs), TIDEGATE_GPU_PROCESSES (how many
processes share a device), TIDEGATE_RECEIPTS (where to say what was done), TIDEGATE_SHIM=0 (do nothing).
Python 3.8 or newer, standard library only. Nothing here raises, and nothing is printed.
"""

import os
import sys

DEFAULT_CONTEXT = 512 << 20  # bytes
LEAST = 1 << 20  # bytes of a pool: a fraction of 0 would refuse everything without a word about a cap


class Finder:
    """Finds torch as everybody else would, and has its loader call us when the module is there.

    Many only ask whether there is a torch before they import it, so this stays until one was loaded.
    """

    def find_spec(self, name, path=None, target=None):
        """Return the real spec of torch; None for everything else."""
        if name != "torch":
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None:
                break
        else:
            return None
        try:
            _call_after(spec.loader, self)
        except Exception:  # torch is imported all the same
            pass
        return spec


def arm():
    """Wait for torch, where there is a cap to keep."""
    if os.environ.get("TIDEGATE_SHIM") == "0" or not (
        os.environ.get("TIDEGATE_VRAM_CAPS") or os.environ.get("TIDEGATE_VRAM_CAP_BYTES")
    ):
        return
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())


def _call_after(loader, finder):
    """Wrap the loader at hand, not its class, so that nothing else that it loads changes."""
    if "exec_module" in vars(loader):
        return  # it is the same that was asked for before
    real = loader.exec_module

    def exec_module(module):
        real(module)
        try:
            del loader.exec_module
            if finder in sys.meta_path:
                sys.meta_path.remove(finder)
            armed(module)
        except Exception:  # the module is there, and that is what was asked for
            pass

    loader.exec_module = exec_module


def armed(torch):
    """Queue the cap for the moment in which CUDA is first used: nothing touches the device before the job does."""
    torch.cuda._lazy_call(lambda: applied(torch))
    receipt("torch-armed", {"torch": str(torch.__version__)})


def applied(torch):
    """Set the fraction on each device that is seen, and say so; what escapes from here would reach the job."""
    try:
        counted = torch.cuda.device_count()
        which = range(counted)
        rank = os.environ.get("LOCAL_RANK", "")
        if before_2_10(torch) and rank.isdecimal() and int(rank) < counted:
            which = [int(rank)]  # there the call makes a context, which costs memory on each device that it names
        done = [one for one in (_limit(torch, device, counted) for device in which) if one]
        if not done:
            return
        receipt("torch-applied", {"torch": str(torch.__version__), "devices": done})
        _listen(torch, {one["device"]: one for one in done})
        _at_exit(torch, done)
    except Exception:  # no receipt then, so the job is shown as watched
        pass


def before_2_10(torch):
    """Return whether this torch asks the driver for a size, and so makes a context, when it is given a fraction."""
    try:
        return tuple(int(part) for part in str(torch.__version__).split("+")[0].split(".")[:2]) < (2, 10)
    except ValueError:
        return False


def _limit(torch, device, counted):
    properties = torch.cuda.get_device_properties(device)
    hip = getattr(getattr(torch, "version", None), "hip", None)  # ROCm's identifiers are none of those that we know
    found = cap_of(device, "" if hip else str(getattr(properties, "uuid", "") or ""))
    if found is None:
        return None
    uuid, cap = found
    processes = sharers(counted)
    pool = max(LEAST, cap // (processes or 1) - context())
    total = int(properties.total_memory)  # as CUDA counts it: less than the driver's own total
    if before_2_10(torch):  # it takes its part of what the runtime tells, which a limit of the driver makes smaller
        total = int(torch.cuda.mem_get_info(device)[1])
    torch.cuda.set_per_process_memory_fraction(min(1.0, pool / total), device)
    return {
        "device": device,
        "uuid": uuid,
        "cap": cap,
        "pool": min(pool, total),
        "total": total,
        "processes": processes,
    }


def cap_of(device, uuid):
    """Return (uuid, bytes) of the visible device with this number; None where it is none of the job's.

    A command may show itself another device than it was given: there the same figure holds, under that one's name.
    """
    rows = [row.partition("=") for row in os.environ.get("TIDEGATE_VRAM_CAPS", "").split(",") if row]
    caps = [(name, int(size)) for name, _, size in rows if size.isdecimal() and int(size) > 0]
    bare = uuid.lower().replace("gpu-", "").replace("mig-", "")
    for name, cap in caps if bare else ():
        if name.lower().replace("gpu-", "").replace("mig-", "") == bare:
            return name, cap
    if device < len(caps):
        name, cap = caps[device]
        return (f"GPU-{bare}" if bare and name.startswith("GPU-") else name), cap
    one = os.environ.get("TIDEGATE_VRAM_CAP_BYTES", "")
    return ("", int(one)) if not caps and one.isdecimal() and int(one) > 0 else None


def context():
    """Return the bytes that a process's context is taken to cost on this kind of card."""
    text = os.environ.get("TIDEGATE_VRAM_CONTEXT_BYTES", "")
    return int(text) if text.isdecimal() else DEFAULT_CONTEXT


def sharers(counted):
    """Return how many processes of this job share a device, None where nobody said: each then has the whole cap."""
    said = os.environ.get("TIDEGATE_GPU_PROCESSES", "")
    if said.isdecimal() and int(said) > 0:
        return int(said)
    world = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, -(-int(world) // max(1, counted))) if world.isdecimal() and int(world) > 0 else None


def _listen(torch, limits):
    """Write a receipt when torch refuses memory, with what the device had free: that alone proves a cap."""
    attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
    if attach is None:
        return

    def refused(device, asked, allowed, free):
        try:
            one = limits.get(int(device), {})
            receipt(
                "vram-cap",
                {
                    "asked": int(asked),
                    "held": int(torch.cuda.memory_reserved(device)),
                    "cap": int(one.get("cap", 0)),
                    "pool": int(one.get("pool", 0)),
                    "device_free": int(free),
                    "device": one.get("uuid", ""),
                    "by": "torch",
                },
            )
        except Exception:  # the job gets its own error all the same
            pass

    attach(refused)


def _at_exit(torch, done):
    """Say at the end what torch held at most: the rest of what the driver saw is the context."""
    import atexit

    mine = os.getpid()

    def tell():
        try:
            if os.getpid() == mine and torch.cuda.is_initialized():
                held = {one["uuid"]: int(torch.cuda.max_memory_reserved(one["device"])) for one in done}
                receipt("torch-exit", {"reserved": held})
        except Exception:  # nothing is learned from it
            pass

    atexit.register(tell)


def receipt(kind, content):
    """Write PID.kind.json at once; without a folder, or on any error, nothing."""
    folder = os.environ.get("TIDEGATE_RECEIPTS")
    if not folder:
        return
    try:
        import json

        place = os.path.join(folder, f"{os.getpid()}.{kind}.json")
        temporary = f"{place}.{os.urandom(4).hex()}.new"
        with open(temporary, "w") as file:
            file.write(json.dumps(content))
        os.replace(temporary, place)
    except Exception:  # lost evidence must not change what the job meets
        pass
