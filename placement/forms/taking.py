"""What somebody types who takes a device for a while."""

from __future__ import annotations

from django import forms

from placement.domain.submitting.taken import Wish
from placement.forms.fields import Amount


class TakeForm(forms.Form):
    """So many hours, and how much of a device; empty: the device alone."""

    hours = forms.FloatField(min_value=0.02, max_value=24 * 365, initial=2, label="For how many hours")
    size = Amount(required=False, label="How much of it")
    why = forms.CharField(required=False, max_length=500, label="What for")

    def wish(self, node: str, device: str) -> Wish:
        """Return what was asked for; call it on a valid form."""
        data = self.cleaned_data
        return Wish(node, device, data.get("size") if device else None, data["hours"] * 3600, data["why"])
