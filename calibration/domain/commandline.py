"""Command lines taken apart: program, script and arguments, as far as that is certain without a shell."""

from __future__ import annotations

import os.path
import re
import shlex
from dataclasses import dataclass

DATE = re.compile(r"(?<![0-9])(?:19|20)[0-9]{2}-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12][0-9]|3[01])(?![0-9])")
PATH = re.compile(r"^~|/|\\|\.[A-Za-z][A-Za-z0-9]{0,5}$")
NUMBER = re.compile(r"[+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?")
NAME_WORDS = frozenset({"name", "tag", "id", "experiment", "exp", "run", "project", "comment", "label", "note"})

_OPERATORS = set("();<>|&")
_WRAPPERS = frozenset({"exec", "nohup", "time", "env", "command"})
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_INTERPRETER = re.compile(r"(python|pypy|perl|ruby|node|julia|lua|bash|sh|zsh|dash|ksh|Rscript)[0-9.]*")
_SCRIPT_FILE = re.compile(r".+\.(py|pyc|sh|bash|R|r|jl|js|mjs|pl|rb|lua|m)")
_TAKES_VALUE = frozenset({"-W", "-X", "-O2", "--check-hash-based-pycs"})


@dataclass(frozen=True, slots=True)
class Part:
    """One argument: an option with its value (``""`` for a flag), or a positional one named by its place."""

    name: str
    value: str
    text: str

    @property
    def shown(self) -> str:
        """Return the one spelling that all ways to write this argument share."""
        if self.name.startswith("#"):
            return self.value
        return f"{self.name}={self.value}" if self.value else self.name


@dataclass(frozen=True, slots=True)
class Line:
    """A command taken apart.

    ``script`` is the script or program alone, "" when the code itself is typed in; ``file`` the script's
    path.
    """

    program: str
    script: str
    file: str | None
    parts: tuple[Part, ...]


def parse(command: str) -> Line | None:
    """Return the parts of a simple command, None for one that only a shell can take apart."""
    if "\n" in command.strip():
        return None
    lexer = shlex.shlex(command.strip(), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        tokens = list(lexer)
    except ValueError:
        return None
    if any(token and set(token) <= _OPERATORS for token in tokens):
        return None
    variables, words = _leading(tokens)
    if not words:
        return None
    program, rest = words[0], words[1:]
    name = os.path.basename(program)
    script, file, before, after = _script(program, name, rest)
    parts = (*variables, *_arguments([*before], "interpreter "), *_arguments(after, ""))
    return Line(name, script, file, parts)


def _leading(tokens: list[str]) -> tuple[list[Part], list[str]]:
    variables: list[Part] = []
    words = list(tokens)
    while words:
        match = _ASSIGNMENT.fullmatch(words[0])
        if match is not None:
            variables.append(Part(match[1], match[2], words[0]))
        elif words[0] not in _WRAPPERS or len(words) == 1 or words[1].startswith("-"):
            break
        words.pop(0)
    return sorted(variables, key=lambda part: part.name), words


def _script(program: str, name: str, rest: list[str]) -> tuple[str, str | None, list[str], list[str]]:
    """Return the script's name, its file, and the arguments before and after it."""
    if "/" in program and not _INTERPRETER.fullmatch(name):
        return program, program, [], rest
    if not _INTERPRETER.fullmatch(name):
        for place, word in enumerate(rest):  # launchers such as torchrun or accelerate
            if _SCRIPT_FILE.fullmatch(word) and not word.startswith("-"):
                return word, word, rest[:place], rest[place + 1 :]
        return name, None, [], rest
    place = 0
    while place < len(rest) and rest[place].startswith("-") and rest[place] != "-":
        option = rest[place]
        if option == "-m" and place + 1 < len(rest):
            return f"{name} -m {rest[place + 1]}", None, rest[:place], rest[place + 2 :]
        if option in ("-c", "-e"):
            return "", None, [], rest
        place += 2 if option in _TAKES_VALUE else 1
    if place >= len(rest) or rest[place] == "-":
        return "", None, [], rest
    return rest[place], rest[place], rest[:place], rest[place + 1 :]


def _arguments(words: list[str], before: str) -> list[Part]:
    options: list[Part] = []
    positional: list[Part] = []
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if word == "--":
            positional += [Part("", rest, rest) for rest in words[place:]]
            break
        if not word.startswith("-") or word == "-" or NUMBER.fullmatch(word):
            positional.append(Part("", word, word))
        elif "=" in word:
            name, _, value = word.partition("=")
            options.append(Part(before + name, value, word))
        elif place < len(words) and (not words[place].startswith("-") or NUMBER.fullmatch(words[place])):
            options.append(Part(before + word, words[place], f"{word} {words[place]}"))
            place += 1
        else:
            options.append(Part(before + word, "", word))
    options.sort(key=lambda part: part.name)  # stable: of one option given twice the last one still wins
    return options + [
        Part(f"#{before}{number}", part.value, part.text) for number, part in enumerate(positional, start=1)
    ]
