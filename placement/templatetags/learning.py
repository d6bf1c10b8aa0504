"""The way from a job to what is learned of its kind."""

from __future__ import annotations

from django.template import Library

from calibration.domain import keys
from calibration.models import Known
from placement.domain.submitting.taken import Kind
from placement.models import Job, Workload

register = Library()


@register.simple_tag
def learned_under(job_id: int) -> str:
    """Return the id of the page of what this job is learned under, "" while there is none: of a hold never."""
    key = (
        Job.objects.filter(pk=job_id)
        .exclude(kind=Kind.HOLD)
        .values_list("key_workload", "key_script", "key_params")
        .first()
    )
    if key is None:
        return ""
    ident = keys.subject(*key)
    named = ident == keys.named(key[0]) and Workload.objects.filter(name=key[0]).exists()
    return ident if named or Known.objects.filter(subject=ident).exists() else ""
