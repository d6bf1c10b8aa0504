"""The door of every page: logged in, with a role, by the right method; and what refusals look like."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import redirect, render
from django.urls import reverse

from placement.domain.errors import NotFound, NotYours, Refused
from placement.models import Role
from placement.selectors import access, outage

log = logging.getLogger(__name__)
View = Callable[..., HttpResponse]
_pack = GZipMiddleware(lambda request: HttpResponse())


def door(
    role: Role = Role.VIEWER, methods: tuple[str, ...] = ("GET", "HEAD"), part_of: str = ""
) -> Callable[[View], View]:
    """Return a decorator that lets in who is logged in with at least this role.

    ``part_of`` names the page of which the view returns a part: opened by itself it leads to that page, which takes the
    same arguments in its path. A part asked for by somebody whose session is over answers 401 and a sentence, so that
    no login form ends up inside a page.

    What is not streamed goes packed to whoever takes it so. Some random bytes blur its length, and the tokens of forms
    are masked anew each time: who can choose a part of a page and watches lengths learns nothing.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if request.method not in methods:
                return HttpResponseNotAllowed(methods)
            own = access.role_of(request.user)
            if own is None:
                return _to_login(request)
            if part_of and not request.htmx:
                return redirect(_page_of(request, reverse(part_of, args=args, kwargs=kwargs)))
            if access.RANK[own] < access.RANK[role]:
                return refused(request, f"This needs the role {role.value}; yours is {own.value}.", 403)
            try:
                response = view(request, *args, **kwargs)
            except NotFound as error:
                raise Http404(error.sentence) from error
            except NotYours as error:
                return refused(request, error.sentence, 403)
            except (OperationalError, OSError) as error:
                told = outage.sentence(error)
                if not told:
                    raise
                log.warning("A page could not be served: %s", error, extra={"action": "unavailable"})
                return refused(request, told, 503)
            response.headers.setdefault("Cache-Control", "no-store, private")
            return response if response.streaming else _pack.process_response(request, response)

        return guarded

    return decorate


def _page_of(request: HttpRequest, page: str) -> str:
    query = request.GET.copy()
    query.pop("v", None)
    return f"{page}?{query.urlencode()}" if query else page


def _to_login(request: HttpRequest) -> HttpResponse:
    if not request.htmx:
        return redirect_to_login(request.get_full_path())
    here = urlsplit(request.headers.get("HX-Current-URL", ""))
    back = here.path + (f"?{here.query}" if here.query else "")
    login = f"{reverse('login')}?{urlencode({'next': back or '/'})}"
    return render(request, "_session_over.html", {"login": login}, status=401)


def refused(request: HttpRequest, sentence: str, status: int) -> HttpResponse:
    """Return a page, or a fragment for htmx, that says why not."""
    template = "placement/_refused.html" if request.htmx else "placement/refused.html"
    return render(request, template, {"sentence": sentence, "status": status}, status=status)


def done(request: HttpRequest, to: str, act: Callable[[], Any], said: str = "") -> HttpResponse:
    """Run a change, keep its sentence or its refusal as a message, and go to a page.

    ``act`` may return the sentence itself. NotYours and NotFound go on to the door.
    """
    try:
        answer = act()
    except (NotYours, NotFound):
        raise
    except Refused as error:
        messages.error(request, error.sentence)
    else:
        sentence = answer if isinstance(answer, str) and answer else said
        if sentence:
            messages.success(request, sentence)
    return redirect(to)
