from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from placement.domain.containing.containers import (
    UNKEPT,
    Container,
    for_file,
    id_of,
    kill_command,
    label_command,
    limit_command,
    list_command,
    problem,
    refused_names,
    remove_command,
    run_command,
    shell_text,
    state_command,
    stop_command,
    unkept,
    version_command,
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
    assert "TIDEGATE_JOB_ID=7" in line
    assert line[-1] == "team/train:2"
    assert after(line, "--security-opt") == "no-new-privileges"
    assert not {"--memory", "--gpus", "--user", "--rm", "--device", "--entrypoint"} & set(line)


def test_without_a_device_it_is_given_none_whatever_its_image_asks_for() -> None:
    assert "NVIDIA_VISIBLE_DEVICES=void" in run_command(PLAIN)
    with_one = run_command(replace(PLAIN, devices=("GPU-a",)))
    assert "NVIDIA_VISIBLE_DEVICES=void" not in with_one
    assert after(with_one, "--gpus") == '"device=GPU-a"'
    assert after(run_command(replace(PLAIN, engine="/usr/bin/podman", devices=("GPU-a",))), "--device") == (
        "nvidia.com/gpu=GPU-a"
    )


def test_a_text_is_run_by_a_shell_inside_after_its_set_up_line_and_behind_the_shim() -> None:
    text = shell_text("echo $PYTHONPATH; echo $X", "export X='a b'", "/shim dir")
    line = run_command(replace(PLAIN, text=text, seen=("/shim dir",)))
    assert after(line, "--volume") == "/shim dir:/shim dir:ro"
    at = line.index("--entrypoint")
    inside = [line[at + 1], *line[at + 3 :]]
    done = subprocess.run(inside, capture_output=True, text=True, env={"PYTHONPATH": "/image"}, check=True)
    assert done.stdout == "/shim dir:/image\na b\n"
    assert subprocess.run(inside, capture_output=True, text=True, env={}, check=True).stdout == "/shim dir\na b\n"


def test_a_set_up_line_that_fails_ends_it_with_its_code() -> None:
    done = subprocess.run(["sh", "-c", shell_text("echo ran", "(exit 4)")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (4, "")
    assert "set-up line failed with code 4" in done.stderr


def test_only_an_engine_without_rights_of_its_own_keeps_the_number_of_its_user() -> None:
    line = run_command(replace(PLAIN, engine="podman", user="1000:1000", keep_id=True))
    assert after(line, "--userns") == "keep-id"
    assert "--userns" not in run_command(replace(PLAIN, user="1000:1000", keep_id=True))


@pytest.mark.parametrize(
    "name",
    ["LD_PRELOAD", "PATH", "HOME", "DOCKER_HOST", "docker_host", "CONTAINERS_CONF", "GODEBUG", "_CONTAINERS_X", "PS4"],
)
def test_what_the_client_reads_itself_is_given_to_no_container(name: str) -> None:
    assert name in refused_names(["LR", name])
    assert refused_names(["LR", "PYTHONPATH", "MY_PATH", "GOAL_2", "HF_HOME"]) == ""


def test_its_memory_has_no_swap_beside_it_and_its_devices_are_named_by_uuid() -> None:
    line = run_command(
        Container(
            engine="/usr/bin/docker",
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
    assert [line[at + 1] for at, word in enumerate(line) if word == "--env"][1:] == ["TIDEGATE_JOB_ID", "TOKEN"]


def test_what_no_line_of_a_file_can_hold_stays_in_the_environment() -> None:
    text, rest = for_file({"A": "1 # 'x' = \u00e9", "EMPTY": "", "TWO": "a\nb", "RETURN": "a\r", "LONG": "x" * 70000})
    assert text == "A=1 # 'x' = \u00e9\nEMPTY=\n"
    assert sorted(rest) == ["LONG", "RETURN", "TWO"]
    line = run_command(replace(PLAIN, environment=rest, environment_file="/c/variables"))
    assert line[line.index("--env-file") + 1] == "/c/variables"


def test_the_lines_that_end_it_and_ask_about_it() -> None:
    assert stop_command("docker", "n") == ["docker", "stop", "-t", "@grace", "n"]
    assert kill_command("docker", "n") == ["docker", "kill", "n"]
    assert remove_command("podman", "n") == ["podman", "rm", "--force", "n"]
    told = "{{.State.OOMKilled}} {{.State.ExitCode}} {{.State.Running}} {{.State.Pid}} {{.State.StartedAt}}"
    assert state_command("docker", "n")[-2:] == [told, "n"]
    assert limit_command("docker", "n", 5)[1:] == ["update", "--memory", "5b", "--memory-swap", "5b", "n"]
    assert list_command("podman")[:3] == ["podman", "ps", "--all"]
    assert "{{.Server.Version}}" in version_command("/usr/bin/docker")
    assert "{{.Client.Version}}" in version_command("podman")
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
