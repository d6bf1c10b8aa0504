"""A slash too many at the end of an address leads to the page that is meant; Django itself adds one that is missing."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.urls import Resolver404, resolve
from django.utils.http import escape_leading_slashes

_PAGES = ("placement.views.", "scheduler_site.")  # the API answers with its own error, the admin with its own pages


def no_slash_too_many(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Return a middleware that sends whoever asked for nothing but a known page and a slash to that page."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if response.status_code == 404 and request.method in ("GET", "HEAD") and request.path_info.endswith("/"):
            bare = request.path_info.rstrip("/")
            if page := next((one for one in (bare, f"{bare}/") if one != request.path_info and _is_page(one)), ""):
                asked = request.META.get("QUERY_STRING", "")
                return HttpResponsePermanentRedirect(escape_leading_slashes(f"{page}?{asked}" if asked else page))
        return response

    return middleware


def _is_page(path: str) -> bool:
    try:
        return f"{resolve(path).func.__module__}.".startswith(_PAGES)
    except Resolver404:
        return False
