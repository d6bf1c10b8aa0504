"""Ways in and out: a password, a one-time link, logging out."""

from __future__ import annotations

import math

from django.conf import settings
from django.contrib import admin, auth, messages
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from placement.services import members
from placement.views.door import door, refused

BACKEND = "django.contrib.auth.backends.ModelBackend"


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def login(request: HttpRequest) -> HttpResponse:
    """Log in by name and password; failures make the next try wait."""
    onward = _onward(request)
    if request.method != "POST":
        if request.user.is_authenticated:
            return redirect(onward)
        return _page(request, AuthenticationForm(request), onward)
    who = _keys(request)
    wait = members.wait_before_login(who)
    if wait > 0:
        return _slow_down(request, onward, wait)
    form = AuthenticationForm(request, data=request.POST)
    if not form.is_valid():
        members.failed_login(who)
        return _page(request, form, onward, status=422)
    auth.login(request, form.get_user())
    return redirect(onward)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def link(request: HttpRequest, token: str) -> HttpResponse:
    """Open a one-time link. Looking at it changes nothing: mail scanners look at links."""
    if request.method != "POST":
        return render(request, "placement/login_link.html")
    who = [f"link:{_address(request)}"]
    wait = members.wait_before_login(who)
    if wait > 0:
        return _slow_down(request, settings.LOGIN_REDIRECT_URL, wait)
    user = members.redeem_link(token)
    if user is None:
        members.failed_login(who)
        return render(request, "placement/login_link.html", {"spent": True}, status=410)
    auth.login(request, user, backend=BACKEND)
    return redirect(settings.LOGIN_REDIRECT_URL)


@require_http_methods(["GET", "HEAD", "POST"])
def admin_login(request: HttpRequest) -> HttpResponse:
    """Send whoever wants into Django's admin to our login: its own form would let anybody guess without a wait."""
    if admin.site.has_permission(request):
        return redirect("admin:index")
    if request.user.is_authenticated:
        return refused(request, "Django's admin pages are open to superusers only; everything else is here.", 403)
    return redirect_to_login(request.GET.get("next") or reverse("admin:index"))


@require_POST
def logout(request: HttpRequest) -> HttpResponse:
    """End the session."""
    auth.logout(request)
    return redirect("login")


def _page(
    request: HttpRequest, form: AuthenticationForm, onward: str, *, wait: str = "", status: int = 200
) -> HttpResponse:
    return render(request, "placement/login.html", {"form": form, "next": onward, "wait": wait}, status=status)


def _slow_down(request: HttpRequest, onward: str, wait: float) -> HttpResponse:
    seconds = math.ceil(wait)
    sentence = f"Too many failed tries. The next one is possible in {seconds} s."
    response = _page(request, AuthenticationForm(request), onward, wait=sentence, status=429)
    response["Retry-After"] = str(seconds)
    return response


def _onward(request: HttpRequest) -> str:
    asked = request.POST.get("next") or request.GET.get("next") or ""
    safe = url_has_allowed_host_and_scheme(asked, allowed_hosts={request.get_host()}, require_https=request.is_secure())
    return asked if safe and asked.startswith("/") else settings.LOGIN_REDIRECT_URL  # else it were a view's name


def _keys(request: HttpRequest) -> list[str]:
    name = request.POST.get("username", "").strip().casefold()[:150]
    return [f"name:{name}", f"from:{_address(request)}"]


def _address(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))


@sensitive_post_parameters()
@door(methods=("GET", "HEAD", "POST"))
def password(request: HttpRequest) -> HttpResponse:
    """Set a password; whoever has one already gives the old one first."""
    kind = PasswordChangeForm if request.user.has_usable_password() else SetPasswordForm
    form = kind(request.user, request.POST if request.method == "POST" else None)
    form.fields["new_password2"].label = "The same again"
    form.fields["new_password2"].help_text = ""
    if request.method == "POST" and form.is_valid():
        auth.update_session_auth_hash(request, form.save())
        messages.success(request, "The password is set.")
        return redirect("queue")
    return render(request, "placement/password.html", {"form": form}, status=422 if form.is_bound else 200)
