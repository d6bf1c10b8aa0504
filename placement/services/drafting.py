"""From a submission to an unsaved job: checked, filled in from its workload, with the key it is learned under."""

from __future__ import annotations

import copy
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from calibration.domain.fingerprint import fingerprint
from calibration.domain.keys import typed_command_key, workload_key
from placement.domain.ending import retries
from placement.domain.errors import NotYours, Refused
from placement.domain.submitting import terms
from placement.domain.submitting.group_keys import on_devices
from placement.domain.submitting.submission import Submission, problems
from placement.domain.world.requests import Gpu
from placement.models import IrrelevantArgument, Job, Role, Workload
from placement.services import asked_device, members, secrets


@dataclass
class Keys:
    """What the keys of the jobs of one submission are made with: read once, however many there are.

    ``same`` are arguments that this submission says do not change memory; ``marks`` those of earlier ones by script.
    """

    same: frozenset[str] = frozenset()
    marks: dict[str, frozenset[str]] = field(default_factory=dict)
    fingerprints: dict[tuple[Path, ...], str] = field(default_factory=dict)

    def irrelevant(self, script: str) -> frozenset[str]:
        """Return the arguments of a script that are left out of its key."""
        if script not in self.marks:
            marked = IrrelevantArgument.objects.filter(script=script).values_list("argument", flat=True)
            self.marks[script] = frozenset(marked) | self.same
        return self.marks[script]

    def fingerprint(self, files: list[Path]) -> str:
        """Return the fingerprint of these files."""
        named = tuple(files)
        if named not in self.fingerprints:
            self.fingerprints[named] = fingerprint(files)
        return self.fingerprints[named]


def draft(user: User, submission: Submission, keys: Keys | None = None) -> Job:
    """Return an unsaved job with its key; raise Refused with a sentence per wrong field."""
    role = members.role_of(user)
    if role is Role.VIEWER:
        raise NotYours("Your role is viewer: it may look, not submit. An admin can change that on the page People.")
    wrong = dict(problems(submission))
    if wrong:
        raise Refused("Nothing was submitted: " + " ".join(wrong.values()), wrong)
    workload = _workload(submission)
    if submission.priority > 0 and role not in (Role.OPERATOR, Role.ADMIN):
        wrong["priority"] = "Only operators and admins may raise a priority above 0."
    cwd = submission.cwd or (workload.cwd if workload else "") or str(Path.home())
    if said := _directory_problem(cwd):
        wrong["cwd"] = said
    command = submission.command
    if workload:
        command = _filled(workload, submission.params, wrong)
    device = asked_device.uuid_of(submission, workload, wrong)
    if not _says_how_often(submission, workload):
        wrong["retry_times"] = "Say how many further tries there may be, or leave their ends and their wait empty, too."
    if not (command or submission.argv) and not wrong:
        wrong["command"] = "Type a command, or choose a workload."
    if wrong:
        raise Refused("Nothing was submitted: " + " ".join(wrong.values()), wrong)
    job = Job(
        name=submission.name or (workload.name if workload else _short(command, submission.argv)),
        note=submission.note,
        user=user,
        workload=workload,
        params=dict(submission.params),
        command=command,
        argv=list(submission.argv) if submission.argv else None,
        setup=submission.setup or (workload.setup if workload else ""),
        cwd=cwd,
        environment=secrets.seal(dict(submission.environment)) if submission.environment else b"",
        workers=submission.workers,
        gpu=submission.gpu,
        exclusive=submission.exclusive,
        kind=submission.kind,
        reserves=submission.reserves or bool(workload and workload.reserves),
        node_wanted=submission.node,
        device_wanted=device,
        devices_wanted=_devices_wanted(submission),
        declared_ram=submission.declared_ram,
        declared_vram=submission.declared_vram,
        time_limit_s=submission.time_limit_s or (workload.time_limit_s if workload else None),
        priority=submission.priority,
        image=submission.image or (workload.image if workload else ""),
        engine=submission.engine or (workload.engine if workload else ""),
        not_before=_moment(submission.not_before),
        retry_policy=_retry_policy(submission, workload),
        demo=submission.demo,
    )
    _set_key(job, keys or Keys())
    return job


def _devices_wanted(submission: Submission) -> dict[str, Any] | None:
    plain = submission.gpu != Gpu.GROUP and submission.memory != "exact"
    if plain and not (submission.device_kind or submission.backend):
        return None
    return {
        "min": submission.min_devices,
        "max": submission.max_devices,
        "prefer_max": submission.prefer_max,
        "per_device": submission.per_device_memory,
        "group": submission.group_memory,
        "even": submission.even,
        "kind": submission.device_kind.upper() or None,
        "backend": submission.backend.upper() or None,
    }


