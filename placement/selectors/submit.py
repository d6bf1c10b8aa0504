"""What the submit form offers: workloads, devices, directories used before, and what it pre-selects."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser

from placement.domain import sweeps
from placement.domain.submission import Submission, looks_like_gpu
from placement.models import Device, Job, Node, Workload
from placement.selectors import hardware

DIRECTORIES_SHOWN = 8
RECENT = 200  # jobs of a user that are looked at for what they used last


@dataclass(frozen=True, slots=True)
class Choices:
    """What can be chosen; pairs are (value, label)."""

    workloads: tuple[tuple[str, str], ...]
    devices: tuple[tuple[str, str], ...]
    nodes: tuple[tuple[str, str], ...]
    directories: tuple[str, ...]


def choices(user: AbstractBaseUser) -> Choices:
    """Return what this user's form offers; directories are those of their own jobs, newest first."""
    known = Device.objects.filter(retired=False).select_related("node").order_by("node__name", "index")
    devices = hardware.placeable(known)
    nodes = list(Node.objects.order_by("name").values_list("name", flat=True))
    many = len(nodes) > 1
    recent = Job.objects.filter(user_id=user.pk).order_by("-id").values_list("cwd", flat=True)[:RECENT]
    return Choices(
        workloads=tuple(
            (w.name, f"{w.name}: {w.summary}" if w.summary else w.name) for w in Workload.objects.order_by("name")
        ),
        devices=tuple((d.uuid, f"{d.name} of {d.node.name}" if many else d.name) for d in devices),
        nodes=tuple((n, n) for n in nodes) if many else (),
        directories=tuple(dict.fromkeys(recent))[:DIRECTORIES_SHOWN],
    )


def workload(name: str) -> Workload | None:
    """Return the workload of this name."""
    return Workload.objects.filter(name=name).first()


def preselect(user: AbstractBaseUser, command: str, workload_name: str) -> tuple[str, str]:
    """Return "none" or "one", and why: what it used last, else what the command looks like."""
    if not Device.objects.filter(retired=False).exists():
        return "none", "no device is declared"
    if workload_name:
        found = workload(workload_name)
        if found is None:
            return "none", ""
        last = Job.objects.filter(workload_id=found.pk).order_by("-id").values_list("gpu", flat=True)
        if used := last.first():
            return used, f"{workload_name} used {'a' if used == 'one' else 'no'} device last time"
        return found.gpu, f"so {workload_name} says"
    if not command.strip():
        return "none", ""
    recent = Job.objects.filter(user_id=user.pk).order_by("-id").values_list("command", "gpu")[:RECENT]
    if used := next((gpu for typed, gpu in recent if typed == command), ""):
        return used, f"this command used {'a' if used == 'one' else 'no'} device last time"
    if looks_like_gpu(command):
        return "one", "python, torch, CUDA or a model server is in the command"
    return "none", "nothing in the command points to a device"


def unfilled(asked: Submission) -> tuple[str, ...]:
    """Return the {names} in a typed command for which no values are given: bash gets them as they are."""
    return tuple(name for name in sweeps.placeholders(asked.command) if name not in asked.sweep)
