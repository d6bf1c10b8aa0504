from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.probes import procfs, reference
from calibration.probes.procfs import ProcWalk, parse_stat
from tests.fake_proc import MIB, FakeProc
from tests.wait import until


@given(name=st.text(alphabet="() \tabZ19)-", max_size=15), ticks=st.integers(0, 2**62))
def test_whatever_stands_in_the_name_the_fields_keep_their_places(name: str, ticks: int) -> None:
    line = f"42 ({name}) R 7 8 9 {'0 ' * 15}{ticks} 0 3 {'0 ' * 28}".encode()

    stat = parse_stat(line)

    assert (stat.name, stat.state, stat.ppid, stat.pgid, stat.session) == (name, "R", 7, 8, 9)
    assert (stat.start_ticks, stat.rss) == (ticks, 3 * procfs.PAGE)


@pytest.mark.parametrize("raw", [b"", b"12", b"12 (sh) S 1", b"12 (sh"])
def test_a_line_cut_off_is_an_error_and_no_process(raw: bytes) -> None:
    with pytest.raises(ValueError):
        parse_stat(raw)


def test_one_process_that_vanishes_half_way_costs_only_itself(tmp_path: Path) -> None:
    proc = FakeProc(tmp_path)
    proc.process(10, rss=8 * MIB)
    (tmp_path / "11").mkdir()  # listed, but its files are gone
    (tmp_path / "12").mkdir()
    (tmp_path / "12" / "stat").write_text("12 (cut")
    (tmp_path / "self").mkdir()
    proc.process(13, ppid=11)

    walked = ProcWalk(str(tmp_path)).walk()

    assert sorted(walked) == [10, 13]
    assert walked[10].ram == walked[10].rss == 8 * MIB
    assert not walked[10].ram_exact


@pytest.mark.parametrize(
    "uid, expected",
    [
        pytest.param(0, (0, "root"), id="a user with a name"),
        pytest.param(4242, (4242, "uid 4242"), id="a uid without a name"),
        pytest.param(None, (None, None), id="a status that cannot be read"),
    ],
)
def test_the_user_of_a_process(tmp_path: Path, uid: int | None, expected: tuple[object, object]) -> None:
    FakeProc(tmp_path).process(10, uid=uid)
    sample = ProcWalk(str(tmp_path)).walk()[10]
    assert (sample.uid, sample.user) == expected


def test_an_unchanged_process_costs_no_new_sample_and_a_changed_one_does(tmp_path: Path) -> None:
    proc, walk = FakeProc(tmp_path), ProcWalk(str(tmp_path))
    proc.process(10, rss=MIB)
    walk.walk()
    second = walk.walk()[10]

    assert walk.walk()[10] is second
    proc.process(10, rss=2 * MIB)
    assert walk.walk()[10].rss == 2 * MIB


def test_a_reused_pid_is_read_anew(tmp_path: Path) -> None:
    proc, walk = FakeProc(tmp_path), ProcWalk(str(tmp_path))
    proc.process(4000, start_ticks=100, uid=0)
    for _ in range(4):
        walk.walk()
    proc.process(4000, start_ticks=900, uid=4242)

    sample = walk.walk()[4000]

    assert (sample.start_ticks, sample.user) == (900, "uid 4242")


def test_a_process_that_drops_its_user_before_it_starts_its_program_is_seen_as_the_new_user(
    tmp_path: Path,
) -> None:
    proc, walk = FakeProc(tmp_path), ProcWalk(str(tmp_path))
    proc.process(10, name="runner", uid=0)
    for _ in range(4):
        walk.walk()
    proc.process(10, name="bash", uid=4242)

    assert walk.walk()[10].user == "uid 4242"


