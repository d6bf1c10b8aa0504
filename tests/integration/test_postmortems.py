"""A death of memory is looked into: who took it, what is learned of it, and how it is run again."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import pytest
from django.utils import timezone

from calibration.domain.knobs import Knobs as InstrumentKnobs
from calibration.domain.windows import Window, observe
from calibration.models import Point, Sediment
from placement.domain.ending.outcomes import Verdict
from placement.domain.jobs import Outcome
from placement.domain.knobs import Knobs
from placement.models import Job, Role
from placement.runner.record import ExitRecord
from placement.selectors import proof, raised
from placement.services import cycle_row, ending, lifecycle, postmortems
from placement.services.ending import Round, judged, store
from placement.services.learning import Open, Windows
from tests.builders import GIB
from tests.integration.rows import UUIDS, a_machine, a_running, a_user

pytestmark = pytest.mark.django_db
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.\n"


@pytest.fixture
def ann(settings: Any, tmp_path: Any) -> Any:
    settings.RUNS, settings.NODE = tmp_path, "atlas"
    settings.ALLOWED_ROOTS = ["/tmp"]
    cycle_row.ensure()
    a_machine()
    return a_user("ann", Role.ADMIN)


def on_gpu0(user: Any, granted: float, used: float, **more: Any) -> Job:
    charge = {"granted": int(granted * GIB), "held": int(granted * GIB), "at_start": int(granted * GIB), "cap": None}
    fields = {
        "device": UUIDS[0], "charges": {UUIDS[0]: charge}, "used": {UUIDS[0]: int(used * GIB)}, "declared_vram": 4 * GIB
    }  # fmt: skip
    return a_running(user, **{**fields, **more})


def points(*looks: dict[int, float], outside: tuple[float, ...] = ()) -> None:
    """Store looks at gpu0 of the last seconds, the newest now: GiB by job, and of others."""
    now = int(time.time())
    for ago, owners in enumerate(reversed(looks)):
        others = outside[len(looks) - 1 - ago] if outside else 0.0
        Point.objects.create(
            node="atlas", pool=UUIDS[0], step=1, at=now - 10 * ago, total=24 * GIB,
            used=int((sum(owners.values()) + others) * GIB),
            owners={f"job:{job}": int(amount * GIB) for job, amount in owners.items()},
        )  # fmt: skip


def died(job: Job, *, said: str = OOM, code: int = 1) -> Job:
    """End a job as its records tell it; what it said last is in its log. Its window saw it at what it used."""
    folder = lifecycle.run_dir_of(job)
    folder.mkdir(exist_ok=True)
    (folder / "stderr.log").write_text(said)
    windows = Windows()
    window = Window(0.0)
    for at in (1.0, 2.0, 3.0):
        window = observe(window, at, {"vram": job.used[UUIDS[0]]}, None)
    windows._open[job.pk] = Open(window)
    record = ExitRecord(job.pk, 1, "boot", code=code, started_at=time.time() - 9, ended_at=time.time(), duration_s=9.0)
    round_ = Round(windows, 3.0, Knobs(), InstrumentKnobs.defaults(), {UUIDS[0]: 24 * GIB})
    assert store([judged(job, record, "")], round_)
    return Job.objects.get(pk=job.pk)


def asked_next(job: Job) -> int | None:
    return Sediment.objects.get(owner=f"job:{job.pk}").next_charge.get("vram")


AGAIN = {"times": 2, "on": ["out_of_memory", "cap_exceeded"], "wait_s": 0.0, "longest_s": 0.0}


def test_a_victim_of_a_neighbour_is_told_so_learns_nothing_wrong_and_is_run_again_unchanged(ann: Any) -> None:
    neighbour = on_gpu0(ann, 5, 14, key_workload="other")
    victim = on_gpu0(ann, 10, 9, retry_policy=AGAIN)
    points({victim.pk: 9, neighbour.pk: 5}, {victim.pk: 9, neighbour.pk: 14})
    ended = died(victim)
    assert ended.outcome == "out_of_memory"
    assert ended.sentence.endswith(
        f" #{neighbour.pk} grew by 9.0 GiB in the minute before, to 14.0 GiB of 5.0 GiB granted; "
        "this one used 9.0 GiB of 10.0 GiB."
    )
    assert ended.evidence["postmortem"]["blame"] == "victim"
    assert ended.evidence["postmortem"]["grew"] == 9 * GIB
    assert asked_next(ended) is None
    assert raised.of(ended) is None
    again = Job.objects.get(retry_of=ended)
    assert (again.declared_vram, again.retry_number) == (4 * GIB, 1)
    assert again.estimate["pools"]["vram"]["need"] <= 10 * GIB


def test_an_outsider_that_grew_is_told(ann: Any) -> None:
    victim = on_gpu0(ann, 10, 9)
    points({victim.pk: 9}, {victim.pk: 9}, outside=(0, 14))
    ended = died(victim)
    assert "grew by 14.0 GiB in the minute before; this one used 9.0 GiB of 10.0 GiB." in ended.sentence
    assert asked_next(ended) is None


def test_own_over_use_raises_the_next_charge_and_offers_it_with_one_click(ann: Any, client: Any) -> None:
    job = on_gpu0(ann, 10, 13)
    points({job.pk: 9}, {job.pk: 13})
    ended = died(job)
    assert ended.sentence.endswith(" Own over-use: 13.0 GiB of 10.0 GiB.")
    want = asked_next(ended)
    assert want == -(-13 * GIB * 6 // 5)
    offer = raised.of(ended)
    assert offer is not None
    assert offer.text == "15.6 GiB"
    assert offer.fields == (("vram", want),)

    client.force_login(ann)
    page = client.get(f"/jobs/{ended.pk}").content.decode()
    assert "Retry with 15.6 GiB" in page
    assert "its own over-use" in page
    answer = client.post(f"/jobs/{ended.pk}/retry", {"vram": str(want)})
    again = Job.objects.get(retry_of=ended)
    assert answer.url == f"/jobs/{again.pk}"
    assert again.declared_vram == want
    assert again.estimate["pools"]["vram"]["need"] == want


def test_a_program_reads_the_offer_and_takes_it(ann: Any, client: Any) -> None:
    ended = died(on_gpu0(ann, 10, 13))
    client.force_login(ann)
    url = f"/api/v1/jobs/{ended.pk}"
    told = client.get(url).json()["job"]
    assert told["raised"] == {"vram": asked_next(ended)}
    assert told["evidence"]["postmortem"]["blame"] == "own"

    def again(**body: object) -> Any:
        return client.post(f"{url}/retry", body, content_type="application/json")

    answer = again(raised=True)
    assert answer.status_code == 201
    assert answer.json()["job"]["declared_vram"] == told["raised"]["vram"]
    assert again(raised=True, declared_vram="20 GiB").json()["job"]["declared_vram"] == 20 * GIB
    assert again(declared_vram="1 GiB", declared_ram="3 GiB").json()["job"]["declared_vram"] == 4 * GIB
    assert again().json()["job"]["declared_vram"] == 4 * GIB
    assert again(raised="yes").status_code == 400
    for wrong in (0, -1, "0 GiB"):
        refused = again(declared_vram=wrong)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid")


def test_a_victim_is_offered_nothing_larger_by_the_api_either(ann: Any, client: Any) -> None:
    victim = on_gpu0(ann, 10, 9)
    points({victim.pk: 9}, {victim.pk: 9}, outside=(0, 14))
    ended = died(victim)
    client.force_login(ann)
    url = f"/api/v1/jobs/{ended.pk}"
    assert client.get(url).json()["job"]["raised"] is None
    refused = client.post(f"{url}/retry", {"raised": True}, content_type="application/json")
    assert refused.status_code == 409
    assert "Nothing larger is offered" in refused.content.decode()


def test_a_smaller_figure_in_the_form_takes_nothing_from_what_was_declared(ann: Any, client: Any) -> None:
    ended = died(on_gpu0(ann, 10, 13))
    client.force_login(ann)
    client.post(f"/jobs/{ended.pk}/retry", {"vram": "1"})
    assert Job.objects.get(retry_of=ended).declared_vram == 4 * GIB
    client.post(f"/jobs/{ended.pk}/retry", {"vram": "much"})
    assert Job.objects.filter(retry_of=ended).count() == 1


def test_by_its_policy_a_run_that_outgrew_its_charge_is_run_again_with_more(ann: Any) -> None:
    ended = died(on_gpu0(ann, 10, 13, retry_policy=AGAIN))
    again = Job.objects.get(retry_of=ended)
    assert "10.0 GiB of device memory were charged then, 15.6 GiB are asked for now" in again.evidence["retry"]


def test_what_did_not_die_of_memory_is_not_looked_into(ann: Any) -> None:
    ended = died(on_gpu0(ann, 10, 13), said="ValueError: no\n")
    assert (ended.outcome, ended.sentence) == ("failed", "Failed with code 1.")
    assert "postmortem" not in ended.evidence
    assert raised.of(ended) is None


def test_a_receipt_of_an_hour_ago_and_a_control_groups_counters(ann: Any) -> None:
    job = on_gpu0(ann, 10, 9)
    folder = lifecycle.run_dir_of(job) / "receipts"
    folder.mkdir(parents=True)
    receipt = folder / "7.vram-cap.json"
    receipt.write_text(json.dumps({"asked": GIB, "held": 9 * GIB, "device_free": 5 * GIB, "cap": 9 * GIB}))
    record = ExitRecord(job.pk, 1, "b", code=1, ended_at=time.time(), duration_s=9.0)
    fresh = ending.judged(job, record, "")
    assert fresh.verdict.outcome == "cap_exceeded"
    os.utime(receipt, (time.time() - 3600, time.time() - 3600))
    assert ending.judged(job, record, "").verdict.outcome == "failed"
    control = lifecycle.run_dir_of(job) / "control"
    control.mkdir()
    counters = {"path": "/x", "version": 2, "oom": 1, "oom_kill": 1, "memory_max": GIB, "memory_peak": GIB}
    (control / "exit.json").write_text(json.dumps({"cgroup": counters}))
    found = ending.judged(job, record, "")
    assert found.verdict.outcome == "cap_exceeded"
    assert found.row["sentence"].startswith("RAM limit exceeded: the kernel killed it at its own limit of 1.0 GiB;")
    assert found.row["evidence"]["exit"]["group"] == {name: counters[name] for name in counters if name[0] in "om"}
    told = {fact.name: fact.text for fact in proof.facts(found.row["evidence"], {})}
    assert told["processes of it that the kernel killed"] == "1"
    assert told["its own limit"] == "1.0 GiB"
    (small,) = proof.facts({"memory_peak": 786432}, {})
    assert (small.text, small.exact) == ("768 KiB", "786,432 bytes")


def test_the_kernels_own_figure_tells_how_far_past_its_grant_a_run_was(ann):
    job = on_gpu0(ann, 4, 0)
    charge = {"granted": GIB, "held": GIB, "at_start": GIB, "cap": 3 * GIB // 2}
    Job.objects.filter(pk=job.pk).update(device="", charges={"ram": charge}, used={"ram": GIB})
    at = timezone.now()
    verdict = Verdict(Outcome.CAP_EXCEEDED, "killed at its limit", "lower_bound", "ram")
    job = Job.objects.get(pk=job.pk)
    seen = postmortems.of(job, verdict, None, at, None, {"oom": 1, "memory_peak": 3 * GIB // 2})
    assert seen is not None
    assert seen.told == "Own over-use: 1.5 GiB of 1.0 GiB."
    # Without a death at its own limit that figure has cached files in it.
    seen = postmortems.of(job, verdict, None, at, None, {"oom": 0, "memory_peak": 3 * GIB // 2})
    assert seen is not None
    assert seen.told == "Own over-use: it met its own cap."
