from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.domain.ending.first_error import first, kind_of


@pytest.mark.parametrize(
    "line, kind",
    [
        ("Traceback (most recent call last):", "Python traceback"),
        ("  + Exception Group Traceback (most recent call last):", ""),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "out of device memory"),
        ("RuntimeError: CUDA error: out of memory", "out of device memory"),
        ("MemoryError", "out of memory"),
        ("Killed", "killed"),
        ("/bin/sh: line 1:  1234 Killed                  python train.py", "killed"),
        ("bash: line 3: 77 Segmentation fault (core dumped) ./a.out", "crash"),
        ("thread 'main' panicked at src/main.rs:4:5:", "crash"),
        ("fatal: not a git repository", "fatal error"),
        ("src/x.cu(12): fatal error: cuda.h: No such file", "fatal error"),
        ("ValueError: shapes do not match", "error"),
        ("my.module.CustomException: no", "error"),
        ("2026-01-01 12:00:00,123 ERROR trainer: lost the connection", "error"),
        ("[ERROR] it broke", "error"),
        ("\x1b[31mERROR\x1b[0m it broke", "error"),
        ("error: linker failed", "error"),
        ("error[E0308]: mismatched types", "error"),
        ("10%|#  | 1/10 [00:01<00:09]\rKeyError: 'x'", "error"),
        ("sh: 1: pyhton: not found", "not found"),
        ("cat: x: No such file or directory", "not found"),
        # figures and talk of errors
        ("0 errors, 3 warnings", ""),
        ("no error so far", ""),
        ("errors: 0", ""),
        ("mean squared error: 0.012", ""),
        ("val_error: 0.3", ""),
        ("epoch 3 error: 0.012, lr 1e-3", ""),
        ("loss 0.3 error=0.12", ""),
        ("killed 3 zombies", ""),
        ("skilled workers", ""),
        ("fatality rate 3", ""),
        ("terror: a film", ""),
        ("", ""),
    ],
)
def test_lines_that_tell_of_an_error(line: str, kind: str) -> None:
    assert kind_of(line.encode()) == kind


def test_the_first_line_that_does_is_found_with_its_place() -> None:
    text = b"0 errors\nmean error: 0.1\n\n  File x\nValueError: no\nTraceback (most recent call last):\n"
    found = first(text)
    assert found is not None
    assert text[found.at :].startswith(b"ValueError")
    assert first(b"all went well\n") is None


@given(st.binary(max_size=300))
def test_no_bytes_are_too_strange(raw: bytes) -> None:
    found = first(raw + b"\nKeyError: 1\n" + raw)
    assert found is not None
    assert found.at <= len(raw) + 1


@pytest.mark.parametrize("line", [b"error " * 20_000, b"error\n" * 20_000, b"x" * 130_000, b"0 errors\n" * 14_000])
def test_an_eighth_of_a_megabyte_takes_a_moment(line: bytes) -> None:
    began = time.thread_time()
    first(line)
    assert time.thread_time() - began < 1.5
