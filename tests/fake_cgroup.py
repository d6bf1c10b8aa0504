"""A cgroup tree made of plain files: folders come with the files that a kernel gives them, and go with them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from placement.runner import cgroup

V2 = {
    "cgroup.procs": "",
    "cgroup.type": "domain\n",
    "cgroup.controllers": "memory pids\n",
    "cgroup.subtree_control": "",
    "cgroup.events": "populated 0\nfrozen 0\n",
    "cgroup.kill": "",
    "memory.max": "max\n",
    "memory.swap.max": "max\n",
    "memory.oom.group": "0\n",
    "memory.current": "0\n",
    "memory.peak": "0\n",
    "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n",
    "memory.events.local": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n",
    "memory.stat": "anon 0\nfile 0\nkernel 0\nshmem 0\nslab_reclaimable 0\n",
}
V1 = {
    "cgroup.procs": "",
    "memory.limit_in_bytes": "9223372036854771712\n",
    "memory.memsw.limit_in_bytes": "9223372036854771712\n",
    "memory.usage_in_bytes": "0\n",
    "memory.max_usage_in_bytes": "0\n",
    "memory.use_hierarchy": "1\n",
    "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
    "memory.stat": "cache 0\nrss 0\ntotal_rss 0\ntotal_shmem 0\n",
}


class FakeCgroup:
    """Stands for /sys/fs/cgroup while a test runs. ``files`` are what each new folder holds."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str] = V2) -> None:
        self.root, self.files = root, files
        self._mkdir, self._rmdir = os.mkdir, os.rmdir
        self._mkdir(root)
        self.fill(root)
        monkeypatch.setattr(os, "mkdir", self._make)
        monkeypatch.setattr(os, "rmdir", self._remove)
        monkeypatch.setattr(cgroup, "write", _replace)

    def fill(self, folder: Path) -> None:
        for name, text in self.files.items():
            (folder / name).write_text(text)

    def read(self, path: str) -> str:
        return (self.root / path).read_text().strip()

    def put(self, path: str, text: str) -> None:
        (self.root / path).write_text(text)

    def _ours(self, path: object) -> bool:
        return os.fspath(path).startswith(f"{self.root}/")  # type: ignore[call-overload]

    def _make(self, path: str, mode: int = 0o777, **more: object) -> None:
        self._mkdir(path, mode, **more)  # type: ignore[arg-type]
        if self._ours(path):
            self.fill(Path(path))

    def _remove(self, path: str, **more: object) -> None:
        if self._ours(path):
            for name in self.files:
                (Path(path) / name).unlink(missing_ok=True)
        self._rmdir(path, **more)  # type: ignore[arg-type]


def _replace(path: str, text: str) -> None:
    """Write as to a file of the kernel, which keeps nothing of the value before."""
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
    os.write(descriptor, text.encode())
    os.close(descriptor)
