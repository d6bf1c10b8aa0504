"""From readings to the next charge: windows, sediment and the ladder, on a database, without processes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from calibration import rows
from calibration.domain.attribution import attribute
from calibration.domain.estimate import Basis, Estimate
from calibration.domain.knobs import Knobs
from calibration.domain.samples import RAM, Claim, Identity, PoolSample, PoolState, ProcessSample, Reading
from calibration.models import OpenWindow, Sediment
from placement import estimates, snapshots
from placement.models import Job
from placement.services.learning import Windows, owner
from tests.integration.rows import GIB, a_user

pytestmark = pytest.mark.django_db
MIB = 1 << 20
CARD, PID, BOOT = "GPU-aaaa", 700, "boot"
QUICK = Knobs.defaults().replace(settle_seconds=3.0, context_allowance_mib=100)


class Course:
    """One job on one card, looked at once a second by the product's own windows and attribution."""

    def __init__(self, user: Any, *, knobs: Knobs = QUICK, **more: Any) -> None:
        charge = {"granted": 8 * GIB, "held": 8 * GIB, "at_start": 8 * GIB, "cap": 10 * GIB, "margin": 0}
        fields = {"key_workload": "w", "key_fingerprint": "f1", "key_params": "p1", "key_script": "train.py"}
        self.knobs, self.windows, self.at, self.last_look = knobs, Windows(), 1000.0, float("-inf")
        self.job = Job.objects.create(
            user=user,
            gpu="one",
            node="n",
            device=CARD,
            state="running",
            started_at=timezone.now(),
            charges={CARD: {**charge, "basis": "cold_start"}, RAM: {**charge, "basis": "cold_start"}},
            **{**fields, **more},
        )

    def look(self, vram: int | None = 0, ram: int = 100 * MIB, *, card: str = "new", busy: float = 1.0) -> None:
        """Take one reading. ``vram`` None: the driver names no size; ``card``: "new", "old" figures, or "error"."""
        self.at += 1.0
        if card == "new":
            self.last_look = self.at
        state = PoolState.UNREADABLE if card == "error" else PoolState.OK
        listed = ((PID, vram),) if card == "new" else ()
        pools = {
            RAM: PoolSample(RAM, "ram", "RAM", PoolState.OK, 64 * GIB, 60 * GIB, 4 * GIB, read_at=self.at),
            CARD: PoolSample(
                CARD, "vram", "gpu0", state, 24 * GIB, 24 * GIB - (vram or 0), vram or 0,
                read_at=None if self.last_look == float("-inf") else self.last_look, busy=busy, processes=listed,
            ),
        }  # fmt: skip
        on_card = {CARD: vram} if card == "new" else {}
        process = ProcessSample(PID, 1, 50, ram=ram, ram_exact=True, vram=on_card)
        reading = Reading("n", BOOT, self.at, 1e9 + self.at, pools, {PID: process})
        claim = Claim(owner(self.job), roots=(Identity(BOOT, PID, 50),))
        found = attribute(reading, [claim])
        self.windows.observe(self.job, reading, found, self.knobs, rows.version())
        self.job.save(update_fields=["used", "charges"])

    def end(
        self, outcome: str = "completed", died_of: Mapping[str, Any] | None = None, kernel_peak: int | None = None
    ) -> Sediment | None:
        """End the run at the last reading."""
        when = timezone.now() + timedelta(seconds=Sediment.objects.count())
        self.job.state, self.job.outcome = "finished", outcome
        self.job.save(update_fields=["state", "outcome"])
        return self.windows.close(
            self.job, self.at, when, outcome, self.knobs,
            died_of=died_of or {}, receipt=None, device_total=24 * GIB, duration=None,
            kernel_peak=kernel_peak,
        )  # fmt: skip


def estimate_of(user: Any, **fields: Any) -> Estimate:
    """Return what a new submission of the key would be expected to need."""
    key = {"key_workload": "w", "key_fingerprint": "f1", "key_params": "p1", "key_script": "train.py"}
    job = Job(user=user, gpu="one", **{**key, **fields})
    return estimates.estimate_of(job, rows.version(), QUICK)


def a_run(user: Any, vram: int, outcome: str = "completed", **fields: Any) -> Sediment | None:
    """Let a run be seen at one level by three readings, and end."""
    course = Course(user, **fields)
    for _ in range(3):
        course.look(vram)
    return course.end(outcome)


@pytest.fixture
def user() -> Any:
    return a_user("ada")


