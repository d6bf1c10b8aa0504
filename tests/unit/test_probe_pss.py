from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from calibration.domain.samples import ProcessSample
from calibration.probes import pss
from calibration.probes.choose import with_descendants
from calibration.probes.procfs import ProcWalk
from calibration.probes.pss import PssReader, parse_rollup
from tests.fake_proc import MIB, FakeProc


class Bench:
    """A fake /proc, a walk over it and a reader with a clock that the test moves."""

    def __init__(self, root: Path) -> None:
        self.proc, self.now, self.reads = FakeProc(root), 0.0, 0
        self.walk = ProcWalk(str(root))
        self.reader = PssReader(str(root), every_s=5.0, budget_ms=50.0, clock=lambda: self.now)

    def look(self, *pids: int) -> dict[int, ProcessSample]:
        return self.reader.apply(self.walk.walk(), pids)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_shared_pages_of_four_children_count_once(bench: Bench) -> None:
    bench.proc.process(10, rss=320 * MIB)
    bench.proc.rollup(10, Pss=70 * 1024)
    for pid in (11, 12, 13, 14):
        bench.proc.process(pid, ppid=10, rss=308 * MIB)
        bench.proc.rollup(pid, Pss=61 * 1024)

    seen = bench.look(10, 11, 12, 13, 14)

    assert sum(sample.ram or 0 for sample in seen.values()) == 314 * MIB
    assert sum(sample.rss or 0 for sample in seen.values()) == 1552 * MIB
    assert all(sample.ram_exact for sample in seen.values())


def test_mapped_weights_are_shown_apart_and_are_no_need(bench: Bench) -> None:
    bench.proc.process(10, rss=14200 * MIB)
    bench.proc.rollup(10, Pss=14200 * 1024, Pss_Anon=900 * 1024, Pss_File=13300 * 1024, Pss_Shmem=0)
    sample = bench.look(10)[10]
    assert (sample.ram, sample.cached, sample.ram_exact) == (900 * MIB, 13300 * MIB, True)


@pytest.mark.parametrize(
    "text, expected",
    [
        pytest.param(b"Pss: 9 kB\nPss_Anon: 4 kB\nPss_File: 3 kB\nPss_Shmem: 2 kB\n", (6144, 3072), id="new kernel"),
        pytest.param(b"Rss: 90 kB\nPss: 9 kB\n", (9216, None), id="a kernel that tells the whole only"),
    ],
)
def test_what_a_rollup_tells(text: bytes, expected: tuple[int, int | None]) -> None:
    assert parse_rollup(text) == expected


def test_a_rollup_without_sizes_is_an_error() -> None:
    with pytest.raises(ValueError):
        parse_rollup(b"Rss: 12 kB\n")


def test_what_a_process_takes_while_it_is_read_is_counted_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.proc.process(10, rss=400 * MIB, own=300 * MIB)
    bench.proc.rollup(10, Pss_Anon=350 * 1024, Pss_File=0, Pss_Shmem=0)
    real = pss.read_small

    def growing(path: str, *size: int) -> bytes:
        if path.endswith("smaps_rollup"):  # by now it has 50 MiB more than the walk has seen
            bench.proc.process(10, rss=450 * MIB, own=350 * MIB)
        return real(path, *size)

    monkeypatch.setattr(pss, "read_small", growing)
    assert bench.look(10)[10].ram == 350 * MIB
    bench.now = 1.0
    assert bench.look(10)[10].ram == 350 * MIB


def test_between_exact_readings_new_pages_are_added_and_the_value_is_marked(bench: Bench) -> None:
    bench.proc.process(10, rss=400 * MIB, own=300 * MIB)
    bench.proc.rollup(10, Pss_Anon=200 * 1024, Pss_File=7 * 1024, Pss_Shmem=0)
    assert bench.look(10)[10].ram == 200 * MIB

    bench.now = 1.0
    bench.proc.process(10, rss=450 * MIB, own=350 * MIB)
    grown = bench.look(10)[10]
    assert (grown.ram, grown.ram_exact, grown.cached) == (250 * MIB, False, 7 * MIB)

    bench.now = 2.0
    bench.proc.process(10, rss=370 * MIB, own=270 * MIB)
    # It freed a tenth of its pages; two thirds of each were its share.
    assert bench.look(10)[10].ram == 180 * MIB

    bench.now = 5.0
    bench.proc.rollup(10, Pss_Anon=190 * 1024, Pss_File=0, Pss_Shmem=0)
    again = bench.look(10)[10]
    assert (again.ram, again.ram_exact) == (190 * MIB, True)


def test_between_two_looks_a_need_moves_by_own_pages_and_is_none_where_it_was_never_exact(bench: Bench) -> None:
    bench.proc.process(10, rss=400 * MIB, own=300 * MIB)
    bench.proc.rollup(10, Pss_Anon=200 * 1024, Pss_File=0, Pss_Shmem=0)
    bench.proc.process(11, rss=50 * MIB, own=40 * MIB)
    bench.proc.rollup(11, Pss_Anon=40 * 1024, Pss_File=0, Pss_Shmem=0)
    bench.look(10, 11)
    bench.proc.process(10, rss=500 * MIB, own=400 * MIB)
    assert bench.reader.now([10, 11]) == 340 * MIB
    bench.proc.process(12, rss=50 * MIB)
    assert bench.reader.now([10, 12]) is None
    shutil.rmtree(bench.proc.root / "11")
    assert bench.reader.now([10, 11]) == 300 * MIB


