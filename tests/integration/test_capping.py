"""From a start to its end: what a job is told of its cap, what its processes answer, and what is then said of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from calibration import contexts
from calibration.models import ContextSeen
from calibration.probes import limits
from placement.models import Device, Job
from placement.services import capping, device_environment, evidence, lifecycle, nodes, receipts, starting
from tests.builders import GIB, MIB
from tests.integration.loop_here import Here, here
from tests.nvml_stub import Device as Card
from tests.nvml_stub import State, build
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)
FAKE = str(Path(__file__).parents[1] / "fake_torch")
TORCH = f"exec {sys.executable} -c 'import torch, time; torch.cuda.init(); time.sleep(60)'"
ON = {"gpu": "one", "declared_vram": 4 * GIB}


@pytest.fixture
def node(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    """Make a node whose card passes for a real one."""
    with here(settings, tmp_path) as made:
        monkeypatch.setattr(nodes, "discover", lambda *_: None)
        Device.objects.update(simulated=False, model="NVIDIA Stub")
        yield made


def force(node: Here, job: Job) -> dict[str, Any]:
    node.tick()
    job.refresh_from_db()
    found: dict[str, Any] = job.charges[job.device]["force"]
    return found


def with_torch(node: Here, command: str = TORCH, run: bool = True, **environment: str) -> Job:
    card = f"SIM-testnode-0:{24 * GIB}"
    given = {"PYTHONPATH": FAKE, "FAKE_TORCH_DEVICES": card, **environment}
    return (node.run if run else node.submit)(command, environment=given, **ON)


def test_a_job_whose_torch_was_told_is_capped_with_a_receipt(node: Here) -> None:
    job = with_torch(node)
    until(lambda: force(node, job)["kind"] == "framework", 20, "the receipt")
    cap = job.charges[job.device]["cap"]
    found = force(node, job)
    assert found["sentence"].startswith("capped in torch at ")
    assert found["sentence"].endswith("and its context (receipt of 1 process)")
    assert (found["bytes"], found["evidence"]["applied"]) == (cap, [job.child["pid"]])
    [receipt] = (lifecycle.run_dir_of(job) / "receipts").glob("*.torch-applied.json")
    assert json.loads(receipt.read_text())["devices"][0]["pool"] == cap - 512 * MIB


@pytest.mark.parametrize(
    "command, environment, why",
    [
        pytest.param(TORCH, {"TIDEGATE_SHIM": "0"}, "the submission turned the shim off", id="turned off"),
        pytest.param(f"export PYTHONPATH={FAKE}; {TORCH}", {}, "no receipt came", id="PYTHONPATH replaced"),
        pytest.param(TORCH.replace("exec", f"exec env -i PYTHONPATH={FAKE}"), {}, "no receipt came", id="env -i"),
        pytest.param("sleep 60", {}, "no receipt came", id="no Python at all"),
        pytest.param(TORCH.replace("torch.cuda.init();", ""), {}, "torch has not used the device yet", id="armed only"),
    ],
)
def test_without_a_receipt_it_is_watched(node: Here, command: str, environment: dict[str, str], why: str) -> None:
    job = with_torch(node, command, **environment)
    until(lambda: why in force(node, job)["sentence"], 20, "the reason")
    found = force(node, job)
    assert (found["kind"], found["bytes"]) == ("watched", None)
    assert found["sentence"].startswith("watched, not capped: ")


def test_a_short_run_is_judged_by_what_it_left(node: Here) -> None:
    job = node.end(with_torch(node, TORCH.replace("time.sleep(60)", "pass"), run=False))
    assert job.outcome == "completed"
    assert job.charges[job.device]["force"]["kind"] == "framework"


@pytest.mark.parametrize(
    "free, outcome",
    [
        pytest.param(20 * GIB, "cap_exceeded", id="the card had room: the cap refused it"),
        pytest.param(GIB, "out_of_memory", id="the card was full: no proof of the cap"),
    ],
)
def test_memory_that_torch_refuses_is_the_caps_doing_only_with_proof(node: Here, free: int, outcome: str) -> None:
    command = TORCH.replace("time.sleep(60)", f"torch.cuda.take({10 * GIB})")
    job = node.end(with_torch(node, command, run=False, FAKE_TORCH_FREE=str(free)))
    assert job.outcome == outcome, job.sentence
    refused = job.evidence["cap_receipt"]
    assert (refused["asked"], refused["device_free"]) == (10 * GIB, free)
    assert refused["cap"] == job.charges[job.device]["cap"]


def test_a_run_that_got_over_a_refusal_is_no_breach(node: Here) -> None:
    tried = f"try: torch.cuda.take({10 * GIB})\nexcept RuntimeError: pass"
    body = f"import torch; torch.cuda.init()\n{tried}\n"
    job = node.end(with_torch(node, f"exec {sys.executable} -c '{body}'", run=False))
    assert job.outcome == "completed"
    assert job.charges[job.device]["force"]["kind"] == "framework"


def test_a_simulated_device_keeps_the_cap_itself(node: Here) -> None:
    Device.objects.update(simulated=True)
    assert force(node, node.run("sleep 60", **ON))["sentence"].startswith("capped by the simulated device at ")


FORGED: list[Callable[[Path], object]] = [
    lambda folder: (folder / "receipts" / "7.torch-applied.json").write_text("[" * 5000),
    lambda folder: (folder / "receipts" / "7.torch-applied.json").write_text('{"devices": [[], 3, {"uuid": []}]}'),
    lambda folder: (folder / "receipts" / "7.torch-applied.json").write_text('{"devices": {"uuid": "x"}}'),
    lambda folder: (folder / "receipts" / "7.torch-exit.json").write_text('{"reserved": {"": 1e400}}'),
    lambda folder: (folder / "receipts" / "7.torch-applied.json").mkdir(),
    lambda folder: os.mkfifo(folder / "receipts" / "8.torch-armed.json"),
    lambda folder: (folder / "control" / capping.TOLD).write_text('{"context": "much", "kept": {}, "mps": -1}'),
    lambda folder: (folder / "control" / capping.LIMIT).write_text('{"limit": "all", "used": [], "why": [1]}'),
]


@pytest.mark.parametrize("put", FORGED, ids=[str(number) for number in range(len(FORGED))])
def test_what_a_job_puts_in_place_of_a_receipt_breaks_nothing(node: Here, put: Callable[[Path], object]) -> None:
    job = node.run("sleep 60", **ON)
    put(lifecycle.run_dir_of(job))
    assert force(node, job)["kind"] == "watched"


def test_a_forged_receipt_changes_a_sentence_and_nothing_that_is_decided(node: Here) -> None:
    job = node.run("sleep 60", **ON)
    force(node, job)
    before = job.charges[job.device]
    forged = {"devices": [{"uuid": job.device, "pool": 1}]}
    (lifecycle.run_dir_of(job) / "receipts" / "7.torch-applied.json").write_text(json.dumps(forged))
    assert force(node, job)["kind"] == "framework"
    assert {**job.charges[job.device], "force": None} == {**before, "force": None}


def test_the_driver_keeps_a_group_within_the_cap_where_it_can(
    node: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = State(tmp_path / "nvml.txt")
    state.write([Card("GPU-a")])
    for name, value in state.environ(build(tmp_path)).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(capping, "_unable", {})
    monkeypatch.setattr(capping, "_limited", set())
    job = node.run("sleep 60", **ON)
    job.charges = {"GPU-a": {**job.charges[job.device], "cap": 12 * GIB}}
    job.device = "GPU-a"
    assert capping.limit(job, "") != ""
    assert "cgroup v2 alone" in capping.limit(job, "/sys/fs/cgroup/unified/tidegate.slice/x")
    assert capping.limit(job, str(tmp_path)) == ""
    assert capping.stand(job)["sentence"] == "capped by the driver at 12.0 GiB"
    job.used = {"GPU-a": 11 * GIB}
    capping._most_used(job, job.device, 11 * GIB)
    kept = receipts.plain(lifecycle.run_dir_of(job) / "control" / capping.LIMIT)
    assert (kept["limit"], kept["used"]) == (12 * GIB, 11 * GIB)
    Device.objects.update(uuid="GPU-a")
    assert device_environment.of(job, {}, "").variables["TIDEGATE_GPU_FRACTION"] == "1.000", "of what CUDA then tells"
    assert capping.unlimit(job) == ""
    assert [row[0] for row in state.kept_limits()] == ["GPU-a", "GPU-a"]
    state.write([Card("GPU-a")], limits=3)
    assert "Not Supported" in capping.limit(job, str(tmp_path))
    assert "TIDEGATE_GPU_FRACTION" not in device_environment.of(job, {}, "").variables, "the card's size is not known"
    found = capping.stand(job)
    assert (found["kind"], "Not Supported" in found["evidence"]["driver"]) == ("watched", True)
    state.path.unlink()
    assert "Not Supported" in capping.limit(job, str(tmp_path)), "asked once: it does not learn to while this runs"


def test_a_start_asks_no_driver_that_can_keep_no_limit(node: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def refused(device: str, group: str, size: int) -> limits.Answer:
        asked.append(device)
        return limits.Answer("the NVIDIA driver: Insufficient Permissions", False)

    monkeypatch.setattr(limits, "set_limit", refused)
    monkeypatch.setattr(capping, "_unable", {})
    job = node.run("sleep 60", **ON)
    assert capping.limit(job, "/sys/fs/cgroup/job") == "only whole NVIDIA devices can be limited per group"
    assert asked == []
    job.charges = {"GPU-a": {**job.charges[job.device], "cap": 12 * GIB}}
    job.device = "GPU-a"
    said = [capping.limit(job, "/sys/fs/cgroup/job") for _ in range(3)]
    assert asked == ["GPU-a"], "each question is a process of its own"
    assert len(set(said)) == 1


def test_mps_is_used_where_an_admin_turned_it_on_and_a_server_lives(
    node: Here, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = node.run("sleep 60", **ON)
    Device.objects.filter(uuid=job.device).update(uuid="GPU-a")
    job.charges, job.device = {"GPU-a": {**job.charges[job.device], "cap": 2 * GIB}}, "GPU-a"
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    told = device_environment.of(job, {}, "")
    assert (told.told["mps"], "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT" in told.variables) == (None, False)
    settings.MPS_LIMITS = True
    assert device_environment.of(job, {}, "").told["mps"] is None, "no server listens there"
    (tmp_path / "control").touch()
    (tmp_path / "nvidia-cuda-mps-control.pid").write_text(f"{os.getpid()}\n")
    told = device_environment.of(job, {}, "")
    assert told.told["mps"] == 2 * GIB
    assert told.variables["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "GPU-a=2048M"
    assert told.variables["CUDA_MPS_PIPE_DIRECTORY"] == str(tmp_path)
    capping.note(lifecycle.run_dir_of(job), told.told)
    assert capping.stand(job)["sentence"] == "capped by the MPS server at 2.0 GiB"


def test_an_instance_is_told_by_its_name_and_is_itself_the_cap(node: Here) -> None:
    job = node.run("sleep 60", **ON)
    Device.objects.filter(uuid=job.device).update(uuid="MIG-aaa", backend="CUDA")
    job.charges, job.device = {"MIG-aaa": {**job.charges[job.device], "cap": 12000 * MIB}}, "MIG-aaa"
    told = device_environment.of(job, {}, "")
    assert told.variables["CUDA_VISIBLE_DEVICES"] == told.variables["TIDEGATE_DEVICE_UUIDS"] == "MIG-aaa"
    capping.note(lifecycle.run_dir_of(job), {**told.told, "total": 19968 * MIB})
    assert capping.stand(job)["sentence"] == "capped by its MIG instance, which has 19.5 GiB"


def test_a_job_that_shows_itself_another_device_is_watched_on_the_one_it_leases(node: Here) -> None:
    Device.objects.update(uuid="GPU-a")
    job = node.submit("sleep 60", **ON)
    job.device, job.charges = "GPU-a", {"GPU-a": {"cap": 4 * GIB}}
    run_dir = lifecycle.run_dir_of(job)
    (run_dir / "receipts").mkdir(parents=True)
    (run_dir / "control").mkdir()
    other = {"devices": [{"uuid": "GPU-other", "pool": GIB}]}
    (run_dir / "receipts" / "7.torch-applied.json").write_text(json.dumps(other))
    assert capping.stand(job)["kind"] == "watched"


def test_what_the_service_itself_sees_of_devices_reaches_no_job(node: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "GPU-x=1G")
    job = node.run("sleep 60", **ON)
    given = starting.environment(job, lifecycle.run_dir_of(job), None)
    assert (given["CUDA_VISIBLE_DEVICES"], given["TIDEGATE_DEVICE_UUIDS"]) == ("0", job.device)
    assert "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT" not in given
    ram_only = node.run("sleep 60")
    given = starting.environment(ram_only, lifecycle.run_dir_of(ram_only), None)
    assert given["CUDA_VISIBLE_DEVICES"] == "", "an explicit none"
    assert not [name for name in given if "VRAM" in name]
    assert given["PYTHONPATH"] == str(device_environment.CLIENT)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change accounts")
def test_a_mapped_account_reads_a_copy_that_it_cannot_change(node: Here, settings: Any) -> None:
    with tempfile.TemporaryDirectory(prefix="tidegate-") as folder:
        os.chmod(folder, 0o711)
        settings.DATA = Path(folder) / "data"
        settings.DATA.mkdir()
        settings.DATA.chmod(0o711)  # as a start under an account makes it
        device_environment.for_everybody()
        (settings.DATA / "shim" / "sitecustomize.py").write_text("raise ValueError('of an older version')")
        job = node.run("sleep 60", **ON)
        python_path = device_environment.of(job, {}, "", other_account=True).variables["PYTHONPATH"]
        assert python_path == f"{settings.DATA}/shim"
        body = "import os, tidegate_shim as t; print(t.__file__, os.access(os.path.dirname(t.__file__), os.W_OK))"
        seen = subprocess.run(
            ["python3", "-c", body],
            env={"PYTHONPATH": python_path, "PATH": "/usr/bin:/bin"},
            user=65534,
            group=65534,
            extra_groups=[],
            capture_output=True,
            text=True,
            cwd="/",
        )
        assert (seen.stdout, seen.stderr) == (f"{python_path}/tidegate_shim.py False\n", "")


def test_a_context_is_learned_from_what_torch_held_and_the_next_job_is_told(node: Here) -> None:
    job = node.run("sleep 60", **ON)
    run_dir = lifecycle.run_dir_of(job)
    applied = {"devices": [{"uuid": job.device, "pool": GIB}]}
    (run_dir / "receipts" / "7.torch-applied.json").write_text(json.dumps(applied))
    (run_dir / "receipts" / "7.torch-exit.json").write_text(json.dumps({"reserved": {job.device: 2 * GIB}}))
    force(node, job)
    capping.learn(job, 2 * GIB + 426 * MIB, timezone.now())
    assert list(ContextSeen.objects.values_list("model", "bytes", "user")) == [("NVIDIA Stub", 426 * MIB, "ann")]
    for number in (1, 2):
        contexts.keep("NVIDIA Stub", "ann", f"job:other{number}", 426 * MIB, timezone.now())
    told = device_environment.of(job, {}, "/mine")
    assert told.variables["TIDEGATE_VRAM_CONTEXT_BYTES"] == str(426 * MIB)
    assert told.variables["PYTHONPATH"] == f"{device_environment.SHIM}:/mine"
    assert (told.told["context"], told.told["context_runs"]) == (426 * MIB, 3)


def test_two_processes_or_a_simulated_card_teach_nothing_of_contexts(node: Here) -> None:
    job = node.run("sleep 60", **ON)
    folder = lifecycle.run_dir_of(job) / "receipts"
    for pid in (7, 8):
        row = {"uuid": job.device, "pool": GIB}
        (folder / f"{pid}.torch-applied.json").write_text(json.dumps({"devices": [row]}))
        (folder / f"{pid}.torch-exit.json").write_text(json.dumps({"reserved": {job.device: GIB}}))
    capping.learn(job, 2 * GIB + 426 * MIB, timezone.now())
    (folder / "8.torch-applied.json").unlink()
    Device.objects.update(simulated=True)
    capping.learn(job, GIB + 426 * MIB, timezone.now())
    assert not ContextSeen.objects.exists()


def test_a_refusal_is_found_among_the_receipts_of_many_processes(tmp_path: Path) -> None:
    (tmp_path / "receipts").mkdir()
    for pid in range(1000, 1300):
        (tmp_path / "receipts" / f"{pid}.torch-armed.json").write_text("{}")
        (tmp_path / "receipts" / f"{pid}.torch-applied.json").write_text('{"devices": [{"uuid": "GPU-a", "pool": 1}]}')
    (tmp_path / "receipts" / "9999.vram-cap.json").write_text('{"asked": 7}')
    assert evidence.cap_receipt(tmp_path) is not None
    assert len(receipts.read(tmp_path, "GPU-a").applied) == 300


def test_loader_processes_that_went_long_ago_hide_neither_the_caps_nor_the_last_refusal(tmp_path: Path) -> None:
    folder = tmp_path / "receipts"
    folder.mkdir()
    for pid in range(1000, 2300):
        (folder / f"{pid}.torch-armed.json").write_text("{}")
    for pid in range(300):
        survived = folder / f"{pid}.vram-cap.json"
        survived.write_text('{"asked": 1}')
        os.utime(survived, (1e9, 1e9))
    (folder / "9000.torch-applied.json").write_text('{"devices": [{"uuid": "GPU-a", "pool": 1}]}')
    (folder / "9000.vram-cap.json").write_text('{"asked": 7}')
    found = receipts.read(tmp_path, "GPU-a")
    assert [one.pid for one in found.applied] == [9000]
    assert len(found.armed) == receipts.MOST
    refused = evidence.cap_receipt(tmp_path)
    assert refused is not None
    assert refused[0] == {"asked": 7}


def test_a_receipt_of_a_larger_cap_than_the_job_was_told_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "receipts").mkdir()
    (tmp_path / "receipts" / "7.vram-cap.json").write_text(json.dumps({"asked": GIB, "cap": 2 * GIB}))
    assert evidence.cap_receipt(tmp_path, GIB) is None
    for told in (2 * GIB, None):
        assert evidence.cap_receipt(tmp_path, told) == evidence.cap_receipt(tmp_path)


def test_receipts_of_another_device_are_not_this_ones(tmp_path: Path) -> None:
    (tmp_path / "receipts").mkdir()
    rows = [{"uuid": "GPU-a", "pool": 1, "processes": True}, {"uuid": "GPU-b", "pool": 2, "processes": 2}]
    (tmp_path / "receipts" / "7.torch-applied.json").write_text(json.dumps({"devices": rows}))
    (tmp_path / "receipts" / "7.TORCH-applied.json").write_text(json.dumps({"devices": rows}))
    [one] = receipts.read(tmp_path, "GPU-b").applied
    assert one == replace(one, pid=7, framework="torch", pool=2, processes=2)
    assert receipts.read(tmp_path, "GPU-c").applied == ()
    assert receipts.read(tmp_path / "nowhere", "GPU-a") == receipts.Receipts()
