"""Who asks: session, user and role are read once for all requests of a session until somebody commits something."""

from __future__ import annotations

import copy
from typing import Any

from django.contrib import auth
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from placement.selectors import access
from placement.selectors.kept import Kept

_kept: Kept[Any] = Kept()


class Visitors(AuthenticationMiddleware):
    """Django's own, with the answer kept while it cannot have changed: an open page asks each second."""

    def process_request(self, request: HttpRequest) -> None:
        """Put the user on the request; read when first asked for."""
        super().process_request(request)
        key = request.session.session_key
        if key is not None:
            request.user = SimpleLazyObject(lambda: _visitor(request, key))  # type: ignore[assignment]  # as Django does


def _visitor(request: HttpRequest, key: str) -> Any:
    request.session.accessed = True  # the answer depends on the cookie, whoever has read the session
    return copy.copy(_kept.get(key, lambda: _read(request)))  # what a view puts on its user is no other view's


def _read(request: HttpRequest) -> Any:
    user = auth.get_user(request)
    access.role_of(user)  # kept on the user
    return user
