"""What a job imports: any Python from 3.8, nothing but its standard library, and what the calls check by themselves."""

from __future__ import annotations

import ast
import functools
import math
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import tidegate
from tidegate import asks, seen

from tests.inside import CLIENT, Fake, Row, environment, service

MODULES = sorted((CLIENT / "tidegate").glob("*.py"))
# Of the standard library as 3.8 has it: a module that is not here is new or unneeded.
KNOWN = {
    "__future__",
    "atexit",
    "contextvars",
    "decimal",
    "enum",
    "functools",
    "gc",
    "http",
    "inspect",
    "json",
    "os",
    "queue",
    "random",
    "socket",
    "sys",
    "threading",
    "time",
    "traceback",
    "typing",
    "urllib",
    "uuid",
    "warnings",
    "weakref",
}
NEWER = {"removeprefix", "removesuffix", "pairwise", "bit_count", "TaskGroup", "add_note", "ExceptionGroup", "cache"}
SCRIPT = """
import os, pickle, tidegate
begun = []
@tidegate.session
def step():
    begun.append(1)
    with tidegate.cuda_group(group_memory_gb=3, max_devices=2, prefer_max_devices=True) as group:
        try:
            return [place.local_index for place in group], tidegate.cuda(1).reserved
        except Exception:
            return "swallowed"
print(step(), len(begun), flush=True)
place = tidegate.cuda("auto", timeout=60)
child = os.fork()
if child == 0:
    del place
    raise SystemExit
os.waitpid(child, 0)
print(place.reserved, pickle.loads(pickle.dumps(place)))
try:
    tidegate.cuda(99)
except tidegate.Impossible as error:
    print(error)
"""
SAID = """([0, 1], True) 2
True <Placement of 0.00 GB on gpu0, not reserved>
Too much.
  gpu0: 8 GB
"""


