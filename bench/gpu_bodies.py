"""What ``bench.gpu_checks`` runs in processes of their own: each prints one line of JSON.

They are texts, since a check may use a Python that has torch or JAX and nothing of ours.
"""

from __future__ import annotations

# Argument: the device's number. A cap of an eighth, then twice that is asked for.
TORCH_CAP = """
import json, sys, torch
device, seen = int(sys.argv[1]), []
total = torch.cuda.get_device_properties(device).total_memory
torch.cuda.set_per_process_memory_fraction(0.125, device)
torch.cuda.init()
attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
if attach: attach(lambda *arguments: seen.append([int(a) for a in arguments]))
try:
    torch.empty(total // 4, dtype=torch.uint8, device=f"cuda:{device}"); said = "nothing: it was given"
except Exception as error:
    said = f"{type(error).__name__}: {error}"
print(json.dumps({"version": torch.__version__, "total": total, "said": said, "observer": bool(attach), "seen": seen}))
"""

# Argument: the device's number. Sets a fraction and waits, so that others can look whether that made a context there.
TORCH_FRACTION = """
import json, sys, torch
torch.cuda.init() if sys.argv[1] == "0" else torch.empty(1, device="cuda:0")
torch.cuda.set_per_process_memory_fraction(0.5, int(sys.argv[1]))
print(json.dumps({"version": torch.__version__}), flush=True)
sys.stdin.read()
"""

# Argument: the device's number. Reserves 1 GiB and waits.
TORCH_HOLD = """
import json, sys, torch
device = int(sys.argv[1])
kept = torch.zeros(1 << 30, dtype=torch.uint8, device=f"cuda:{device}")
torch.cuda.synchronize(device)
print(json.dumps({"reserved": torch.cuda.memory_reserved(device), "version": torch.__version__,
                  "total": torch.cuda.get_device_properties(device).total_memory}), flush=True)
sys.stdin.read()
"""

# Argument: fork, spawn or forkserver. Two workers use CUDA; the parent does not.
TORCH_WORKERS = """
import multiprocessing, sys, torch
def use(): torch.zeros(1, device="cuda:0")
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    workers = [context.Process(target=use) for _ in range(2)]
    [w.start() for w in workers]; [w.join() for w in workers]
    sys.exit(any(w.exitcode for w in workers))
"""
TORCH_RANK = "import torch; torch.zeros(1, device='cuda:0')\n"

TORCH_ADDRESS_SPACE = """
import json, resource, torch
resource.setrlimit(resource.RLIMIT_AS, (32 << 30, 32 << 30))
try:
    torch.zeros(1, device="cuda:0"); said = "it works"
except Exception as error:
    said = f"{type(error).__name__}: {error}"
print(json.dumps({"said": said[:300]}))
"""

# Runs with the old name of the fraction at 0.1 and preallocation off; asks for half of that, then for five times it.
JAX = """
import json, sys, jax, jax.numpy as jnp
total, said = int(sys.argv[1]), []
for share in (0.05, 0.5):
    try:
        jnp.zeros(int(total * share), dtype=jnp.uint8).block_until_ready(); said.append("given")
    except Exception as error:
        said.append(f"{type(error).__name__}: {error}"[:200])
print(json.dumps({"version": jax.__version__, "said": said}), flush=True)
sys.stdin.read()
"""

# Arguments: the device's number and bytes. Managed memory by the driver's own interface, touched, then waits.
MANAGED = """
import ctypes, json, sys
cuda, pointer, context, device = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_int()
size = int(sys.argv[2])
codes = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), int(sys.argv[1])),
         cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), cuda.cuCtxSetCurrent(context),
         cuda.cuMemAllocManaged(ctypes.byref(pointer), ctypes.c_size_t(size), 1),
         cuda.cuMemsetD8_v2(pointer, ctypes.c_ubyte(1), ctypes.c_size_t(size)), cuda.cuCtxSynchronize()]
print(json.dumps({"codes": codes}), flush=True)
sys.stdin.read()
"""

# Arguments: the device's number and bytes. Plain memory by the driver's own interface; tells which call was refused.
PLAIN = """
import ctypes, json, sys
cuda, pointer, context, device = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_int()
free, total = ctypes.c_size_t(), ctypes.c_size_t()
codes = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), int(sys.argv[1])),
         cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), cuda.cuCtxSetCurrent(context)]
cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
codes.append(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(int(sys.argv[2]))))
print(json.dumps({"codes": codes, "total": total.value}), flush=True)
"""
