"""What a job's Python imports first, with a torch made for tests: the fraction, the receipts, and no trace besides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.builders import GIB, MIB

ROOT = Path(__file__).parents[2]
SHIM = ROOT / "placement" / "shim"
FAKE = ROOT / "tests" / "fake_torch"
CARD = 24 * GIB


class Told:
    """A folder of receipts, and Python processes that meet the shim."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "receipts"
        self.folder.mkdir()
        self.path = [str(SHIM), str(FAKE)]
        self.environ = {
            "PATH": os.environ["PATH"],
            "TIDEGATE_RECEIPTS": str(self.folder),
            "TIDEGATE_VRAM_CAPS": f"GPU-a={8 * GIB}",
            "TIDEGATE_VRAM_CAP_BYTES": str(8 * GIB),
            "TIDEGATE_VRAM_CONTEXT_BYTES": str(512 * MIB),
            "FAKE_TORCH_DEVICES": f"GPU-a:{CARD}",
        }

    def python(self, body: str, *flags: str, code: int = 0, **environ: str) -> str:
        """Run a body to its end and return what it printed."""
        environ = {**self.environ, "PYTHONPATH": os.pathsep.join(self.path), **environ}
        command = [sys.executable, *flags, "-c", body]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stderr
        self.errors = done.stderr
        return done.stdout

    def fractions(self, *flags: str, **environ: str) -> dict[str, float]:
        told = self.python(
            "import json, torch; torch.cuda.init(); print(json.dumps(torch.cuda.fractions))", *flags, **environ
        )
        found: dict[str, float] = json.loads(told)
        return found

    def receipts(self, kind: str) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(self.folder.glob(f"*.{kind}.json"))]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def test_the_fraction_is_the_cap_less_a_context_of_what_cuda_calls_the_whole(told: Told) -> None:
    assert told.fractions() == {"0": (8 * GIB - 512 * MIB) / CARD}
    [applied] = told.receipts("torch-applied")
    assert applied["devices"] == [
        {
            "device": 0,
            "uuid": "GPU-a",
            "cap": 8 * GIB,
            "pool": 8 * GIB - 512 * MIB,
            "total": CARD,
            "processes": None,
        }
    ]


def test_nothing_touches_a_device_before_the_job_does(told: Told) -> None:
    assert told.python("import torch; print(torch.cuda.is_initialized(), torch.cuda.fractions)") == "False {}\n"
    assert [len(told.receipts(kind)) for kind in ("torch-armed", "torch-applied")] == [1, 0]


def test_who_asks_first_whether_there_is_a_torch_is_capped_all_the_same(told: Told) -> None:
    asks = "import importlib.util as u, json; u.find_spec('torch'); u.find_spec('torch')"
    use = "import torch; torch.cuda.init(); print(json.dumps(torch.cuda.fractions))"
    assert json.loads(told.python(f"{asks}; {use}")) == {"0": (8 * GIB - 512 * MIB) / CARD}
    assert len(told.receipts("torch-applied")) == 1
    gone = "print([type(one).__name__ for one in sys.meta_path if 'Finder' == type(one).__name__])"
    assert told.python(f"import importlib.util as u, sys; u.find_spec('torch'); import torch; {gone}") == "[]\n"


def test_a_torch_whose_import_failed_is_capped_the_next_time(told: Told, tmp_path: Path) -> None:
    (tmp_path / "first" / "torch").mkdir(parents=True)
    (tmp_path / "first" / "torch" / "__init__.py").write_text("raise ImportError('not yet')")
    told.path.insert(1, str(tmp_path / "first"))
    body = (
        "import json, sys\ntry: import torch\nexcept ImportError: sys.path.remove(sys.argv[1])\n"
        "import torch; torch.cuda.init(); print(json.dumps(torch.cuda.fractions))"
    )
    assert json.loads(told.python(body.replace("sys.argv[1]", repr(str(tmp_path / "first"))))) != {}


def test_without_torch_there_is_no_receipt_and_nothing_is_imported(told: Told) -> None:
    heavy = "{'json', 'torch', 'importlib.util', 'importlib.machinery', 'traceback', 'atexit'} & set(sys.modules)"
    bare = told.python(f"import sys; print(sorted({heavy}))", PYTHONPATH="")
    assert told.python(f"import sys; print(sorted({heavy}))") == bare
    assert list(told.folder.iterdir()) == []


