"""The parts of the benches that only compute, or only look for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import bare, marks, peers
from bench.peers.tools import Missing, Tools, quietly
from tests.wait import until


def test_quantiles_are_values_that_were_seen() -> None:
    assert bare.quantile([3.0], 0.95) == 3.0
    assert [bare.quantile([4.0, 1.0, 3.0, 2.0], share) for share in (0.0, 0.5, 0.95, 1.0)] == [1.0, 3.0, 4.0, 4.0]


def test_a_line_that_is_not_whole_yet_is_not_read() -> None:
    assert marks.parse("1 10.5\n2 11.25\n3 12") == {1: 10.5, 2: 11.25}


def test_a_job_that_ran_twice_is_no_measurement() -> None:
    with pytest.raises(ValueError, match="job 4 ran twice"):
        marks.parse("4 1.0\n5 1.5\n4 2.0\n")


def test_what_a_job_writes_is_read_back(tmp_path: Path) -> None:
    ledger = marks.Ledger(tmp_path)
    took = ledger.first_byte(lambda number: quietly(ledger.argv(number), {"PATH": "/usr/bin:/bin"}), 7)
    assert 0 <= took < 20
    assert until(ledger.seen, 20, "the line") == {7}


def test_peers_that_are_not_here_are_named_with_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    there, missing = peers.wanted("gflow,gpusched,hyperqueue", Tools(str(tmp_path)))
    assert there == []
    assert missing["gpusched"] == f"no gpusched on PATH or in {tmp_path}"
    assert set(missing) == {"gflow", "gpusched", "hyperqueue"}
    assert peers.wanted("none", Tools()) == ([], {})
    with pytest.raises(SystemExit, match="no peer cron"):
        peers.wanted("cron", Tools())


def test_a_program_of_the_environment_that_is_named_comes_first(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "ls"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    assert Tools(str(tmp_path)).find("ls") == [str(program)]
    with pytest.raises(Missing, match=r"no nothing-like-it on PATH$"):
        Tools().find("nothing-like-it")
    with pytest.raises(RuntimeError, match="ls ended with 3: without a word"):
        quietly([str(program)], {})


def test_a_peer_that_fails_is_a_row_that_says_so(tmp_path: Path) -> None:
    def broken(tools: Tools, folder: Path) -> None:
        raise RuntimeError("first line\nits last word")

    row = peers.measure(peers.Peer("broken", lambda tools: None, broken), Tools(), 10, 0)  # type: ignore[arg-type]
    assert row == {"name": "broken", "error": "its last word"}
