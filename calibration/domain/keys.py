"""Keys: what a typed command or a workload with parameters is learned under."""

from __future__ import annotations

import hashlib
import json
import os.path
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from . import commandline
from .sediment import Key

Look = Literal["path", "seed", "name", "date"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument as people see it; ``name`` (an option, or ``#1``) is what marks it as irrelevant."""

    name: str
    text: str
    looks_like: Look | None
    matters: bool


@dataclass(frozen=True, slots=True)
class CommandKey:
    """A key without its fingerprint; ``source`` is the script file to take it of, if there is one."""

    workload: str
    script: str
    params: str
    arguments: tuple[Argument, ...]
    source: str | None
    workers: int = 1

    def key(self, fingerprint: str) -> Key:
        """Return the whole key for this fingerprint."""
        return Key(self.workload, fingerprint, self.params, self.script, self.workers)


def typed_command_key(
    user: str,
    command: str,
    setup: str,
    cwd: str,
    workers: int,
    irrelevant: frozenset[str] = frozenset(),
    image: str = "",
) -> CommandKey:
    """Return the key of a typed command: user, program, script and all arguments in normalised order.

    Options are sorted by name (one given twice keeps its order), ``--a=1`` equals ``--a 1``. Arguments
    named in ``irrelevant`` stay out with their values. What only a shell can take apart (pipes, ``&&``,
    several lines) is one argument: its whole text. A set-up line and a container's image are part of the parameters.
    """
    line = commandline.parse(command)
    prefix = [f"setup: {setup.strip()}"] if setup.strip() else []
    prefix += [f"image: {image}"] if image else []
    if line is None:
        text = "\n".join(part.rstrip() for part in command.strip().splitlines())
        whole = Argument("#1", text, None, True)
        params = json.dumps([*prefix, f"in: {cwd}", text], ensure_ascii=False)
        return CommandKey(f"{user}: shell", "", params, (whole,), None, max(1, workers))
    script, source = line.script, None
    if line.file is not None:
        source = script = os.path.normpath(os.path.join(cwd, line.file))
    arguments = tuple(
        Argument(part.name, part.text, _looks_like(part), part.name not in irrelevant) for part in line.parts
    )
    told = [
        part.shown if argument.matters else f"{part.name}=*"
        for part, argument in zip(line.parts, arguments, strict=True)
    ]
    params = json.dumps([*prefix, script or line.program, *told], ensure_ascii=False)
    return CommandKey(f"{user}: {line.program}", script, params, arguments, source, max(1, workers))


def workload_key(
    name: str,
    params: Mapping[str, str],
    relevant: frozenset[str] | None = None,
    workers: int = 1,
    *,
    image: str = "",
) -> CommandKey:
    """Return the key of a named workload; ``relevant`` parameters decide its memory, None means all.

    ``image`` is that of a container other than the workload's own.
    """
    arguments = tuple(
        Argument(key, value, None, relevant is None or key in relevant) for key, value in sorted(params.items())
    )
    counted = {argument.name: argument.text for argument in arguments if argument.matters}
    if image:
        counted["image:"] = image  # no parameter has such a name
    text = json.dumps(counted, ensure_ascii=False, sort_keys=True)
    return CommandKey(name, f"workload: {name}", text, arguments, None, max(1, workers))


def subject(workload: str, script: str, params: str) -> str:
    """Return 32 hex digits that name what people look at as one: a workload, or one script of one person.

    What is typed for a shell, or as code, has no script: there each text is one of its own.
    """
    text = "\0".join((workload, script, "" if script else params))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def named(workload: str) -> str:
    """Return the subject of a named workload."""
    return subject(workload, f"workload: {workload}"[:500], "")


def _looks_like(part: commandline.Part) -> Look | None:
    words = part.name.lower().lstrip("-").replace("_", "-").split("-")
    if "seed" in words:
        return "seed"
    if commandline.DATE.search(part.value):
        return "date"
    if commandline.PATH.search(part.value) and not commandline.NUMBER.fullmatch(part.value):
        return "path"
    if commandline.NAME_WORDS.intersection(words) and part.value:
        return "name"
    return None