def test_several_devices_have_a_figure_each_by_uuid_or_else_by_place(told: Told) -> None:
    caps = f"GPU-a={4 * GIB},GPU-b={12 * GIB}"
    both = {"TIDEGATE_VRAM_CAPS": caps, "TIDEGATE_VRAM_CONTEXT_BYTES": "0"}
    other_order = f"GPU-b:{48 * GIB},GPU-a:{16 * GIB}"
    assert told.fractions(**both, FAKE_TORCH_DEVICES=other_order) == {"0": 0.25, "1": 0.25}
    no_names = f":{16 * GIB},:{48 * GIB}"
    assert told.fractions(**both, FAKE_TORCH_DEVICES=no_names) == {"0": 0.25, "1": 0.25}


def test_a_device_that_is_not_the_jobs_is_left_alone(told: Told) -> None:
    assert list(told.fractions(FAKE_TORCH_DEVICES=f":{CARD},:{CARD}")) == ["0"]


def test_a_device_that_the_command_showed_itself_is_capped_under_its_own_name(told: Told) -> None:
    assert list(told.fractions(FAKE_TORCH_DEVICES=f"ffff-1:{CARD}")) == ["0"]
    assert told.receipts("torch-applied")[0]["devices"][0]["uuid"] == "GPU-ffff-1", "no word about the one it leases"


def test_an_instance_that_torch_names_after_its_parent_goes_by_its_place(told: Told) -> None:
    told.fractions(FAKE_TORCH_DEVICES=f"ffff-1:{CARD}", TIDEGATE_VRAM_CAPS=f"MIG-aaa={GIB}")
    assert told.receipts("torch-applied")[0]["devices"][0]["uuid"] == "MIG-aaa"


@pytest.mark.parametrize(
    "version, capped",
    [
        pytest.param("2.9.1+cu128", ["1"], id="it would make a context on each"),
        pytest.param("2.10.0", ["0", "1"], id="it makes none"),
        pytest.param("1.13.1", ["1"], id="long ago"),
        pytest.param("3.0.0a0+git1", ["0", "1"], id="to come"),
    ],
)
def test_a_rank_keeps_to_its_own_device_where_a_limit_makes_a_context(
    told: Told, version: str, capped: list[str]
) -> None:
    two = {"TIDEGATE_VRAM_CAPS": f"GPU-a={GIB},GPU-b={GIB}", "FAKE_TORCH_DEVICES": f"GPU-a:{CARD},GPU-b:{CARD}"}
    assert list(told.fractions(**two, LOCAL_RANK="1", FAKE_TORCH_VERSION=version)) == capped


@pytest.mark.parametrize("version, of", [("2.9.1", 8 * GIB), ("2.10.0", CARD)])
def test_under_a_limit_of_the_driver_the_part_is_of_what_torch_itself_takes_for_the_whole(
    told: Told, version: str, of: int
) -> None:
    found = told.fractions(FAKE_TORCH_VERSION=version, FAKE_TORCH_LIMIT=str(8 * GIB))
    assert found == {"0": (8 * GIB - 512 * MIB) / of}


