"""What holds for every page: headers that let it run nothing of others, and no text that a database cannot hold."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.shortcuts import render

# Plotly's image export draws through data: and blob: images; nothing needs inline script or style.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "object-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
    )
)

_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def behind_the_proxy(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Return a middleware by which a request comes from whoever asked the proxy, where one is in front (HTTPS).

    Seen from here all come from the proxy: one person's wrong passwords would make everybody wait. The last address is
    the one that the proxy wrote down; those before it anybody can send.
    """
    if not settings.HTTPS:
        raise MiddlewareNotUsed

    def middleware(request: HttpRequest) -> HttpResponse:
        told = request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip()[:100]
        request.META["REMOTE_ADDR"] = told or request.META.get("REMOTE_ADDR", "")
        return get_response(request)

    return middleware


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Return a middleware that sets the policy on every answer, static files included."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response

    return middleware


def kept_by_nobody(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Return a middleware that lets no cache keep an answer that says nothing of it.

    Refusals name people and jobs, too, and a 404 or 405 may be kept unasked (RFC 9110, 15.1).
    Static files say how long they hold.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Cache-Control", "no-store, private")
        return response

    return middleware


def in_utf8(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Return a middleware that refuses a form in another encoding than UTF-8, which no page of ours sends.

    Whatever else names one is read as UTF-8: where names of encodings that are no text are believed, reading fails.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        told = (request.content_params or {}).get("charset")
        if told is not None:
            form = request.content_type in _FORMS and not request.path.startswith("/api/")
            if form and told.lower() not in ("utf-8", "utf8", "us-ascii", "ascii"):
                sentence = f"The form is said to be in {told[:40]}; only UTF-8 is taken. Nothing was done."
                return render(request, "placement/refused.html", {"sentence": sentence, "status": 415}, status=415)
            request.encoding = "utf-8"
        return get_response(request)

    return middleware


def no_nul(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Return a middleware that refuses a NUL in an address or a form: PostgreSQL holds none, no program takes one.

    Nor a form that did not come whole. The API looks at its own bodies, field by field.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if not request.path.startswith("/api/"):
            sentence = ""
            try:
                if _holds_nul(request):
                    sentence = "The request holds a NUL character, which no text can. Take it out, and send it again."
            except UnreadablePostError:
                sentence = "The request ended in the middle, so nothing was done. Send it again."
            if sentence:
                return render(request, "placement/refused.html", {"sentence": sentence, "status": 400}, status=400)
        return get_response(request)

    return middleware


def _holds_nul(request: HttpRequest) -> bool:
    sent = [text for data in (request.GET, request.POST) for pair in data.lists() for text in (pair[0], *pair[1])]
    return any("\0" in text for text in (request.path, *sent))
