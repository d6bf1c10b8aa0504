"""A trace followed by the service and by the replay: what is read from what they left, and the replay's side."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.follow import figures, job, ledger, live, played
from bench.follow.figures import Course, Done
from bench.world.shapes import Piece
from bench.world.submissions import Submission
from calibration.probes import simgpu

ROW = Submission(0, 0.0, 3000.0, 1, "vision:b16", 9000.0, 16.0, 12288.0, 0.9, 120.0)


def course(*rows: Done, **more: object) -> Course:
    return Course("one", rows, {}, **more)  # type: ignore[arg-type]


def test_the_figures_are_those_of_all_rows_and_a_row_that_never_ended_is_lost() -> None:
    told = course(Done(0, 10.0, 11.0, 30.0), Done(1, 12.0, 17.0, 42.0), Done(2, 13.0, None, None))

    assert told.lost == [2]
    assert told.figures()["makespan s"] == 32.0
    assert told.figures()["mean JCT s"] == 25.0
    assert (told.figures()["mean wait s"], told.figures()["longest wait s"]) == (3.0, 5.0)


def test_a_start_is_out_of_order_when_one_that_came_before_still_waits() -> None:
    rows = [Done(0, 0, 9, 20), Done(1, 1, 2, 20), Done(2, 2, 10, 20), Done(3, 3, None, None), Done(4, 4, 11, 20)]

    assert figures.out_of_order(rows) == 2  # 1 before 0, 4 before 3


def test_the_table_shows_multiples_of_one_column_and_none_of_nothing() -> None:
    base = course(Done(0, 0.0, 2.0, 10.0))
    other = replace(course(Done(0, 0.0, 1.0, 11.0)), name="two")
    lines = figures.table([base, other], base).splitlines()

    assert lines[2] == "| makespan s | 10.0 | 11.0 (1.100 x) |"
    assert lines[-1] == "| watchdog kills | 0 | 0 |"


def test_rows_that_differ_by_more_than_so_many_seconds_are_told_with_what_they_were_granted() -> None:
    one = course(Done(0, 0.0, 2.0, 10.0), Done(1, 0.0, 1.0, 9.0, ((2, 512, "declared"),)), Done(2, 0.0, None, None))
    other = replace(course(Done(0, 0.0, 2.5, 10.5), Done(1, 0.0, 4.0, 12.0), Done(2, 0.0, None, None)), name="two")

    assert figures.apart(one, other, 1.0) == [
        "row 1, came 0.0: one 1.0 to 9.0 on gpu2 with 512 MiB (declared); two 4.0 to 12.0 on "
    ]


def test_a_line_that_is_not_whole_is_not_read_and_who_has_not_ended_is_open() -> None:
    text = "began 3 1 1 10.5\nbegan 4 2 1 11.0\nended 3 1 1 12.0\nended 4 2 1 1"

    assert [line.word for line in ledger.lines(text)] == ["began", "began", "ended"]
    assert ledger.open_now(text) == {2}


@pytest.mark.parametrize(
    ("text", "outcomes", "rows"),
    [
        ("began 3 1 1 1\nbegan 3 2 1 2\n", {1: "cap_exceeded", 2: "completed"}, []),
        ("began 3 1 1 1\nbegan 3 1 2 2\n", {1: "completed"}, [3]),
        ("began 3 1 1 1\nbegan 3 2 1 2\n", {1: "completed", 2: "completed"}, [3]),
    ],
)
def test_a_row_ran_twice_when_a_job_began_again_or_two_ended_well(
    text: str, outcomes: dict[int, str], rows: list[int]
) -> None:
    assert ledger.twice(ledger.lines(text), outcomes) == rows


def test_places_that_changed_are_counted_among_those_who_still_wait() -> None:
    assert live.Killed(before=[4, 5, 6], after=[5, 6, 9]).swapped() == 0
    assert live.Killed(before=[4, 5, 6], after=[6, 5]).swapped() == 2


def test_at_sixty_times_the_speed_all_times_of_a_row_are_a_sixtieth() -> None:
    (row,) = played.faster([replace(ROW, arrival=600.0)], 60.0)

    assert (row.arrival, row.duration, row.load, row.peak) == (10.0, 50.0, 2.0, 9000.0)
    assert played.shape(row).duration == pytest.approx(50.0)


def test_a_late_run_holds_nothing_first_and_the_same_afterwards() -> None:
    shape = played.shape(played.faster([ROW], 60.0)[0])
    late = played.late(shape, 0.25)

    assert late.pieces[0] == Piece(0.0, 0.25, 0.0, 0.0, 0.0)
    assert late.duration == pytest.approx(shape.duration + 0.25)
    assert late.peak == shape.peak
    assert late.area == pytest.approx(shape.area)
    assert played.late(shape, 0.0) is shape


def test_the_gate_answers_when_it_is_told_to_or_at_the_next_whole_second() -> None:
    rows = played.faster([replace(ROW, arrival=30.0)], 60.0)
    at_once = played.play(rows, 1, 40960.0, {}, start=0.2, reaction=0.1)
    whole = played.play(rows, 1, 40960.0, {})

    assert at_once.rows[0].began == pytest.approx(0.8)
    assert whole.rows[0].began == 1.0
    assert whole.rows[0].ended == pytest.approx(51.0)
    assert [(device, basis) for device, _, basis in whole.rows[0].grants] == [(0, "declared")]


def test_a_job_that_died_comes_back_behind_those_that_came_meanwhile() -> None:
    knobs = {"settle_seconds": 1.0, "default_duration_seconds": 60.0}
    low = replace(ROW, declared=4000.0)
    others = [replace(ROW, id=n, arrival=30.0, key="other:b1", peak=30000.0, declared=32768.0) for n in (1, 2)]
    told = played.play(played.faster([low, *others], 60.0), 1, 40960.0, knobs)

    assert told.kills["cap"] >= 1
    assert max(done.ended or 0.0 for done in told.rows) == told.rows[0].ended
    assert told.lost == []


def test_a_submission_says_its_key_as_its_command_and_its_row_in_its_environment(tmp_path: Path) -> None:
    live.lay_out(tmp_path, [ROW])
    body = live.body_of(ROW, tmp_path)

    assert body["command"].endswith("-S vision.py --kind b16")
    assert body["environment"] == {"ROW": "0", "FOLDER": str(tmp_path)}
    assert (tmp_path / "vision.py").exists()
    assert json.loads((tmp_path / "rows.json").read_text())["0"][-1][1] == 3000.0


def test_a_job_holds_what_its_row_says_and_writes_down_how_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[tuple[int, float]] = []

    class Device:
        def hold(self, size: int, busy: float) -> None:
            held.append((size // job.MIB, busy))
            if size > 500 * job.MIB:
                raise simgpu.OutOfMemory("CUDA out of memory.")

    monkeypatch.setattr(simgpu, "Device", Device)
    for name, value in {"TIDEGATE_JOB_ID": "7", "TIDEGATE_ATTEMPT": "1", "ROW": "3", "FOLDER": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "ran").touch()
    (tmp_path / "rows.json").write_text(json.dumps({"3": [[0, 0.01, 0, 100, 0.02], [0.01, 0.02, 100, 100, 0.9]]}))
    assert job.main() == 0
    (tmp_path / "rows.json").write_text(json.dumps({"3": [[0, 0.01, 600, 600, 0.9]]}))
    assert job.main() == 1

    assert held == [(0, 0.02), (100, 0.9), (600, 0.9)]
    assert [line.word for line in ledger.lines((tmp_path / "ran").read_text())] == ["began", "ended", "began", "died"]


def test_the_phase_of_the_looks_moves_a_start_by_less_than_a_second_and_nothing_else() -> None:
    rows = played.faster([ROW], 60.0)
    found = played.phases(rows, 1, 40960.0, {}, start=0.0, reaction=0.0, name="chance")

    assert len(found) == played.PHASES
    begun = [course.rows[0].began or 0.0 for course in found]
    assert 0 < max(begun) - min(begun) < 1
    assert all(
        (course.rows[0].ended or 0) - start == pytest.approx(50.0) for course, start in zip(found, begun, strict=True)
    )
