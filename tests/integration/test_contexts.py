"""What contexts cost, kept per card model and bounded."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from calibration import contexts
from calibration.domain.contexts import NEWEST, Allowance
from calibration.models import ContextSeen
from tests.builders import MIB

pytestmark = pytest.mark.django_db


def test_a_model_has_its_own_figure_and_keeps_as_many_runs_as_count() -> None:
    now = timezone.now()
    for number in range(NEWEST + 5):
        contexts.keep("NVIDIA A", "ann", f"job:{number}", (300 + number) * MIB, now + timedelta(seconds=number))
    contexts.keep("NVIDIA A", "ann", "job:3", 999 * MIB, now)  # told twice: once is enough, old or not
    assert ContextSeen.objects.filter(model="NVIDIA A").count() <= NEWEST + 1
    assert contexts.of("NVIDIA A", "ann", 512 * MIB) == Allowance(315 * MIB, NEWEST)
    assert contexts.of("NVIDIA B", "ann", 512 * MIB) == contexts.of("", "ann", 512 * MIB) == Allowance(512 * MIB)
    assert contexts.of("NVIDIA A", "bob", 512 * MIB) == Allowance(512 * MIB), "nobody's word counts for another"
