"""A reading with holes is stored all the same: every figure that is known, and who could not be looked at."""

from __future__ import annotations

import pytest

from calibration import clock
from calibration import services as instrument
from calibration.domain.attribution import attribute
from calibration.domain.samples import PoolSample, PoolState, ProcessSample, Reading
from calibration.models import PoolNow

pytestmark = pytest.mark.django_db
MIB = 1 << 20


def test_processes_that_ended_refused_or_have_no_name_cost_no_figure() -> None:
    at = clock.now()
    told = tuple((pid, size * MIB) for pid, size in ((1001, 100), (1002, 200), (1003, 300), (1004, 400)))
    card = PoolSample(
        "GPU-0", "vram", "gpu0", PoolState.OK, 24000 * MIB, 22900 * MIB, 1100 * MIB, read_at=at, processes=told
    )
    table = [
        ProcessSample(1002, 1, 5, rss=90 * MIB, ram=90 * MIB, name="python", vram={"GPU-0": 200 * MIB}),
        ProcessSample(1003, 1, 5, uid=4242, user="uid 4242", ram=MIB, name="train", vram={"GPU-0": 300 * MIB}),
        ProcessSample(1004, 999, 5, uid=0, user="root", ram=MIB, name="serve", vram={"GPU-0": 400 * MIB}),
    ]
    reading = Reading("atlas", "boot", at, 1e9, {"GPU-0": card}, {p.pid: p for p in table})

    instrument.store_reading(reading, attribute(reading, []), {"GPU-0": card.free}, (), {}, at)

    row = PoolNow.objects.get(node="atlas", pool="GPU-0")
    assert (row.used, row.free, row.external, row.unexplained) == (1100 * MIB, 22900 * MIB, 1000 * MIB, 100 * MIB)
    assert [tuple(who) for who in row.external_who] == [
        (1004, "root", "serve", 400 * MIB),
        (1003, "uid 4242", "train", 300 * MIB),
        (1002, "", "python", 200 * MIB),
        (1001, "", "(ended)", 100 * MIB),
    ]
