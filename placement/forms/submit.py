"""The form of one submission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from placement.domain.containing.containers import ENGINES
from placement.domain.submitting.submission import MOST_PRIORITY, MOST_WORKERS, Submission
from placement.forms.fields import Amount, TimeLimit
from placement.forms.placement import PlacementForm
from placement.forms.terms import TermsForm
from placement.models import Workload
from placement.selectors.submit import Choices

PARAM = "param_"


class SubmitForm(PlacementForm, TermsForm):
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
    reserves = forms.BooleanField(required=False, label="Reserves inside its run")
    declared_ram = Amount(required=False, label="RAM, your guess")
    declared_vram = Amount(required=False, label="Device memory, your guess")
    time_limit_s = TimeLimit(required=False, max_length=40, label="Time limit")
    priority = forms.IntegerField(required=False, min_value=-MOST_PRIORITY, max_value=MOST_PRIORITY)
    environment = forms.CharField(
        required=False, strip=False, max_length=100_000, widget=forms.Textarea(attrs={"rows": 2})
    )
    image = forms.CharField(required=False, max_length=300, label="Container image")
    engine = forms.ChoiceField(
        choices=[("", "the first that the node has"), *((e, e) for e in ENGINES)], required=False, label="Run by"
    )
    note = forms.CharField(required=False, max_length=500)
    kept_from = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput)
    keep = forms.BooleanField(required=False, label="Keep its variables")
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
        self.offer(choices, (workload.placement if workload else None) or {})
        self.fields["cwd"].widget.attrs["list"] = "directories"
        if not choices.workloads:
            del self.fields["workload"], self.fields["kind"]
        if not may_raise:
            self.fields["priority"].max_value = 0
            self.fields["priority"].help_text = "0 or below; operators may raise it."
        if not self["kept_from"].value():
            del self.fields["kept_from"], self.fields["keep"]
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

    @property
    def more_given(self) -> bool:
        """Return whether a field that is folded away holds something, so that the page shows it."""
        usual = ("", None, 0, "0", False)
        names = ("declared_ram", "declared_vram", "name", "priority", "note", "environment", "reserves")
        return any(name in self.fields and self[name].value() not in usual for name in names)

    @property
    def container_given(self) -> bool:
        """Return whether it is to run in a container, or what says so is wrong."""
        return any(self[name].value() or name in self.errors for name in ("image", "engine"))

    @property
    def variables_from(self) -> int | None:
        """Return the job whose variables are to be kept; call it on a valid form."""
        return self.cleaned_data.get("kept_from") if self.cleaned_data.get("keep") else None

    def submission(self, kept: Mapping[str, str] | None = None) -> Submission:
        """Return what was asked for, with kept variables behind those that were typed; call it on a valid form."""
        data, asked = self.cleaned_data, self.placement()
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
            environment={**(kept or {}), **data["environment"]},
            workers=data["workers"] or 1,
            reserves=data["reserves"],
            declared_ram=data["declared_ram"],
            declared_vram=None if asked["gpu"] == "none" or "memory" in asked else data["declared_vram"],
            time_limit_s=data["time_limit_s"],
            priority=data["priority"] or 0,
            image=data["image"].strip(),
            engine=data["engine"],
            **asked,
            **self.terms(),
        )

    def refuse(self, fields: Mapping[str, str], sentence: str) -> None:
        """Put a service's refusal beside the fields it names, the rest above the form."""
        named = {"uneven" if name == "even" else name: text for name, text in fields.items()}
        beside = {name: text for name, text in named.items() if name in self.fields}
        for name, text in beside.items():
            self.add_error(name, text)
        if len(beside) < len(fields) or not fields:
            self.add_error(None, sentence)


def first_line(command: str) -> str:
    """Return a name for a job that was given none: the start of its command."""
    line = next((line.strip() for line in command.splitlines() if line.strip()), "")
    return line if len(line) <= 60 else f"{line[:59]}…"
