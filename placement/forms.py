"""Forms: text that people type becomes values; what was typed is never lost."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from django import forms

from calibration.domain.errors import BadAmount
from calibration.domain.resources import gib, parse_bytes
from placement.domain.submission import MOST_PRIORITY, MOST_WORKERS, Submission
from placement.models import Device, Node, Workload
from placement.selectors.submit import Choices

_UNITS = {"d": 86_400.0, "h": 3600.0, "min": 60.0, "m": 60.0, "s": 1.0}
_PART = re.compile(r"(\d{1,9}(?:[.,]\d{1,6})?)\s*(d|h|min|m|s)?\s*", re.ASCII)
_CLOCK = re.compile(r"(\d{1,5}):([0-5]\d)(?::([0-5]\d))?", re.ASCII)
PARAM = "param_"


def parse_seconds(text: str) -> float:
    """Return the seconds that "2 h", "1 h 30 min", "90" (minutes) or "1:30:00" mean. Raises ValueError."""
    shown = text.strip().lower()
    if match := _CLOCK.fullmatch(shown):
        hours, minutes, rest = (int(part or 0) for part in match.groups())
        return hours * 3600.0 + minutes * 60 + rest
    at, total = 0, 0.0
    while at < len(shown):
        match = _PART.match(shown, at)
        if match is None:
            raise ValueError(f"{text.strip()[:40]!r} is not a time. Write one such as 2 h, 90 min or 1:30:00.")
        if match[2] is None and (at or match.end() < len(shown)):
            raise ValueError(f"{text.strip()[:40]!r} lacks a unit. Write one such as 1 h 30 min.")
        total += float(match[1].replace(",", ".")) * _UNITS[match[2] or "min"]
        at = match.end()
    if not shown or total <= 0:
        raise ValueError("A time limit must be above zero; leave it empty for none.")
    return total


def seconds_text(seconds: float | None) -> str:
    """Return seconds as text that parse_seconds takes back."""
    if seconds is None:
        return ""
    for unit in ("h", "min"):
        if seconds % _UNITS[unit] == 0:
            return f"{seconds / _UNITS[unit]:.0f} {unit}"
    return f"{seconds:g} s"


class Amount(forms.CharField):
    """Memory with a unit, as bytes. A text that still reads as ``stored`` does keeps the stored bytes."""

    def __init__(self, *, stored: int | None = None, **options: Any) -> None:
        super().__init__(max_length=40, **options)
        self.stored = stored
        self.widget.attrs.setdefault("inputmode", "text")
        self.widget.attrs.setdefault("autocomplete", "off")

    def clean(self, value: Any) -> int | None:
        text = super().clean(value)
        if not text:
            return None
        if self.stored is not None and text == gib(self.stored):
            return self.stored
        try:
            return parse_bytes(text)
        except BadAmount as error:
            raise forms.ValidationError(str(error)) from error


class TimeLimit(forms.CharField):
    """A span of time as seconds."""

    def clean(self, value: Any) -> float | None:
        text = super().clean(value)
        if not text:
            return None
        try:
            return parse_seconds(text)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error


class SubmitForm(forms.Form):
    """One submission. Fields are named as in Submission, so that refusals land beside them."""

    kind = forms.ChoiceField(
        choices=[("command", "Type a command"), ("workload", "Choose a workload")],
        widget=forms.RadioSelect,
        required=False,
    )
    command = forms.CharField(required=False, strip=False, max_length=200_000, widget=forms.Textarea(attrs={"rows": 3}))
    workload = forms.ChoiceField(required=False)
    name = forms.CharField(required=False, max_length=200)
    cwd = forms.CharField(required=False, max_length=1000, label="Working directory")
    setup = forms.CharField(required=False, max_length=10_000, label="Set-up line")
    workers = forms.IntegerField(required=False, min_value=1, max_value=MOST_WORKERS)
    gpu = forms.ChoiceField(
        choices=[("none", "No device"), ("one", "One device")],
        widget=forms.RadioSelect,
        required=False,
        label="Device",
    )
    exclusive = forms.ChoiceField(
        choices=[("no", "Share"), ("device", "The device alone"), ("machine", "The whole machine alone")],
        required=False,
        label="Sharing",
    )
    device = forms.ChoiceField(required=False, label="Which device")
    node = forms.ChoiceField(required=False, label="Which node")
    declared_ram = Amount(required=False, label="RAM, your guess")
    declared_vram = Amount(required=False, label="Device memory, your guess")
    time_limit_s = TimeLimit(required=False, max_length=40, label="Time limit")
    priority = forms.IntegerField(required=False, min_value=-MOST_PRIORITY, max_value=MOST_PRIORITY)
    environment = forms.CharField(
        required=False, strip=False, max_length=100_000, widget=forms.Textarea(attrs={"rows": 2})
    )
    note = forms.CharField(required=False, max_length=500)
    form_key = forms.CharField(max_length=64, widget=forms.HiddenInput)

    def __init__(
        self,
        *args: Any,
        choices: Choices,
        workload: Workload | None = None,
        may_raise: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.fields["workload"].choices = [("", "choose …"), *choices.workloads]
        self.fields["device"].choices = [("", "any"), *choices.devices]
        self.fields["node"].choices = [("", "any"), *choices.nodes]
        self.fields["cwd"].widget.attrs["list"] = "directories"
        if not choices.workloads:
            del self.fields["workload"], self.fields["kind"]
        if not choices.nodes:
            del self.fields["node"]
        if not may_raise:
            self.fields["priority"].max_value = 0
            self.fields["priority"].help_text = "0 or below; operators may raise it."
        self.chosen = workload
        for parameter in workload.parameters if workload else []:
            self.fields[PARAM + parameter["name"]] = forms.CharField(
                required=False,
                label=parameter["name"],
                initial=parameter.get("default", ""),
                help_text=parameter.get("help", ""),
                max_length=2000,
            )
        for name, field in self.fields.items():
            field.widget.attrs.setdefault("autocomplete", "off")
            if name not in ("command", "environment", "form_key"):
                field.widget.attrs.setdefault("spellcheck", "false")

    @property
    def params(self) -> list[Any]:
        """Return the bound fields of the chosen workload's parameters."""
        return [self[name] for name in self.fields if name.startswith(PARAM)]

    def clean_environment(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for line in self.cleaned_data["environment"].splitlines():
            if not line.strip():
                continue
            name, sign, value = line.partition("=")
            if not sign:
                raise forms.ValidationError(f"{line.strip()[:60]!r} has no =. Write one NAME=value a line.")
            found[name.strip().removeprefix("export ").strip()] = value
        return found

    def submission(self) -> Submission:
        """Return what was asked for; call it on a valid form."""
        data = self.cleaned_data
        by_workload = data.get("kind") == "workload" and bool(data.get("workload"))
        command = "" if by_workload else data["command"].replace("\r\n", "\n").strip("\n")
        named = data["name"].strip() or data.get("workload", "") if by_workload else data["name"].strip()
        return Submission(
            name=named or first_line(command),
            note=data["note"],
            command=command,
            workload=data.get("workload", "") if by_workload else "",
            params={name[len(PARAM) :]: data[name] for name in data if name.startswith(PARAM)} if by_workload else {},
            setup=data["setup"].strip(),
            cwd=data["cwd"].strip(),
            environment=data["environment"],
            workers=data["workers"] or 1,
            gpu=data["gpu"] or "none",
            exclusive=data["exclusive"] or "no",
            node=data.get("node", ""),
            device=data["device"] if data["gpu"] == "one" else "",
            declared_ram=data["declared_ram"],
            declared_vram=data["declared_vram"] if data["gpu"] == "one" else None,
            time_limit_s=data["time_limit_s"],
            priority=data["priority"] or 0,
        )

    def refuse(self, fields: Mapping[str, str], sentence: str) -> None:
        """Put a service's refusal beside the fields it names, the rest above the form."""
        beside = {name: text for name, text in fields.items() if name in self.fields}
        for name, text in beside.items():
            self.add_error(name, text)
        if len(beside) < len(fields) or not fields:
            self.add_error(None, sentence)


def first_line(command: str) -> str:
    """Return a name for a job that was given none: the start of its command."""
    line = next((line.strip() for line in command.splitlines() if line.strip()), "")
    return line if len(line) <= 60 else f"{line[:59]}…"


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
        return {**stored, **{n: v for n, v in seen.items() if n in stored}} if isinstance(seen, dict) else stored

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
    declared = Amount(label="Declared capacity")
    exclusive_only = forms.BooleanField(required=False, label="Exclusive jobs only")

    def __init__(self, *args: Any, device: Device, **options: Any) -> None:
        super().__init__(*args, row=device, prefix=f"device-{device.pk}", **options)


class NodeForm(Declaration):
    """A node's declaration."""

    amount = "ram_declared"
    ram_declared = Amount(required=False, label="RAM that jobs may take", help_text="Empty: all there is.")

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
