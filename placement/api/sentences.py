"""What is wrong with a body or a query, as a sentence beside each field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_KINDS = {
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "an object of names and texts",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


def fields(errors: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return a sentence per field of ninja's errors; the first one of a field stands."""
    found: dict[str, str] = {}
    for one in errors:
        found.setdefault(_name(one["loc"]), _sentence(one))
    return found


def whole(wrong: Mapping[str, str]) -> str:
    """Return one sentence of all."""
    return "The request cannot be taken: " + " ".join(f"{name}: {text}" for name, text in wrong.items())


def _name(place: Sequence[Any]) -> str:
    """Return the field's own name: without where it was sent, the name of our argument, or which of a union it was."""
    parts = [str(part) for part in place[1:] if isinstance(part, str | int)]
    if place and place[0] == "body":
        parts = parts[1:]
    return (parts[0] if parts else "body")[:60]


def _sentence(one: Mapping[str, Any]) -> str:
    kind, context = str(one.get("type", "")), one.get("ctx") or {}
    if kind in _KINDS:
        return f"It must be {_KINDS[kind]}."
    match kind:
        case "missing":
            return "It is missing."
        case "extra_forbidden":
            return "There is no such field here."
        case "literal_error" | "enum":
            return f"It must be {context.get('expected', 'one of the known words')}."
        case "greater_than_equal":
            return f"It must be {context['ge']:,} or more."
        case "greater_than":
            return f"It must be above {context['gt']:,}."
        case "less_than_equal":
            return f"It must be at most {context['le']:,}."
        case "less_than":
            return f"It must be below {context['lt']:,}."
        case "string_too_long" | "too_long":
            return f"It may have at most {context['max_length']:,}."
        case "string_too_short" | "too_short":
            return f"It needs at least {context['min_length']:,}."
        case "value_error":
            return str(context.get("error", one.get("msg", "")))
    return f"{str(one.get('msg', 'It cannot be taken')).rstrip('.')}."
