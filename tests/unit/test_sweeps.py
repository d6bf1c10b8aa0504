"""Sweeps: the grammar of value lists, their product, placeholders, and what is refused."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.domain.submitting import sweeps
from placement.domain.submitting.submission import Submission, problems

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(lambda n: n != "index")
TEXTS = st.text("ab.,;:=/{}$()#-_*é0123456789e", min_size=1, max_size=20)
AXES = st.dictionaries(NAMES, st.lists(TEXTS, min_size=1, max_size=4, unique=True).map(tuple), min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("lr = 0.1, 0.01", {"lr": ("0.1", "0.01")}),
        ("n=1..5", {"n": ("1", "2", "3", "4", "5")}),
        ("n: 1..100 step 25", {"n": ("1", "26", "51", "76")}),
        ("n = 3..1", {"n": ("3", "2", "1")}),
        ("x = 0.1..0.5 step 0.1", {"x": ("0.1", "0.2", "0.3", "0.4", "0.5")}),
        ("lr = 1e-4..1e-1 log 4", {"lr": ("0.0001", "0.001", "0.01", "0.1")}),
        ("lr = 1e-6..3e-6 step 1e-6", {"lr": ("1e-6", "2e-6", "3e-6")}),
        ("a = 1..3, 10, 'x, y', ''", {"a": ("1", "2", "3", "10", "x, y", "")}),
        ("# said\n\na = 1\nb = two words, 3", {"a": ("1",), "b": ("two words", "3")}),
        ("file = data/..part, a..b", {"file": ("data/..part", "a..b")}),
    ],
)
def test_lines_are_read_as_people_write_them(text: str, found: dict[str, tuple[str, ...]]) -> None:
    assert sweeps.parse(text) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lr", "lists no values"),
        ("a = 1\na = 2", "twice"),
        ("a = 1,,2", "empty value"),
        ("a =", "empty value"),
        ("a = 'open", "cannot be read"),
        ("a = 1..5 step -1", "never comes"),
        ("a = 1..5 step 0", "never comes"),
        ("a = 1..1e9", "more than 1,000 values"),
        ("a = 0..5 log 3", "log N makes N values"),
        ("a = 1..5 log 2.5", "log N makes N values"),
        ("a = 1e-999..5 log 3", "log N makes N values"),
    ],
)
def test_a_line_that_cannot_be_read_is_refused_with_a_sentence(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        sweeps.parse(text)


@settings(max_examples=100, deadline=None)
@given(AXES)
def test_axes_come_back_from_their_text(axes: dict[str, tuple[str, ...]]) -> None:
    assert sweeps.parse(sweeps.as_text(axes)) == axes


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=80))
def test_no_text_raises_anything_but_a_sentence(text: str) -> None:
    try:
        found, said = sweeps.parse(text), "."
    except ValueError as error:
        found, said = {}, str(error)
    assert said.endswith(".")
    assert all(values for values in found.values())


@settings(max_examples=100, deadline=None)
@given(st.integers(-500, 500), st.integers(-500, 500), st.integers(1, 50))
def test_a_range_holds_its_first_value_and_never_passes_its_last(first: int, last: int, step: int) -> None:
    sign = 1 if last >= first else -1
    found = [int(v) for v in sweeps.values(f"{first}..{last} step {sign * step}")]
    assert found == list(range(first, last + sign, sign * step))


@settings(max_examples=100, deadline=None)
@given(AXES)
def test_each_combination_is_there_once_and_fills_its_command(axes: dict[str, tuple[str, ...]]) -> None:
    command = "run " + " ".join(f"--{name} {{{name}}}" for name in axes)
    made = [sweeps.filled(command, chosen) for chosen in sweeps.combinations(axes)]
    assert len(made) == sweeps.count(axes) == len(set(made))
    wanted = [[w for name in axes for w in (f"--{name}", chosen[name])] for chosen in sweeps.combinations(axes)]
    assert [shlex.split(one)[1:] for one in made] == wanted
    assert [list(sweeps.list_filled([f"{{{n}}}" for n in axes], c)) for c in sweeps.combinations(axes)] == [
        [c[n] for n in axes] for c in sweeps.combinations(axes)
    ]


def test_the_shells_own_braces_and_an_arrays_index_stay() -> None:
    command = "run ${lr} {lr} {index} {other}"
    assert sweeps.placeholders(command) == ("lr", "other")
    assert sweeps.filled(command, {"lr": "a b"}) == "run ${lr} 'a b' {index} {other}"


def test_a_member_is_named_by_its_values() -> None:
    assert sweeps.member_name("train lr {lr}", {"lr": "0.1"}) == "train lr 0.1"
    assert sweeps.member_name("train", {"lr": "0.1", "seed": "2"}) == "train lr=0.1, seed=2"
    assert len(sweeps.member_name("x" * 190, {"lr": "0" * 50})) == 200


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"lr": [0.1, 0.01], "on": [True, "x"]}, {"lr": ("0.1", "0.01"), "on": ("true", "x")}),
        ({"n": "1..3"}, {"n": ("1", "2", "3")}),
        ("n = 1..3", {"n": ("1", "2", "3")}),
    ],
)
def test_json_says_the_same(asked: object, found: dict[str, tuple[str, ...]]) -> None:
    assert sweeps.read(asked) == found


@pytest.mark.parametrize("asked", [None, 3, [1], {"lr": 3}, {"lr": [[1]]}, {"lr": [None]}])
def test_json_of_another_kind_is_refused(asked: object) -> None:
    with pytest.raises(ValueError, match=r"must be|a value is"):
        sweeps.read(asked)


@pytest.mark.parametrize(
    ("more", "field", "said"),
    [
        ({"sweep": {"lr": ("1",)}, "command": "run"}, "sweep", "no place for lr"),
        ({"sweep": {"index": ("1",)}}, "sweep", "is no name"),
        ({"sweep": {"lr": ("1", "1")}}, "sweep", "twice"),
        ({"sweep": {"lr": ()}}, "sweep", "no values"),
        ({"sweep": {"lr": ("a\nb",)}}, "sweep", "cannot be seen"),
        ({"sweep": {"lr": tuple(map(str, range(1001)))}}, "sweep", "make 1,001 jobs"),
        ({"sweep": {"lr": ("1",)}, "array": 3}, "array", "makes its jobs by itself"),
        ({"sweep": {"lr": ("1",)}, "sweep_same": ("seed",)}, "sweep_same", "no values for seed"),
        ({"sweep": {"lr": 3}}, "sweep", "names, each with a list"),
        ({"sweep": 3}, "sweep", "names, each with a list"),
        ({"sweep_same": "lr"}, "sweep_same", "list of names"),
        ({"array_limit": 3}, "array_limit", "Only an array or a sweep"),
        ({"sweep": {"lr": tuple("abc")}, "after": tuple((n, "ok") for n in range(1, 90)), "array_limit": 2}, "", ""),
    ],
)
def test_what_cannot_be_swept_is_said_beside_its_field(more: dict[str, object], field: str, said: str) -> None:
    fields: dict[str, object] = {"name": "n", "command": "run {lr}", **more}
    found = problems(Submission(**fields))  # type: ignore[arg-type]
    assert said in found.get(field, "")
    assert (not field) == (not found)


def test_first_runs_go_one_a_device_and_in_ram_nobody_knows_how_many() -> None:
    ok = [{"ok": True}]
    device = {"node": "atlas", "device": "GPU-1", "need": {}, "room": {}, "checks": ok}
    assert sweeps.at_once([device, {**device, "device": "GPU-2"}], alone=True) == 2
    assert sweeps.at_once([{**device, "device": None}], alone=True) is None
    assert sweeps.at_once([{**device, "device": None, "checks": [{"ok": False}]}], alone=True) == 0
