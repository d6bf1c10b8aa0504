from __future__ import annotations

import pytest

from calibration.domain.resources import parse_bytes
from placement.forms.fields import parse_seconds
from placement.forms.submit import first_line
from placement.selectors.again import amount_text, seconds_text


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("2 h", 7200),
        ("90 min", 5400),
        ("90", 5400),
        ("1:30", 5400),
        ("1:30:05", 5405),
        ("1 h 30 min", 5400),
        ("1h30m", 5400),
        ("1.5 h", 5400),
        ("1,5 h", 5400),
        ("2 d", 172_800),
        ("45 s", 45),
    ],
)
def test_a_time_is_read_as_people_write_it(text, seconds):
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0 s", "soon", "-5 min", "1 h 30", "1:75", "2 weeks", "٣ h", "nan", "1e9 h"])
def test_a_text_that_is_no_time_is_refused_with_a_sentence(text):
    with pytest.raises(ValueError, match=r"is not a time|lacks a unit|must be above zero"):
        parse_seconds(text)


@pytest.mark.parametrize("seconds", [45.0, 90.0, 5400.0, 7200.0, 86_400.0, 0.5])
def test_a_stored_time_comes_back_from_its_text(seconds):
    assert parse_seconds(seconds_text(seconds)) == seconds


@pytest.mark.parametrize("amount", [1, 1 << 20, 24 << 30, 1500 << 20, 123_456_789])
def test_a_stored_amount_comes_back_to_the_byte(amount):
    assert parse_bytes(amount_text(amount)) == amount


def test_a_job_without_a_name_is_called_after_its_command():
    assert first_line("\n\n  python train.py  \nmore") == "python train.py"
    assert len(first_line("x" * 500)) == 60
    assert first_line("") == ""
