"""What admins declare and operators hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from calibration.domain.resources import MOST, gib
from placement.domain.declaring.by_hand import MOST_NUMBER
from placement.domain.ending.watch_policy import WORDS, Policy
from placement.domain.errors import Refused
from placement.domain.world.devices import Backend
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
        except (ValueError, RecursionError):
            return stored
        if not isinstance(seen, dict):
            return stored
        return {**stored, **{n: v for n, v in seen.items() if n in stored and self._could_be(n, v, stored[n])}}

    def _could_be(self, name: str, value: object, stored: object) -> bool:
        """Return whether this field can have held the value: the page that says so came back from a browser."""
        if isinstance(self.base_fields[name], Share):
            return value is None or type(value) is float
        if isinstance(self.base_fields[name], forms.IntegerField):
            return value is None or (type(value) is int and 0 <= value <= MOST_NUMBER)
        if name != self.amount:
            return type(value) is type(stored)
        return value is None or (type(value) is int and 0 <= value <= MOST)

    def changes(self) -> dict[str, Any]:
        """Return the fields whose value differs from what the admin saw."""
        return {n: v for n, v in self.cleaned_data.items() if n != "seen" and v != self.before[n]}

    def expected(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the changed fields were when the admin looked."""
        return {name: self.before[name] for name in changes}


class Backends(forms.MultipleChoiceField):
    """Words of interfaces, one or several."""

    def __init__(self, **options: Any) -> None:
        words = [(word.upper(), word.upper()) for word in Backend]
        super().__init__(choices=words, required=False, widget=forms.CheckboxSelectMultiple, **options)


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
    backends = Backends(label="Further backends", help_text="What else programs can use it through.")

    def __init__(self, *args: Any, device: Device, **options: Any) -> None:
        super().__init__(*args, row=device, prefix=f"device-{device.pk}", **options)
        self.own = [] if device.by_hand else [device.backend]
        words = [(word, label) for word, label in self.fields["backends"].choices if word not in self.own]
        self.fields["backends"].choices = words

    def clean_backends(self) -> list[str]:
        """Return what was ticked after what stays, the ones that were there before first."""
        ticked = [*self.own, *self.cleaned_data["backends"]]
        before = [word for word in self.before["backends"] if word in ticked]
        return [*before, *(word for word in ticked if word not in before)]


class HandForm(DeviceForm):
    """The declaration of a device that no probe found."""

    one_pool = None  # it is a device of its own
    backends = Backends(label="Backends", help_text="A request for any of them means it.")
    any_gpu = forms.BooleanField(
        required=False,
        label="Jobs that ask for any GPU may be put here",
        help_text="Else only those that name its kind or backend, or it: nothing measures what they use.",
    )
    index = forms.IntegerField(label="Number", help_text="What people type for it.", min_value=0, max_value=MOST_NUMBER)
    driver_number = forms.IntegerField(
        required=False,
        label="Its driver's number",
        help_text="By which jobs see it; empty: the same.",
        min_value=0,
        max_value=MOST_NUMBER,
    )

    field_order = ("name", "index", "driver_number", "declared", "exclusive_only", "any_gpu", "backends")


def form_of(device: Device, *args: Any) -> DeviceForm:
    """Return the form for a device's declaration."""
    return (HandForm if device.by_hand else DeviceForm)(*args, device=device)


class NewDeviceForm(forms.Form):
    """A device to declare by hand. What it has to be is the service's to say, so nothing is required here."""

    node = forms.ChoiceField(required=False, label="Node")
    kind = forms.ChoiceField(choices=[("gpu", "GPU"), ("tpu", "TPU")], required=False, label="Kind")
    index = forms.IntegerField(
        required=False, label="Number", help_text="What people type for it: 0 makes gpu0 or tpu0."
    )
    name = forms.CharField(required=False, max_length=40, label="Name", help_text="Empty: its kind and number.")
    declared = Amount(required=False, capacity=True, label="Memory that jobs may take", help_text="Such as 16 GiB.")
    driver_number = forms.IntegerField(
        required=False, label="Its driver's number", help_text="By which jobs see it; empty: the same."
    )
    backends = Backends(label="Backends", help_text="A request for any of them means it.")
    exclusive_only = forms.BooleanField(required=False, label="For one holder at a time")
    any_gpu = forms.BooleanField(
        required=False,
        label="Jobs that ask for any GPU may be put here",
        help_text="Else only those that name its kind or backend, or it: nothing measures what they use.",
    )

    def __init__(self, *args: Any, nodes: Sequence[Node], **options: Any) -> None:
        super().__init__(*args, prefix="new", auto_id="id-%s", **options)
        self.fields["node"].choices = [(str(node.pk), node.name) for node in nodes]  # type: ignore[attr-defined]
        if len(nodes) < 2:
            self.fields["node"].widget = forms.HiddenInput()
            self.fields["node"].initial = str(nodes[0].pk) if nodes else ""

    def said(self) -> dict[str, Any]:
        """Return what was filled in, to be declared; call it on a valid form."""
        return {name: value for name, value in self.cleaned_data.items() if name != "node"}

    def refuse(self, error: Refused) -> None:
        """Put a refusal beside the fields that it names."""
        for name, text in (error.fields or {"kind": error.sentence}).items():
            self.add_error(name, text)


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
