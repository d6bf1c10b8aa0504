from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from placement.runner import jsonfile, record
from placement.runner.descendants import Member
from placement.runner.identity import Identity
from placement.runner.jsonfile import create_record, read_json, write_record
from placement.runner.notes import Notes
from placement.runner.outbox import Outbox

DATA = Path(__file__).parents[1] / "data" / "runner"


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "control").mkdir()
    return tmp_path


def put(run_dir: Path, source: str, name: str) -> dict[str, Any]:
    text = (DATA / source).read_text()
    (run_dir / "control" / name).write_text(text)
    fields = json.loads(text)
    assert isinstance(fields, dict)
    return fields


def test_records_of_the_first_version_load_and_come_out_the_same(run_dir: Path) -> None:
    started = put(run_dir, "v1-started.json", "started.json")
    leader = put(run_dir, "v1-leader.json", "leader.json")
    ended = put(run_dir, "v1-exit.json", "exit.json")
    read_started, read_leader, read_exit = (
        record.read_started(run_dir), record.read_leader(run_dir), record.read_exit(run_dir),
    )  # fmt: skip
    assert read_started is not None
    assert read_leader is not None
    assert read_exit is not None
    assert {"version": 1, **record.started_fields(read_started)} == started
    assert {"version": 1, **record.leader_fields(read_leader)} == leader
    assert {"version": 1, **record.exit_fields(read_exit)} == {**ended, "cgroup": None, "container": None}
    assert read_leader.left[1] == Member(9096, 99121, "a) b", None)


def test_an_exit_record_of_a_later_version_loads_with_its_gaps_unknown(run_dir: Path) -> None:
    put(run_dir, "v9-exit.json", "exit.json")
    ended = record.read_exit(run_dir)
    assert ended is not None
    assert ended.code == 0
    assert (ended.max_rss_bytes, ended.duration_s, ended.oom_kill_delta) == (None, None, None)
    assert ended.log.stdout_bytes is None
    assert ended.leftovers == ()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'"x"', b"[" * 100_000])
def test_a_file_that_holds_no_record_reads_as_none(content: bytes, run_dir: Path) -> None:
    for name in ("claim", "started.json", "leader.json", "exit.json"):
        (run_dir / "control" / name).write_bytes(content)
    assert record.read_claim(run_dir) is None
    assert record.read_started(run_dir) is None
    assert record.read_leader(run_dir) is None
    assert record.read_exit(run_dir) is None


def test_a_number_that_no_database_holds_is_no_count(run_dir: Path) -> None:
    path = run_dir / "control" / "exit.json"
    for digits in ("9" * 20, "-" + "9" * 20, "1" + "0" * 400, "9" * 5000):
        path.write_text(f'{{"limit": {digits}, "code": {digits}, "ended_at": {digits}}}')
        fields = read_json(str(path))
        assert fields is not None
        assert not isinstance(fields["limit"], int)
        assert record.read_exit(run_dir) == record.ExitRecord(None, None, "")
    path.write_text(f'{{"limit": {2**62}}}')
    assert read_json(str(path)) == {"limit": 2**62}


def test_links_pipes_and_very_long_files_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").write_text('{"a": "' + "x" * 5000 + '"}')
    assert read_json(str(tmp_path / "link")) is None
    assert read_json(str(tmp_path / "pipe")) is None
    assert read_json(str(tmp_path / "long"), limit=4096) is None
    assert read_json(str(tmp_path / "secret")) == {}


def test_a_claim_is_given_once(run_dir: Path) -> None:
    me, other = Identity(41, 900, "b"), Identity(42, 901, "b")
    assert record.claim(str(run_dir), me) is True
    assert record.claim(str(run_dir), other) is False
    assert record.read_claim(run_dir) == me
    assert os.listdir(run_dir / "control") == ["claim"]


def test_a_claim_without_a_control_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        create_record(str(tmp_path / "control" / "claim"), {})


def full_disk(*_: Any) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_leaves_the_old_record_as_it_was(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    write_record(str(path), {"code": 1})
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(jsonfile.os, call, full_disk)
        with pytest.raises(OSError, match="No space"):
            write_record(str(path), {"code": 2})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.json"]


def test_an_exit_code_outlives_a_full_disk_with_one_line_a_minute(run_dir: Path) -> None:
    clock = [0.0]
    reading, writing = os.pipe()
    full = [True]

    def write(path: str, fields: Mapping[str, Any], durable: bool) -> None:
        if full[0]:
            full_disk()
        write_record(path, fields, durable)

    outbox = Outbox(str(run_dir), Notes(writing, lambda: clock[0]), write)
    outbox.put("exit.json", {"code": 7})
    for second in range(121):
        clock[0] = float(second)
        assert outbox.flush() is False
    os.close(writing)
    said = os.read(reading, 65536).decode().splitlines()
    os.close(reading)
    assert len(said) == 3
    assert "No space left on device" in said[0]
    full[0] = False
    assert outbox.flush() is True
    ended = record.read_exit(run_dir)
    assert ended is not None
    assert ended.code == 7


def test_a_record_for_a_directory_that_is_gone_is_given_up(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    outbox = Outbox(str(tmp_path / "gone"), Notes(writing))
    outbox.put("exit.json", {"code": 7})
    assert outbox.flush() is True
    os.close(reading)
    os.close(writing)


def test_a_directory_where_a_record_belongs_is_moved_aside(tmp_path: Path) -> None:
    (tmp_path / "exit.json" / "inside").mkdir(parents=True)
    write_record(str(tmp_path / "exit.json"), {"code": 3})
    assert json.loads((tmp_path / "exit.json").read_text())["code"] == 3
    assert [path for path in tmp_path.iterdir() if path.is_dir()]
