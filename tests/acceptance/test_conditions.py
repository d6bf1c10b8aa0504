"""One evening at a real service: a chain, a sweep, a flaky job, and a mistake made five times."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.scene import end_all, live_leases, rows, scene, waits
from tests.person import Person, Refusal
from tests.service import LiveService
from tests.wait import until

pytestmark = pytest.mark.timeout(180)
LITTLE = {"declared_ram": "32 MiB"}


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[LiveService, Person]]:
    with scene("files") as found:
        yield found


@pytest.fixture
def ann(place: tuple[LiveService, Person]) -> Iterator[Person]:
    service, person = place
    yield person
    end_all(service, person)


def at(job: dict[str, Any], name: str) -> datetime:
    return datetime.fromisoformat(job[name])


def test_a_chain_runs_in_its_order_and_breaks_where_a_link_does(ann: Person, tmp_path: Path) -> None:
    out, door = tmp_path / "order", tmp_path / "door"
    first = ann.submit(f"until [ -e {door} ]; do sleep 0.05; done; echo 1 >> {out}", **LITTLE)
    second = ann.submit(f"sleep 0.2; echo 2 >> {out}; exit 4", after=[first], **LITTLE)
    third = ann.submit(f"echo 3 >> {out}", after=[second], **LITTLE)
    clean = ann.submit(f"echo clean >> {out}", after=[{"job": second, "when": "failed"}], **LITTLE)
    waits(ann, third, "depends")
    door.touch()
    assert ann.wait_for(clean, "finished", 40)["outcome"] == "completed"
    ended = ann.wait_for(third, "finished")
    assert (ended["outcome"], ended["started_at"]) == ("cancelled", None)
    assert ended["sentence"] == f"#{third} can never start: it waits for #{second} to complete, and #{second} failed."
    assert out.read_text().split() == ["1", "2", "clean"]
    chain = [ann.job(job) for job in (first, second, clean)]
    for before, behind in pairwise(chain):
        assert at(behind, "started_at") >= at(before, "ended_at") - timedelta(seconds=0.05)
    with pytest.raises(Refusal) as refused:
        ann.submit("true", after=[second])
    assert "run it again first" in refused.value.body["error"]["fields"]["after"]


def test_an_array_of_six_runs_two_at_once_and_each_knows_its_index(
    place: tuple[LiveService, Person], ann: Person, tmp_path: Path
) -> None:
    command = f"echo {{index}}/$TIDEGATE_ARRAY_SIZE > {tmp_path}/$TIDEGATE_ARRAY_INDEX; sleep 0.5"
    first = ann.job(ann.submit(command, array=6, array_limit=2, **LITTLE))
    array = first["array"]["id"]
    path = f"/api/v1/arrays/{array}"
    until(lambda: ann.call(path)["array"]["counts"] == {"completed": 6}, 60, "all six to complete", 0.2)
    assert {f.name: f.read_text().strip() for f in tmp_path.iterdir()} == {str(n): f"{n}/6" for n in range(6)}
    service, _ = place
    sql = "SELECT id FROM placement_job WHERE array_id = ? ORDER BY array_index"
    members = [ann.job(job) for (job,) in rows(service, sql, array)]
    spans = [(at(m, "started_at"), at(m, "ended_at")) for m in members]
    most = max(sum(begin <= start < end for begin, end in spans) for start, _ in spans)
    assert most <= 2
    assert "6 completed" in ann.read(f"/arrays/{array}")
    assert live_leases(service) == 0


def test_an_array_is_cancelled_as_a_whole(ann: Person) -> None:
    first = ann.job(ann.submit("sleep 300", array=6, array_limit=2, **LITTLE))
    array = first["array"]["id"]
    path = f"/api/v1/arrays/{array}"
    until(lambda: ann.call(path)["array"]["counts"] == {"running": 2, "queued": 4}, 30, "two of six to run", 0.1)
    ann.send(f"/arrays/{array}/cancel", b"")
    until(lambda: ann.call(path)["array"]["counts"] == {"cancelled": 6}, 30, "all six to be cancelled", 0.1)


def test_a_flaky_job_is_tried_again_later_and_later(ann: Person, tmp_path: Path) -> None:
    count = tmp_path / "count"
    command = f"echo x >> {count}; [ $(wc -l < {count}) -ge 3 ]"
    first = ann.submit(command, retry_times=4, retry_wait_s=1, **LITTLE)
    dependent = ann.submit("true", after=[first], **LITTLE)
    assert ann.wait_for(dependent, "finished", 60)["outcome"] == "completed"
    made = [ann.job(first)]
    while made[-1]["retried_as"] is not None:
        made.append(ann.job(made[-1]["retried_as"]))
    assert [job["outcome"] for job in made] == ["failed", "failed", "completed"]
    assert [job["retry_number"] for job in made] == [0, 1, 2]
    for wait, before, again in zip((1, 2), made, made[1:], strict=False):
        assert at(again, "started_at") - at(before, "ended_at") >= timedelta(seconds=wait - 0.05)
    assert ann.job(dependent)["after"][0]["counts"] == made[-1]["id"]


def test_the_same_mistake_three_times_holds_the_rest_until_somebody_releases_it(ann: Person) -> None:
    made: list[int] = []
    for _ in range(5):
        tie = [{"job": made[-1], "when": "any"}] if made else []
        made.append(ann.submit("exit 3", after=tie, **LITTLE))
    seen = waits(ann, made[3], "job_held", 40)
    told = ", ".join(f"#{job} (code 3)" for job in made[:2]) + f" and #{made[2]} (code 3) of this group failed"
    assert told in seen["headline"]
    assert seen["held_by"] == "tidegate"
    assert ann.job(made[4])["held_by"] == "tidegate"
    page = ann.read(f"/jobs/{made[3]}")
    words = " ".join(re.sub("<[^>]+>", "", page).split())
    assert "held by tidegate" in words
    assert told in words
    assert 'id="release"' in page
    ann.send(f"/jobs/{made[3]}/release", b"")
    for job in made[3:]:
        assert ann.wait_for(job, "finished", 30)["exit_code"] == 3
