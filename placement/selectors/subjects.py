"""What a page of a workload is about: its name or script, who runs it, the parameters it was run with."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.models import AbstractBaseUser

from calibration import rows
from calibration.domain import keys
from calibration.domain.fingerprint import fingerprint
from calibration.models import Known, Sediment
from placement.models import Job, Role, Workload
from placement.selectors import access

KEYS_SHOWN = 50  # sets of parameters that a page offers, newest first
IN = "in: "  # how the directory begins that a command given to a shell is learned under
_LONGEST_TITLE = 80  # characters
NAMED = "workload: "  # the script of a named workload begins so


@dataclass(frozen=True, slots=True)
class Subject:
    """One workload, or one script of one person. ``definition`` is None for what is typed, or not defined any more."""

    id: str
    workload: str
    script: str
    named: bool
    definition: Workload | None

    @property
    def title(self) -> str:
        """Return what to call it: a name, or a script without its folder (paths are for those who may see commands)."""
        return self.workload if self.named else os.path.basename(self.script) or self.workload

    @property
    def runner(self) -> str:
        """Return who types it, "" for a named workload: everybody runs that."""
        return "" if self.named else self.workload.partition(": ")[0]

    @property
    def program(self) -> str:
        """Return the program that runs what is typed, "" for a named workload."""
        return "" if self.named else self.workload.partition(": ")[2]


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One set of parameters; ``text`` is "" for whoever may not see what was typed."""

    digest: str
    text: str
    runs: int


def find(ident: str) -> Subject | None:
    """Return the subject of this id, also one that is defined and never ran."""
    known = Known.objects.filter(subject=ident).order_by("-last_at").first()
    if known is not None:
        return of(known.workload, known.script, ident)
    name = next((n for n in Workload.objects.values_list("name", flat=True) if keys.named(n) == ident), None)
    return None if name is None else of(name, NAMED + name, ident)


def of(workload: str, script: str, ident: str) -> Subject:
    """Return a subject with its definition."""
    named = script == f"{NAMED}{workload}"
    row = Workload.objects.select_related("owner").filter(name=workload).first() if named else None
    return Subject(ident, workload, script, named, row)


def of_job(job: Job) -> str:
    """Return the id of what a job is learned under."""
    return keys.subject(job.key_workload, job.key_script, job.key_params)


def sees_typed(user: AbstractBaseUser, subject: Subject) -> bool:
    """Return whether arguments and paths are shown: of what one typed oneself, or to operators.

    The parameters of a named workload are for all who may submit it.
    """
    if access.at_least(user, Role.OPERATOR):
        return True
    return access.at_least(user, Role.SUBMITTER) if subject.named else subject.runner == user.get_username()


def params(subject: Subject, *, sees: bool) -> tuple[KeyRow, ...]:
    """Return the sets of parameters it was run with, the newest first."""
    found = Known.objects.filter(subject=subject.id).order_by("-last_at")[:KEYS_SHOWN]
    return tuple(KeyRow(k.params_digest, told(subject, k.params) if sees else "", k.runs) for k in found)


def told(subject: Subject, text: str) -> str:
    """Return the parameters of a key as people read them."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict):
        return " ".join(f"{name}={given}" for name, given in value.items()) or "no parameter that matters"
    if isinstance(value, list):
        rest = [str(part) for part in value if str(part) != subject.script]
        return " ".join(rest) or "no arguments"
    return text


def called(user: AbstractBaseUser, subject: Subject, text: str) -> str:
    """Return what to call a subject: of a command without a script the command itself, for whoever may see it."""
    if subject.named or subject.script or not sees_typed(user, subject):
        return subject.title
    lines = (line.strip() for line in command_of(subject, text).splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), subject.title)
    return first if len(first) <= _LONGEST_TITLE else f"{first[: _LONGEST_TITLE - 1]}…"


def command_of(subject: Subject, text: str) -> str:
    """Return a typed command without the directory that it is learned under."""
    return _directory(subject, text)[1]


def directory_of(subject: Subject, text: str) -> str:
    """Return the directory that a typed command is learned under, "" where it does not matter."""
    return _directory(subject, text)[0]


def _directory(subject: Subject, text: str) -> tuple[str, str]:
    try:
        value = json.loads(text)
    except ValueError:
        return "", text
    if isinstance(value, list) and len(value) > 1 and str(value[-2]).startswith(IN):
        return str(value[-2]).removeprefix(IN), str(value[-1])
    return "", told(subject, text)


def newest(subject: Subject, params_text: str) -> Sediment | None:
    """Return the last run of a key, forgotten or not."""
    return rows.of_key(subject.workload, params_text).filter(script=subject.script).first()


def draft(subject: Subject, params_text: str, workers: int, gpu: str, sources: str) -> Job:
    """Return a job as it would be submitted next, unsaved, to ask for its estimate."""
    return Job(
        workload=subject.definition,
        key_workload=subject.workload,
        key_script=subject.script,
        key_params=params_text,
        key_fingerprint=sources,
        workers=workers,
        gpu=gpu,
    )


def sources_now(subject: Subject, last: Sediment | None) -> str:
    """Return the fingerprint that the next run would have; of what is not defined any more, that of the last."""
    row = subject.definition
    if subject.named:
        if row is None:
            return last.fingerprint if last else ""
        folder = row.cwd or str(Path.home())
        return fingerprint([Path(folder, name) for name in row.files])
    return fingerprint([Path(subject.script)]) if os.path.isabs(subject.script) else ""
