from __future__ import annotations

import errno

import pytest

from placement.runner.spawn import arguments_of
from placement.runner.spec import Spec, parse_spec
from placement.runner.start_error import sentence


def a_spec(**fields: object) -> Spec:
    return parse_spec({"command": "python train.py", "cwd": "/data/run 1", **fields})


ADA = {"name": "ada", "uid": 1001, "gid": 1001}


@pytest.mark.parametrize(
    "step, number, fields, told",
    [
        ("directory", errno.ENOENT, {}, "the working directory /data/run 1 does not exist"),
        ("directory", errno.ENOTDIR, {}, "/data/run 1 is not a directory"),
        ("directory", errno.EACCES, {"account": ADA}, "ada may not enter the working directory /data/run 1"),
        ("directory", errno.EIO, {}, "Input/output error"),
        ("account", errno.EPERM, {"account": ADA}, "may not run commands as ada: Operation not permitted"),
        ("account", errno.EAGAIN, {"account": ADA}, "process limit reached"),
        ("fork", errno.EAGAIN, {}, "process limit reached"),
        ("fork", errno.ENOMEM, {}, "out of memory (ENOMEM)"),
        ("exec", errno.ENOENT, {"command": None, "argv": ["./go"]}, "there is no program ./go"),
        ("exec", errno.EACCES, {"command": None, "argv": ["./go"]}, "./go is not executable; run chmod +x"),
        ("exec", errno.ENOEXEC, {"command": None, "argv": ["./go"]}, "no interpreter line"),
        ("exec", errno.ELOOP, {}, "bash: Too many levels"),
        ("prepare", errno.EIO, {}, "prepare: Input/output error"),
    ],
)  # fmt: skip
def test_each_failure_has_its_sentence(step: str, number: int, fields: dict[str, object], told: str) -> None:
    text = sentence(step, number, a_spec(**fields), [b"x"])
    assert text.startswith("could not start: ")
    assert told in text


def test_too_long_says_which_limit_was_met() -> None:
    assert "one argument has 131072 bytes, the system takes 131071" in sentence(
        "exec", errno.E2BIG, a_spec(), [b"bash", b"x" * 131072]
    )
    assert "arguments (200004 bytes) and environment" in sentence(
        "exec", errno.E2BIG, a_spec(), [b"a" * 100_001, b"b" * 100_001]
    )


def test_a_command_goes_to_bash_as_it_is() -> None:
    assert arguments_of(a_spec()) == [b"bash", b"-c", b"python train.py"]


def test_an_argument_list_is_untouched_and_keeps_odd_bytes() -> None:
    spec = a_spec(command=None, argv=["./go", "a b", "$HOME", "caf\udce9"])
    assert arguments_of(spec) == [b"./go", b"a b", b"$HOME", b"caf\xe9"]


def test_the_setup_line_is_quoted_whole() -> None:
    text = arguments_of(a_spec(setup="source 'my env/activate'"))[2].decode()
    assert text.startswith("eval 'source '\\''my env/activate'\\''' || {")
    assert text.endswith("}\npython train.py")
