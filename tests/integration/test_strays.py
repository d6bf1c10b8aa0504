"""What `docker run` of an ordinary job leaves: its container is the engine's, and nobody may call its memory free."""

from __future__ import annotations

from typing import Any

import pytest

from calibration.domain.attribution import attribute
from calibration.domain.inside import inside
from calibration.domain.knobs import Knobs as InstrumentKnobs
from calibration.domain.samples import Claim, Identity, PoolSample, PoolState, ProcessSample, Reading
from calibration.models import Sediment
from placement.domain.knobs import Knobs
from placement.models import Job
from placement.runner.record import ExitRecord
from placement.selectors.attribution import _why
from placement.services import containers, strays
from placement.services.ending import Round, judged, store
from placement.services.learning import Windows, owner
from placement.services.strays import Strays
from tests.integration.rows import UUIDS, a_running, a_user

pytestmark = pytest.mark.django_db
MIB = 1 << 20
ID = "c0ffee" + "0" * 58
BASH = ProcessSample(1000, 900, 1000, name="bash", ram=10 * MIB)
CLIENT = ProcessSample(1001, 1000, 1010, name="docker", ram=30 * MIB)
SHIM = ProcessSample(50, 1, 1020, name="containerd-shim", ram=5 * MIB)
INSIDE = ProcessSample(51, 50, 1030, name="python", ram=900 * MIB, cgroup=f"/docker/{ID}")


def reading(*processes: ProcessSample) -> Reading:
    held = [(51, 9000 * MIB)] if INSIDE in processes else []
    pools = {
        "ram": PoolSample(
            "ram", "ram", "RAM", PoolState.OK, total=64000 * MIB, used=8000 * MIB, free=56000 * MIB, read_at=1.0
        ),
        UUIDS[1]: PoolSample(
            UUIDS[1], "vram", "gpu1", PoolState.OK, total=24000 * MIB, used=9000 * MIB, free=15000 * MIB, read_at=1.0,
            processes=tuple(held),
        ),
    }  # fmt: skip
    return Reading("atlas", "b", 1.0, 1.0, pools, {p.pid: p for p in processes})


def job_seven(**more: Any) -> tuple[Job, Claim]:
    job = a_running(a_user("ann"), command="bash train.sh", **more)
    return job, Claim(owner(job), roots=(Identity("b", 1000, 1000),))


def test_the_table_while_it_runs_and_after_the_cancel(settings: Any, tmp_path: Any) -> None:
    settings.RUNS = tmp_path
    job, claim = job_seven(stop_reason="cancel", stop_by="ann")
    job.stop_requested_at = job.started_at
    known = Strays()
    now = reading(BASH, CLIENT, SHIM, INSIDE)
    found = attribute(now, [claim])
    known.look([job], now, found)
    assert found.owners[claim.owner][UUIDS[1]] == 0
    assert found.external[UUIDS[1]] == 9000 * MIB
    assert known.held(job.pk) == "container c0ffee000000 holds 8.8 GiB on gpu1 and 900 MiB of RAM"
    assert strays.running(known.held(job.pk)).startswith("external, a docker client of it is running: container c0ffee")
    (line,) = [one for one in inside(now, found, known.rules())[UUIDS[1]][0] if one.pid == 51]
    assert (line.owner, line.rule) == ("", f"client:{job.pk}")
    assert f"a docker client of #{job.pk} is or was running" in _why(line.rule)

    after = reading(SHIM, INSIDE)
    found = attribute(after, [claim])
    known.look([job], after, found)
    record = ExitRecord(job.pk, 1, "b", signal=15, stopped_by="cancel", ended_at=2.0)
    ending = judged(job, record, "", None, known)
    assert ending.verdict.sentence == "Cancelled by ann: ended by SIGTERM."
    assert ending.row["sentence"].endswith(
        "It is not all freed: container c0ffee000000 holds 8.8 GiB on gpu1 and 900 MiB of RAM, which it may have "
        "started; end it by hand."
    )
    assert ending.row["evidence"]["not_freed"]
    windows = Windows()
    assert store([ending], Round(windows, 3.0, Knobs(), InstrumentKnobs.defaults(), {UUIDS[1]: 24000 * MIB}))
    assert not Sediment.objects.exists()
    known.look([], reading(SHIM), attribute(reading(SHIM), []))
    assert known.held(job.pk) == ""


def test_a_label_or_an_id_that_we_know_makes_it_the_jobs_own() -> None:
    job, claim = job_seven(image="team/train:2")
    labels = containers.Labels(lambda line: "", lambda name: None)
    labels.know([(ID, claim.owner), ("", "job:9")])
    now = reading(BASH, CLIENT, SHIM, INSIDE)
    found = attribute(now, [claim], container_of=labels.owner)
    assert found.owners[claim.owner][UUIDS[1]] == 9000 * MIB
    known = Strays()
    known.look([job], now, found)
    assert (known.held(job.pk), dict(known.rules())) == ("", {})


def test_a_container_older_than_the_client_is_no_jobs() -> None:
    job, claim = job_seven()
    now = reading(BASH, ProcessSample(1001, 1000, 2000, name="docker"), SHIM, INSIDE)
    known = Strays()
    known.look([job], now, attribute(now, [claim]))
    assert known.held(job.pk) == ""
    assert known.has_client(job.pk)
    known.forget([])
    assert not known.has_client(job.pk)
