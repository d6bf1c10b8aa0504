from __future__ import annotations

import multiprocessing
import stat
from pathlib import Path
from typing import Any

import pytest

from placement.domain.errors import UnreadableSecret
from placement.services import secrets


@pytest.fixture(autouse=True)
def data(settings: Any, tmp_path: Path) -> Path:
    settings.DATA = tmp_path
    return tmp_path


def test_what_was_sealed_comes_back_and_cannot_be_read_meanwhile() -> None:
    values = {"HF_TOKEN": "hf_ü secret\n", "EMPTY": ""}

    sealed = secrets.seal(values)

    assert b"hf_" not in sealed
    assert secrets.unseal(sealed) == values
    assert secrets.unseal(memoryview(sealed)) == values


def test_no_values_need_no_key(data: Path) -> None:
    assert secrets.seal({}) == b""
    assert secrets.unseal(b"") == {}
    assert list(data.iterdir()) == []


def test_the_key_is_for_the_service_alone(data: Path) -> None:
    secrets.seal({"A": "1"})

    assert stat.S_IMODE((data / "environment.key").stat().st_mode) == 0o600
    assert [path.name for path in data.iterdir()] == ["environment.key"]


def test_another_key_is_said_and_not_guessed_around(data: Path) -> None:
    sealed = secrets.seal({"A": "1"})
    (data / "environment.key").unlink()

    with pytest.raises(UnreadableSecret, match="sealed with another one"):
        secrets.unseal(sealed)


@pytest.mark.parametrize("content", [b"", b"rubbish", b"x" * 44])
def test_a_broken_key_file_is_named_and_left_alone(data: Path, content: bytes) -> None:
    (data / "environment.key").write_bytes(content)

    with pytest.raises(UnreadableSecret, match=r"environment\.key does not hold a key"):
        secrets.seal({"A": "1"})

    assert (data / "environment.key").read_bytes() == content


def _key(folder: Path, gate: Any, out: Any) -> None:
    gate.wait()
    out.put(secrets._key())


def test_processes_that_come_at_once_get_the_same_key(data: Path) -> None:
    fork = multiprocessing.get_context("fork")
    gate, out = fork.Barrier(6), fork.Queue()
    processes = [fork.Process(target=_key, args=(data, gate, out)) for _ in range(6)]
    for process in processes:
        process.start()
    keys = {out.get(timeout=30) for _ in processes}
    for process in processes:
        process.join()

    assert keys == {(data / "environment.key").read_bytes()}
    assert [path.name for path in data.iterdir()] == ["environment.key"]
