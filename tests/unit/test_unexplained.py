"""Device memory that no process list explains: its own line, no room for anybody, and a note on what is learned."""

from __future__ import annotations

from calibration.domain.attribution import attribute, unexplained_growth
from calibration.domain.estimate import estimate
from calibration.domain.samples import Attribution, Claim, Identity, PoolSample, PoolState, ProcessSample, Reading
from calibration.domain.sediment import Key
from calibration.domain.windows import Window, close, observe
from placement.domain.admission.decision import Code, Verdict
from placement.domain.admission.gate import decide
from tests.builders import MIB, a_device, a_node, a_running, a_snapshot, a_waiting

TOTAL, RESERVED = 40000, 600
JOB_A, JOB_B = (Claim(f"job:{name}", roots=(Identity("boot", pid, 100),)) for name, pid in (("A", 700), ("B", 710)))


def attributed(used_and_reserved: int, compute: dict[int, int], graphics: dict[int, int]) -> Attribution:
    """Return who holds what (MiB), the driver's part being no use of anybody's."""
    used = used_and_reserved - RESERVED
    listed = {**compute, **graphics}
    card = PoolSample(
        "GPU-0", "vram", "gpu0", PoolState.OK, total=TOTAL * MIB, free=(TOTAL - used_and_reserved) * MIB,
        used=used * MIB, reserved=RESERVED * MIB, processes=tuple((pid, size * MIB) for pid, size in listed.items()),
    )  # fmt: skip
    table = {pid: ProcessSample(pid, 1, 100, ram=0) for pid in listed}
    return attribute(Reading("atlas", "boot", 1.0, 1.0, {"GPU-0": card}, table), [JOB_A, JOB_B])


QUIET = attributed(7100, {}, {710: 2500})  # ten looks before job A, and ten after it
DURING = attributed(20000, {700: 4000}, {710: 2500})


def test_both_lists_count_and_the_rest_is_its_own_line() -> None:
    owners = {owner: pools["GPU-0"] for owner, pools in DURING.owners.items()}
    assert owners == {"job:A": 4000 * MIB, "job:B": 2500 * MIB}
    assert DURING.unexplained["GPU-0"] == 12900 * MIB
    assert DURING.external["GPU-0"] == 0


def test_the_gate_takes_what_the_device_says_is_free_and_not_a_sum_over_processes() -> None:
    left = DURING.unexplained["GPU-0"]
    device = a_device(TOTAL * MIB, 19400 * MIB, reserved=RESERVED * MIB, external=0, unexplained=left)
    running = (a_running(1, 4000 * MIB, 4000 * MIB), a_running(2, 2500 * MIB, 2500 * MIB))
    snapshot = a_snapshot(a_node(device), running=running)
    assert decide(snapshot, a_waiting(3, 20000 * MIB)).verdict is Verdict.START
    refused = decide(snapshot, a_waiting(3, 20001 * MIB))
    assert refused.code is Code.NO_ROOM
    assert "12.6 GiB used by nobody that the process list names" in refused.headline


def test_what_began_and_ended_with_a_job_makes_its_figure_a_lower_bound() -> None:
    before, during = QUIET.unexplained["GPU-0"], DURING.unexplained["GPU-0"]
    grown = unexplained_growth(before, during, QUIET.unexplained["GPU-0"])
    assert grown == 8900 * MIB
    window = Window(0.0)
    for at in range(1, 11):
        window = observe(window, float(at), {"vram": DURING.owners["job:A"]["GPU-0"]}, None)
    key = Key("render", "f1", "{}", "render.py")
    row = close(window, 10.5, "completed", key=key, wall=1.0, unexplained={"vram": grown})
    assert row is not None
    learned = estimate(key, [row], needs=frozenset({"vram"})).pools["vram"]
    assert learned.need == 4000 * MIB
    assert learned.notes == ("lower bound, up to 8.7 GiB more began with this job",)


def test_what_was_there_before_or_stays_behind_is_no_jobs() -> None:
    assert unexplained_growth(12900, 12900, 4000) == 0
    assert unexplained_growth(4000, 12900, 12900) == 0
