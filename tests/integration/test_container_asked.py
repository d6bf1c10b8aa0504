"""What is asked of a container before it runs, and what the pages, the API and the doctor say of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from placement.domain.errors import Infeasible, Refused
from placement.domain.jobs import State
from placement.models import Job
from placement.selectors import again
from placement.services import accounts, container_spec, device_environment, inspection, jobs, receipts
from tests.engines import Docker, docker
from tests.integration.engine_here import node_with, up
from tests.integration.loop_here import Here
from tests.integration.rows import a_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def engine() -> Iterator[Docker]:
    with docker() as made:
        yield made


@pytest.fixture
def node(settings: Any, tmp_path: Path, engine: Docker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    with node_with(engine, settings, tmp_path, monkeypatch) as made:
        yield made


def test_a_container_is_part_of_the_key_and_is_kept_when_it_is_used_again(node: Here) -> None:
    plain, first = node.submit("python3 t.py"), node.submit("python3 t.py", image="team/train:2")
    other = node.submit("python3 t.py", image="team/train:3", engine="docker")
    assert len({job.key_params for job in (plain, first, other)}) == 3
    assert again.of(node.user, other.pk, False).fields["image"] == "team/train:3"
    assert again.of(node.user, other.pk, False).fields["engine"] == "docker"
    jobs.cancel(node.user, other.pk)
    repeated = jobs.retry(node.user, other.pk)
    assert (repeated.image, repeated.engine, repeated.key_params) == ("team/train:3", "docker", other.key_params)


@pytest.mark.parametrize(
    "fields, name",
    [
        ({"image": "--privileged"}, "image"),
        ({"image": "x", "engine": "lxc"}, "engine"),
        ({"engine": "docker"}, "engine"),
        ({"image": "x", "environment": {"LD_PRELOAD": "/tmp/x.so"}}, "environment"),
        ({"image": "x", "argv": ("true",), "command": "", "setup": "export A=1"}, "setup"),
    ],
)
def test_what_cannot_be_a_container_is_refused_beside_its_field(node: Here, fields: dict[str, Any], name: str) -> None:
    with pytest.raises(Refused) as told:
        node.submit(**{"command": "true", **fields})
    assert name in told.value.fields


def test_the_form_and_the_page_say_it_to_whom_it_concerns(node: Here, client: Client) -> None:
    client.force_login(node.user)
    assert 'id="container"' not in client.get("/submit").content.decode()  # nobody said yet that a node has an engine
    node.tick()
    form = {"command": "sleep 9", "cwd": "/tmp", "form_key": "k", "gpu": "none", "exclusive": "no", "workers": "1",
            "declared_ram": "32 MiB", "image": "--privileged", "engine": "docker"}  # fmt: skip
    assert "Container: run it in an image, by docker" in client.get("/submit").content.decode()
    refused = client.post("/submit", form).content.decode()
    assert '<details id="container" open>' in refused
    assert "An image is a name such as registry.example/team/name:tag." in refused
    client.post("/submit", {**form, "image": "team/train:2"})
    job = Job.objects.get()
    assert (job.image, job.engine) == ("team/train:2", "docker")
    assert "in container team/train:2 by docker" in client.get(f"/jobs/{job.pk}").content.decode()
    assert client.get(f"/api/v1/jobs/{job.pk}").json()["job"]["image"] == "team/train:2"
    again_ = client.get(f"/submit?again={job.pk}").content.decode()
    assert 'value="team/train:2"' in again_
    client.force_login(a_user("bo"))
    others = client.get(f"/jobs/{job.pk}").content.decode()
    assert "in a container" in others
    assert "team/train" not in others
    assert "image" not in client.get(f"/api/v1/jobs/{job.pk}").json()["job"]


def test_an_account_of_its_own_its_device_and_the_shim_are_in_the_line(
    node: Here, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "may_enter", lambda account, folder: True)
    settings.CONTAINER_MOUNTS = [Path("/srv")]
    job = Job(
        pk=7,
        attempt=1,
        node="testnode",
        cwd="/work",
        image="team/train:2",
        command="t.py",
        device="GPU-a",
        user=node.user,
    )
    bob = {"name": "bob", "uid": 1234, "gid": 1235, "groups": None, "home": "/home/bob"}
    shim = str(device_environment.SHIM)
    given = {"PYTHONPATH": f"{shim}:/mine", "TIDEGATE_JOB_ID": "7", "TOKEN": "s3cret", "TEXT": "two\nlines"}
    asks, door = settings.DATA / "client", settings.DATA / "inside"
    given["TIDEGATE_SOCKET"] = f"{door}/socket"
    (tmp_path / "control").mkdir()
    made = container_spec.spec(job, tmp_path, {"command": "t.py"}, bob, given, 1 << 30)
    line = made["argv"]
    assert (made["account"], made["setup"], made["container"]["limit"]) == (None, "", 1 << 30)
    volumes = [line[at + 1] for at, word in enumerate(line) if word == "--volume"]
    assert volumes == [
        "/work:/work",
        f"{tmp_path}/receipts:{tmp_path}/receipts",
        "/srv:/srv",
        f"{shim}:{shim}:ro",
        f"{asks}:{asks}:ro",
        f"{door}:{door}:ro",
    ]
    assert made["cwd"] == str(tmp_path / "control")  # podman makes a file where its client is started
    assert line[line.index("--user") + 1] == "1234:1235"
    assert line[line.index("--gpus") + 1] == '"device=GPU-a"'
    first, last, _ = line[-1].split("\n")
    assert first == f"export PYTHONPATH={shim}${{PYTHONPATH:+:$PYTHONPATH}}"
    assert last == f"export PYTHONPATH=${{PYTHONPATH:+$PYTHONPATH:}}{asks}"
    # The client may do more than the job: of the job's variables it takes none for its own that a file can hold.
    handed = Path(line[line.index("--env-file") + 1])
    assert handed.read_text() == f"PYTHONPATH=/mine\nTIDEGATE_JOB_ID=7\nTIDEGATE_SOCKET={door}/socket\nTOKEN=s3cret\n"
    assert handed.stat().st_mode & 0o777 == 0o600
    assert made["env"]["TEXT"] == "two\nlines"
    assert not {"TOKEN", "PYTHONPATH"} & set(made["env"])
    assert not {"TOKEN", "TEXT"} & set(made["container"]["env"])
    listed = container_spec.spec(job, tmp_path, {"argv": ["t.py", "-x"]}, bob, given, None)["argv"]
    assert listed[-3:] == ["team/train:2", "t.py", "-x"]
    assert f"{shim}:{shim}:ro" not in listed  # it leads, which only a shell can have it do
    assert f"{asks}:{asks}:ro" in listed
    assert f"PYTHONPATH=/mine:{asks}\n" in handed.read_text()
    job.more_devices = "GPU-b"
    both = container_spec.spec(job, tmp_path, {"command": "t.py"}, bob, given, None)["argv"]
    assert both[both.index("--gpus") + 1] == '"device=GPU-a,GPU-b"'
    job.reserves = True  # it may still ask for the third
    given["TIDEGATE_DEVICE_UUIDS"] = "GPU-a,GPU-b,GPU-c"
    every = container_spec.spec(job, tmp_path, {"command": "t.py"}, bob, given, None)["argv"]
    assert every[every.index("--gpus") + 1] == '"device=GPU-a,GPU-b,GPU-c"'
    with pytest.raises(Refused, match="colon"):
        container_spec.spec(
            Job(pk=7, attempt=1, node="testnode", cwd="/a:b", image="x"), tmp_path, {"command": "x"}, bob, {}, None
        )
    settings.CONTAINER_MOUNTS = [tmp_path / "none"]
    with pytest.raises(Refused, match=f"names {tmp_path}/none, and there is no such folder on this node"):
        container_spec.spec(job, tmp_path, {"command": "x"}, bob, {}, None)
    settings.CONTAINER_MOUNTS = []
    with pytest.raises(Refused, match="LD_PRELOAD"):
        container_spec.spec(job, tmp_path, {"command": "x"}, bob, {"LD_PRELOAD": "x"}, None)


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes other accounts")
def test_a_folder_that_the_account_may_not_enter_is_mounted_for_nobody(node: Here, tmp_path: Path) -> None:
    nobody = {"name": "nobody", "uid": 65534, "gid": 65534, "groups": [], "home": "/"}
    closed, inside = Path("/tmp") / f"tidegate-closed-{os.getpid()}", "open"
    closed.mkdir(mode=0o700)
    try:
        (closed / inside).mkdir(mode=0o755)
        assert accounts.may_enter(None, str(closed / inside))
        assert accounts.may_enter(nobody, "/tmp")
        assert not accounts.may_enter(nobody, str(closed / inside))
        job = Job(pk=7, attempt=1, node="testnode", cwd=str(closed / inside), image="x", user=node.user)
        with pytest.raises(Refused, match="nobody may not enter the working directory"):
            container_spec.spec(job, tmp_path, {"command": "x"}, nobody, {}, None)
    finally:
        (closed / inside).rmdir()
        closed.rmdir()


def test_a_running_one_says_which_engine_it_was(node: Here, client: Client, engine: Docker) -> None:
    job, _, _ = up(node, engine)
    node.tick()
    client.force_login(node.user)
    assert "in container team/train:2 by docker" in client.get(f"/jobs/{job.pk}").content.decode()
    jobs.cancel(node.user, job.pk)
    node.end(job)


def test_a_process_is_known_by_the_number_it_has_inside(tmp_path: Path) -> None:
    (tmp_path / "51").mkdir()
    (tmp_path / "51" / "status").write_text("Name:\tpython\nNSpid:\t51\t7\n")
    assert [receipts.own_number(pid, str(tmp_path)) for pid in (51, 52)] == [7, 52]
    assert receipts.own_number(os.getpid()) == os.getpid()


def test_the_doctor_has_a_row(node: Here, settings: Any) -> None:
    def row() -> tuple[bool | None, str]:
        (found,) = [f for f in inspection.findings() if f.what == "containers"]
        return found.ok, found.sentence

    assert row() == (True, "docker 27.1.0 answers; no podman was found")
    settings.CONTAINERS = "off"
    assert row()[0] is None


def test_where_no_engine_works_a_container_can_never_start_and_why_is_told(node: Here, settings: Any) -> None:
    node.tick()
    with pytest.raises(Infeasible, match=r"testnode: no podman\.") as told:
        node.submit("true", image="x", engine="podman")
    assert "it runs in a container" in told.value.sentence
    settings.CONTAINERS = "off"
    node.new_worker()
    node.tick()
    with pytest.raises(Infeasible, match="switched off"):
        node.submit("true", image="x")
    assert node.submit("true").state == State.QUEUED
