"""What the head of a batch script asks for (``#SBATCH`` lines), as fields of a submission; the rest is named."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field

from placement.domain.containing.containers import ENGINES, problem
from placement.domain.submitting.group_terms import MOST_DEVICES

_MARK = "#SBATCH"
_SHORT = {"t": "time", "J": "job-name", "G": "gpus", "a": "array", "D": "chdir", "o": "output", "e": "error",
          "p": "partition", "A": "account", "q": "qos", "n": "ntasks", "N": "nodes", "c": "cpus-per-task",
          "d": "dependency", "L": "licenses", "w": "nodelist", "C": "constraint"}  # fmt: skip
_BARE = ("exclusive", "requeue", "no-requeue")
_NOT_HERE = {
    "output": "what it prints is kept and shown on its page",
    "error": "what it prints is kept and shown on its page",
    "partition": "there is one queue here",
    "account": "there is one queue here",
    "qos": "there is one queue here",
    "ntasks": "processors are not counted here",
    "nodes": "a job runs on one node here",
    "cpus-per-task": "processors are not counted here",
    "dependency": "the numbers are another queue's; name jobs of this one under When and how often",
    "requeue": "say it under When and how often: try again",
}
_DAYS = re.compile(r"(\d{1,4})-(\d{1,2})(?::(\d{1,2})(?::(\d{1,2}))?)?", re.ASCII)
_CLOCK = re.compile(r"(\d{1,7})(?::(\d{1,2})(?::(\d{1,2}))?)?", re.ASCII)
_GPUS = re.compile(r"(?:gpu(?::[\w.-]*[A-Za-z][\w.-]*)?:?|[\w.-]*[A-Za-z][\w.-]*:)?(\d{1,4})?", re.ASCII)
_ARRAY = re.compile(r"(\d{1,7})-(\d{1,7})(?::(\d{1,7}))?(?:%(\d{1,7}))?", re.ASCII)
_MEMORY = re.compile(r"(\d{1,12})([KMGT]?)B?", re.ASCII | re.IGNORECASE)
_WITHIN = re.compile(r"(?<=[^\s'\"])#")  # no comment: it is within a word, where shlex would take it for one
_KEPT = "\x01"
_USED = re.compile(r"\$\{?(SLURM_\w+)")


@dataclass(frozen=True, slots=True)
class Head:
    """``fields`` are form texts by name; ``taken`` says what became of an option, ``left`` what did not, and why."""

    fields: dict[str, str] = field(default_factory=dict)
    taken: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def read(script: str) -> Head:
    """Return what the head of a script asks for: its ``#SBATCH`` lines before the first line that is no comment."""
    fields: dict[str, str] = {}
    taken: list[str] = []
    left: list[str] = []
    for name, value in _options(script):
        shown = f"--{name}={value}" if value else f"--{name}"
        found, said = _TAKE[name](value) if name in _TAKE else ({}, _NOT_HERE.get(name, "it means nothing here"))
        setup = "\n".join(text for text in (fields.get("setup"), found.get("setup")) if text)
        fields |= {**found, "setup": setup} if setup else found
        (taken if found else left).append(f"{shown}: {said}")
    known = {"SLURM_ARRAY_TASK_ID"} if "array" in fields else set()
    for variable in sorted(set(_USED.findall(script)) - known):
        left.append(f"${variable}: it is not set here; TIDEGATE_JOB_ID and the like are")
    return Head(fields, tuple(taken), tuple(left))


