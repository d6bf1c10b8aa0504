"""gflow (the package runqd): a daemon and a client program; jobs without a GPU, each a process.

Its other way, a window of tmux for each job, never ran the command where there is no terminal.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.tools import Peer, Submit, Tools, quietly
from tests.wait import until


@contextmanager
def serving(tools: Tools, folder: Path) -> Iterator[Submit]:
    """Run its daemon with a home of its own on a free port."""
    daemon, client, queue = tools.find("gflowd", "gbatch", "gqueue")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = folder / "gflow.toml"
    config.write_text(f'[daemon]\nhost = "127.0.0.1"\nport = {port}\n[executor]\ntype = "process"\n')
    homes = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "DATA", "STATE", "CACHE", "RUNTIME")}
    environment = tools.environment(HOME=str(folder), **homes)
    with subprocess.Popen(
        [daemon, "--config", str(config)],
        cwd=folder,
        env=environment,
        stdout=(folder / "daemon.log").open("w"),
        stderr=subprocess.STDOUT,
    ) as process:

        def answers() -> bool:
            if process.poll() is not None:
                raise RuntimeError(f"gflowd ended: {(folder / 'daemon.log').read_text()[-300:]}")
            try:
                quietly([queue, "--config", str(config)], environment, cwd=folder)
            except RuntimeError:
                return False
            return True

        def submit(commands: list[list[str]]) -> None:
            for command in commands:
                quietly([client, "--config", str(config), *command], environment, cwd=folder)

        try:
            until(answers, 20, "gflowd", 0.1)
            yield submit
        finally:
            process.terminate()


PEER = Peer("gflow", lambda tools: tools.find("gflowd", "gbatch", "gqueue"), serving, slow=True)
