"""One act on the jobs that are ticked in a list."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.http import url_has_allowed_host_and_scheme

from placement.domain.errors import NotYours, Refused
from placement.models import Role
from placement.services import bulk
from placement.views import wake
from placement.views.door import done, door


@door(Role.SUBMITTER, ("POST",))
def act(request: HttpRequest) -> HttpResponse:
    """Cancel, run again, hold, release or move what is ticked, and say what became of each."""
    back = request.POST.get("back", "")
    local = back.startswith("/") and url_has_allowed_host_and_scheme(back, allowed_hosts=None)

    def change() -> str:
        try:
            report = bulk.apply(
                request.user,
                request.POST.get("verb", ""),
                request.POST.getlist("job"),
                priority=_priority(request.POST.get("priority", "")),
                why=request.POST.get("why", ""),
                form_key=request.POST.get("form_key", "")[:64],
            )
        except NotYours as error:  # said on the page where it was asked
            raise Refused(error.sentence) from error
        if report.count:
            wake.soon()
            return report.sentence
        raise Refused(report.sentence)

    return done(request, back if local else "queue", change)


def _priority(text: str) -> int | None:
    try:
        return int(text) if len(text) < 9 else None
    except ValueError:
        return None
