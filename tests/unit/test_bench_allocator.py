"""What the bench of the allocator asks for, and what it says where its reference cannot be had."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench import allocator


@pytest.mark.parametrize("members", ["1", "8", "mixed"])
def test_both_are_asked_the_same_and_most_of_it_is_granted(members: str) -> None:
    requests, live = allocator.stream(8, members)
    seconds, given = allocator.decide(8, requests, live)

    assert allocator.stream(8, members) == (requests, live)
    assert seconds > 0
    assert sum(one is not None for one in given) > len(requests) * 0.7
    for (count, size), one in zip(requests, given, strict=True):
        assert one is None or (len(one), sum(share for _, share in one)) == (count, size)


def test_a_reference_that_cannot_be_installed_is_named_and_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise subprocess.CalledProcessError(1, "pip", stderr="ERROR: no such index\n")

    monkeypatch.setattr("venv.create", lambda *_, **__: None)
    monkeypatch.setattr("subprocess.run", fails)

    assert allocator.environment(tmp_path / "env") is None
    assert (
        capsys.readouterr().err == f"jayrun==0.3.0 cannot be installed into {tmp_path / 'env'}: ERROR: no such index\n"
    )