def test_a_large_move_is_read_exactly_at_once(bench: Bench) -> None:
    bench.proc.process(10, rss=100 * MIB)
    bench.proc.rollup(10, Pss_Anon=100 * 1024, Pss_Shmem=0)
    bench.look(10)
    bench.now = 1.0
    bench.proc.process(10, rss=900 * MIB)
    bench.proc.rollup(10, Pss_Anon=870 * 1024, Pss_Shmem=0)

    sample = bench.look(10)[10]

    assert (sample.ram, sample.ram_exact) == (870 * MIB, True)


def test_a_new_child_makes_its_parent_be_read_again_so_that_pages_do_not_count_twice(bench: Bench) -> None:
    bench.proc.process(10, rss=300 * MIB)
    bench.proc.rollup(10, Pss_Anon=300 * 1024, Pss_Shmem=0)
    bench.look(10)
    bench.now = 1.0
    bench.proc.process(11, ppid=10, start_ticks=200, rss=300 * MIB)
    bench.proc.rollup(10, Pss_Anon=150 * 1024, Pss_Shmem=0)
    bench.proc.rollup(11, Pss_Anon=150 * 1024, Pss_Shmem=0)

    seen = bench.look(10, 11)

    assert sum(sample.ram or 0 for sample in seen.values()) == 300 * MIB


def test_a_process_of_another_account_gives_resident_size_without_file_pages_and_is_marked(
    bench: Bench,
) -> None:
    folder = bench.proc.process(1002, rss=500 * MIB)
    status = folder / "status"
    sizes = f"RssAnon:\t{100 * 1024} kB\nRssFile:\t{390 * 1024} kB\nRssShmem:\t{10 * 1024} kB\n"
    status.write_text(status.read_text() + sizes)

    sample = bench.look(1002)[1002]

    assert (sample.ram, sample.ram_exact, sample.cached) == (110 * MIB, False, 390 * MIB)


def test_where_nothing_but_the_resident_size_can_be_read_that_is_the_marked_value(bench: Bench) -> None:
    folder = bench.proc.process(1002, rss=500 * MIB)
    (folder / "status").unlink()
    (folder / "statm").unlink()
    sample = bench.look(1002)[1002]
    assert (sample.ram, sample.ram_exact) == (500 * MIB, False)


@pytest.mark.parametrize("order", list(itertools.permutations(["stat", "statm", "status", "smaps_rollup"])))
def test_a_process_whose_files_go_one_after_the_other_never_ends_a_look(bench: Bench, order: tuple[str, ...]) -> None:
    bench.proc.process(9, rss=5 * MIB)
    folder = bench.proc.process(10, rss=100 * MIB)
    bench.proc.rollup(10, Pss_Anon=90 * 1024, Pss_Shmem=0)
    for name in order:
        (folder / name).unlink()
        bench.now += 5.0
        seen = bench.look(9, 10)
        assert seen[9].ram == 5 * MIB
        if (folder / "smaps_rollup").exists() and 10 in seen:
            assert (seen[10].ram, seen[10].ram_exact) == (90 * MIB, True)
        elif 10 in seen:
            assert (seen[10].ram, seen[10].ram_exact) == (100 * MIB, False)


def test_a_process_nobody_collects_holds_nothing(bench: Bench) -> None:
    bench.proc.process(10, state="Z")
    sample = bench.look(10)[10]
    assert (sample.ram, sample.ram_exact) == (0, True)


def test_a_pid_that_is_gone_or_reused_brings_no_old_figure(bench: Bench) -> None:
    bench.proc.process(10, rss=100 * MIB)
    bench.proc.rollup(10, Pss_Anon=100 * 1024, Pss_Shmem=0)
    assert bench.look(10, 77).keys() == {10}
    bench.now = 1.0
    bench.proc.process(10, start_ticks=900, rss=4 * MIB)
    bench.proc.rollup(10, Pss_Anon=4 * 1024, Pss_Shmem=0)
    assert bench.look(10)[10].ram == 4 * MIB


def test_above_its_budget_the_reader_puts_the_rest_off_to_the_next_ticks(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = pss.read_small

    def slow(path: str, limit: int = 4096) -> bytes:
        if path.endswith("smaps_rollup"):
            bench.now += 0.020
        return real(path, limit)

    monkeypatch.setattr(pss, "read_small", slow)
    pids = list(range(10, 18))
    for pid in pids:
        bench.proc.process(pid, ppid=pid + 100, rss=2 * MIB)
        bench.proc.rollup(pid, Pss_Anon=1024, Pss_Shmem=0)

    counts = []
    for _ in range(3):
        counts.append(sum(sample.ram == MIB for sample in bench.look(*pids).values()))

    assert counts == [3, 6, 8]
    assert bench.reader.left_over == 0


def test_a_live_parent_and_four_forked_sleepers_count_their_shared_pages_once() -> None:
    code = (
        "import os, sys\n"
        "keep = bytearray(b'x') * (300 << 20)\n"
        "pids = []\n"
        "for _ in range(4):\n"
        "    pid = os.fork()\n"
        "    if not pid:\n"
        "        sys.stdin.read(); os._exit(0)\n"
        "    pids.append(pid)\n"
        "sys.stdout.write('ready\\n'); sys.stdout.flush(); sys.stdin.read()\n"
        "for pid in pids: os.waitpid(pid, 0)\n"
    )
    root = subprocess.Popen([sys.executable, "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert root.stdout is not None
        assert root.stdout.readline() == b"ready\n"
        processes = ProcWalk().walk()
        members = with_descendants(processes, [root.pid])
        seen = PssReader(budget_ms=5000).apply(processes, members)
    finally:
        root.communicate()

    assert len(members) == 5
    assert all(sample.ram_exact for sample in seen.values())
    assert sum(sample.ram or 0 for sample in seen.values()) == pytest.approx(312 * MIB, rel=0.10)
    assert sum(sample.rss or 0 for sample in seen.values()) > 4 * 300 * MIB
    assert os.getpid() not in members