def test_the_raw_walk_agrees_with_the_slow_reference_on_live_processes() -> None:
    code = "import sys; keep = bytearray(30 << 20); print('ready', flush=True); sys.stdin.read()"
    command = [sys.executable, "-S", "-c", code]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        until(lambda: ProcWalk().walk()[child.pid].state == "S", 20, "the child to wait for its input")
        before, slow, after = ProcWalk().walk(), reference.walk(), ProcWalk().walk()
        assert before[child.pid].ppid == slow[child.pid][0] == os.getpid()
        assert before[child.pid].rss == pytest.approx(slow[child.pid][1], rel=0.02)
        assert before[child.pid].uid == os.getuid()
        # Others come and go; those that stayed through all three walks must be in each, under one parent.
        stayed = {
            pid
            for pid in before.keys() & after.keys()
            if (before[pid].start_ticks, before[pid].ppid) == (after[pid].start_ticks, after[pid].ppid)
            and after[pid].state not in "ZX"
        }
        assert {os.getpid(), child.pid} <= stayed <= slow.keys()
        assert {pid: slow[pid][0] for pid in stayed} == {pid: before[pid].ppid for pid in stayed}
    finally:
        child.communicate()
    assert child.pid not in ProcWalk().walk()


def test_the_boot_id_is_that_of_this_boot_and_empty_where_hidden(tmp_path: Path) -> None:
    assert procfs.boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert procfs.boot_id(str(tmp_path)) == ""


def test_a_proc_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    walk = ProcWalk(str(tmp_path / "none"))
    with pytest.raises(OSError):
        walk.walk()
    shutil.rmtree(tmp_path)


def kept_files(walk: ProcWalk) -> dict[int, str]:
    return {pid: os.readlink(f"/proc/self/fd/{number}") for pid, number in walk._files.items()}


def test_files_are_kept_up_to_a_number_and_closed_when_their_process_ends() -> None:
    walk = ProcWalk(keep=10**6)
    with subprocess.Popen(["sleep", "600"]) as child:
        assert walk.walk().keys() >= {child.pid, os.getpid()}
        assert kept_files(walk)[child.pid] == f"/proc/{child.pid}/stat"
        assert walk.walk()[child.pid].name == "sleep"
        child.kill()
    with pytest.raises(ProcessLookupError):
        os.pread(walk._files[child.pid], 64, 0)
    assert child.pid not in walk.walk()
    assert child.pid not in walk._files
    few = ProcWalk(keep=3)
    assert len(few.walk()) > 3
    assert len(few._files) == 3
    assert few.walk().keys() >= {os.getpid()}


def test_another_process_under_the_number_of_a_kept_file_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    walk = ProcWalk(keep=10**6)
    with subprocess.Popen(["sleep", "600"]) as child:
        walk.walk()
        # As after an end and a reuse of the number: the kept file is of a process that is gone.
        with subprocess.Popen(["true"]) as gone:
            other = os.open(f"/proc/{gone.pid}/stat", os.O_RDONLY)
        os.dup2(other, walk._files[child.pid], inheritable=False)
        os.close(other)
        assert walk.walk()[child.pid].name == "sleep"
        assert kept_files(walk)[child.pid] == f"/proc/{child.pid}/stat"
        child.kill()


def test_a_folder_that_only_looks_like_proc_is_read_anew_each_time(tmp_path: Path) -> None:
    proc, walk = FakeProc(tmp_path), ProcWalk(str(tmp_path))
    proc.process(10)
    walk.walk()
    assert walk._files == {}
    assert 0 < procfs.spare_descriptors() <= 8192


@pytest.mark.parametrize(
    ("lines", "path"),
    [
        ("0::/tidegate.slice/tidegate-1a-7-1\n", "/tidegate.slice/tidegate-1a-7-1"),
        ("4:memory:/box\n0::/\n", "/box"),
        ("5:cpu,memory:/box\n", "/box"),
        ("0::/\n", ""),
        ("nonsense\n", ""),
        (None, ""),
    ],
)
def test_the_control_group_is_the_unified_one_else_that_of_main_memory(
    tmp_path: Path, lines: str | None, path: str
) -> None:
    folder = FakeProc(tmp_path).process(10)
    if lines is not None:
        (folder / "cgroup").write_text(lines)
    assert ProcWalk(str(tmp_path)).walk()[10].cgroup == path


def test_a_group_that_was_joined_before_the_command_began_is_seen_and_then_not_asked_for_again(tmp_path: Path) -> None:
    proc = FakeProc(tmp_path)
    folder, walk = proc.process(10), ProcWalk(str(tmp_path))
    told = []
    for group in ("/a", "/b", "/c"):
        (folder / "cgroup").write_text(f"0::{group}\n")
        told.append(walk.walk()[10].cgroup)
    assert told == ["/a", "/b", "/b"]
