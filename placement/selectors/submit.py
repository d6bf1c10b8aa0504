"""What the submit form offers: workloads, devices, directories used before, and what it pre-selects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Q

from placement.domain.submitting import sweeps
from placement.domain.submitting.submission import Submission, looks_like_gpu
from placement.domain.submitting.taken import Kind
from placement.models import Device, Job, Node, Workload
from placement.selectors import again, hardware

DIRECTORIES_SHOWN = 8
ASKED = (
    "gpu",
    "exclusive",
    "node_wanted",
    "device_wanted",
    "devices_wanted",
    "image",
    "engine",
)  # columns that Job.request() reads
RECENT = 200  # jobs of a user that are looked at for what they used last


@dataclass(frozen=True, slots=True)
class Choices:
    """What can be chosen; pairs are (value, label)."""

    workloads: tuple[tuple[str, str], ...]
    devices: tuple[tuple[str, str], ...]
    nodes: tuple[tuple[str, str], ...]
    kinds: tuple[tuple[str, str], ...]
    backends: tuple[tuple[str, str], ...]
    directories: tuple[str, ...]


def choices(user: AbstractBaseUser) -> Choices:
    """Return what this user's form offers; directories are those of their own jobs, newest first."""
    known = Device.objects.filter(retired=False).select_related("node").order_by("node__name", "by_hand", "index")
    devices = list(hardware.placeable(known))
    nodes = list(Node.objects.order_by("name").values_list("name", flat=True))
    many = len(nodes) > 1
    unread = any(not device.measurable for device in devices)
    runs = Job.objects.filter(user_id=user.pk).exclude(kind=Kind.HOLD)  # those stand in a directory of no meaning
    recent = runs.order_by("-id").values_list("cwd", flat=True)[:RECENT]
    return Choices(
        workloads=tuple(
            (w.name, f"{w.name}: {w.summary}" if w.summary else w.name) for w in Workload.objects.order_by("name")
        ),
        devices=tuple((d.uuid, f"{d.name} of {d.node.name}" if many else d.name) for d in devices),
        nodes=tuple((n, n) for n in nodes) if many else (),
        kinds=_sorts((device.kind for device in devices), unread),
        backends=_sorts((word for device in devices for word in device.backends), unread),
        directories=tuple(dict.fromkeys(recent))[:DIRECTORIES_SHOWN],
    )


def _sorts(words: Iterable[str], unread: bool) -> tuple[tuple[str, str], ...]:
    """Return the words among which there is a choice, () where there is none.

    With an ``unread`` device, which nobody is given who does not say what it is, one word is a choice, too.
    """
    found = sorted(set(words))
    return tuple((word.lower(), word) for word in found) if len(found) > 1 or unread else ()


def workload(name: str) -> Workload | None:
    """Return the workload of this name."""
    return Workload.objects.filter(name=name).first()


@dataclass(frozen=True, slots=True)
class Preselected:
    """What the form chooses by itself: "none", "one" or "group", why, and of a group its size as texts of fields."""

    gpu: str
    why: str
    group: dict[str, Any] = field(default_factory=dict)


def preselect(user: AbstractBaseUser, command: str, workload_name: str) -> Preselected:
    """Return the devices to begin with: what it used last, else what the command looks like."""
    if not Device.objects.filter(Q(measurable=True) | Q(any_gpu=True, kind="GPU"), retired=False).exists():
        return Preselected("none", "no device is declared that is meant without naming its kind")
    jobs = Job.objects.order_by("-id").only("command", *ASKED)
    if workload_name:
        found = workload(workload_name)
        if found is None:
            return Preselected("none", "")
        said = found.placement or {}
        if said or found.gpu == "group":  # it says what it takes: what somebody asked for instead was for that run
            size = {name: str(said.get(name, 1)) for name in ("min_devices", "max_devices")}
            return Preselected(found.gpu, f"so {workload_name} says", size if found.gpu == "group" else {})
        last = jobs.filter(workload_id=found.pk).first()
        return _as_last(last, workload_name) if last else Preselected(found.gpu, f"so {workload_name} says")
    if not command.strip():
        return Preselected("none", "")
    recent = jobs.filter(user_id=user.pk)[:RECENT]
    if same := next((job for job in recent if job.command == command), None):
        return _as_last(same, "this command")
    if looks_like_gpu(command):
        return Preselected("one", "python, torch, CUDA or a model server is in the command")
    return Preselected("none", "nothing in the command points to a device")


def _as_last(job: Job, what: str) -> Preselected:
    words = {"none": "no device", "one": "a device", "group": "a group"}.get(job.gpu, job.gpu)
    asked = again.group(job)
    size = {name: asked[name] for name in ("min_devices", "max_devices")} if job.gpu == "group" else {}
    return Preselected(job.gpu, f"{what} used {words} last time", size)


def unfilled(asked: Submission) -> tuple[str, ...]:
    """Return the {names} in a typed command for which no values are given: bash gets them as they are."""
    return tuple(name for name in sweeps.placeholders(asked.command) if name not in asked.sweep)
