"""Knobs, for admins: every figure that may be turned, in force at the next decision."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from placement.domain.errors import Refused
from placement.models import Role
from placement.selectors import tuned
from placement.services import tuning
from placement.views import wake
from placement.views.door import door


@door(Role.ADMIN)
def page(request: HttpRequest) -> HttpResponse:
    """Show every knob, or those asked for."""
    return _show(request, request.GET.get("q", "").strip()[:100], request.GET.get("turned") == "1")


@door(Role.ADMIN, ("POST",))
def turn(request: HttpRequest, name: str) -> HttpResponse:
    """Set a knob, or put it back to its default; what is refused is shown again with what is wrong with it."""
    if name not in tuning.NAMES:
        raise Http404(f"There is no knob {name}.")
    back = "default" in request.POST
    text = request.POST.get("value", "").strip()
    try:
        if not back and not text:
            raise Refused(f"{name} needs a value; the button beside it puts the default back.")
        said = tuning.turn(request.user, name, None if back else text)
    except Refused as error:
        return _show(request, wrong=name, typed=text, sentence=error.sentence)
    wake.soon()
    messages.success(request, said)
    return redirect("knobs")


def _show(
    request: HttpRequest, text: str = "", turned: bool = False, *, wrong: str = "", typed: str = "", sentence: str = ""
) -> HttpResponse:
    context = {
        "subjects": tuned.subjects(text, turned=turned),
        "q": text,
        "turned": turned,
        "wrong": wrong,
        "typed": typed,
        "sentence": sentence,
    }
    return render(request, "placement/knobs.html", context, status=422 if wrong else 200)
