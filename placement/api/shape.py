"""One shape for every answer that is an error, whatever went wrong; never a page."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.middleware.csrf import CsrfViewMiddleware
from django.views.decorators.csrf import csrf_exempt

from placement.domain.errors import Infeasible, NotFound, NotYours, Refused
from placement.models import Role
from placement.selectors import access, outage

log = logging.getLogger(__name__)
View = Callable[..., HttpResponse]


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


class _Csrf(CsrfViewMiddleware):
    """Django's own check, with our shape for its answer (the middleware's is a page)."""

    def _reject(self, request: HttpRequest, reason: str) -> HttpResponse:
        return error(403, "csrf", f"The request carries no valid CSRF token ({reason.rstrip('.')}).")


def endpoint(role: Role = Role.VIEWER, methods: tuple[str, ...] = ("GET", "HEAD")) -> Callable[[View], View]:
    """Return a decorator for an API view: session login, CSRF, role, method, and every error in the one shape."""

    def decorate(view: View) -> View:
        @csrf_exempt  # checked below, so that its refusal has our shape
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            try:
                response = _guard(request, role, methods) or view(request, *args, **kwargs)
            except Exception as problem:  # the outermost edge: whatever it was, the caller gets JSON
                response = _answer(problem)
            response.headers.setdefault("Cache-Control", "no-store, private")
            return response

        return guarded

    return decorate


def _guard(request: HttpRequest, role: Role, methods: tuple[str, ...]) -> HttpResponse | None:
    if request.method not in methods:
        response = error(405, "method_not_allowed", f"Use {' or '.join(methods)} here, not {request.method}.")
        response["Allow"] = ", ".join(methods)
        return response
    own = access.role_of(request.user)
    if own is None:
        return error(401, "not_logged_in", "Log in first; the session is missing or over.")
    # The CSRF check looks for a form's field; once it has read a form from the stream, the body is gone.
    _ = request.body
    check = _Csrf(lambda _: HttpResponse())
    check.process_request(request)
    rejected = check.process_view(request, _guard, (), {})
    if rejected is not None:
        return rejected
    if access.RANK[own] < access.RANK[role]:
        return error(403, "role", f"This needs the role {role.value}; yours is {own.value}.")
    return None


def _answer(problem: Exception) -> JsonResponse:
    """Return the answer for whatever a view raised."""
    match problem:
        case NotFound() | Http404():
            return error(404, "not_found", getattr(problem, "sentence", "") or "There is nothing here.")
        case NotYours():
            return error(403, "not_yours", problem.sentence)
        case Infeasible():
            return error(409, "infeasible", problem.sentence, problem.fields, {"checks": problem.checks})
        case Refused():
            code, status = ("invalid", 400) if problem.fields else ("refused", 409)
            return error(status, code, problem.sentence, problem.fields)
        case MultiPartParserError() | TooManyFieldsSent() | TooManyFilesSent():
            return error(400, "invalid", "The body was sent as a form that cannot be read; send JSON.")
        case RequestDataTooBig():
            return error(413, "too_large", "The body is larger than this service takes (2.5 MB).")
    if told := outage.sentence(problem):
        log.warning("An API call could not be served: %s", problem, extra={"action": "unavailable"})
        return error(503, "unavailable", told)
    log.error("An API call failed.", exc_info=problem)
    return error(500, "internal", "Something went wrong here; it is in the service's log.")


@csrf_exempt
def nowhere(request: HttpRequest, rest: str = "") -> JsonResponse:
    """Answer what no endpoint has."""
    return error(
        404, "not_found", "There is no such endpoint. Known are under /api/v1/: queue, jobs, arrays, estimate."
    )
