"""The real torch under the shim, without a device: who is armed, who is not, and what then happens in CUDA's place."""

from __future__ import annotations

import json
import os
import subprocess
import venv
from pathlib import Path

import pytest

from tests import torch_wheel
from tests.builders import GIB

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SHIM = Path(__file__).parents[2] / "placement" / "shim"
# As on a machine with one card: what torch queued runs with these in place of the driver.
CARD = """
import json, os, torch
from types import SimpleNamespace
def use_cuda():
    took = []
    torch.cuda.device_count = lambda: 1
    torch.cuda.get_device_properties = lambda device: SimpleNamespace(uuid="GPU-a", total_memory=16 << 30)
    torch.cuda.set_per_process_memory_fraction = lambda fraction, device=None: took.append(fraction)
    for call, _ in torch.cuda._queued_calls:
        try: call()
        except Exception as error: print(type(error).__name__)
    assert took == [0.5], took
"""


@pytest.fixture(scope="module")
def python() -> str:
    return torch_wheel.python()


class Run:
    def __init__(self, folder: Path) -> None:
        self.folder, self.receipts = folder, folder / "receipts"
        self.receipts.mkdir()
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(SHIM),
            "TIDEGATE_RECEIPTS": str(self.receipts),
            "TIDEGATE_VRAM_CAPS": f"GPU-a={8 * GIB}",
            "TIDEGATE_VRAM_CONTEXT_BYTES": "0",
        }

    def __call__(self, *command: str) -> str:
        done = subprocess.run(command, env=self.environ, cwd=self.folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def told(self, kind: str) -> int:
        return len(list(self.receipts.glob(f"*.torch-{kind}.json")))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_plain(python: str, run: Run) -> None:
    run(python, "-c", CARD + "use_cuda()")
    assert (run.told("armed"), run.told("applied")) == (1, 1)
    [applied] = run.receipts.glob("*.torch-applied.json")
    assert json.loads(applied.read_text())["torch"].startswith(torch_wheel.VERSION)


def test_the_private_parts_that_it_stands_on_are_there(python: str, run: Run) -> None:
    body = "import torch, inspect; print(*inspect.signature(torch.cuda.set_per_process_memory_fraction).parameters)"
    assert run(python, "-c", body + "; print(torch.cuda._lazy_call.__name__)") == "fraction device\n_lazy_call\n"


def test_what_cuda_says_without_a_driver_stays_as_it_was(python: str, run: Run) -> None:
    body = "import torch\ntry: torch.zeros(1, device='cuda')\nexcept Exception as e: print(type(e).__name__, e)"
    shimmed = run(python, "-c", body)
    del run.environ["PYTHONPATH"]
    assert shimmed == run(python, "-c", body) != ""


def test_a_venv_with_a_sitecustomize_of_its_own(python: str, run: Run) -> None:
    venv.create(run.folder / "own", symlinks=True)
    packages = next((run.folder / "own" / "lib").glob("python3*")) / "site-packages"
    theirs = next(Path(python).parents[1].glob("lib/python3*/site-packages"))
    (packages / "theirs.pth").write_text(f"{theirs}\n")
    (packages / "sitecustomize.py").write_text("import builtins; builtins.own = 'ran'\n")
    assert run(str(run.folder / "own" / "bin" / "python"), "-c", CARD + "use_cuda(); print(own)") == "ran\n"
    assert (run.told("armed"), run.told("applied")) == (1, 1)


@pytest.mark.parametrize(
    "method, armed",
    [
        pytest.param("fork", 1, id="fork: what was queued is inherited"),
        pytest.param("spawn", 3, id="spawn: each child is armed anew"),
        pytest.param("forkserver", 3, id="forkserver"),
    ],
)
def test_workers(python: str, run: Run, method: str, armed: int) -> None:
    script = run.folder / "work.py"
    script.write_text(
        CARD + f"if __name__ == '__main__':\n    import multiprocessing as m; c = m.get_context({method!r})\n"
        "    ps = [c.Process(target=use_cuda) for _ in range(2)]\n"
        "    [p.start() for p in ps]; [p.join() for p in ps]; assert [p.exitcode for p in ps] == [0, 0]\n"
    )
    run(python, str(script))
    assert (run.told("armed"), run.told("applied")) == (armed, 2)


def test_torchrun_arms_the_launcher_and_each_rank(python: str, run: Run) -> None:
    script = run.folder / "rank.py"
    script.write_text(CARD.replace("[0.5]", "[0.25]") + "use_cuda()\n")
    run(python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script))
    assert (run.told("armed"), run.told("applied")) == (3, 2)


@pytest.mark.parametrize("flags", [["-I"], ["-S"], []], ids=["-I", "-S", "env -i"])
def test_not_armed(python: str, run: Run, flags: list[str]) -> None:
    theirs = next(Path(python).parents[1].glob("lib/python3*/site-packages"))
    body = f"import sys; sys.path.append({str(theirs)!r}); import torch; print(torch.__version__)"
    before = [] if flags else ["/usr/bin/env", "-i"]
    assert run(*before, python, *flags, "-c", body).startswith(torch_wheel.VERSION)
    assert list(run.receipts.iterdir()) == []  # and a job without receipts is shown as watched