def decide(fake: Fake, row: Row) -> Row:
    """Take the step's first run back at its second call; 99 GB are too much; everything else is granted."""
    if row["session"] and (row["session"]["execution"], row["index"]) == (1, 1):
        return {"state": "revoked", "revocation": {"sentence": "Taken back.", "final": False}}
    if row["ask"]["group_bytes"] == 99 * 10**9:
        return {"state": "refused", "refusal": {"sentence": "Too much.", "arithmetic": ["gpu0: 8 GB"]}}
    return fake.grant(row | {"ask": row["ask"] | {"min_devices": row["ask"]["max_devices"]}})


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.stem)
def test_each_module_is_python_3_8(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    assert [n.names[0].name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module == "__future__"] or (
        not any(isinstance(n, ast.FunctionDef) for n in ast.walk(tree))  # annotations are never evaluated
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert {name.name.split(".")[0] for name in node.names} <= KNOWN
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            assert (node.module or "").split(".")[0] in KNOWN
        if isinstance(node, ast.Attribute):
            assert node.attr not in NEWER
        if isinstance(node, ast.Call):
            assert "strict" not in {word.arg for word in node.keywords}  # zip's


def test_it_can_be_installed_where_the_path_does_not_reach() -> None:
    told = tomllib.loads((CLIENT / "pyproject.toml").read_text())
    assert told["project"]["requires-python"] == ">=3.8"
    assert "dependencies" not in told["project"]
    assert all((CLIENT / package / "__init__.py").is_file() for package in told["tool"]["setuptools"]["packages"])


def old_pythons() -> list[str]:
    """Return the oldest Python that can be found here, and the one that runs this."""
    roots = Path(os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv"))) / "versions"
    old = [str(p) for p in sorted(roots.glob("3.8.*/bin/python3"))] + [p for p in [shutil.which("python3.8")] if p]
    works = [p for p in old if subprocess.run([p, "-c", "pass"], capture_output=True, check=False).returncode == 0]
    return [*works[:1], sys.executable]


@pytest.mark.parametrize("python", old_pythons(), ids=lambda p: Path(p).parent.parent.name)
def test_a_script_runs_in_a_job(python: str) -> None:
    with service() as fake:
        fake.decide = functools.partial(decide, fake)
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CLIENT)} | environment(fake)
        # From 3.12 on Python warns of each fork beside a thread; ours is made anew in the child.
        line = [python, "-W", "ignore:This process:DeprecationWarning", "-c", SCRIPT]
        run = subprocess.run(line, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert (run.returncode, run.stdout, run.stderr) == (0, SAID, "")
        granted = [row["id"] + 100 for row in fake.asks() if row["last"]["state"] == "granted"]
        assert sorted(b["path"] for b in fake.paths("/release")) == [f"leases/{n}/release" for n in granted]


@pytest.mark.parametrize(
    "gb, size",
    [
        (1, 10**9),
        (0.1, 10**8),
        (0.1 + 0.2, 300_000_001),
        (1 / 3, 333_333_334),
        (1e-9, 1),
        (1e-10, 1),
        (0, 0),
        (-0.0, 0),
    ],
)
def test_amounts_round_up_as_they_are_printed(gb: float, size: int) -> None:
    assert asks.to_bytes("memory_gb", gb) == size


CUDA = {"device": "gpu", "backend": "cuda"}


@pytest.mark.parametrize(
    "error, changes",
    [
        (ValueError, {"memory_gb": 0}),  # B1
        (ValueError, {"device": "cpu", "memory_gb": 1e-9}),  # B3
        (ValueError, {"memory_gb": 1, "device_id": -1}),  # B7
        (TypeError, {"memory_gb": 1, "device_id": True}),  # B8
        (ValueError, {"memory_gb": -1}),  # A13
        (ValueError, {"memory_gb": math.inf}),  # A16
        (ValueError, {"memory_gb": math.nan}),
        (TypeError, {"memory_gb": True}),  # A14
        (TypeError, {"memory_gb": "1"}),  # A15
        (TypeError, {"memory_gb": None}),
        (TypeError, {"memory_gb": 1, "exclusive": 1}),  # B11
        (TypeError, {"memory_gb": 1, "backend": None}),  # B14
        (ValueError, {"memory_gb": 1, "backend": "vulkan"}),
    ],
)
def test_what_cannot_be_asked_for(error: type[Exception], changes: dict[str, object]) -> None:
    with pytest.raises(error):
        tidegate.reserve(**(CUDA | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "error, changes",
    [
        (ValueError, {"min_devices": 3, "max_devices": 2}),  # B4
        (ValueError, {"max_devices": 0}),  # B5
        (ValueError, {"min_devices": 0, "max_devices": 1}),
        (TypeError, {"max_devices": True}),  # B12
        (TypeError, {"max_devices": 2, "prefer_max_devices": 1}),
        (TypeError, {"max_devices": 2, "even": None}),
    ],
)
def test_what_no_group_can_be(error: type[Exception], changes: dict[str, object]) -> None:
    with pytest.raises(error):
        tidegate.cuda_group(group_memory_gb=1, **changes)  # type: ignore[arg-type]


def test_placements_by_hand_are_checked() -> None:
    place = tidegate.Placement("gpu", "cuda", 0, 10)
    for wrong in [("gpu",), ("gpu", "cuda"), ("cpu", "cuda"), ("cpu", None, 0), ("cpu", None, None, 5)]:
        with pytest.raises(ValueError):
            tidegate.Placement(*wrong)
    for members, size in [([], 0), ([place, place], 20), ([place], 9), ([tidegate.CPU_PLACEMENT], 0)]:
        with pytest.raises(ValueError):
            tidegate.PlacementGroup(members, group_memory_bytes=size)
    with pytest.raises(AttributeError):
        place.memory_bytes = 20  # type: ignore[misc]
    assert place != tidegate.Placement("gpu", "cuda", 0, 10)  # K10
    assert (tidegate.CPU_PLACEMENT.device_ids, tidegate.CPU_PLACEMENT.reserved_memory_bytes) == ((), 0)


UUIDS = {"TIDEGATE_DEVICE_UUIDS": "GPU-aa,GPU-bb"}
NUMBERED = UUIDS | {"TIDEGATE_DEVICE_INDICES": "5,2"}


@pytest.mark.parametrize(
    "env, backend, sees",
    [
        ({}, "cuda", None),
        (UUIDS | {"CUDA_VISIBLE_DEVICES": "5,2"}, "cuda", ("GPU-aa", "GPU-bb")),
        (UUIDS | {"CUDA_VISIBLE_DEVICES": "2"}, "cuda", None),  # narrowed, and nobody says to which
        (NUMBERED | {"CUDA_VISIBLE_DEVICES": "2"}, "cuda", ("GPU-bb",)),
        (NUMBERED | {"CUDA_VISIBLE_DEVICES": "7,2,5"}, "cuda", ("", "GPU-bb", "GPU-aa")),
        (NUMBERED | {"CUDA_VISIBLE_DEVICES": "2,-1,5"}, "cuda", ("GPU-bb",)),
        (UUIDS | {"CUDA_VISIBLE_DEVICES": "GPU-b,GPU-a"}, "cuda", ("GPU-bb", "GPU-aa")),
        (NUMBERED, "cuda", ("", "", "GPU-bb", "", "", "GPU-aa")),
        (UUIDS | {"CUDA_VISIBLE_DEVICES": ""}, "cuda", ()),
        ({"TIDEGATE_DEVICE_UUIDS": "", "CUDA_VISIBLE_DEVICES": ""}, "cuda", ()),
        (NUMBERED | {"HIP_VISIBLE_DEVICES": "1"}, "rocm", ("GPU-bb",)),
        (NUMBERED, "rocm", ("GPU-aa", "GPU-bb")),
        (NUMBERED | {"CUDA_VISIBLE_DEVICES": ""}, "opencl", ("GPU-aa", "GPU-bb")),
        (NUMBERED | {"TIDEGATE_OPENCL_UUIDS": "GPU-bb", "TIDEGATE_OPENCL_INDICES": "2"}, "opencl", ("GPU-bb",)),
        (NUMBERED | {"TIDEGATE_OPENCL_UUIDS": ""}, "opencl", None),  # none of its own, and nothing hides the others
        (NUMBERED | {"ZE_AFFINITY_MASK": "2,5"}, "xpu", ("GPU-bb", "GPU-aa")),
        (NUMBERED | {"ZE_AFFINITY_MASK": "9999"}, "xpu", ("",)),
        (NUMBERED | {"TPU_VISIBLE_CHIPS": "2,5"}, "xla", ("GPU-bb", "GPU-aa")),
        (NUMBERED | {"TPU_VISIBLE_CHIPS": "-1"}, "xla", ()),
        (NUMBERED | {"CUDA_VISIBLE_DEVICES": "5,2"}, "xla", ("GPU-aa", "GPU-bb")),  # on GPUs
    ],
)
def test_what_a_process_sees(env: dict[str, str], backend: str, sees: tuple[str, ...] | None) -> None:
    assert seen.seen(backend, env) == sees
    if sees and "GPU-aa" in sees:
        assert seen.local_index("GPU-aa", backend, env) == sees.index("GPU-aa")