def test_a_short_run_between_two_looks_at_the_card_leaves_no_figure_for_it(user: Any) -> None:
    course = Course(user)
    course.at, course.last_look = 1003.0, 1000.0  # the list is older than the run, yet not too old to decide on
    for _ in range(3):
        course.look(ram=300 * MIB, card="old")
    kept = course.end()
    assert kept is not None
    assert kept.peaks == {"ram": 300 * MIB}
    assert estimate_of(user).pools["vram"].basis is Basis.COLD_START
    assert estimate_of(user).pools["ram"].basis is Basis.MEASURED


def test_the_same_look_at_the_card_is_one_sample_however_often_it_is_read(user: Any) -> None:
    course = Course(user)
    course.look(2 * GIB)
    for _ in range(3):
        course.look(card="old")
    kept = course.end()
    assert kept is not None
    assert kept.samples == {"ram": 4, "vram": 1}
    assert "vram" not in kept.peaks


def test_a_card_that_could_not_be_read_all_along_leaves_no_figure(user: Any) -> None:
    course = Course(user)
    for _ in range(4):
        course.look(card="error")
    assert course.job.used[CARD] is None
    assert course.job.charges[CARD]["held"] == 8 * GIB
    kept = course.end()
    assert kept is not None
    assert list(kept.peaks) == ["ram"]


def test_a_process_without_a_size_is_unknown_and_no_zero(user: Any) -> None:
    course = Course(user)
    for _ in range(4):
        course.look(None)
    assert course.job.used[CARD] is None
    kept = course.end()
    assert kept is not None
    assert list(kept.peaks) == ["ram"]


@pytest.mark.parametrize("outcome", ["failed", "cancelled", "timed_out", "lost"])
def test_a_run_that_did_not_complete_raises_a_need_and_founds_none(user: Any, outcome: str) -> None:
    a_run(user, 3 * GIB, outcome)
    first = estimate_of(user).pools["vram"]
    assert (first.need, first.basis, first.at_least) == (None, Basis.COLD_START, 3 * GIB)
    a_run(user, 2 * GIB)
    both = estimate_of(user).pools["vram"]
    assert (both.need, both.basis) == (3 * GIB, Basis.MEASURED)
    a_run(user, 1 * GIB, outcome)
    assert estimate_of(user).pools["vram"].need == 3 * GIB


