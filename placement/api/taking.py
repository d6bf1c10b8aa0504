"""A person takes a device, part of one, or a machine for a while: a job that waits its turn like any other."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.urls import reverse

from placement.api import jobs_told
from placement.api.nouns import Noun
from placement.api.shapes.job import JobAnswer
from placement.api.shapes.taking import TakeBody
from placement.domain.submitting.taken import Wish
from placement.services import taking
from placement.views import wake

noun = Noun("Devices")
SAMPLE = {"node": "gpu-box", "device": "GPU-1a2b", "hours": 2, "size": "8 GiB", "why": "a notebook"}


@noun.change("/holds", JobAnswer, status=201, sample=SAMPLE)
def take(request: HttpRequest, asked: TakeBody) -> JsonResponse:
    """Take a device, part of one, or a machine for some hours.

    It is a job: it waits with its reasons, begins when it starts, and is given back by cancelling it.
    """
    wish = Wish(asked.node, asked.device or "", asked.size, asked.hours * 3600, asked.why)
    made = taking.take(request.user, wish)
    wake.soon()
    response = JsonResponse({"job": jobs_told.one(request.user, made)}, status=201)
    response["Location"] = reverse("api-job", args=[made.pk])
    return response