@pytest.mark.parametrize(
    "environ, devices, share",
    [
        pytest.param({"TIDEGATE_GPU_PROCESSES": "4"}, 1, 4, id="as the submission says"),
        pytest.param({"LOCAL_WORLD_SIZE": "2"}, 1, 2, id="two ranks on one device"),
        pytest.param({"LOCAL_WORLD_SIZE": "2"}, 2, 1, id="two ranks, a device each"),
        pytest.param({"LOCAL_WORLD_SIZE": "3"}, 2, 2, id="three ranks on two devices"),
        pytest.param({"TIDEGATE_GPU_PROCESSES": "none"}, 1, None, id="nonsense is nothing said"),
    ],
)
def test_several_processes_share_a_cap_with_a_context_each(
    told: Told, environ: dict[str, str], devices: int, share: int | None
) -> None:
    names = [f"GPU-{letter}" for letter in "ab"[:devices]]
    environ["TIDEGATE_VRAM_CAPS"] = ",".join(f"{name}={8 * GIB}" for name in names)
    environ["FAKE_TORCH_DEVICES"] = ",".join(f"{name}:{CARD}" for name in names)
    assert set(told.fractions(**environ).values()) == {(8 * GIB // (share or 1) - 512 * MIB) / CARD}
    assert told.receipts("torch-applied")[0]["devices"][0]["processes"] == share


def test_a_cap_below_a_context_is_the_least_and_never_no_limit(told: Told) -> None:
    assert told.fractions(TIDEGATE_VRAM_CAPS=f"GPU-a={100 * MIB}") == {"0": MIB / CARD}


def test_a_cap_above_the_card_is_the_whole_card(told: Told) -> None:
    assert told.fractions(TIDEGATE_VRAM_CAPS=f"GPU-a={99 * GIB}") == {"0": 1.0}


def test_memory_that_is_refused_leaves_a_receipt_with_what_the_device_had(told: Told) -> None:
    body = "import torch; torch.cuda.take(7 << 30)\ntry: torch.cuda.take(1 << 30)\nexcept RuntimeError: pass"
    told.python(body, FAKE_TORCH_FREE=str(15 * GIB))
    assert told.receipts("vram-cap") == [
        {
            "asked": GIB,
            "held": 7 * GIB,
            "cap": 8 * GIB,
            "pool": 8 * GIB - 512 * MIB,
            "device_free": 15 * GIB,
            "device": "GPU-a",
            "by": "torch",
        }
    ]
    assert told.receipts("torch-exit") == [{"reserved": {"GPU-a": 7 * GIB}}]


def test_what_fails_in_the_shim_never_reaches_the_job(told: Told) -> None:
    assert told.fractions(FAKE_TORCH_BREAKS="1") == {}
    assert told.receipts("torch-applied") == []
    assert told.fractions(TIDEGATE_RECEIPTS="/nowhere/at/all") != {}
    assert told.fractions(TIDEGATE_VRAM_CAPS="GPU-a=much,=,x", TIDEGATE_VRAM_CAP_BYTES="-1") == {}
    assert told.errors == ""


@pytest.mark.parametrize("environ", [{"TIDEGATE_SHIM": "0"}, {"TIDEGATE_VRAM_CAPS": "", "TIDEGATE_VRAM_CAP_BYTES": ""}])
def test_it_is_turned_off_for_a_job_and_stays_away_without_a_cap(told: Told, environ: dict[str, str]) -> None:
    assert told.fractions(**environ) == {}
    assert list(told.folder.iterdir()) == []


@pytest.mark.parametrize("flag", ["-I", "-S", "-E"])
def test_a_python_that_ignores_its_surroundings_is_not_armed(told: Told, flag: str) -> None:
    found = (
        f"import sys; sys.path.insert(0, {str(FAKE)!r}); import torch; torch.cuda.init(); print(torch.cuda.fractions)"
    )
    assert told.python(found, flag) == "{}\n"
    assert list(told.folder.iterdir()) == []


def test_the_sitecustomize_that_it_hides_runs_in_its_place_with_its_own_errors(told: Told, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    own.joinpath("sitecustomize.py").write_text("import sys\nsys.own = __file__\nMINE = __name__\n")
    told.path.append(str(own))
    body = "import sitecustomize, sys, torch; torch.cuda.init(); "
    body += "print(sys.own, sitecustomize.MINE, len(torch.cuda.fractions))"
    assert told.python(body) == f"{own}/sitecustomize.py sitecustomize 1\n"
    own.joinpath("sitecustomize.py").write_text("raise ValueError('theirs')\n")
    told.python("import torch")
    assert "Error in sitecustomize" in told.errors
    assert "ValueError: theirs" in told.errors
    assert len(told.receipts("torch-armed")) == 2


def test_torch_looks_as_if_nobody_had_stood_between(told: Told) -> None:
    body = (
        "import inspect, sys, torch; print(inspect.getsource(torch)[:13], type(torch.__loader__).__name__, "
        "'exec_module' in vars(torch.__loader__), [type(f).__name__ for f in sys.meta_path])"
    )
    assert told.python(body) == told.python(body, TIDEGATE_SHIM="0")


def test_a_torch_that_is_not_there_is_missed_in_its_own_words(told: Told) -> None:
    told.path.remove(str(FAKE))
    told.python("import torch", code=1)
    assert told.errors.rstrip().endswith("ModuleNotFoundError: No module named 'torch'")
    assert "tidegate" not in told.errors


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_that_are_made_by_others_are_told_too(told: Told, method: str, tmp_path: Path) -> None:
    script = tmp_path / "many.py"
    script.write_text(
        "import multiprocessing as m, torch\n"
        "def work(): torch.cuda.init(); assert torch.cuda.fractions\n"
        f"if __name__ == '__main__':\n    c = m.get_context({method!r})\n"
        "    ps = [c.Process(target=work) for _ in range(2)]\n"
        "    [p.start() for p in ps]; [p.join() for p in ps]; assert not any(p.exitcode for p in ps)\n"
    )
    told.python(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')" if method == "fork" else
                f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, {str(script)!r}]))")  # fmt: skip
    assert len(told.receipts("torch-applied")) == 2
