"""Bodies as JSON that is JSON: no NaN, no Infinity, an object; what cannot be read is refused in words."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from django.http import HttpRequest
from ninja.parser import Parser

from placement.domain.errors import Refused


class Strict(Parser):
    """Reads bodies. Any content type is taken for JSON: a form sent here is told that it is none."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Return the body as an object. Raise Refused with the position of what cannot be read."""
        try:
            body = json.loads(request.body, parse_constant=_no_number)
        except (ValueError, RecursionError) as problem:
            text = f"The body is not JSON: {str(problem)[:200] or 'nested too deep'}."
            raise Refused(text, {"body": text}) from problem
        if not isinstance(body, dict):
            text = "The body must be a JSON object."
            raise Refused(text, {"body": text})
        return body


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number in JSON")
