"""The OpenAPI description, completed: how to come in, what each error means, where the service is."""

from __future__ import annotations

from typing import Any

ABOUT = (
    "Everything that the pages can do. Sizes are bytes; on the way in, text with a unit is taken too. "
    "Unknown is null, never 0. Times are ISO 8601."
)
ERRORS = {
    400: "The body or the query cannot be taken; `fields` has a sentence beside each field.",
    401: "Nobody is logged in, or the token is unknown, expired or revoked.",
    403: "It needs another role or scope, belongs to somebody else, or lacks its CSRF token.",
    404: "There is no such thing.",
    409: "It cannot be done as things are; the message says why. What could never start here is `infeasible`.",
    413: "The body is larger than this service takes (2.5 MB).",
    429: "Too many bad tokens came from there; `Retry-After` says when the next try is possible.",
    500: "A fault of the service; it is in its log.",
    503: "The database or the disk takes nothing for now; nothing was changed.",
}
SECURITY = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token, made on the page Tokens."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "tidegate_session",
        "description": "Of a logged-in person; what changes something needs the header X-CSRFToken, too.",
    },
}


def complete(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the description with what Ninja does not know of."""
    schema["servers"] = [{"url": "/"}]
    schema["components"]["securitySchemes"] = SECURITY
    schema["components"]["responses"] = {f"E{status}": _error(status, text) for status, text in ERRORS.items()}
    schema["security"] = [{"token": []}, {"session": []}]
    schema["tags"] = [{"name": name} for name in _tags(schema)]
    for operations in schema["paths"].values():
        for operation in operations.values():
            told: dict[str, Any] = {}
            for status, reply in operation["responses"].items():
                known = int(status) in ERRORS
                told[str(status)] = {"$ref": f"#/components/responses/E{status}"} if known else _good(reply)
            operation["responses"] = told
    _untitled(schema)
    return dict(schema)


def _good(reply: dict[str, Any]) -> dict[str, Any]:
    return {**reply, "description": "Done."}


def _error(status: int, text: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}
    told: dict[str, Any] = {"description": text, "content": content}
    if status == 429:
        told["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return told


def _tags(schema: dict[str, Any]) -> list[str]:
    names = [tag for of in schema["paths"].values() for one in of.values() for tag in one.get("tags", ())]
    return list(dict.fromkeys(names))


def _untitled(part: Any) -> None:
    """Take away the titles that pydantic makes of field names: they say nothing twice."""
    if isinstance(part, dict):
        if isinstance(part.get("title"), str) and ("type" in part or "anyOf" in part or "$ref" in part):
            del part["title"]
        for value in part.values():
            _untitled(value)
    elif isinstance(part, list):
        for value in part:
            _untitled(value)