def group_of(job: Job, at_least: int = 0) -> dict[str, Any]:
    """Return the fields of a submission that say how many devices a job asks for, and what it reserves of them.

    What is reserved exactly is raised until a device is given ``at_least`` so many bytes.
    """
    asked = job.devices_wanted
    if not asked:
        return {}
    each, together = asked["per_device"], asked["group"]
    request = job.request()
    if request.exact and at_least > (share := request.largest_share(request.min_devices)):
        each = (each or 0) + at_least - share
    return {
        "min_devices": asked["min"],
        "max_devices": asked["max"],
        "prefer_max": asked["prefer_max"],
        "memory": "auto" if each is None and together is None else "exact",
        "per_device_memory": each,
        "group_memory": together,
        "even": asked.get("even", True),
        "device_kind": (asked.get("kind") or "").lower(),
        "backend": (asked.get("backend") or "").lower(),
    }


def another(first: Job, keys: Keys, **other: Any) -> Job:
    """Return a copy of a draft with other values of name, command, argv or params, and the key that follows."""
    job = copy.copy(first)
    for name, value in other.items():
        setattr(job, name, value)
    if job.workload:
        job.command = _filled(job.workload, job.params, {})
    _set_key(job, keys)
    return job


def kept_variables(user: User, job_id: int | None) -> dict[str, str]:
    """Return the variables of one's own earlier job, to be sealed into another; {} for none.

    Nobody else gets them, operators neither: a command of theirs could print what is shown to nobody.
    """
    job = Job.objects.filter(pk=job_id).only("environment", "user_id").first() if job_id else None
    if job is None:
        return {}
    if job.user_id != user.pk:
        raise NotYours(f"The variables of #{job_id} are its owner's; nobody else can use them again.")
    return secrets.unseal(bytes(job.environment))


def _set_key(job: Job, keys: Keys) -> None:
    workload = job.workload
    if workload:
        relevant = frozenset(p["name"] for p in workload.parameters if p.get("matters", True))
        job.key_workload = workload.name
        other = job.image if job.image != workload.image else ""  # its own image is a part of the workload
        key = workload_key(workload.name, _values(workload, job.params), relevant, image=other or "")
        job.key_params, job.key_script = key.params, key.script[:500]
        files = [Path(job.cwd, name) for name in workload.files]
    else:
        text = shlex.join(job.argv) if job.argv else job.command
        asked = (job.user.get_username(), text, job.setup, job.cwd, job.workers)
        script = typed_command_key(*asked).script
        key = typed_command_key(*asked, keys.irrelevant(script), image=job.image or "")
        job.key_workload, job.key_params, job.key_script = key.workload[:200], key.params, key.script[:500]
        files = [Path(key.source)] if key.source else []
    if job.gpu == Gpu.GROUP:
        job.key_params = on_devices(job.key_params, job.request())
    job.key_fingerprint = keys.fingerprint(files)


def _workload(submission: Submission) -> Workload | None:
    if not submission.workload:
        return None
    found = Workload.objects.filter(name=submission.workload).first()
    if found is None:
        said = f"There is no workload called {submission.workload[:100]}."
        raise Refused(said, {"workload": said})
    return found


def _filled(workload: Workload, params: Mapping[str, str], wrong: dict[str, str]) -> str:
    values = _values(workload, params)
    unknown = sorted(set(params) - set(values))
    if unknown:
        wrong["params"] = (
            f"{workload.name} has no parameter {', '.join(unknown)}; it has {', '.join(values) or 'none'}."
        )
        return ""
    command = workload.command
    for name, value in values.items():
        command = command.replace("{" + name + "}", shlex.quote(value))
    return command


def _values(workload: Workload, params: Mapping[str, object]) -> dict[str, str]:
    """Return every parameter's value: a default that is left alone and one that is typed are the same run."""
    return {p["name"]: str(params.get(p["name"], p.get("default", ""))) for p in workload.parameters}


def _directory_problem(cwd: str) -> str:
    if not os.path.isabs(cwd):
        return f"{cwd[:200]} is not an absolute path; give the directory from / on."
    real = os.path.realpath(cwd)
    roots = [os.path.realpath(root) for root in settings.ALLOWED_ROOTS]
    if not any(real == root or real.startswith(root.rstrip("/") + "/") for root in roots):
        return (
            f"{cwd[:200]} is outside the directories that jobs may work in: {', '.join(roots)}. "
            "Who starts the service names more in TIDEGATE_ALLOWED_ROOTS."
        )
    if not os.path.isdir(real) and os.access(os.path.dirname(real), os.R_OK | os.X_OK):
        return f"There is no directory {cwd[:200]} on this machine."
    return ""


def _moment(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)


def _says_how_often(submission: Submission, workload: Workload | None) -> bool:
    more = submission.retry_on or submission.retry_wait_s is not None
    return not more or submission.retry_times is not None or bool(workload and workload.retry_policy)


def _retry_policy(submission: Submission, workload: Workload | None) -> dict[str, Any]:
    return retries.to_json(terms.policy(submission, retries.from_json(workload.retry_policy) if workload else None))


def _short(command: str, argv: tuple[str, ...] | None) -> str:
    text = shlex.join(argv) if argv else command
    first = text.strip().splitlines()[0] if text.strip() else "job"
    return first if len(first) <= 60 else first[:59] + "…"