def test_an_edit_of_the_sources_and_other_arguments_step_down_the_ladder(user: Any) -> None:
    a_run(user, 3 * GIB)
    edited = estimate_of(user, key_fingerprint="f2").pools["vram"]
    assert (edited.need, edited.basis, edited.margin) == (3 * GIB, Basis.EDITED, -(-3 * GIB * 15 // 100))
    similar = estimate_of(user, key_params="p2").pools["vram"]
    assert (similar.need, similar.basis) == (3 * GIB, Basis.SIMILAR)
    elsewhere = estimate_of(user, key_workload="v", key_script="eval.py").pools["vram"]
    assert (elsewhere.need, elsewhere.basis) == (None, Basis.COLD_START)
    assert estimate_of(user).pools["vram"].basis is Basis.MEASURED  # and the old sources' rows are back with them


def test_a_job_at_its_learned_peak_is_expected_to_grow_by_nothing(user: Any) -> None:
    a_run(user, 8 * GIB)
    learned = estimate_of(user).pools["vram"]
    assert (learned.need, learned.margin) == (8 * GIB, 64 * MIB)  # the margin is a line of its own
    again = Course(user)
    again.job.charges[CARD]["basis"] = "measured"
    for vram, growth in ((3 * GIB, 5 * GIB), (8 * GIB, 0), (6 * GIB, 2 * GIB)):
        again.look(vram)
        running = snapshots.running_of(again.job, 0.0, None)
        assert running.charges[CARD].growth == growth


def test_a_declaration_stands_until_more_is_seen_and_the_difference_is_told(user: Any) -> None:
    before = estimate_of(user, declared_vram=4 * GIB, declared_ram=200 * MIB)
    assert {kind: (p.need, p.basis) for kind, p in before.pools.items()} == {
        "vram": (4 * GIB, Basis.DECLARED),
        "ram": (200 * MIB, Basis.DECLARED),
    }
    a_run(user, 9 * GIB)
    after = estimate_of(user, declared_vram=4 * GIB, declared_ram=200 * MIB).pools["vram"]
    assert (after.need, after.basis) == (9 * GIB, Basis.MEASURED)
    assert after.notes == ("declared 4.0 GiB, but 9.0 GiB was seen",)


def test_a_run_that_has_settled_is_known_before_it_ends(user: Any) -> None:
    course = Course(user)
    course.look(2 * GIB)
    assert estimate_of(user).pools["vram"].basis is Basis.COLD_START
    for _ in range(4):
        course.look(2 * GIB)
    assert course.job.charges[CARD]["settled"]
    waiting = estimate_of(user).pools["vram"]
    assert (waiting.need, waiting.basis) == (2 * GIB, Basis.SCALED)
    course.look(3 * GIB)
    assert estimate_of(user).pools["vram"].need == 3 * GIB
    course.end()
    assert OpenWindow.objects.count() == 0
    assert estimate_of(user).pools["vram"].basis is Basis.MEASURED


def test_an_idle_run_settles_nothing_for_others(user: Any) -> None:
    course = Course(user)
    for _ in range(8):
        course.look(2 * GIB, busy=0.0)
    assert not course.job.charges[CARD]["settled"]
    assert estimate_of(user).pools["vram"].basis is Basis.COLD_START


def test_a_window_goes_on_after_a_restart_with_what_it_has_seen(user: Any) -> None:
    course = Course(user)
    course.look(5 * GIB)
    course.look(1 * GIB)
    course.windows = Windows()  # what a killed worker leaves: rows alone
    course.look(1 * GIB)
    kept = course.end()
    assert kept is not None
    assert kept.peaks["vram"] == 5 * GIB
    assert kept.samples["vram"] == 2  # a level that does not move is saved every few seconds


@pytest.mark.parametrize(
    ("how", "asked"),
    [
        pytest.param("cap", 15 * GIB, id="at its cap: from the cap"),
        pytest.param("watchdog", 12 * GIB, id="by the watchdog: from what it used"),
        pytest.param("room", 12 * GIB, id="within its cap"),
    ],
)
def test_a_memory_death_raises_the_next_charge_until_a_run_completes_with_it(user: Any, how: str, asked: int) -> None:
    course = Course(user)
    for _ in range(3):
        course.look(10 * GIB)
    kept = course.end("cap_exceeded" if how != "room" else "out_of_memory", {"vram": how})
    assert kept is not None
    assert kept.next_charge == {"vram": asked}
    declared = estimate_of(user, declared_vram=2 * GIB).pools["vram"]
    assert (declared.need, declared.basis) == (asked, Basis.DECLARED)
    fits = Course(user)
    fits.job.charges[CARD] |= {"at_start": asked, "granted": asked}
    for _ in range(3):
        fits.look(11 * GIB)
    fits.end()
    assert estimate_of(user).pools["vram"].need == 11 * GIB


def short(user: Any, rss: int, outcome: str = "completed", **fields: Any) -> Sediment | None:
    """Let a run end before anybody looked; its largest process had so much RAM by the kernel's figure."""
    course = Course(user, **fields)
    return course.end(outcome, kernel_peak=rss)


def test_a_run_too_short_to_be_sampled_is_charged_by_the_kernels_figure_from_then_on(user: Any) -> None:
    taught = short(user, 100 * MIB)
    assert taught is not None
    assert (taught.peaks, taught.by_kernel, OpenWindow.objects.count()) == ({RAM: 200 * MIB}, True, 0)
    found = estimate_of(user).pools
    assert (found["ram"].need, found["ram"].basis) == (200 * MIB, Basis.MEASURED)
    assert "too short to be sampled" in found["ram"].notes[0]
    assert (found["vram"].need, found["vram"].basis) == (None, Basis.COLD_START)


def test_a_sampled_run_takes_its_place_and_nothing_short_comes_back(user: Any) -> None:
    assert short(user, 100 * MIB) is not None
    assert a_run(user, 2 * GIB) is not None
    assert estimate_of(user).pools["ram"].need == 100 * MIB
    assert short(user, 900 * MIB) is None
    assert short(user, 900 * MIB, key_fingerprint="f2") is None, "sampled before the sources changed"
    assert estimate_of(user).pools["ram"].need == 100 * MIB


def test_a_million_short_runs_leave_a_few_rows(user: Any) -> None:
    sizes = [100, 90, 100, 101, 50, 101]
    assert [short(user, size * MIB) is not None for size in sizes] == [True, False, False, True, False, False]
    assert estimate_of(user).pools["ram"].need == 202 * MIB
    assert short(user, 10 * MIB, key_params="p2") is not None
    assert a_run(user, 0, "out_of_memory") is not None
    assert short(user, 50 * MIB) is not None, "a run that went well after a death says that its charge was enough"
