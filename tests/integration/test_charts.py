from __future__ import annotations

import re
import time
from pathlib import Path

import plotly.offline
import pytest
from django.conf import settings

from calibration import selectors
from calibration.models import Point
from placement.charts import pools
from placement.models import Role
from tests.figures import check
from tests.integration.rows import GIB, a_job, a_machine, a_user

pytestmark = pytest.mark.django_db
NOW = 1_800_000_000


def points(step: int, count: int, now: int = NOW, **more) -> None:
    """Store points that end now, ``step`` seconds apart."""
    fields = {"total": 24 * GIB, "used": 10 * GIB, "free": 14 * GIB, "owners": {"job:7": 8 * GIB}, **more}
    start = now - step * (count - 1)
    Point.objects.bulk_create(
        Point(node="atlas", pool="gpu", step=step, at=start + step * n, **fields) for n in range(count)
    )


def test_owners_and_external_stack_up_to_what_is_used():
    points(1, 3)
    figure = pools.figure(
        selectors.series("atlas", "gpu", selectors.SPANS["10m"], NOW), {"job:7": "#7 train"}, 20 * GIB
    )
    check(figure)
    owner, external, total, _, _, declared = figure["data"]
    assert (owner["name"], owner["y"]) == ("#7 train", [8.0, 8.0, 8.0])
    assert external["y"] == [2.0, 2.0, 2.0]
    assert owner["stackgroup"] == external["stackgroup"]
    assert (total["y"][0], declared["y"][0]) == (24.0, 20.0)
    assert "stackgroup" not in total
    assert figure["last"] == NOW


def test_what_was_booked_and_what_may_be_given_are_lines_and_older_points_gaps():
    points(1, 2, now=NOW - 2)
    points(1, 2, booked=9 * GIB, kept=GIB)
    series = selectors.series("atlas", "gpu", selectors.SPANS["10m"], NOW)
    figure = pools.figure(series, {}, None, shown=(NOW - 600, NOW))
    check(figure)
    lines = {trace["meta"]["key"]: trace["y"] for trace in figure["data"]}
    assert lines["booked"] == [None, None, 9.0, 9.0]
    assert lines["kept"] == [None, None, 23.0, 23.0]
    assert figure["layout"]["xaxis"]["range"] == [(NOW - 600) * 1000, NOW * 1000]
    assert figure["data"][0]["meta"]["href"] == "/jobs/7"
    small = pools.figure(series, {}, None, whole=False)
    assert [trace["meta"]["key"] for trace in small["data"]] == ["job:7", "external", "total"]


def test_a_crowd_is_summed_but_for_who_is_there_now_and_who_held_most():
    held = {f"job:{n}": n * GIB // 100 for n in range(1, 60)}
    points(1, 1, now=NOW - 1, owners=held)
    points(1, 1, owners={"job:1": GIB // 100})
    series = selectors.series("atlas", "gpu", selectors.SPANS["10m"], NOW)
    figure = pools.figure(series, {}, None)
    check(figure)
    rest, *named = [trace for trace in figure["data"] if trace.get("stackgroup")]
    assert rest["name"] == "45 others"
    assert len(rest["meta"]["of"]) == 45
    assert {trace["meta"]["key"] for trace in named} == {"job:1", *(f"job:{n}" for n in range(47, 60)), "external"}
    stacked = [sum(trace["y"][0] for trace in (rest, *named))]
    assert stacked == [pytest.approx(sum(held.values()) / GIB, abs=0.01)]


def test_an_unknown_use_is_a_gap_and_never_zero():
    points(1, 2, used=None)
    series = selectors.series("atlas", "gpu", selectors.SPANS["10m"], NOW)
    assert pools.external(series) == [None, None]


def test_a_time_in_which_nothing_was_read_is_a_gap_and_no_slope():
    points(1, 3, now=NOW - 300)
    points(1, 3)
    series = selectors.series("atlas", "gpu", selectors.SPANS["10m"], NOW)
    assert series.at[2:6] == (NOW - 300, NOW - 299, NOW - 3, NOW - 2)
    assert (series.total[3:5], series.used[3:5]) == ((None, None), (None, None))
    later = selectors.series("atlas", "gpu", selectors.SPANS["10m"], NOW, since=NOW - 300)
    assert later.at == (NOW - 299, NOW - 3, NOW - 2, NOW - 1, NOW)
    assert None not in selectors.series("atlas", "gpu", selectors.SPANS["10m"], NOW, since=NOW - 2).used


def test_owners_above_the_reading_leave_no_negative_external():
    points(1, 1, used=GIB)
    assert pools.external(selectors.series("atlas", "gpu", selectors.SPANS["10m"], NOW)) == [0]


def test_only_what_is_newer_is_sent():
    points(1, 10)
    series = selectors.series("atlas", "gpu", selectors.SPANS["10m"], NOW, since=NOW - 3)
    assert series.at == (NOW - 2, NOW - 1, NOW)


@pytest.mark.parametrize(
    "stored, span, step",
    [
        pytest.param([(10, 20), (1, 200)], "1h", 10, id="ten-second points serve an hour"),
        pytest.param([(1, 200)], "1h", 1, id="a young service shows seconds"),
        pytest.param([(300, 10), (10, 300)], "24h", 300, id="five-minute points serve a day"),
    ],
)
def test_a_range_takes_the_step_that_is_there(stored, span, step):
    for seconds, count in stored:
        points(seconds, count)
    assert selectors.series("atlas", "gpu", selectors.SPANS[span], NOW).step == step


def test_thinning_keeps_the_peak():
    points(300, 3000)
    Point.objects.filter(at=NOW - 300 * 1001).update(used=23 * GIB)
    series = selectors.series("atlas", "gpu", selectors.SPANS["30d"], NOW)
    assert len(series.at) <= selectors.MOST_POINTS
    assert max(series.used) == 23 * GIB


def test_the_endpoint_serves_any_logged_in_person_and_refuses_nonsense(client):
    a_machine()
    job = a_job(a_user("ada"))
    client.force_login(a_user("vic", Role.VIEWER))
    now = int(time.time())
    Point.objects.create(
        node="atlas", pool="ram", step=1, at=now, total=64 * GIB, used=8 * GIB, owners={f"job:{job.pk}": GIB}
    )
    answer = client.get("/devices/atlas/ram/series").json()
    check({"data": answer["data"], "layout": answer["layout"]})
    assert answer["data"][0]["name"] == f"#{job.pk} train-vit"
    assert client.get(f"/devices/atlas/ram/series?since={now}").json()["last"] is None
    for bad in ("range=1y", "since=-5", "since=x", "since=1e9", "since=99999999999999999999"):
        assert client.get(f"/devices/atlas/ram/series?{bad}").status_code == 400, bad
    assert client.get("/devices/atlas/other/series").status_code == 404


def test_the_vendored_plotly_is_the_version_that_python_knows():
    (script,) = Path(settings.REPOSITORY / "static/vendor").glob("plotly-basic-*.min.js")
    version = plotly.offline.get_plotlyjs_version()
    assert script.name == f"plotly-basic-{version}.min.js"
    assert f"plotly.js (basic - minified) v{version}" in script.read_text()[:200]
    assert (script.parent / "plotly-LICENSE.txt").read_text().startswith("MIT License")
    pages = (Path(settings.REPOSITORY) / "templates").rglob("*.html")
    assert not [p for p in pages if re.search(r"(src|href)=\"(https?:)?//", p.read_text())]
