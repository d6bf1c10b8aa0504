"""Example workloads, and jobs of them that give a newcomer a living queue."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

from django.conf import settings

from placement.domain.errors import Refused
from placement.domain.submitting.submission import Submission
from placement.models import Job, Workload
from placement.services import jobs

PRIORITY = -1  # whatever people submit goes first
_EXAMPLES = Path(settings.REPOSITORY) / "examples"


def workloads(owner: Any, *, simulated: bool) -> None:
    """Store the three example workloads, or bring them up to date; on simulated devices two of them take one."""
    gpu = "one" if simulated else "none"
    _store(
        owner,
        "example-train",
        "Memory rises during the first fifth, then stays level",
        "train.py --width {width} --seconds {seconds} --seed {seed}",
        [("width", "1024", True), ("seconds", "150", False), ("seed", "0", False)],
        gpu,
    )
    _store(
        owner,
        "example-evaluate",
        "Loads at once, ends soon",
        "evaluate.py --batch {batch} --seconds {seconds} --seed {seed}",
        [("batch", "16", True), ("seconds", "20", False), ("seed", "0", False)],
        gpu,
    )
    _store(
        owner,
        "example-sweep",
        "Parallel workers on the CPU",
        "sweep.py --trials {trials} --seconds {seconds}",
        [("trials", "10", False), ("seconds", "4", False)],
    )


def submit(user: Any, *, simulated: bool) -> tuple[list[Job], list[str]]:
    """Submit the example jobs; return them, and a sentence for each that was refused.

    With simulated devices two of them take one each, and one wants a device alone, so it waits. On real devices
    and without any the examples only take main memory, less than 1 GiB together.
    """
    gpu = "one" if simulated else "none"
    alone = "device" if simulated else "machine"
    wanted = [
        ("evaluate, first look", "example-evaluate", {"seed": "1"}, gpu, "no"),
        ("train, width 1024", "example-train", {}, gpu, "no"),
        ("sweep over 10 trials", "example-sweep", {}, "none", "no"),
        ("evaluate, second seed", "example-evaluate", {"seed": "2"}, gpu, "no"),
        ("evaluate, third seed", "example-evaluate", {"seed": "3"}, gpu, "no"),
        ("train, width 1152, alone", "example-train", {"width": "1152", "seconds": "90"}, gpu, alone),
        ("train, width 1088, alone", "example-train", {"width": "1088", "seconds": "60"}, gpu, alone),
        ("evaluate, fourth seed", "example-evaluate", {"seed": "4"}, gpu, "no"),
    ]
    made, refused = [], []
    for name, workload, params, device, exclusive in wanted:
        submission = Submission(
            name=name,
            workload=workload,
            params=params,
            cwd=_directory(),
            workers=2 if workload == "example-sweep" else 1,
            gpu=device,
            exclusive=exclusive,
            priority=PRIORITY,
            demo=True,
        )
        try:
            made.append(jobs.submit(user, submission))
        except Refused as error:
            refused.append(f"{name} was not submitted: {error.sentence}")
    return made, refused


def _store(
    owner: Any, name: str, summary: str, call: str, parameters: list[tuple[str, str, bool]], gpu: str = "none"
) -> None:
    script, _, rest = call.partition(" ")
    path = _EXAMPLES / script
    fields = {
        "summary": summary,
        "command": f"{shlex.quote(sys.executable)} {shlex.quote(str(path))} {rest}",
        "parameters": [
            {"name": name, "default": default, "matters": matters, "help": ""} for name, default, matters in parameters
        ],
        "files": [str(path)],
        "cwd": _directory(),
        "gpu": gpu,
        "demo": True,
        "owner": owner,
    }
    Workload.objects.update_or_create(name=name, defaults=fields)


def _directory() -> str:
    """Return a directory that jobs may work in: the examples' own, else the first that there is."""
    roots = [os.path.realpath(root) for root in settings.ALLOWED_ROOTS]
    if any(_EXAMPLES.is_relative_to(root) for root in roots):
        return str(_EXAMPLES)
    return next((root for root in roots if os.path.isdir(root)), roots[0])
