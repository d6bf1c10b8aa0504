from __future__ import annotations

from calibration.domain.charge import settle
from calibration.domain.knobs import Knobs
from calibration.domain.ladder import Basis
from calibration.domain.resources import GIB, MIB
from calibration.domain.windows import Window, observe

ALL = 20 * GIB  # what a cold start was granted
COLD = {"kind": "vram", "seen_on_device": True}


def run(levels, busy=0.9, kind="vram"):
    """Return the window of a run with one level a second."""
    window = Window(0.0)
    for at, level in enumerate(levels, start=1):
        window = observe(window, float(at), {kind: level}, busy)
    return window, float(len(levels))


def test_a_job_that_held_and_worked_a_minute_settles_at_what_it_showed():
    window, at = run([0, 4 * GIB] + [8 * GIB] * 61)
    settled = settle(ALL, Basis.COLD_START, window, at=at, **COLD)
    assert (settled.settled, settled.proof) == (True, "worked")
    assert settled.granted == -(-8 * GIB * 11 // 10) + 256 * MIB
    assert settled.note == ""


def test_a_second_too_early_nothing_has_settled():
    window, at = run([0, 4 * GIB] + [8 * GIB] * 60)
    settled = settle(ALL, Basis.COLD_START, window, at=at, **COLD)
    assert (settled.granted, settled.settled, settled.proof) == (ALL, False, None)


def test_a_rise_starts_the_minute_again_and_creeping_does_not():
    rises, at = run([8 * GIB] * 50 + [9 * GIB] * 30)
    assert not settle(ALL, Basis.COLD_START, rises, at=at, **COLD).settled
    creeps, at = run([8 * GIB] * 50 + [8 * GIB + 100 * MIB] * 30)
    assert settle(ALL, Basis.COLD_START, creeps, at=at, **COLD).settled


def test_a_device_at_rest_is_no_work():
    window, at = run([8 * GIB] * 200, busy=0.05)
    assert not settle(ALL, Basis.COLD_START, window, at=at, **COLD).settled


def test_where_the_driver_does_not_tell_time_counts():
    window, at = run([8 * GIB] * 62, busy=None)
    assert settle(ALL, Basis.COLD_START, window, at=at, **COLD).proof == "worked"


def test_a_bare_context_proves_nothing():
    window, at = run([768 * MIB] * 300)
    assert not settle(ALL, Basis.COLD_START, window, at=at, **COLD).settled


def test_fifteen_flat_minutes_settle_without_proof_and_say_so():
    window, at = run([8 * GIB] * 901, busy=0.0)
    settled = settle(ALL, Basis.COLD_START, window, at=at, **COLD)
    assert settled.proof == "time"
    assert settled.note == "may still grow to 20.0 GiB"
    assert settled.granted < ALL


def test_a_job_never_seen_on_its_device_holds_all_and_after_the_time_keeps_a_little():
    early, at = run([0] * 300)
    assert settle(ALL, Basis.COLD_START, early, at=at, kind="vram", seen_on_device=False).granted == ALL
    late, at = run([0] * 901)
    kept = settle(ALL, Basis.COLD_START, late, at=at, kind="vram", seen_on_device=False)
    assert kept.granted == 1024 * MIB
    wide = Knobs.defaults().replace(context_allowance_mib=900)
    assert settle(ALL, Basis.COLD_START, late, wide, at=at, kind="vram", seen_on_device=False).granted == 1800 * MIB


def test_unknown_use_never_settles():
    window, at = run([None] * 2000)
    assert settle(ALL, Basis.COLD_START, window, at=at, **COLD).granted == ALL
    assert not settle(ALL, Basis.COLD_START, window, at=at, **COLD).settled


def test_main_memory_of_a_job_without_a_device_settles_by_time_flat():
    window, at = run([300 * MIB] * 62, busy=None, kind="ram")
    settled = settle(2 * GIB, Basis.COLD_START, window, at=at, kind="ram", seen_on_device=None)
    assert settled.proof == "worked"
    assert settled.granted == 586 * MIB


def test_main_memory_of_a_job_with_a_device_waits_for_the_device():
    window, at = run([300 * MIB] * 200, kind="ram")
    assert not settle(2 * GIB, Basis.COLD_START, window, at=at, kind="ram", seen_on_device=False).settled


def test_the_granted_charge_is_never_raised():
    window, at = run([8 * GIB] * 62)
    assert settle(3 * GIB, Basis.HINT, window, at=at, **COLD).granted == 3 * GIB


def test_a_measured_charge_settles_after_its_learned_time_and_not_below_its_need():
    window, _ = run([1 * GIB] * 70)
    facts = {"measured_need": 8 * GIB, "seconds_to_peak": 8.0, **COLD}
    assert not settle(8 * GIB, Basis.MEASURED, window, at=71.9, **facts).settled
    settled = settle(8 * GIB, Basis.MEASURED, window, at=72.0, **facts)
    assert (settled.granted, settled.proof) == (8 * GIB, "learned")
    varies = settle(8 * GIB, Basis.MEASURED, window, at=72.0, shape_varies=True, **facts)
    assert varies.granted == -(-GIB * 11 // 10) + 256 * MIB


def test_a_measured_job_that_peaks_late_does_not_settle_on_its_first_stage():
    window, at = run([1 * GIB] * 1000)
    facts = {"measured_need": 8 * GIB, "seconds_to_peak": 7200.0, "shape_varies": True, **COLD}
    assert not settle(8 * GIB, Basis.MEASURED, window, at=at, **facts).settled


def test_once_settled_stays_settled():
    window, at = run([8 * GIB] * 62)
    first = settle(ALL, Basis.COLD_START, window, at=at, **COLD)
    grown = observe(window, at + 1, {"vram": 15 * GIB}, 0.9)
    assert settle(first.granted, Basis.COLD_START, grown, at=at + 1, before=first, **COLD) == first


def test_a_cap_that_cannot_follow_is_named():
    window, at = run([8 * GIB] * 62)
    settled = settle(ALL, Basis.COLD_START, window, at=at, fixed_cap=ALL, **COLD)
    assert settled.proof == "worked"
    assert settled.note == "may still grow to 20.0 GiB"
