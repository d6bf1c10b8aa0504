"""Now: tanks, waiting, running, finished; live, and as narrow as the address says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse

from placement.models import Role
from placement.selectors import access, choices, kept, queue
from placement.selectors.asked import Asked, read
from placement.services import accounts, nodes
from placement.views import wake
from placement.views.door import done, door
from placement.views.packed import Body, answer

TOP = ("banners", "devices")  # parts that filters do not touch


@dataclass
class Shown:
    """One reading of what somebody asked for, and its parts as each kind of viewer sees them."""

    page: queue.QueuePage
    versions: dict[str, str]
    parts: dict[tuple[str, str, str], str] = field(default_factory=dict)
    bodies: dict[tuple[str, ...], Body] = field(default_factory=dict)  # by the parts that they are made of


_kept: kept.Kept[Shown] = kept.Kept()
_known: kept.Kept[choices.Known] = kept.Kept()


@door()
def page(request: HttpRequest) -> HttpResponse:
    """Show what is asked for with all that is committed; to the form of filters the lists alone."""
    asked = read(request.GET)
    shown = _shown(request, asked)
    context = _pulse(asked, shown.versions)
    if request.htmx and request.htmx.target == "lists":
        stale = dict.fromkeys(TOP, "0" * queue.DIGEST)  # what stands above the lists is asked for anew
        context = _pulse(asked, {**shown.versions, **stale})
        lists = [name for name in queue.PARTS if name not in TOP]
        response = render(request, "placement/_lists.html", {**context, "parts": _parts(request, asked, shown, lists)})
        response["HX-Push-Url"] = _address(asked)
        return response
    context |= {
        "parts": _parts(request, asked, shown, queue.PARTS),
        "choices": choices.of(asked, _known.get("all", choices.known, anyhow=5.0)),
        "held": shown.page.held,
        "operator": _operates(request),
        "picks": access.picks(request.user),
        "back": _address(asked),
    }
    return render(request, "placement/queue.html", context)


@door(part_of="queue")
def fragment(request: HttpRequest) -> HttpResponse:
    """Return what changed, whole parts or pieces of them, or 204 when the page shows it all already."""
    asked = read(request.GET)
    shown = _shown(request, asked, anyhow=kept.POLLED)
    moved = queue.changed(shown.versions, request.GET.get("v", ""))
    if not moved:
        return HttpResponse(status=204)
    whole = _parts(request, asked, shown, [name for name, places in moved.items() if not places])
    pieces = [_piece(request, shown, name, place) for name, places in moved.items() for place in places]
    parts = (*whole.values(), *pieces)
    if parts not in shown.bodies:
        pulse = render_to_string("placement/_pulse.html", _pulse(asked, shown.versions))
        shown.bodies[parts] = Body((pulse + "".join(parts)).encode())
    return answer(request, shown.bodies[parts])


@door(Role.OPERATOR, ("POST",))
def hold(request: HttpRequest) -> HttpResponse:
    """Let nothing start until released."""
    why = request.POST.get("why", "")

    def act() -> None:
        nodes.hold(request.user, "queue", 1, why=why)
        wake.soon()

    return done(request, "queue", act, "The queue is held: what runs goes on, nothing starts.")


@door(Role.OPERATOR, ("POST",))
def release(request: HttpRequest) -> HttpResponse:
    """Let jobs start again."""

    def act() -> None:
        nodes.release(request.user, "queue", 1)
        wake.soon()

    return done(request, "queue", act, "The queue is released.")


def _operates(request: HttpRequest) -> bool:
    return access.at_least(request.user, Role.OPERATOR)


def _shown(request: HttpRequest, asked: Asked, anyhow: float = 0.0) -> Shown:
    operates = _operates(request)
    viewer = request.user.pk if asked.whose else 0

    def build() -> Shown:
        notice = accounts.trust_notice()
        page = queue.page(sees_commands=operates, notice=notice, asked=asked, viewer=viewer)
        return Shown(page, page.versions)

    return _kept.get((operates, asked, viewer), build, anyhow=anyhow)


def _pulse(asked: Asked, versions: dict[str, str]) -> dict[str, Any]:
    turned = asked.page if asked.page > 1 else ""
    return {"asked": asked, "version": queue.joined(versions), "names": queue.PARTS, "turned": turned}


def _parts(request: HttpRequest, asked: Asked, shown: Shown, names: Any) -> dict[str, str]:
    """Return parts as this viewer sees them; those who own nothing in a part see the same."""
    picks, own = access.picks(request.user), request.user.get_username()
    found: dict[str, str] = {}
    for name in names:
        part = getattr(shown.page, name, None)
        kind = (name, picks, own if part is not None and own in getattr(part, "owners", ()) else "")
        if kind not in shown.parts:
            context = {
                "page": shown.page,
                "list": part,
                "asked": asked,
                "picks": picks,
                "submitter": bool(picks),
                "turn": _turn(asked, name),
            }
            shown.parts[kind] = render_to_string(f"placement/_now_{name}.html", context, request)
        found[name] = shown.parts[kind]
    return found


def _piece(request: HttpRequest, shown: Shown, name: str, place: int) -> str:
    """Return one piece of a part, marked for its own place on the page."""
    piece, picks, own = shown.page.pieces(name)[place], access.picks(request.user), request.user.get_username()
    kind = (f"{name} {place}", picks, own if getattr(piece, "owner", "") == own else "")
    if kind not in shown.parts:
        context = {"name": name, "piece": piece, "picks": picks}
        shown.parts[kind] = render_to_string("placement/_now_piece.html", context, request)
    return shown.parts[kind]


def _turn(asked: Asked, name: str) -> dict[str, Any]:
    """Return the queries of the pages before and after; from beside other lists the first leads to a list alone."""
    alone = asked.states == (name,)
    return {
        "alone": alone,
        "older": asked.query(state=name, page=asked.page + 1 if alone else 1),
        "newer": asked.query(state=name, page=asked.page - 1) if alone and asked.page > 1 else "",
    }


def _address(asked: Asked) -> str:
    query = asked.query()
    return f"{reverse('queue')}?{query}" if query else reverse("queue")
