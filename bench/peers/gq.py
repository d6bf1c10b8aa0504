"""gq (the package gq-local): whole GPUs, two that a stand-in driver shows; its client is a Python program."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.tools import Missing, Peer, Submit, Tools, quietly
from tests import nvml_stub


def _needs(tools: Tools) -> str:
    if shutil.which("cc") is None:
        raise Missing("no C compiler for the driver that stands in")
    return tools.find("gq")[0]


@contextmanager
def serving(tools: Tools, folder: Path) -> Iterator[Submit]:
    """Run its daemon with a home of its own on a machine with two stand-in GPUs."""
    program = _needs(tools)
    state = nvml_stub.State(folder / "devices")
    state.write([nvml_stub.Device("GPU-a"), nvml_stub.Device("GPU-b")])
    driver = state.environ(nvml_stub.build(folder))
    homes = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
    (folder / "runtime").mkdir(mode=0o700)
    environment = tools.environment(HOME=str(folder), XDG_RUNTIME_DIR=str(folder / "runtime"), **homes, **driver)

    def submit(commands: list[list[str]]) -> None:
        for command in commands:
            quietly([program, "run", "-g", "1", "--", *command], environment, cwd=folder)

    quietly([program, "daemon", "start"], environment, cwd=folder)
    try:
        yield submit
    finally:
        quietly([program, "daemon", "stop"], environment, cwd=folder)


PEER = Peer("gq", _needs, serving, slow=True)
