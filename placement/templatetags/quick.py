"""The one-line box that submits a command, wherever a page wants it."""

from __future__ import annotations

import secrets
from typing import Any

from django.template import Context, Library

from placement.models import Role
from placement.selectors import access

register = Library()


@register.inclusion_tag("placement/_quick.html", takes_context=True)
def quick(context: Context) -> dict[str, Any]:
    """Render the box with a one-time key; nothing for whoever may not submit."""
    request = context.get("request")
    user = getattr(request, "user", None)
    may = user is not None and access.at_least(user, Role.SUBMITTER)
    return {"may": may, "form_key": secrets.token_urlsafe(24) if may else "", "csrf_token": context.get("csrf_token")}
