"""Other queues on the same machine, each given the same commands by its own front door.

None of them is needed or installed by this project. One that is on PATH, or in the virtual environment that is named,
is started in a folder of its own with two places, asked, and stopped again; the others are named with what is missing.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.bare import quantile
from bench.marks import Ledger
from bench.peers import gflow, gpusched, gq, hyperqueue, slurm, task_spooler
from bench.peers.tools import Missing, Peer, Tools
from tests.wait import until

PEERS: tuple[Peer, ...] = (
    task_spooler.PEER,
    hyperqueue.PEER,
    gflow.PEER,
    slurm.CPU,
    slurm.GPU,
    gpusched.PEER,
    gq.PEER,
)
PATIENCE = 300.0  # seconds for all jobs; a peer that needs longer is given by the rate until then
FEW = 100  # jobs for a peer that takes a second or more for each


def wanted(asked: str, tools: Tools) -> tuple[list[Peer], dict[str, str]]:
    """Return the peers of this name (or all, or none) that can run here, and why the others cannot, by name."""
    names = [peer.name for peer in PEERS] if asked == "all" else [n for n in asked.split(",") if n not in ("", "none")]
    unknown = sorted(set(names) - {peer.name for peer in PEERS})
    if unknown:
        raise SystemExit(f"no peer {', '.join(unknown)}; there are {', '.join(peer.name for peer in PEERS)}")
    there, missing = [], {}
    for peer in PEERS:
        if peer.name in names:
            try:
                peer.needs(tools)
                there.append(peer)
            except Missing as why:
                missing[peer.name] = str(why)
    return there, missing


def measure(peer: Peer, tools: Tools, jobs: int, first_bytes: int) -> dict[str, Any]:
    """Return the same figures as of this service: a job is done when its command ran, which favours the peer."""
    if peer.slow:
        jobs, first_bytes = min(jobs, FEW), min(first_bytes, 5)
    try:
        with tempfile.TemporaryDirectory(prefix="peer-", ignore_cleanup_errors=True) as folder:
            ledger = Ledger(Path(folder))
            with peer.serving(tools, Path(folder)) as submit:
                return _measured(peer, submit, ledger, jobs, first_bytes)
    except Exception as error:  # a peer that does not work here is a row that says so, not the end of the bench
        said = str(error).strip().splitlines() or [type(error).__name__]
        return {"name": peer.name, "error": said[-1][:200]}


def _measured(
    peer: Peer, submit: Callable[[list[list[str]]], object], ledger: Ledger, jobs: int, first_bytes: int
) -> dict[str, Any]:
    def one(number: int) -> None:
        submit([ledger.argv(number)])

    ledger.first_byte(one, -1)
    alone = [ledger.first_byte(one, -10 - number) for number in range(first_bytes)]
    began = time.time()
    submitted = {}
    if peer.takes_many:
        submit([ledger.argv(number) for number in range(jobs)])
        submitted = dict.fromkeys(range(jobs), began)
    else:
        for number in range(jobs):
            submitted[number] = time.time()
            one(number)
    sent = time.time()
    try:
        until(lambda: len(ledger.times()) == jobs + first_bytes + 1, PATIENCE, "the end of all jobs", 0.02)
    except AssertionError:
        if not any(number >= 0 for number in ledger.times()):
            raise
    seconds = [at - submitted[number] for number, at in ledger.times().items() if number >= 0]
    took = max(ledger.times().values()) - began
    return {
        "name": peer.name,
        "jobs": len(seconds),
        "submitting": sent - began,
        "seconds": took,
        "rate": len(seconds) / took,
        "p50": quantile(seconds, 0.5),
        "p95": quantile(seconds, 0.95),
        "cpu": None,
        "first byte p50": quantile(alone, 0.5) if alone else None,
        "first byte p95": quantile(alone, 0.95) if alone else None,
        "not completed": jobs - len(seconds),
    }
