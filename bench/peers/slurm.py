"""Slurm on one node with two GPUs that are device files of another kind: jobs without and with ``--gres=gpu:1``.

It has to be started as root: its daemon takes other people's jobs. Everything else is in a folder of its own.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from bench.peers.tools import Missing, Peer, Submit, Tools, quietly
from tests.wait import until

_CONF = """
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={control}
SlurmdPort={node}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MaxJobCount=20000
MailProg=/bin/true
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 Gres=gpu:2 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES OverSubscribe=FORCE:64 MaxTime=INFINITE State=UP
"""
_GRES = "Name=gpu File=/dev/tty[1-2]\n"


def _needs(tools: Tools) -> list[str]:
    found = tools.find("slurmctld", "slurmd", "sbatch", "sinfo", "munged", "scancel", "squeue")
    if os.geteuid() != 0:
        raise Missing("its node's daemon has to be started as root")
    return found


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def _running(tools: Tools, folder: Path, *gres: str) -> Iterator[Submit]:
    control, node, sbatch, sinfo, munged, scancel, squeue = _needs(tools)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    folder.chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    places = {"folder": folder, "host": socket.gethostname(), "control": _free_port(), "node": _free_port()}
    (folder / "slurm.conf").write_text(_CONF.format(**places))
    (folder / "gres.conf").write_text(_GRES)
    environment = tools.environment(SLURM_CONF=str(folder / "slurm.conf"))
    private = [
        f"--{what}={folder}/munge.{what.partition('-')[0]}" for what in ("socket", "pid-file", "log-file", "seed-file")
    ]
    daemons = ([munged, "-F", "--force", f"--key-file={key}", *private], [control, "-D"], [node, "-D"])
    with ExitStack() as stack:
        for arguments in daemons:
            log = stack.enter_context((folder / f"{Path(arguments[0]).name}.out").open("w"))
            daemon = stack.enter_context(
                subprocess.Popen(arguments, env=environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
            )
            stack.callback(daemon.terminate)
            if arguments[0] == munged:
                until((folder / "munge.socket").exists, 20, "munged")

        def idle() -> bool:
            try:
                return "idle" in quietly([sinfo, "-h", "-o", "%t"], environment)
            except RuntimeError:
                return False

        until(idle, 60, "a node that is idle", 0.2)

        def submit(commands: list[list[str]]) -> None:
            for command in commands:
                script = f"#!/bin/sh\n{command[-1].replace('$EPOCHREALTIME', '$(date +%s.%N)')}\n"
                quietly([sbatch, *gres, "-o", "/dev/null"], environment, cwd=folder, input=script)

        try:
            yield submit
        finally:  # what watches a job would outlive the daemons
            quietly([scancel, "--user=root"], environment)
            with suppress(AssertionError):
                until(lambda: not quietly([squeue, "-h"], environment).strip(), 30, "their end", 0.2)


@contextmanager
def without_gpu(tools: Tools, folder: Path) -> Iterator[Submit]:
    """Run it; jobs ask for nothing but a processor, which they share."""
    with _running(tools, folder, "--oversubscribe") as submit:
        yield submit


@contextmanager
def with_gpu(tools: Tools, folder: Path) -> Iterator[Submit]:
    """Run it; each job asks for one of two GPUs."""
    with _running(tools, folder, "--gres=gpu:1") as submit:
        yield submit


CPU = Peer("slurm", _needs, without_gpu)
GPU = Peer("slurm-gpu", _needs, with_gpu, slow=True)
