"""A line that is kept is the line that would be made."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.template import Context, Template
from django.utils import timezone

from calibration.domain.resources import KIB, MIB
from placement.selectors import rows, wording
from placement.templatetags import lines
from tests.integration.rows import a_finished, a_job, a_running, a_user

pytestmark = pytest.mark.django_db
QUEUE = Template("{% load lines %}{% line kind row %}")
BARE = {kind: Template(f"{{% include 'placement/_row_{kind}.html' %}}") for kind in ("waiting", "running", "finished")}


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_kept", {})


def shown(kind: str, row: Any, who: str) -> str:
    """Return the line as this person sees it, and hold it against one that nobody has kept."""
    request = SimpleNamespace(user=SimpleNamespace(get_username=lambda: who))
    html = QUEUE.render(Context({"kind": kind, "row": row, "request": request}))
    assert html == BARE[kind].render(Context({"row": row, "request": request}))
    return html


def test_each_kind_of_line_for_each_viewer() -> None:
    ada = a_user("ada")
    made = {
        "waiting": rows.waiting(a_job(ada)),
        "running": rows.running(a_running(ada), {}),
        "finished": rows.finished(a_finished(ada)),
    }
    for kind, row in made.items():
        for _ in range(2):
            assert "you" in shown(kind, row, "ada")
            assert "ada" in shown(kind, row, "bob")
    assert len(lines._kept) == 6


def test_a_changed_row_or_age_is_another_line(monkeypatch: pytest.MonkeyPatch) -> None:
    row = rows.waiting(a_job(a_user("ada")))
    shown("waiting", row, "bob")
    assert "another reason" in shown("waiting", replace(row, reason="another reason"), "bob")
    later = timezone.now() + timedelta(minutes=5)
    monkeypatch.setattr(timezone, "now", lambda: later)
    assert "5 min" in shown("waiting", row, "bob")


def test_few_lines_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_LIMIT", 2)
    row = rows.waiting(a_job(a_user("ada")))
    for number in range(5):
        shown("waiting", replace(row, id=number), "bob")
    assert len(lines._kept) <= 2


@pytest.mark.parametrize(
    "held, told", [(None, None), (40 * KIB, 40 * KIB), (499_712, 448 * KIB), (495_616, 448 * KIB), (MIB + 1, MIB + 1)]
)
def test_what_an_idle_job_holds_is_told_in_steps(held: int | None, told: int | None) -> None:
    assert wording.steady(held) == told
