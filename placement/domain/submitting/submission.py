"""What a person asks to be run, before anything is stored, and everything that can be wrong with it."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields

from calibration.domain.resources import MOST
from placement.domain.submitting import container_terms, group_terms, sweeps, terms
from placement.domain.submitting.taken import Kind as JobKind
from placement.domain.world.requests import Exclusive, Gpu

LONGEST_ARGUMENT = 131_071
"""Bytes; the kernel refuses a longer single argument, and a command text is one argument of bash."""
LONGEST_TIME_LIMIT = 10 * 366 * 86_400.0  # seconds
MOST_WORKERS = 1024
MOST_PRIORITY = 100
MOST_ENTRIES = 200  # of parameters, of variables
MOST_ARGUMENTS = 10_000

_LENGTHS = {"name": 200, "note": 500, "workload": 100, "cwd": 1000, "node": 100, "device": 100, "image": 300}
_ONE_LINE = ("name", "workload", "cwd", "node", "device", "image", "engine")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_THEIRS = frozenset({"TIDEGATE_SHIM", "TIDEGATE_GPU_PROCESSES"})  # what a submission says of its caps
_OURS = frozenset({"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"})
_GPU_WORDS = re.compile(
    r"(?<![\w-])(?:python[0-9.]*|ipython3?|torchrun|accelerate|deepspeed|vllm|sglang|ollama|llama-server"
    r"|text-generation-launcher|tritonserver|lmdeploy|trtllm-serve)(?![\w-])|torch|cuda",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Submission:
    """One job as asked for. Bytes and seconds; exactly one of ``command``, ``argv``, ``workload`` is given.

    ``min_devices`` to ``max_devices`` of a group; with ``memory`` "exact" the bytes for each device, or for the group
    together, are reserved as given, the group's ``even`` or by the room of each device. ``device`` is a UUID;
    ``node``, ``device``, ``device_kind`` and ``backend`` "" mean any. ``params`` fill the workload's command.
    ``after`` is (job, how it has to end) pairs, ``not_before`` unix seconds, ``array`` the number of members (0: a
    single job); ``sweep`` the values by name of which each combination makes a job, ``sweep_same`` the names that do
    not change memory; ``image`` "" means no container (or the workload's), ``engine`` "" the node's first; what is not
    said about further tries is the workload's.
    """

    name: str
    note: str = ""
    command: str = ""
    argv: tuple[str, ...] | None = None
    workload: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    setup: str = ""
    cwd: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    workers: int = 1
    gpu: str = "none"
    exclusive: str = "no"
    node: str = ""
    device: str = ""
    min_devices: int = 1
    max_devices: int = 1
    prefer_max: bool = False
    memory: str = "auto"
    per_device_memory: int | None = None
    group_memory: int | None = None
    even: bool = True
    device_kind: str = ""
    backend: str = ""
    declared_ram: int | None = None
    declared_vram: int | None = None
    time_limit_s: float | None = None
    priority: int = 0
    image: str = ""
    engine: str = ""
    after: tuple[tuple[int, str], ...] = ()
    not_before: float | None = None
    array: int = 0
    array_limit: int | None = None
    sweep: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sweep_same: tuple[str, ...] = ()
    retry_times: int | None = None
    retry_on: tuple[str, ...] = ()
    retry_wait_s: float | None = None
    reserves: bool = False
    kind: str = "run"
    demo: bool = False


def problems(submission: Submission) -> dict[str, str]:
    """Return a sentence per field that cannot be taken, {} when all can. No value of any type raises."""
    found: dict[str, str] = {}
    for name, sentence in _all_problems(submission):
        found.setdefault(name, sentence)
    return {f.name: found[f.name] for f in fields(submission) if f.name in found}


def looks_like_gpu(command: str) -> bool:
    """Return whether a command probably wants a device: python, torch, CUDA or a model server is in it."""
    return _GPU_WORDS.search(command) is not None


def _all_problems(s: Submission) -> Iterator[tuple[str, str]]:
    yield from _texts(s)
    yield from _what_to_run(s)
    yield from _entries("params", s.params)
    yield from _entries("environment", s.environment)
    yield from _variables(s.environment)
    yield from _numbers(s)
    yield from _place(s)
    yield from container_terms.problems(s)
    yield from group_terms.problems(s)
    yield from sweeps.problems(s)
    yield from terms.problems(s)
    if not isinstance(s.kind, str) or s.kind not in set(JobKind):
        yield "kind", f"It must be one of {', '.join(JobKind)}."
    for name in ("reserves", "demo"):
        if not isinstance(getattr(s, name), bool):
            yield name, "It must be true or false."


def _texts(s: Submission) -> Iterator[tuple[str, str]]:
    for name in ("name", "note", "command", "workload", "setup", "cwd", "node", "device", "image", "engine"):
        value: object = getattr(s, name)
        if not isinstance(value, str):
            yield name, f"It must be text, not {_kind(value)}."
            continue
        wrong = bad_characters(value)
        if wrong:
            yield name, wrong
        elif name in _ONE_LINE and any(unicodedata.category(c) in {"Cc", "Zl", "Zp"} for c in value):
            yield name, "It must be one line without control characters."
        elif name in {"name", "workload"} and _hidden(value):
            yield name, "It holds characters that cannot be seen and may make it look like something else."
        elif name in _LENGTHS and len(value) > _LENGTHS[name]:
            yield name, f"It has {len(value):,} characters; {_LENGTHS[name]:,} are the most."
        elif name in {"command", "setup"}:
            yield from _too_long(name, value)
    if isinstance(s.cwd, str) and s.cwd and not s.cwd.startswith("/"):
        yield "cwd", "The working directory must be an absolute path: it starts with /."


def _hidden(text: str) -> bool:
    """Return whether a name holds signs that turn or hide it; joiners are part of some scripts and signs."""
    unseen = [c for c in text if unicodedata.category(c) == "Cf"]
    return any(c not in "\u200c\u200d" for c in unseen) or (bool(unseen) and len(unseen) == len(text.strip()))


def _what_to_run(s: Submission) -> Iterator[tuple[str, str]]:
    given = [
        name
        for name, value in (("command", s.command), ("argv", s.argv), ("workload", s.workload))
        if (value.strip() if isinstance(value, str) else value is not None)
    ]
    if not given:
        yield "command", "Type a command, or choose a workload."
    elif len(given) > 1:
        yield given[0], f"Give one of command, argument list and workload, not {' and '.join(given)}."
    argv: object = s.argv
    if argv is None:
        return
    if not isinstance(argv, tuple) or not all(isinstance(part, str) for part in argv):
        yield "argv", "The argument list must be a list of texts."
    elif not argv or not argv[0]:
        yield "argv", "The argument list must begin with the program to run."
    elif len(argv) > MOST_ARGUMENTS:
        yield "argv", f"It has {len(argv):,} arguments; {MOST_ARGUMENTS:,} are the most."
    else:
        for part in argv:
            wrong = bad_characters(part)
            if wrong:
                yield "argv", wrong
            else:
                yield from _too_long("argv", part)


def _entries(name: str, value: object) -> Iterator[tuple[str, str]]:
    if not isinstance(value, Mapping):
        yield name, f"It must be names with values, not {_kind(value)}."
        return
    if len(value) > MOST_ENTRIES:
        yield name, f"It has {len(value):,} entries; {MOST_ENTRIES:,} are the most."
    for key, text in value.items():
        if not isinstance(key, str) or not isinstance(text, str):
            yield name, "Every name and every value must be text."
        elif not key or len(key) > 200:
            yield name, "Every name must have 1 to 200 characters."
        else:
            wrong = bad_characters(key) or bad_characters(text)
            if wrong:
                yield name, f"{key!r}: {wrong}"
            yield from _too_long(name, f"{key}={text}")


def _variables(value: object) -> Iterator[tuple[str, str]]:
    for key in value if isinstance(value, Mapping) else ():
        if not isinstance(key, str) or not _VARIABLE.fullmatch(key):
            yield "environment", f"{key!r} is not a name of a variable: letters, digits and _ only."
        elif key in _OURS or (key.startswith("TIDEGATE_") and key not in _THEIRS):
            yield (
                "environment",
                f"{key} is set by Tidegate from the device that the job is given; leave it out.",
            )


def _numbers(s: Submission) -> Iterator[tuple[str, str]]:
    yield from _whole("workers", s.workers, 1, MOST_WORKERS)
    yield from _whole("priority", s.priority, -MOST_PRIORITY, MOST_PRIORITY)
    for name, amount in (("declared_ram", s.declared_ram), ("declared_vram", s.declared_vram)):
        if amount is None:
            continue
        if not _is_int(amount):
            yield name, f"It must be a whole number of bytes, not {_kind(amount)}."
        elif amount == 0:
            yield name, "A declaration of 0 bytes says nothing; leave it empty."
        elif not 0 < amount <= MOST:
            yield name, f"{amount:,} bytes cannot be taken: above 0 and at most {MOST:,}."
    limit: object = s.time_limit_s
    if limit is None:
        return
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        yield "time_limit_s", f"It must be a number of seconds, not {_kind(limit)}."
    elif isinstance(limit, float) and not math.isfinite(limit):
        yield "time_limit_s", f"{limit} is not a time; leave it empty for no limit."
    elif not 0 < limit <= LONGEST_TIME_LIMIT:
        yield "time_limit_s", f"It must be above 0 and at most {LONGEST_TIME_LIMIT:,.0f} seconds (ten years)."


def _place(s: Submission) -> Iterator[tuple[str, str]]:
    gpu: object = s.gpu
    exclusive: object = s.exclusive
    if not isinstance(gpu, str) or gpu not in set(Gpu):
        yield "gpu", f"It must be one of {', '.join(Gpu)}."
    if not isinstance(exclusive, str) or exclusive not in set(Exclusive):
        yield "exclusive", f"It must be one of {', '.join(Exclusive)}."
    if gpu == Gpu.NONE and exclusive == Exclusive.DEVICE:
        yield "exclusive", "A job without a device cannot be alone on one; choose a device or another answer."
    if gpu == Gpu.NONE and s.device:
        yield "device", "A job without a device cannot name one; choose one device, or leave this empty."
    if gpu == Gpu.NONE and s.declared_vram is not None:
        yield "declared_vram", "A job without a device uses none of its memory; leave this empty."


def _whole(name: str, value: object, least: int, most: int) -> Iterator[tuple[str, str]]:
    if not _is_int(value):
        yield name, f"It must be a whole number, not {_kind(value)}."
    elif isinstance(value, int) and not least <= value <= most:
        yield name, f"It must be from {least:,} to {most:,}."


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def bad_characters(text: str) -> str:
    """Return what no argument and no database can hold of a text, "" where nothing is."""
    if "\0" in text:
        return "It holds a NUL character, which no argument can."
    if any("\ud800" <= c <= "\udfff" for c in text):
        return "It holds a character that cannot be written as UTF-8."
    return ""


def _too_long(name: str, text: str) -> Iterator[tuple[str, str]]:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > LONGEST_ARGUMENT:
        yield (
            name,
            f"It has {size:,} bytes; the system takes {LONGEST_ARGUMENT:,} in one argument. "
            "Put it into a file and name the file.",
        )


def _kind(value: object) -> str:
    if isinstance(value, float):
        return str(value)
    words = {"NoneType": "nothing", "bool": "true or false", "str": "text", "dict": "an object"}
    return words.get(type(value).__name__, f"a {type(value).__name__}")
