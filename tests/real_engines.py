"""Real engines for tests: dockerd or podman of this machine, with state of their own in a new folder.

Needs root, an engine of the distribution's (docker.io and runc, or podman and catatonit) and busybox-static, of which
the one image is made: no registry is asked.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.wait import until

IMAGE = {"docker": "team/train:2", "podman": "localhost/team/train:2"}
_NEEDS = {"docker": ("dockerd", "docker", "containerd", "runc"), "podman": ("podman", "conmon", "runc", "catatonit")}
_WORDS = ("sh", "cat", "echo", "env", "id", "sleep", "awk", "pwd")


def lacking(kind: str) -> list[str]:
    """Return what this machine would need to run an engine."""
    if os.geteuid() != 0:
        return ["root"]
    return [name for name in (*_NEEDS[kind], "busybox") if _which(name) is None]


def here() -> list[str]:
    """Return the engines to try: those that this machine can run, else the one that `test --all` installs."""
    return [kind for kind in sorted(IMAGE) if not lacking(kind)] or ["podman"]


def _which(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


class Real:
    """An engine, as tests.engines.Docker is one: its ``program`` notes what it was asked."""

    def __init__(self, kind: str) -> None:
        self.kind, self.image = kind, IMAGE[kind]
        self.folder = Path(tempfile.mkdtemp(prefix="tidegate-engine-"))
        self.home = self.folder / "state"
        self.home.mkdir()
        self.daemon: subprocess.Popen[bytes] | None = None
        self.env = {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "HOME": str(self.home)}
        self.program = self.folder / kind
        note = f'printf "%s\\n" "$*" >> {self.home}/asked\n'
        self.program.write_text(f'#!/bin/sh\n{note}exec {_which(kind)} "$@"\n')
        self.program.chmod(0o755)

    def prepare(self) -> None:
        """Start what it needs, and make the image."""
        if self.kind == "docker":
            self.env["DOCKER_HOST"] = f"unix://{self.folder}/d.sock"
            self._serve()
        else:
            self._podman()
        self._import()

    def _serve(self) -> None:
        """Start docker's daemon, with no network and no hand in this machine's firewall."""
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        line = ["dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=vfs"]
        line += ["--data-root", f"{self.home}/data", "--exec-root", f"{self.home}/exec", "-p", f"{self.home}/pid"]
        line += ["-H", self.env["DOCKER_HOST"], "--default-ulimit", f"nofile={hard}:{hard}"]
        with (self.home / "log").open("ab") as log:
            self.daemon = subprocess.Popen(line, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(lambda: self.do("version", check=False).returncode == 0, 60, "the daemon")

    def _podman(self) -> None:
        settings = '[engine]\ncgroup_manager="cgroupfs"\nevents_logger="file"\nruntime="runc"\n[containers]\n'
        settings += 'netns="none"\nlog_driver="k8s-file"\ndefault_ulimits=["nofile=1024:1024","nproc=1024:1024"]\n'
        storage = f'[storage]\ndriver="vfs"\ngraphroot="{self.home}/graph"\nrunroot="{self.home}/run"\n'
        for name, text in (("containers", settings), ("storage", storage)):
            (self.home / f"{name}.conf").write_text(text)
        self.env["CONTAINERS_CONF"] = f"{self.home}/containers.conf"
        self.env["CONTAINERS_STORAGE_CONF"] = f"{self.home}/storage.conf"

    def _import(self) -> None:
        root = self.home / "root"
        for folder in ("bin", "etc", "tmp", "proc", "sys", "dev"):
            (root / folder).mkdir(parents=True)
        shutil.copy(_which("busybox") or "", root / "bin/busybox")
        for word in _WORDS:
            (root / "bin" / word).symlink_to("busybox")
        packed = subprocess.run(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE, check=True).stdout
        self.do("import", "-", "team/train:2", given=packed)

    def do(self, *words: str, given: bytes = b"", check: bool = True) -> subprocess.CompletedProcess[bytes]:
        """Run the engine's own program."""
        line = [_which(self.kind) or self.kind, *words]
        return subprocess.run(line, env=self.env, input=given, capture_output=True, check=check, timeout=60)

    def state(self, name: str) -> dict[str, Any]:
        """Return what the engine has on record of a container's state."""
        found: dict[str, Any] = json.loads(self.do("inspect", "--format", "{{json .State}}", name).stdout)
        return found

    def names(self) -> list[str]:
        """Return the containers that are there, running or not."""
        return sorted(self.do("ps", "--all", "--format", "{{.Names}}").stdout.decode().split())

    def asked(self) -> list[str]:
        """Return every line that the program was called with."""
        file = self.home / "asked"
        return file.read_text().splitlines() if file.exists() else []

    def empty(self) -> None:
        """Remove every container."""
        for name in self.names():
            self.do("kill", name, check=False)
            self.do("rm", "--force", name, check=False)

    def close(self) -> None:
        """End everything of it and remove all that was stored."""
        try:
            self.empty()
        finally:
            if self.daemon is not None:
                self.daemon.terminate()
                self.daemon.wait(60)
            shutil.rmtree(self.folder)


@contextmanager
def real(kind: str) -> Iterator[Real]:
    """Make one, ready to be asked."""
    made = Real(kind)
    try:
        made.prepare()
        yield made
    finally:
        made.close()
