from __future__ import annotations

import pytest

from placement.domain.containers import (
    UNKEPT,
    Container,
    id_of,
    kill_command,
    label_command,
    problem,
    remove_command,
    run_command,
    state_command,
    stop_command,
    unkept,
)

ID = "0123456789abcdef" * 4
PLAIN = Container(engine="docker", image="team/train:2", job=7, name="tidegate-1a-7-1", cidfile="/runs/7-1/control/cid")


def after(line: list[str], option: str) -> str:
    return line[line.index(option) + 1]


def test_a_container_is_named_labelled_and_written_down() -> None:
    line = run_command(PLAIN)
    assert line[:3] == ["docker", "run", "--init"]
    assert (after(line, "--name"), after(line, "--label")) == ("tidegate-1a-7-1", "tidegate.job=7")
    assert after(line, "--cidfile") == "/runs/7-1/control/cid"
    assert after(line, "--env") == "TIDEGATE_JOB_ID=7"
    assert line[-1] == "team/train:2"
    assert not {"--memory", "--gpus", "--user", "--rm"} & set(line)


def test_its_memory_has_no_swap_beside_it_and_its_devices_are_named_by_uuid() -> None:
    line = run_command(
        Container(
            engine="podman",
            image="i",
            job=7,
            name="n",
            cidfile="/c",
            memory=6 << 30,
            devices=("GPU-a", "GPU-b"),
            command=("python", "-c", "print(1)"),
            workdir="/data",
            mounts=("/data",),
            user="1000:1000",
        )
    )
    assert after(line, "--memory") == after(line, "--memory-swap") == f"{6 << 30}b"
    assert after(line, "--gpus") == '"device=GPU-a,GPU-b"'
    assert (after(line, "--volume"), after(line, "--workdir"), after(line, "--user")) == (
        "/data:/data",
        "/data",
        "1000:1000",
    )
    assert line[-4:] == ["i", "python", "-c", "print(1)"]


def test_no_value_of_a_variable_is_in_the_line() -> None:
    line = run_command(
        Container(
            engine="docker",
            image="i",
            job=7,
            name="n",
            cidfile="/c",
            environment={"TOKEN": "s3cret", "TIDEGATE_JOB_ID": "7"},
        )
    )
    assert "s3cret" not in " ".join(line)
    assert [line[at + 1] for at, word in enumerate(line) if word == "--env"] == ["TIDEGATE_JOB_ID", "TOKEN"]


def test_the_lines_that_end_it_and_ask_about_it() -> None:
    assert stop_command("docker", "n", 9.6) == ["docker", "stop", "--time", "10", "n"]
    assert kill_command("docker", "n") == ["docker", "kill", "n"]
    assert remove_command("podman", "n") == ["podman", "rm", "--force", "n"]
    assert state_command("docker", "n")[-2:] == ["{{.State.OOMKilled}} {{.State.ExitCode}}", "n"]
    assert label_command("docker", ID)[-2:] == ['{{index .Config.Labels "tidegate.job"}}', ID]


@pytest.mark.parametrize(
    "path",
    [
        f"/system.slice/docker-{ID}.scope",
        f"/docker/{ID}",
        f"/machine.slice/libpod-{ID}.scope/container",
        f"/kubepods.slice/pod1/cri-containerd-{ID}.scope",
        f"/kubepods/pod1/{ID}",
    ],
)
def test_the_id_is_found_in_the_paths_of_all_engines(path: str) -> None:
    assert id_of(path) == ID


@pytest.mark.parametrize(
    "path", ["", "/", "/tidegate.slice/tidegate-1a-7-1", f"/x/{ID}0", f"/x/docker-{ID[:60]}.scope"]
)
def test_what_is_no_container_has_no_id(path: str) -> None:
    assert id_of(path) == ""


@pytest.mark.parametrize(
    "command",
    [
        "docker run team/x",
        "cd /data && sudo docker run -it x",
        "/usr/bin/podman run x",
        "docker compose up",
        "sudo -E docker start x; docker logs x",
    ],
)
def test_a_command_that_starts_a_container_by_itself_is_flagged(command: str) -> None:
    assert unkept(command) == UNKEPT
    assert unkept("", command.split()) == UNKEPT
    assert unkept(f"{command} --label tidegate.job=$TIDEGATE_JOB_ID") == ""


@pytest.mark.parametrize(
    "command", ["python train.py", "docker ps", "cat docker-run.txt", "./mydocker run", "docker build ."]
)
def test_what_starts_none_is_not(command: str) -> None:
    assert unkept(command) == ""


def test_what_cannot_be_run_is_told() -> None:
    assert problem("docker", "registry.example:5000/team/x:1") == ""
    assert problem("lxc", "x") == "Containers are run by docker or podman, not by lxc."
    assert problem("docker", "--privileged") != ""
    assert problem("docker", "") != ""
