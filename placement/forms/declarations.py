"""What admins declare and operators hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django import forms

from calibration.domain.resources import MOST, gib
from placement.domain.watch_policy import WORDS, Policy
from placement.forms.fields import Amount
from placement.models import Device, Node


class Share(forms.FloatField):
    """A share; the service says what it may be."""

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}), **options)


class Declaration(forms.Form):
    """A declaration with the values that the admin saw, so that nobody overwrites what they have not seen."""

    amount = ""  # the field that holds bytes
    seen = forms.CharField(max_length=2000, widget=forms.HiddenInput)

    def __init__(self, *args: Any, row: Device | Node, prefix: str, **options: Any) -> None:
        self.row = row
        stored = {name: getattr(row, name) for name in self.base_fields if name != "seen"}
        bytes_ = stored[self.amount]
        initial = {
            **stored,
            self.amount: gib(bytes_) if bytes_ is not None else "",
            "seen": json.dumps(stored),
        }
        super().__init__(*args, initial=initial, prefix=prefix, auto_id="id-%s", **options)
        self.before = self._before(stored)
        self.fields[self.amount].stored = self.before[self.amount]

    def _before(self, stored: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self.is_bound:
            return stored
        try:
            seen = json.loads(self.data.get(self.add_prefix("seen"), ""))
        except ValueError:
            return stored
        if not isinstance(seen, dict):
            return stored
        return {**stored, **{n: v for n, v in seen.items() if n in stored and self._could_be(n, v, stored[n])}}

    def _could_be(self, name: str, value: object, stored: object) -> bool:
        """Return whether this field can have held the value: the page that says so came back from a browser."""
        if isinstance(self.base_fields[name], Share):
            return value is None or type(value) is float
        if name != self.amount:
            return type(value) is type(stored)
        return value is None or (type(value) is int and 0 <= value <= MOST)

    def changes(self) -> dict[str, Any]:
        """Return the fields whose value differs from what the admin saw."""
        return {n: v for n, v in self.cleaned_data.items() if n != "seen" and v != self.before[n]}

    def expected(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the changed fields were when the admin looked."""
        return {name: self.before[name] for name in changes}


class DeviceForm(Declaration):
    """A device's declaration."""

    amount = "declared"
    name = forms.CharField(max_length=40)
    declared = Amount(label="Declared capacity", capacity=True)
    exclusive_only = forms.BooleanField(required=False, label="Exclusive jobs only")
    one_pool = forms.BooleanField(
        required=False,
        label="Shares the machine's memory",
        help_text="For a device without memory of its own that was not recognised as one.",
    )

    def __init__(self, *args: Any, device: Device, **options: Any) -> None:
        super().__init__(*args, row=device, prefix=f"device-{device.pk}", **options)


class NodeForm(Declaration):
    """A node's declaration."""

    amount = "ram_declared"
    ram_declared = Amount(
        required=False, capacity=True, label="RAM that jobs may take", help_text="Empty: all there is."
    )
    ram_high = Share(
        required=False,
        label="RAM is short above",
        help_text="A share of it in use, such as 0.925, from which on nothing starts. Empty: the knob's.",
    )
    ram_low = Share(required=False, label="and until it is below", help_text="A lower share, such as 0.85.")
    watch_policy = forms.ChoiceField(
        required=False,
        choices=[("", "as the knob watch_policy says"), *((policy.value, WORDS[policy]) for policy in Policy)],
        label="The watchdog may",
        help_text="Workloads can ask for more than that, never for less.",
    )

    def __init__(self, *args: Any, node: Node, **options: Any) -> None:
        super().__init__(*args, row=node, prefix=f"node-{node.pk}", **options)


class HoldForm(forms.Form):
    """Stop a thing until a time, or until released."""

    why = forms.CharField(required=False, max_length=200)
    hours = forms.FloatField(required=False, min_value=0.01, max_value=24 * 365)


class PersonForm(forms.Form):
    """A user's role and Unix account, as admins set them."""

    role = forms.CharField(max_length=10)
    account = forms.CharField(required=False, max_length=64)
    root = forms.BooleanField(required=False)


class QuotaForm(forms.Form):
    """What one person's jobs may hold at once; empty: as for everybody, 0: no limit."""

    jobs = forms.IntegerField(required=False, min_value=0, max_value=1_000_000)
    vram = Amount(required=False, label="Device memory")
    ram = Amount(required=False, label="RAM")

    def __init__(self, *args: Any, member: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in ("vram", "ram"):
            stored = getattr(member, f"quota_{name}", None)
            self.fields[name].stored = stored

    def refuse(self, fields: Mapping[str, str], sentence: str) -> None:
        """Put a service's refusal beside the field that it names, else beside the first."""
        named = {name.removeprefix("quota_"): text for name, text in fields.items()}
        for name, text in (named or {"jobs": sentence}).items():
            self.add_error(name, text)
