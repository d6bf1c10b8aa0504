"""Every way out of a job that we know: its process is listed as the job's while it lives, and ends with the job."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from calibration.domain.attribution import attribute
from calibration.domain.samples import Attribution, Claim, Identity
from calibration.probes.choose import Instrument
from placement.runner.identity import alive, identify, read_boot_id
from placement.runner.stop_request import request_stop
from tests.acceptance.runner_run import STORM, Run, end_all
from tests.wait import until

ESCAPIST = Path(__file__).with_name("escapist.py")
GRACE = 0.5


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    end_all()


@pytest.fixture(scope="module")
def instrument() -> Instrument:
    return Instrument("atlas", nvml=False)


def claim_of(run: Run) -> Claim:
    """Return what the service knows of a run: its runner and its leader. No marker helps here, nor an earlier look."""
    runner, child = (Identity(i.boot_id, i.pid, i.start_ticks) for i in (run.started.runner, run.started.child))
    return Claim("job:7", supervisor=runner, roots=(child,))


def look(instrument: Instrument, run: Run) -> Attribution:
    reading = instrument.read([run.started.runner.pid])
    return attribute(reading, [claim_of(run)])


def escaped(run: Run) -> int:
    """Return the pid of the one that got away."""
    file = run.home / "pids"
    text = until(lambda: file.exists() and file.read_text(), 15, "the escape")
    return int(text.split()[-1])


@pytest.mark.parametrize(
    "how",
    [
        "child",
        "nohup",
        "setsid",
        "daemon",
        "daemon,clean",
        "daemon,retitle",
        "daemon,clean,retitle",
        "nohup,orphan",
        "setsid,orphan",
        "daemon,orphan",
        "daemon,clean,orphan",
        "daemon,clean,retitle,orphan",
        "daemon,ignore",
        "daemon,stop",
        "daemon,ignore,stop,retitle,orphan",
    ],
)
def test_who_gets_away_is_listed_while_it_lives_and_ends_with_the_job(how: str, instrument: Instrument) -> None:
    run = Run(
        argv=[sys.executable, "-S", "-E", str(ESCAPIST), how, "pids"],
        grace_s=GRACE,
        sweep="keep" if "orphan" in how else "after_grace",
    ).start()
    pid = escaped(run)
    me = identify(pid, read_boot_id())
    assert me is not None
    if "orphan" in how:
        assert [member.pid for member in run.leader().left] == [pid]  # told once the command itself has ended
    found = look(instrument, run)
    assert found.rules[pid][0] == "job:7"
    assert pid in {one.pid for one in found.members["job:7"]}

    began = time.monotonic()
    request_stop(run.dir, "cancel")
    record = run.ended(timeout=GRACE + 2 + 5)
    assert time.monotonic() - began < GRACE + 2
    assert record.stopped_by == "cancel"
    assert not alive(me)


def test_a_retitled_process_hides_its_environment_and_not_itself(instrument: Instrument) -> None:
    run = Run(argv=[sys.executable, "-S", "-E", str(ESCAPIST), "daemon,retitle", "pids"], grace_s=GRACE).start()
    pid = escaped(run)
    assert b"TIDEGATE_JOB_ID" not in Path(f"/proc/{pid}/environ").read_bytes()
    assert Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"VLLM::Engine")
    reading = instrument.read([run.started.runner.pid])
    assert reading.processes[pid].name == "python-worker"
    assert attribute(reading, [claim_of(run)]).rules[pid][0] == "job:7"


def test_a_storm_is_listed_while_it_rages_and_no_look_takes_a_second(instrument: Instrument) -> None:
    run = Run(argv=[*STORM, "setsid", "30"], grace_s=GRACE).start()
    try:
        run.wait_for_log(b"up")
        costs, seen = [], []
        for _ in range(3):
            reading = instrument.read([run.started.runner.pid])
            costs.append(reading.cost_ms)
            seen.append(len(attribute(reading, [claim_of(run)]).members["job:7"]))
        assert max(seen) > 1, seen  # some of the chains, whoever was alive when it was looked
        assert min(costs) < 1000, costs
    finally:
        began = time.monotonic()
        request_stop(run.dir, "cancel")
        run.ended(timeout=8)
    assert time.monotonic() - began < GRACE + 2
