"""The part of a submission that says when and how often it may run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django import forms
from django.utils import timezone

from placement.domain.ending.retries import MOST_TIMES
from placement.domain.submitting import sweeps, terms
from placement.domain.submitting.arrays import MOST_MEMBERS
from placement.forms.fields import TimeLimit


class Parsed(forms.CharField):
    """A text that a function of the domain takes apart; its ValueError is the sentence beside the field."""

    def __init__(self, parse: Callable[[str], Any], *, nothing: Any = None, **options: Any) -> None:
        super().__init__(required=False, max_length=20_000, **options)
        self.parse, self.nothing = parse, nothing

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return self.nothing
        try:
            return self.parse(text)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error


class Wait(TimeLimit):
    """A span of time that may be none at all."""

    def clean(self, value: Any) -> float | None:
        return 0.0 if str(value or "").strip() in ("0", "0 s") else super().clean(value)


class TermsForm(forms.Form):
    """Fields named as in Submission. All of them may stay empty, and are for most jobs."""

    after = Parsed(terms.parse_after, nothing=(), label="After these jobs")
    not_before = Parsed(lambda text: terms.parse_moment(text, timezone.get_current_timezone()), label="Not before")
    array = forms.IntegerField(required=False, min_value=1, max_value=MOST_MEMBERS, label="Make so many of it")
    array_limit = forms.IntegerField(required=False, min_value=1, max_value=MOST_MEMBERS, label="At most at once")
    retry_times = forms.IntegerField(required=False, min_value=0, max_value=MOST_TIMES, label="Try again, times")
    retry_on = Parsed(terms.parse_outcomes, nothing=(), label="Try again after")
    retry_wait_s = Wait(required=False, max_length=40, label="First wait")

    sweep = Parsed(
        sweeps.parse, nothing={}, strip=False, label="Values to try", widget=forms.Textarea(attrs={"rows": 3})
    )
    sweep_same = Parsed(
        lambda text: tuple(dict.fromkeys(re.findall(r"[^\s,;]+", text))),
        nothing=(),
        label="Names that do not change memory",
    )

    TERMS = ("after", "not_before", "array", "array_limit", "retry_times", "retry_on", "retry_wait_s")

    @property
    def moment_help(self) -> str:
        """Return how to write a time, and the zone in which one without a zone is read."""
        zone = timezone.get_current_timezone_name()
        return f"2026-12-01 08:00, in the zone of this service ({zone}) unless you add one, such as +01:00."

    @property
    def terms_given(self) -> bool:
        """Return whether any of these fields holds something, so that the page shows them."""
        return any(self[name].value() not in (None, "") for name in self.TERMS)

    @property
    def sweep_given(self) -> bool:
        """Return the same for the fields of a sweep."""
        return any(self[name].value() not in (None, "") for name in ("sweep", "sweep_same"))

    def terms(self) -> dict[str, Any]:
        """Return these fields of a submission; call it on a valid form."""
        names = (*self.TERMS, "sweep", "sweep_same")
        return {**{name: self.cleaned_data[name] for name in names}, "array": self.cleaned_data["array"] or 0}
