"""HyperQueue by its Python package: a server and a worker with two cores; jobs are tasks of one job or of many."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.tools import Missing, Peer, Submit, Tools

_SERVER = """
import json, sys
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
with LocalCluster(sys.argv[1], WorkerConfig(cores=2)) as cluster:
    client = cluster.client()
    print("up", flush=True)
    for line in sys.stdin:
        job = Job()
        for command in json.loads(line):
            job.program(command)
        client.submit(job)
        print("taken", flush=True)
"""


def _python(tools: Tools) -> str:
    if not tools.venv:
        raise Missing("its Python package is looked for in --peer-venv only")
    python = str(Path(tools.venv) / "bin" / "python")
    if not Path(python).exists():
        raise Missing(f"no python in {tools.venv}")
    if subprocess.run([python, "-c", "import hyperqueue"], capture_output=True, check=False).returncode:
        raise Missing(f"no hyperqueue package in {tools.venv}")
    return python


@contextmanager
def serving(tools: Tools, folder: Path) -> Iterator[Submit]:
    """Run a local cluster in a process of its own and pass commands to it by lines."""
    place = folder / "server"
    place.mkdir()
    with subprocess.Popen(
        [_python(tools), "-c", _SERVER, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=tools.environment(),
        cwd=folder,
        text=True,
    ) as cluster:
        assert cluster.stdin
        assert cluster.stdout
        words = cluster.stdin, cluster.stdout

        def hear(word: str) -> None:
            for line in words[1]:  # it prints tables of its own in between
                if line.strip() == word:
                    return
            raise RuntimeError(f"HyperQueue ended before it said {word!r}")

        def submit(commands: list[list[str]]) -> None:
            words[0].write(json.dumps(commands) + "\n")
            words[0].flush()
            hear("taken")

        try:
            hear("up")
            yield submit
        finally:
            cluster.terminate()


PEER = Peer("hyperqueue", _python, serving, takes_many=True)
