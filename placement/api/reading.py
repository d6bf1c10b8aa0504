"""The description as people read it: operations by noun, what goes in, what comes out, and how curl asks."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from placement.api.service import schema

SAMPLES = {"job_id": "12", "array_id": "3", "name": "train", "node": "gpu-box", "stream": "stdout"}
_WORDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "null": "null"}


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter, or one field of a body or an answer. ``shape`` names the shape that is told elsewhere."""

    name: str
    kind: str
    shape: str
    needed: bool
    text: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """One named shape."""

    name: str
    text: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer: its status, what it means, the shape that it has."""

    status: str
    text: str
    shape: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One call. ``path`` is below /api/v1/; ``example`` is what follows the address in curl."""

    id: str
    method: str
    path: str
    summary: str
    paragraphs: tuple[str, ...]
    role: str
    parameters: tuple[Field, ...]
    body: str
    fields: tuple[Field, ...]
    replies: tuple[Reply, ...]
    errors: tuple[Reply, ...]
    sample: str
    query: str

    @property
    def sought(self) -> str:
        """Return what a search looks through."""
        return f"{self.method} {self.path} {self.summary} {self.role}".lower()


@dataclass(frozen=True, slots=True)
class Noun:
    """The operations of one noun."""

    name: str
    operations: tuple[Operation, ...]


@cache
def nouns() -> tuple[Noun, ...]:
    """Return all operations, in the order in which they are written down."""
    told = schema()
    found: dict[str, list[Operation]] = {tag["name"]: [] for tag in told["tags"]}
    for path, methods in told["paths"].items():
        for method, one in methods.items():
            found[one["tags"][0]].append(_operation(path, method, one))
    return tuple(Noun(name, tuple(operations)) for name, operations in found.items())


@cache
def shapes() -> tuple[Shape, ...]:
    """Return all named shapes of answers and bodies, by name."""
    named = schema()["components"]["schemas"]
    return tuple(_shape(name, named[name]) for name in sorted(named))


def _operation(path: str, method: str, one: Mapping[str, Any]) -> Operation:
    content = one.get("requestBody", {}).get("content", {}).get("application/json", {})
    body = _ref(content.get("schema", {}))
    sample = content.get("example")
    replies = [_reply(status, reply) for status, reply in one["responses"].items()]
    short, filled = path.removeprefix("/api/v1/"), path
    for name in (p["name"] for p in one["parameters"] if p["in"] == "path"):
        filled = filled.replace(f"{{{name}}}", SAMPLES.get(name, "1"))
    return Operation(
        id=one["operationId"],
        method=method.upper(),
        path=short,
        summary=one["summary"],
        paragraphs=_paragraphs(one.get("description", "")),
        role=one["x-role"],
        parameters=tuple(_asked(_field(p["name"], p["schema"], p["required"], p["in"])) for p in one["parameters"]),
        body=body,
        fields=tuple(map(_asked, _shape(body, schema()["components"]["schemas"][body]).fields)) if body else (),
        replies=tuple(reply for reply in replies if reply.status < "400"),
        errors=tuple(reply for reply in replies if reply.status >= "400"),
        sample="" if sample is None else shlex.quote(json.dumps(sample, ensure_ascii=False)),
        query=filled,
    )


def _paragraphs(text: str) -> tuple[str, ...]:
    """Return a description's paragraphs; the role that ends it stands elsewhere."""
    found = [" ".join(part.split()).replace("`", "") for part in text.split("\n\n")]
    return tuple(part for part in found if part and not part.startswith(("For a ", "For an ")))


def _asked(field: Field) -> Field:
    """Return a field that is sent: null is as good as left out, and that is said once for all."""
    return replace(field, kind=field.kind.replace(", null", "").removesuffix(" or null"))


def _reply(status: str, reply: Mapping[str, Any]) -> Reply:
    if "$ref" in reply:
        reply = schema()["components"]["responses"][reply["$ref"].rpartition("/")[2]]
    content = next(iter(reply.get("content", {}).values()), {})
    return Reply(status, reply["description"].replace("`", ""), _ref(content.get("schema", {})))


def _shape(name: str, told: Mapping[str, Any]) -> Shape:
    needed = set(told.get("required", ()))
    fields = (_field(field, one, field in needed) for field, one in told.get("properties", {}).items())
    return Shape(name, told.get("description", "").replace("``", ""), tuple(fields))


def _field(name: str, told: Mapping[str, Any], needed: bool, where: str = "") -> Field:
    return Field(name, kind(told), _ref(told), needed, told.get("description", ""), where)


def _ref(told: Mapping[str, Any]) -> str:
    """Return the name of the first shape in a schema, "" where there is none."""
    if "$ref" in told:
        return str(told["$ref"]).rpartition("/")[2]
    inner = [*told.get("anyOf", ()), told.get("items"), told.get("additionalProperties")]
    return next((name for part in inner if isinstance(part, dict) and (name := _ref(part))), "")


def kind(told: Mapping[str, Any]) -> str:
    """Return a schema in a few words."""
    if "$ref" in told:
        return _ref(told)
    if "enum" in told or "const" in told:
        return _either(str(word) for word in told.get("enum", [told.get("const")]))
    if "anyOf" in told:
        return _either(dict.fromkeys(kind(part) for part in told["anyOf"]))
    match told.get("type"):
        case "array":
            return f"list of {kind(told['items'])}" if told.get("items") else "list"
        case "object":
            of = told.get("additionalProperties")
            return f"object of {kind(of)}" if isinstance(of, dict) and of else "object"
        case "string" if told.get("format") == "date-time":
            return "time"
        case str() as word:
            return _WORDS.get(word, word)
    return "anything"


def _either(words: Iterable[str]) -> str:
    *some, last = words
    return f"{', '.join(some)} or {last}" if some else last
