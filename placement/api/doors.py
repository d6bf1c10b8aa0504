"""Who comes in: a token, or the session of a logged-in person with its CSRF token; and with which role."""

from __future__ import annotations

import math

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

from placement.api.refusals import Turned, error
from placement.models import Job, Role
from placement.models.token import Scope, Token
from placement.selectors import access
from placement.services import job_tokens, members, tokens

SAFE = ("GET", "HEAD")


class _Csrf(CsrfViewMiddleware):
    """Django's own check, with our shape for its answer (the middleware's is a page)."""

    def _reject(self, request: HttpRequest, reason: str) -> HttpResponse:
        return error(403, "csrf", f"The request carries no valid CSRF token ({reason.rstrip('.')}).")


class Door:
    """Lets in who has this role. An Authorization header decides alone: a bad token never falls back to a session."""

    def __init__(self, role: Role) -> None:
        self.role = role

    def __call__(self, request: HttpRequest) -> bool:
        """Return True, with the user on the request, or raise Turned."""
        _ = request.body  # too large is said first; and once the CSRF check has read a form, the body is gone
        header = request.headers.get("Authorization")
        token = None if header is None else _token(request, header)
        own = access.role_of(request.user)
        if own is None:
            raise Turned(error(401, "not_logged_in", "Log in first; the session is missing or over. Or send a token."))
        if token is None and (refused := _csrf(request)):
            raise Turned(refused)
        if token is not None and token.scope == Scope.READ and request.method not in SAFE:
            raise Turned(error(403, "scope", "This token only reads; make one with the scope submit or full."))
        if access.RANK[own] < access.RANK[self.role]:
            of = f", by a token with the scope {token.scope}" if token and token.scope != Scope.FULL else ""
            raise Turned(error(403, "role", f"This needs the role {self.role.value}; yours is {own.value}{of}."))
        return True


class JobDoor:
    """Lets a running job in with its own token, and nobody else."""

    def __call__(self, request: HttpRequest) -> bool:
        """Return True, with the job on the request, or raise Turned."""
        kind, _, text = request.headers.get("Authorization", "").strip().partition(" ")
        job = job_tokens.redeem(text.strip()) if kind.lower() == "bearer" else None
        if job is None:
            raise Turned(_unknown(request, _NO_JOB))
        request._tidegate_job = job  # type: ignore[attr-defined]
        return True


_NO_JOB = (
    "The token is no running job's: its job has ended, or it never was one. A job finds its own in TIDEGATE_TOKEN."
)


def job_of(request: HttpRequest) -> Job:
    """Return the job that a request came in with."""
    job: Job = request._tidegate_job  # type: ignore[attr-defined]
    return job


def token_of(request: HttpRequest) -> Token | None:
    """Return the token that the request came in with, None for a session."""
    return getattr(request, "_tidegate_token", None)


def _token(request: HttpRequest, header: str) -> Token:
    kind, _, text = header.strip().partition(" ")
    text = text.strip()
    if text.startswith(job_tokens.PREFIX):
        said = "A job's token opens nothing but what the job itself may ask for, below /api/v1/inside/."
        raise Turned(error(403, "job_token", said))
    token = tokens.redeem(text) if kind.lower() == "bearer" and text.startswith(tokens.PREFIX) else None
    if token is None:
        raise Turned(_unknown(request))
    request.user = token.user
    request._tidegate_token = token  # type: ignore[attr-defined]
    return token


def _unknown(request: HttpRequest, said: str = "") -> HttpResponse:
    """Return 401, or 429 for whoever tried too often. Only failures ask and write: a good token costs nothing more."""
    who = [f"token:{request.META.get('REMOTE_ADDR', '')}"]
    wait = math.ceil(members.wait_before_login(who))
    if wait > 0:
        response = error(429, "too_many", f"Too many bad tokens came from there. The next try is possible in {wait} s.")
        response["Retry-After"] = str(wait)
        return response
    members.failed_login(who)
    said = said or "The token is unknown, expired or revoked. It is sent as: Authorization: Bearer tg_…"
    response = error(401, "bad_token", said)
    response["WWW-Authenticate"] = "Bearer"
    return response


def _csrf(request: HttpRequest) -> HttpResponse | None:
    check = _Csrf(lambda _: HttpResponse())
    check.process_request(request)
    return check.process_view(request, _csrf, (), {})
