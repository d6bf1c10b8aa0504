"""A job's own token: good for what that job may ask for while it runs, and for nothing else.

It is made from the service's secret key and the attempt, so that two start workers that prepare the same attempt tell
it the same, and nothing has to be stored: whether it opens anything is asked of the job's row.
"""

from __future__ import annotations

import base64
import hmac
import re

from django.utils.crypto import salted_hmac

from placement.domain.jobs import ACTIVE
from placement.models import Job

PREFIX = "tgj_"
_TEXT = re.compile(r"tgj_(\d{1,18})_(\d{1,9})_([A-Za-z0-9_-]{43})", re.ASCII)


def of(job: Job) -> str:
    """Return the token of a job's present attempt."""
    return f"{PREFIX}{job.pk}_{job.attempt}_{_seal(job.pk, job.attempt, job.submitted_at.timestamp())}"


def redeem(text: str) -> Job | None:
    """Return the admitted or running job whose token this is, with its user; None for any other text."""
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    number, attempt = int(match[1]), int(match[2])
    job = Job.objects.select_related("user", "workload").filter(pk=number, attempt=attempt, state__in=ACTIVE).first()
    if job is None or not hmac.compare_digest(match[3], _seal(number, attempt, job.submitted_at.timestamp())):
        return None
    return job


def _seal(job: int, attempt: int, submitted: float) -> str:
    """Return what nobody can make without the key; the time of the submission tells jobs of two databases apart."""
    mac = salted_hmac("placement.job_tokens", f"{job}.{attempt}.{submitted:.3f}", algorithm="sha256").digest()
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()
