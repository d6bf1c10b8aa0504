#!/usr/bin/env python3
"""A docker for tests: containers are children of its daemon (``serve``), their state lies in the folder DOCKER_FAKE.

It knows run, stop, kill, inspect, update, rm, ps and version with the options that we give, and says what real ones
say (tests/acceptance/test_real_engines.py). An image "missing/…" is not found, "nothing/…" has no such command, and of
"broken/…" a container is made that cannot be started. Files in the folder: "down" makes the daemon unreachable, "pull"
keeps the fetch of an image going, "oom" says that containers were killed at their limits, "kept" refuses to remove one,
"stays" to change its limit.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

HOME = Path(os.environ.get("DOCKER_FAKE") or "/nowhere")
VALUED = frozenset(
    f"--{name}"
    for name in (
        *("name", "label", "cidfile", "security-opt", "memory", "memory-swap", "gpus", "volume", "workdir"),
        *("user", "env", "env-file", "entrypoint", "device", "userns"),
    )
)


def main(words: list[str]) -> int:
    if words == ["serve"]:
        return serve()
    with (HOME / "asked").open("a") as file:
        file.write(json.dumps(words) + "\n")
    if (HOME / "down").exists():
        return fail("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?", words[0])
    return {"run": run, "stop": stop, "kill": kill, "inspect": inspect, "rm": remove, "update": update, "ps": listed,
            "version": version}[words[0]](words[1:])  # fmt: skip


def fail(said: str, verb: str = "", code: int = 1) -> int:
    prefix = "docker: Error response from daemon: " if verb == "run" else "Error response from daemon: "
    print(prefix + said, file=sys.stderr)
    if verb == "run":
        print("\nRun 'docker run --help' for more information", file=sys.stderr)
        return 125 if code == 1 else code
    return code


def record(name: str) -> Path:
    for path in HOME.glob("*.json"):
        if path.stem == name or json.loads(path.read_text())["id"].startswith(name):
            return path
    return HOME / f"{name}.json"


def run(words: list[str]) -> int:
    options: dict[str, list[str]] = {}
    while words and words[0].startswith("--"):
        word = words.pop(0)
        options.setdefault(word, []).append(words.pop(0) if word in VALUED else "")
    image, *command = words
    while (HOME / "pull").exists():
        time.sleep(0.02)
    if image.startswith("missing/"):
        return fail(f"pull access denied for {image}, repository does not exist or may require 'docker login'", "run")
    name = options["--name"][0]
    ident = os.urandom(32).hex()
    path = HOME / f"{name}.json"
    state = {"id": ident, "labels": options["--label"], "pid": 0, "code": 0, "began": False, "done": False}
    put(path, state)
    Path(options["--cidfile"][0]).write_text(ident)
    if image.startswith("nothing/"):
        put(path, {**state, "began": True, "done": True, "code": 127})
        print(f"[FATAL tini (7)] exec {command[0]} failed: No such file or directory", file=sys.stderr)
        return 127
    if image.startswith("broken/"):
        put(path, {**state, "code": 128})
        return fail('could not select device driver "" with capabilities: [[gpu]]', "run")
    environment = {"PATH": os.environ["PATH"]}
    filed = [line for file in options.get("--env-file", []) for line in Path(file).read_text("utf-8").splitlines()]
    for given in [*filed, *options.get("--env", [])]:
        key, sign, value = given.partition("=")
        if sign or key in os.environ:
            environment[key] = value if sign else os.environ[key]
    asked = {
        "path": str(path),
        "state": state,
        "words": [*options.get("--entrypoint", []), *command],
        "env": environment,
        "cwd": options.get("--workdir", ["/"])[0],
    }
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.connect(str(HOME / "socket"))
        socket.send_fds(daemon, [json.dumps(asked).encode()], [1, 2])
        signal.signal(signal.SIGTERM, lambda number, frame: end(path, signal.SIGTERM))
        return int(daemon.recv(16) or b"125")


def serve() -> int:
    """Be the daemon: start what clients ask for, as children of this process, and answer with the code of its end."""
    with socket.socket(socket.AF_UNIX) as listen:
        listen.bind(str(HOME / "socket"))
        listen.listen(16)
        while True:
            client, _ = listen.accept()
            threading.Thread(target=_contain, args=(client,), daemon=True).start()


def _contain(client: socket.socket) -> None:
    with client:
        data, descriptors, _, _ = socket.recv_fds(client, 1 << 20, 2)
        asked = json.loads(data)
        path, state = Path(asked["path"]), asked["state"]
        out, err = descriptors
        child = subprocess.Popen(  # as an engine does: its process waits until the engine has it on record
            ["sh", "-c", 'read -r go; exec "$@" </dev/null', "sh", *asked["words"]],
            stdin=subprocess.PIPE, stdout=out, stderr=err, env=asked["env"], cwd=asked["cwd"], start_new_session=True,
        )  # fmt: skip
        os.close(out)
        os.close(err)
        put(path, {**state, "pid": child.pid, "began": True, "done": False})
        child.communicate(b"go\n")
        code = child.returncode
        code = 128 - code if code < 0 else code
        put(path, {**state, "pid": child.pid, "began": True, "done": True, "code": code})
        try:
            client.send(str(code).encode())
        except OSError:
            return  # the client has gone


def put(path: Path, state: dict[str, object]) -> None:
    fresh = path.with_suffix(f".{threading.get_ident()}.{os.getpid()}")
    fresh.write_text(json.dumps(state))
    fresh.replace(path)


def end(path: Path, number: int) -> None:
    """Signal the whole container: its kernel ends all of it with its first process."""
    pid = json.loads(path.read_text())["pid"]
    with contextlib.suppress(ProcessLookupError):
        if pid:
            os.killpg(pid, number)


def lives(path: Path) -> bool:
    state = json.loads(path.read_text())
    return bool(state["began"]) and not state["done"]


def missing(name: str) -> int:
    return fail(f"No such container: {name}")


def stop(words: list[str]) -> int:
    path, deadline = record(words[-1]), time.monotonic() + float(words[words.index("-t") + 1])
    if not path.exists():
        return missing(words[-1])
    end(path, signal.SIGTERM)
    while lives(path) and time.monotonic() < deadline:
        time.sleep(0.02)
    return kill(words) if lives(path) else 0


def kill(words: list[str]) -> int:
    path = record(words[-1])
    if not path.exists():
        return fail(f"Cannot kill container: {words[-1]}: No such container: {words[-1]}")
    if not lives(path):
        return fail(f"Cannot kill container: {words[-1]}: Container {record(words[-1]).stem} is not running")
    end(path, signal.SIGKILL)
    while lives(path):
        time.sleep(0.01)
    return 0


def inspect(words: list[str]) -> int:
    path = record(words[-1])
    if not path.exists():
        print(f"Error: No such object: {words[-1]}", file=sys.stderr)
        return 1
    state = json.loads(path.read_text())
    if "Labels" in words[1]:
        print(dict(label.split("=") for label in state["labels"]).get("tidegate.job", "<no value>"))
        return 0
    oom = (HOME / "oom").exists()
    since = "2026-01-01T00:00:00Z" if state["began"] else "0001-01-01T00:00:00Z"
    pid = state["pid"] if lives(path) else 0
    print(str(oom).lower(), state["code"], str(lives(path)).lower(), pid, since)
    return 0


def remove(words: list[str]) -> int:
    path = record(words[-1])
    if (HOME / "kept").exists():
        return fail("container is busy")
    if not path.exists():
        missing(words[-1])  # newer ones say so, and are content
        return 0
    if lives(path):
        kill(words)
    path.unlink()
    return 0


def update(words: list[str]) -> int:
    if (HOME / "stays").exists():
        return fail("cannot update the limits")
    return 0 if record(words[-1]).exists() else missing(words[-1])


def listed(words: list[str]) -> int:
    for path in sorted(HOME.glob("*.json")):
        print(path.stem)
    return 0


def version(words: list[str]) -> int:
    print("27.1.0")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