def _options(script: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in script.splitlines():
        if line.strip() and not line.startswith("#"):
            break
        if not line.startswith(_MARK) or not line[len(_MARK) : len(_MARK) + 1].isspace():
            continue
        text = _WITHIN.sub(_KEPT, line[len(_MARK) :])
        try:
            words = shlex.split(text, comments=True)
        except ValueError:
            words = text.split()
        found += _pairs([word.replace(_KEPT, "#") for word in words])
    return found


def _pairs(words: list[str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("--"):
            name, sign, value = word[2:].partition("=")
        elif word.startswith("-") and len(word) > 1:
            name, value = _SHORT.get(word[1], word[1]), word[2:].removeprefix("=")
            sign = value
        else:
            continue
        if not sign and name not in _BARE and rest and not rest[0].startswith("-"):
            value = rest.pop(0)
        found.append((name, value))
    return found


def _time(value: str) -> tuple[dict[str, str], str]:
    if match := _DAYS.fullmatch(value):
        days, hours, minutes, rest = (int(part or 0) for part in match.groups())
        seconds = ((days * 24 + hours) * 60 + minutes) * 60 + rest
    elif match := _CLOCK.fullmatch(value):
        parts = [int(part) for part in match.groups() if part is not None]
        seconds = {1: 60, 2: 60, 3: 3600}[len(parts)] * parts[0]
        seconds += sum(part * 60**power for power, part in enumerate(reversed(parts[1:])))
    else:
        return {}, "it is no time that can be read"
    if not seconds:
        return {}, "0 is no limit, and here empty is"
    unit, size = next((u, s) for u, s in (("h", 3600), ("min", 60), ("s", 1)) if seconds % s == 0)
    return {"time_limit_s": f"{seconds // size} {unit}"}, f"time limit {seconds // size} {unit}"


def _name(value: str) -> tuple[dict[str, str], str]:
    return ({"name": value[:200]}, "name") if value else ({}, "it names nothing")


def _gpus(value: str) -> tuple[dict[str, str], str]:
    match = _GPUS.fullmatch(value)
    if match is None:
        return {}, "it is no number of devices that can be read"
    many = int(match[1] or 1)
    if many == 0:
        return {"gpu": "none"}, "no device"
    if many == 1:
        return {"gpu": "one"}, "one device"
    if many > MOST_DEVICES:
        return {}, f"{MOST_DEVICES} devices are the most that a job takes"
    return {"gpu": "group", "min_devices": str(many), "max_devices": str(many)}, f"a group of {many} devices"


def _array(value: str) -> tuple[dict[str, str], str]:
    match = _ARRAY.fullmatch(value)
    if match is None or int(match[2]) < int(match[1]):
        return {}, "only one range such as 0-9 or 1-10%2 is an array here; write other values as a sweep"
    first, last, step = int(match[1]), int(match[2]), int(match[3] or 1) or 1
    count = (last - first) // step + 1
    task = "TIDEGATE_ARRAY_INDEX" if step == 1 else f"TIDEGATE_ARRAY_INDEX * {step}"
    task = f"$(({task} + {first}))" if first else f"$(({task}))" if step > 1 else f"${task}"
    fields = {"array": str(count), "setup": f"export SLURM_ARRAY_TASK_ID={task}"}
    if match[4] and int(match[4]):
        fields["array_limit"] = str(int(match[4]))
    return fields, f"{count} jobs; a set-up line gives each its SLURM_ARRAY_TASK_ID"


def _memory(value: str) -> tuple[dict[str, str], str]:
    match = _MEMORY.fullmatch(value)
    if match is None or not int(match[1]):
        return {}, "it is no amount of memory; what a run needs is learned"
    amount = f"{int(match[1])} {(match[2] or 'M').upper()}iB"
    return {"declared_ram": amount}, f"{amount} of RAM, as your guess"


def _chdir(value: str) -> tuple[dict[str, str], str]:
    return ({"cwd": value}, "working directory") if value.startswith("/") else ({}, "it is no absolute path")


def _image(value: str) -> tuple[dict[str, str], str]:
    """Take an image as registries write it; pyxis has # between the registry and the name."""
    named = value.removeprefix("docker://").replace("#", "/", 1)
    if problem(ENGINES[0], named):
        return {}, "it is no image that docker or podman would fetch"
    return {"image": named}, f"container of {named}"


def _exclusive(value: str) -> tuple[dict[str, str], str]:
    return ({"exclusive": "machine"}, "the whole machine alone") if not value else ({}, "it means nothing here")


def _note(value: str) -> tuple[dict[str, str], str]:
    return ({"note": value[:500]}, "note") if value else ({}, "it says nothing")


_TAKE: dict[str, Callable[[str], tuple[dict[str, str], str]]] = {
    "time": _time,
    "job-name": _name,
    "gres": _gpus,
    "gpus": _gpus,
    "gpus-per-node": _gpus,
    "gpus-per-task": _gpus,
    "array": _array,
    "mem": _memory,
    "chdir": _chdir,
    "exclusive": _exclusive,
    "container-image": _image,
    "comment": _note,
}
