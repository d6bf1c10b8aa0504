"""Take a device, part of one, or a machine for a while, from its page."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from calibration.domain.samples import RAM
from placement.domain.errors import Refused
from placement.forms.taking import TakeForm
from placement.models import Role
from placement.selectors import devices
from placement.services import taking
from placement.views import wake
from placement.views.door import done, door


@door(Role.SUBMITTER, ("POST",))
def take(request: HttpRequest, node: str, pool: str) -> HttpResponse:
    """Put a hold on this device, or on the machine whose RAM it is, into the queue."""
    if not devices.pool_exists(node, pool):
        raise Http404("There is no such pool.")
    form = TakeForm(request.POST)

    def act() -> str:
        if not form.is_valid():
            raise Refused(" ".join(f"{form[name].label}: {said[0]}" for name, said in form.errors.items()))
        job = taking.take(request.user, form.wish(node, "" if pool == RAM else pool))
        wake.soon()
        return f"#{job.pk} is in the queue: {job.name}. It begins when it starts; cancel it to give it back."

    return done(request, f"/devices/{node}/{pool}", act)
