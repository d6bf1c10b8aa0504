"""One shape for every answer that is an error, whatever went wrong; never a page."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.views.decorators.csrf import csrf_exempt
from ninja.errors import HttpError, ValidationError

from placement.api import sentences
from placement.domain.errors import Infeasible, NotFound, NotYours, Refused
from placement.selectors import outage

log = logging.getLogger(__name__)


class Turned(Exception):  # an answer on its way out, not a fault
    """Somebody is turned away at the door, with this answer."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(response.status_code)
        self.response = response


def error(
    status: int,
    code: str,
    message: str,
    fields: Mapping[str, str] | None = None,
    detail: Mapping[str, Any] | None = None,
) -> JsonResponse:
    """Return the error shape."""
    body = {"code": code, "message": message, "fields": dict(fields or {}), "detail": dict(detail or {})}
    return JsonResponse({"error": body}, status=status)


def answer(problem: Exception) -> HttpResponse:
    """Return the answer for whatever was raised."""
    match problem:
        case Turned():
            return problem.response
        case NotFound() | Http404():
            return error(404, "not_found", getattr(problem, "sentence", "") or "There is nothing here.")
        case NotYours():
            return error(403, "not_yours", problem.sentence)
        case Infeasible():
            return error(409, "infeasible", problem.sentence, problem.fields, {"checks": problem.checks})
        case Refused():
            code, status = ("invalid", 400) if problem.fields else ("refused", 409)
            return error(status, code, problem.sentence, problem.fields)
        case ValidationError():
            wrong = sentences.fields(problem.errors)
            return error(400, "invalid", sentences.whole(wrong), wrong)
        case HttpError() if isinstance(problem.__cause__, Exception):  # ninja's wrapping of what the parser raised
            return answer(problem.__cause__)
        case MultiPartParserError() | TooManyFieldsSent() | TooManyFilesSent():
            return error(400, "invalid", "The body was sent as a form that cannot be read; send JSON.")
        case UnreadablePostError():
            return error(400, "invalid", "The body ended in the middle, so nothing was done; send it again.")
        case RequestDataTooBig():
            return error(413, "too_large", "The body is larger than this service takes (2.5 MB).")
    if told := outage.sentence(problem):
        log.warning("An API call could not be served: %s", problem, extra={"action": "unavailable"})
        return error(503, "unavailable", told)
    log.error("An API call failed.", exc_info=problem)
    return error(500, "internal", "Something went wrong here; it is in the service's log.")


def not_allowed(method: str, allowed: tuple[str, ...]) -> HttpResponse:
    """Return the answer to a method that an address does not have."""
    response = error(405, "method_not_allowed", f"Use {' or '.join(allowed)} here, not {method[:20]}.")
    response["Allow"] = ", ".join(allowed)
    return response


@csrf_exempt
def nowhere(request: HttpRequest, rest: str = "") -> JsonResponse:
    """Answer what no endpoint has."""
    return error(404, "not_found", "There is no such endpoint. The page /api lists them all.")
