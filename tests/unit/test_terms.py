"""What a submission says about when and how often: texts are taken apart, values of any kind get a sentence."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.domain.ending.retries import Policy
from placement.domain.jobs import Outcome
from placement.domain.submitting.submission import Submission, problems
from placement.domain.submitting.terms import parse_after, parse_moment, parse_outcomes, policy

PARIS = ZoneInfo("Europe/Paris")


def asked(**fields: Any) -> Submission:
    return Submission(**({"name": "train", "command": "python train.py"} | fields))


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("12", ((12, "ok"),)),
        ("12 ok, #15 ANY;17 failed", ((12, "ok"), (15, "any"), (17, "failed"))),
        (" 12\n13,, ", ((12, "ok"), (13, "ok"))),
        ("", ()),
    ],
)
def test_jobs_are_read_as_people_write_them(text: str, pairs: tuple[tuple[int, str], ...]) -> None:
    assert parse_after(text) == pairs


@pytest.mark.parametrize("text", ["twelve", "12 maybe", "12 ok 13", "-3", "1.5", "٣", "12 ok!"])
def test_what_names_no_job_gets_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="names no job"):
        parse_after(text)


@pytest.mark.parametrize(
    ("text", "zone", "at"),
    [
        ("2026-12-01 08:00", PARIS, 1_796_108_400),
        ("2026-12-01T08:00+00:00", PARIS, 1_796_112_000),
        ("2026-12-01T08:00Z", None, 1_796_112_000),
        ("2026-10-25 02:30", PARIS, 1_792_888_200),  # twice there: the first of the two
    ],
)
def test_a_time_has_a_zone_its_own_or_the_service_s(text: str, zone: ZoneInfo | None, at: float) -> None:
    assert parse_moment(text, zone) == at


@pytest.mark.parametrize(
    ("text", "zone", "words"),
    [
        ("tomorrow", PARIS, "no date and time"),
        ("2026-12-01", PARIS, "no time of day"),
        ("2026-12-01 08:00", None, "says no zone"),
        ("2026-03-29 02:30", PARIS, "does not exist"),
        ("0001-01-01 00:00", PARIS, "not a time"),
        ("9999-12-31T23:59Z", None, "not a time"),
    ],
)
def test_a_text_that_is_no_time_gets_a_sentence(text: str, zone: ZoneInfo | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_moment(text, zone)


def test_ends_are_read_as_words_and_a_cancel_is_none_of_them() -> None:
    assert parse_outcomes("failed, Out of memory\nlost,failed") == ("failed", "out_of_memory", "lost")
    for wrong, words in (("cancelled", "never run again"), ("completed", "no end that can be followed")):
        with pytest.raises(ValueError, match=words):
            parse_outcomes(wrong)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"after": [12]}, "after"),
        ({"after": ((0, "ok"),)}, "after"),
        ({"after": ((True, "ok"),)}, "after"),
        ({"after": ((12, "maybe"),)}, "after"),
        ({"after": ((12, 3),)}, "after"),
        ({"after": tuple((n, "ok") for n in range(1, 102))}, "after"),
        ({"after": ((1, "ok"), (2, "ok"), (3, "ok")), "array": 10_000}, "after"),
        ({"not_before": "soon"}, "not_before"),
        ({"not_before": float("nan")}, "not_before"),
        ({"not_before": 1e30}, "not_before"),
        ({"array": -1}, "array"),
        ({"array": 10_001}, "array"),
        ({"array": True}, "array"),
        ({"array": "many"}, "array"),
        ({"array": 3, "array_limit": 0}, "array_limit"),
        ({"array_limit": 2}, "array_limit"),
        ({"retry_times": 101}, "retry_times"),
        ({"retry_times": 1.5}, "retry_times"),
        ({"retry_times": 1, "retry_on": "failed"}, "retry_on"),
        ({"retry_times": 1, "retry_on": ("cancelled",)}, "retry_on"),
        ({"retry_times": 1, "retry_wait_s": -1}, "retry_wait_s"),
        ({"retry_times": 1, "retry_wait_s": float("inf")}, "retry_wait_s"),
        ({"retry_times": 1, "retry_wait_s": 10**400}, "retry_wait_s"),
        ({"not_before": -(10**400)}, "not_before"),
    ],
)
def test_it_says_beside_the_field_what_is_wrong(fields: dict[str, Any], field: str) -> None:
    assert list(problems(asked(**fields))) == [field]


def test_it_takes_what_is_meant() -> None:
    fields = {"after": ((1, "ok"), (2, "any")), "not_before": 0, "array": 10_000, "array_limit": 1}
    assert problems(asked(**fields, retry_times=100, retry_on=("lost",), retry_wait_s=0)) == {}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner),
)


FIELDS = ("after", "not_before", "array", "array_limit", "retry_times", "retry_on", "retry_wait_s")


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, ANYTHING)))
def test_no_value_of_any_type_raises(fields: dict[str, Any]) -> None:
    assert all(isinstance(sentence, str) for sentence in problems(asked(**fields)).values())


def test_the_submission_s_answers_stand_over_the_workload_s() -> None:
    workload = Policy(5, (Outcome.LOST,), 10, 100)
    assert policy(asked(), None) is None
    assert policy(asked(), workload) == workload
    assert policy(asked(retry_times=0), workload) is None
    assert policy(asked(retry_times=2, retry_wait_s=1), workload) == Policy(2, (Outcome.LOST,), 1, 100)
    assert policy(asked(retry_times=2), None) == Policy(2)
