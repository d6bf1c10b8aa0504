"""What templates need beyond Django: amounts, times that the browser localises, bars without inline style."""

from __future__ import annotations

import re
import secrets
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.forms import BoundField
from django.template import Context, Library
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from calibration.domain.resources import gib as in_gib
from placement.models import Role
from placement.selectors import access, audited, wording
from placement.selectors.kept import Kept
from placement.services import accounts

register = Library()
SAY_ACCOUNTS = frozenset({"queue"})
POLL_S = 1  # seconds between two looks of an open page; the one place that says so
_notice: Kept[str] = Kept()
_JOB = re.compile(r"(?<![\w&])#([1-9][0-9]{0,17})(?!\w)")


@register.filter
def gib(amount: int | None) -> str:
    """Return the amount with its exact bytes on hover."""
    if amount is None:
        return "unknown"
    return format_html('<span title="{} bytes">{}</span>', f"{amount:,}", in_gib(amount))


@register.simple_tag
def once() -> str:
    """Return the field by which a form that is sent twice makes one job."""
    return format_html('<input type="hidden" name="form_key" value="{}" autocomplete="off">', secrets.token_urlsafe(24))


@register.simple_tag
def moment(at: datetime | None, form: str = "short") -> str:
    """Return a time that the browser shows in its own zone; until then, and without scripts, the server's."""
    if at is None:
        return "–"
    local = timezone.localtime(at)
    text = local.strftime("%Y-%m-%d %H:%M:%S") if form == "long" else wording.near(local, timezone.localtime())
    return format_html(
        '<time datetime="{}" data-form="{}" title="{}">{}</time>',
        at.isoformat(timespec="seconds"),
        form,
        local.strftime("%Y-%m-%d %H:%M:%S %Z"),
        text,
    )


@register.simple_tag
def since(at: datetime | None) -> str:
    """Return how long ago that was; the browser keeps it current."""
    if at is None:
        return "–"
    span = wording.span((timezone.now() - at).total_seconds())
    return format_html(
        '<time datetime="{}" data-form="since" title="{}">{}</time>',
        at.isoformat(timespec="seconds"),
        timezone.localtime(at).strftime("%Y-%m-%d %H:%M:%S %Z"),
        span,
    )


@register.simple_tag
def polls(fragment: str, version: str, *args: Any, **query: Any) -> SafeString:
    """Return the attributes of a part that asks for its next version.

    The view of that name is given the positional arguments in its path, the others in its query, and ``v``: the version
    that is shown. It answers 204 while that is current, and 286, or a part without these attributes, when nothing will
    change any more. "wake" is sent by live.js to a tab that is looked at again.
    """
    asked = urlencode({"v": version, **{name: value for name, value in query.items() if value not in ("", None)}})
    return format_html(
        'data-poll hx-get="{}?{}" hx-trigger="every {}s, wake" hx-swap="outerHTML"',
        reverse(fragment, args=args),
        asked,
        POLL_S,
    )


@register.simple_tag(takes_context=True)
def nav(context: Context, name: str, word: str, key: str = "") -> str:
    """Return the link to a page, marked on that page; nothing where no page has that name. ``key`` follows a "g"."""
    try:
        where = reverse(name)
    except NoReverseMatch:
        return ""
    match = getattr(context.get("request"), "resolver_match", None)
    at, one = getattr(match, "url_name", None), name.removesuffix("s")
    here = mark_safe(' aria-current="page"') if at == name else ""
    if at in (one, f"{one}-page") and not here:  # the page of one of them
        here = mark_safe(' aria-current="true"')
    keys = format_html(' data-key="g {}"', key) if key else ""
    return format_html('<a href="{}"{}{}>{}</a>', where, here, keys, word)


@register.simple_tag
def ahead(at: datetime | None) -> str:
    """Return how far ahead that is, of days ahead the day; the browser keeps it current."""
    if at is None:
        return "–"
    return format_html(
        '<time datetime="{}" data-form="ahead" title="{}">{}</time>',
        at.isoformat(timespec="seconds"),
        timezone.localtime(at).strftime("%Y-%m-%d %H:%M %Z"),
        wording.ahead(timezone.localtime(at), timezone.localtime()),
    )


@register.simple_tag
def linked(sentence: str, prefix: str = "", own: int | None = None) -> SafeString:
    """Return a sentence in which each #12 leads to that job, but for ``own``, whose page or line this is.

    With a prefix each job's first link has an id, so that focus outlives the next look.
    """
    parts = _JOB.split(str(sentence))
    seen: set[str] = set()
    found = [conditional_escape(parts[0])]
    for job, rest in zip(parts[1::2], parts[2::2], strict=True):
        if job == str(own):
            found.append(conditional_escape(f"#{job}{rest}"))
            continue
        named = format_html(' id="{}-{}"', prefix, job) if prefix and job not in seen else ""
        seen.add(job)
        link = format_html('<a{} href="{}">#{}</a>', named, reverse("job", args=[job]), job)
        found += [link, conditional_escape(rest)]
    return mark_safe("".join(found))


@register.filter
def code_words(code: str) -> str:
    """Return a gate code as people read it."""
    return wording.CODES.get(code, code.replace("_", " "))


@register.filter
def detail(value: Any) -> str:
    """Return the detail of an audit entry as people read it."""
    return audited.words(value)


@register.filter
def rung_help(basis: str) -> str:
    """Return what a rung stands on."""
    return wording.RUNG_HELP.get(basis, "")


@register.simple_tag
def described(field: BoundField, help_text: str = "") -> SafeString:
    """Return a field that names the texts about it: its help, its errors."""
    about = {"helptext": field.help_text or help_text, "error": field.errors}
    named = " ".join(f"{field.auto_id}_{part}" for part, there in about.items() if there)
    return field.as_widget(attrs={"aria-describedby": named} if named else None)


@register.filter
def percent(share: float) -> str:
    """Return a percentage for an SVG attribute, with a point whatever the language."""
    return f"{share:.2f}%"


@register.simple_tag(takes_context=True)
def accounts_notice(context: Context) -> str:
    """Return whose Unix account jobs run as; "" when everybody has their own, and on pages that say it above."""
    match = getattr(context.get("request"), "resolver_match", None)
    if match is not None and match.url_name in SAY_ACCOUNTS:
        return ""
    return _notice.get("all", accounts.trust_notice)


@register.simple_tag(takes_context=True)
def whose(context: Context, owner: str) -> str:
    """Return "you" for whoever looks at their own, else the owner's name."""
    user = getattr(context.get("request"), "user", None)
    return "you" if user is not None and user.get_username() == owner else owner


@register.simple_tag(takes_context=True)
def may(context: Context, role: str) -> bool:
    """Return whether whoever looks has this role or a stronger one; False where nobody is known."""
    request = context.get("request")
    user = getattr(request, "user", None)
    return user is not None and access.at_least(user, Role(role))
