"""Why a group waits: its sets have devices in common, and what is said of a device is said once."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from django.template.loader import render_to_string

from placement.domain.admission import wire
from placement.domain.admission.gate import decide
from placement.selectors import verdict
from tests.builders import GIB, a_device, a_node, a_snapshot, a_waiting


def seen(*free: int, **more: Any) -> verdict.Verdict:
    devices = [a_device(24 * GIB, (24 - room) * GIB, index=index) for index, room in enumerate(free)]
    found = verdict.of(wire.decision_json(decide(a_snapshot(a_node(*devices)), a_waiting(1, 8 * GIB, **more))))
    assert found is not None
    return found


def test_each_device_s_sum_stands_once_and_then_the_sets() -> None:
    found = seen(4, 3, 2, 1, group=(2, 2))
    said = Counter(row for place in found.shown for row in place.objections)
    assert len(found.places) == 6
    assert max(said.values()) > 1
    assert [one.row for one in found.once] == list(said)
    text = re.sub(r"<[^>]+>", "", render_to_string("placement/_checks.html", {"seen": found}))
    for row in said:
        assert text.count(row.sentence) == 1
    for place in found.places:
        assert place.label in text
    for row in found.passed_once:
        assert text.count(row.sentence) >= 1


def test_places_that_have_nothing_in_common_are_told_one_by_one() -> None:
    found = seen(4, 3)
    assert found.once == found.passed_once == ()
    assert found.apart == found.places
