"""The form of a named workload, and the TOML text that can fill it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import forms
from django.http import QueryDict

from placement.domain.containing.containers import ENGINES
from placement.domain.ending import retries
from placement.domain.ending.watch_policy import WORDS, Policy
from placement.domain.submitting import terms, workloads
from placement.domain.submitting.submission import MOST_WORKERS
from placement.domain.submitting.usual_placement import AMOUNTS
from placement.domain.submitting.workload_text import amount_text
from placement.domain.submitting.workloads import Definition
from placement.forms import placement
from placement.forms.fields import Amount, TimeLimit, seconds_text
from placement.forms.placement import PlacementForm
from placement.forms.terms import Parsed, Wait
from placement.selectors.submit import Choices

SPARE = 2  # empty rows for further parameters
MOST_ROWS = 60
LARGEST_FILE = 1 << 20  # bytes of a TOML file
_COLUMNS = ("name", "default", "matters", "help")


class WorkloadForm(PlacementForm):
    """One definition. Fields are named as in the TOML text, so that refusals land beside them."""

    name = forms.CharField(max_length=100, help_text="People choose it by this; what is learned stands under it.")
    summary = forms.CharField(required=False, max_length=200, help_text="One line that says what it does.")
    command = forms.CharField(
        strip=False,
        max_length=100_000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="{lr} stands for the parameter lr. Values are quoted when they are put in.",
    )
    setup = forms.CharField(required=False, max_length=10_000, label="Set-up line", help_text="Run before the command.")
    cwd = forms.CharField(required=False, max_length=1000, label="Working directory")
    image = forms.CharField(
        required=False, max_length=300, label="Container image", help_text="Empty: it runs in no container."
    )
    engine = forms.ChoiceField(
        choices=[("", "the first that the node has"), *((e, e) for e in ENGINES)], required=False, label="Run by"
    )
    files = forms.CharField(
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 2}),
        label="Source files",
        help_text="One a line. When one of them changes, what was learned counts as older.",
    )
    workers = forms.IntegerField(min_value=1, max_value=MOST_WORKERS, label="Workers, usually")
    time_limit_s = TimeLimit(required=False, max_length=40, label="Time limit", help_text="2 h, 90 min or 1:30:00.")
    hint_vram = Amount(required=False, label="Device memory, your preset")
    hint_ram = Amount(required=False, label="RAM, your preset")
    shape_varies = forms.BooleanField(
        required=False,
        label="Its memory comes and goes",
        help_text="Memory that looks settled is then not given to others.",
    )
    reserves = forms.BooleanField(
        required=False,
        label="Reserves inside its run",
        help_text="It asks for more with import tidegate, and sees every device of its node.",
    )
    revoked_ends = forms.BooleanField(
        required=False,
        label="End it if it keeps what was taken back",
        help_text="A job that still uses memory of a revoked lease when its time to leave is over.",
    )
    watch_policy = forms.ChoiceField(
        required=False,
        choices=[("", "as its node says"), *((policy.value, WORDS[policy]) for policy in Policy)],
        label="The watchdog may",
        help_text="What its node says is the least.",
    )
    retry_times = forms.IntegerField(
        required=False, min_value=0, max_value=retries.MOST_TIMES, label="Try again, times"
    )
    retry_on = Parsed(terms.parse_outcomes, nothing=(), label="Try again after", help_text="failed, lost; empty: all.")
    retry_wait_s = Wait(required=False, max_length=40, label="First wait", help_text="Doubles with each try.")
    retry_longest_s = Wait(required=False, max_length=40, label="Longest wait")
    keep = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)
    environment = forms.CharField(
        required=False, strip=False, max_length=100_000, widget=forms.Textarea(attrs={"rows": 2}),
        label="Further or replaced variables", help_text="NAME=value, one a line. Kept sealed, shown to nobody.",
    )  # fmt: skip
    seen = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)
    rows = forms.IntegerField(min_value=1, max_value=MOST_ROWS, widget=forms.HiddenInput)

    def __init__(
        self, *args: Any, choices: Choices, variables: Sequence[str] = (), editing: str = "", **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.offer(choices, {name: self[name].value() for name in ("device", "node", "device_kind", "backend")})
        self.editing = editing
        self.fields["keep"].choices = [(name, name) for name in variables]
        if editing:
            self.fields["name"].widget.attrs["readonly"] = True
        count = _count(self.data.get("rows") if self.is_bound else self.initial.get("rows"))
        for n in range(count):
            at = {"aria-label": f"Parameter {n + 1}: "}
            self.fields[f"p{n}_name"] = forms.CharField(required=False, max_length=100, label="Name")
            self.fields[f"p{n}_default"] = forms.CharField(required=False, max_length=2000, label="Usual value")
            self.fields[f"p{n}_matters"] = forms.BooleanField(required=False, label="Matters to memory")
            self.fields[f"p{n}_help"] = forms.CharField(required=False, max_length=300, label="What it is")
            for column in _COLUMNS:
                field = self.fields[f"p{n}_{column}"]
                field.widget.attrs["aria-label"] = at["aria-label"] + str(field.label).lower()
        for field in self.fields.values():
            field.widget.attrs.setdefault("autocomplete", "off")
            field.widget.attrs.setdefault("spellcheck", "false")

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """Return the rows of parameters as bound fields."""
        count = sum(name.endswith("_default") for name in self.fields)
        return [{column: self[f"p{n}_{column}"] for column in _COLUMNS} for n in range(count)]

    @property
    def keeps(self) -> list[tuple[str, bool]]:
        """Return the names of sealed variables, and whether each stays."""
        chosen = self["keep"].value() or []
        return [(name, name in chosen) for name, _ in self.fields["keep"].choices]

    @property
    def more_given(self) -> bool:
        """Return whether a field behind "Container, limits, retries and variables" holds something or is wrong."""
        names = ("image", "engine", "time_limit_s", "shape_varies", "reserves", "watch_policy", "retry_times")
        names = (*names, "revoked_ends", "retry_on", "environment")
        return any(self[name].value() or name in self.errors for name in names) or bool(self.keeps)

    def clean_environment(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in self.cleaned_data["environment"].splitlines():
            if not line.strip():
                continue
            name, sign, value = line.partition("=")
            if not sign:
                raise forms.ValidationError("A line has no =. Write one NAME=value a line.")
            found[name.strip().removeprefix("export ").strip()] = value
        return found

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        names = [data.get(f"p{n}_name", "") for n in range(len(self.parameters))]
        doubled = sorted({name for name in names if name and names.count(name) > 1})
        if doubled:
            last = max(n for n, name in enumerate(names) if name in doubled)
            self.add_error(f"p{last}_name", f"{doubled[0]} stands in two rows; leave one of them empty.")
        return data

    def table(self) -> dict[str, Any]:
        """Return the definition as a TOML text would have it; call it on a valid form."""
        data = self.cleaned_data
        table: dict[str, Any] = {n: data[n] for n in ("name", "summary", "setup", "cwd", "workers")}
        said = {n: value for n, value in self.placement().items() if value is not None}
        table |= said | {n: f"{said[n]} B" for n in AMOUNTS if n in said}
        table["command"] = data["command"].replace("\r\n", "\n").strip("\n")
        table["files"] = [line.strip() for line in data["files"].splitlines() if line.strip()]
        table |= {n: data[n].strip() for n in ("image", "engine")}
        table |= {n: data[n] for n in ("shape_varies", "reserves", "revoked_ends", "watch_policy")}
        if data["time_limit_s"] is not None:
            table["time_limit_s"] = data["time_limit_s"]
        for name in ("hint_ram", "hint_vram"):
            if data[name] is not None:
                table[name] = f"{data[name]} B"
        table["parameters"] = {
            data[f"p{n}_name"]: {
                "default": data[f"p{n}_default"], "matters": data[f"p{n}_matters"], "help": data[f"p{n}_help"],
            }
            for n in range(len(self.parameters))
            if data[f"p{n}_name"]
        }  # fmt: skip
        if data["retry_times"]:
            waits = {n: data[f"retry_{n}"] for n in ("wait_s", "longest_s") if data[f"retry_{n}"] is not None}
            table["retry"] = {"times": data["retry_times"], "on": list(data["retry_on"]), **waits}
        table["environment"] = data["environment"]
        return table

    def refuse(self, fields: Mapping[str, str], sentence: str) -> None:
        """Put a refusal beside the fields that it names, the rest above the form."""
        places = {"retry": "retry_times", "parameters": "p0_name", "even": "uneven"}
        named = {places.get(name, name): text for name, text in fields.items()}
        for name, text in named.items():
            self.add_error(name if name in self.fields else None, text)
        if not named:
            self.add_error(None, sentence)


class TomlForm(forms.Form):
    """A text or a file that fills the form."""

    toml = forms.CharField(
        required=False, strip=False, max_length=LARGEST_FILE, widget=forms.Textarea(attrs={"rows": 6}), label="Text"
    )
    file = forms.FileField(required=False, max_length=200, label="Or a file")

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        upload = data.get("file")
        if upload is not None:
            if upload.size > LARGEST_FILE:
                raise forms.ValidationError(f"The file has {upload.size:,} bytes; a definition has 1 MiB at most.")
            try:
                data["toml"] = upload.read().decode()
            except UnicodeDecodeError as error:
                raise forms.ValidationError(f"{upload.name} is no text in UTF-8.") from error
        if not data.get("toml", "").strip():
            raise forms.ValidationError("Paste a definition, or choose a file that holds one.")
        return data


def fresh(**given: Any) -> dict[str, Any]:
    """Return what the form of a new workload shows."""
    return {"gpu": "none", "exclusive": "no", "workers": 1, **placement.shown("", {}), **_rows(()), **given}


def of_definition(definition: Definition) -> dict[str, Any]:
    """Return what the form of this definition shows."""
    policy = retries.from_json(definition.retry_policy)
    shown = {n: getattr(definition, n) for n in ("name", "summary", "command", "setup", "cwd", "gpu", "exclusive")}
    return {
        **shown,
        **placement.shown(definition.gpu, definition.placement),
        "workers": definition.workers,
        "shape_varies": definition.shape_varies,
        "reserves": definition.reserves,
        "revoked_ends": definition.revoked_ends,
        "watch_policy": definition.watch_policy,
        "image": definition.image,
        "engine": definition.engine,
        "files": "\n".join(definition.files),
        "time_limit_s": seconds_text(definition.time_limit_s),
        **{n: "" if (a := getattr(definition, n)) is None else amount_text(a) for n in ("hint_ram", "hint_vram")},
        **({} if policy is None else _retries(policy)),
        "environment": "\n".join(f"{name}={value}" for name, value in definition.environment.items()),
        **_rows(definition.parameters),
    }


def with_rows(data: QueryDict) -> tuple[QueryDict, list[str]]:
    """Return what was sent with a row for each {parameter} of the command, and the names of those that it lacked."""
    more = data.copy()
    count = _count(data.get("rows"))
    named = {data.get(f"p{n}_name", "").strip() for n in range(count)}
    lacking = [name for name in workloads.placeholders(data.get("command", "")) if name not in named]
    free = [n for n in range(count) if not data.get(f"p{n}_name", "").strip()]
    for name in lacking:
        if not free:
            if count == MOST_ROWS:
                break
            free, count = [count], count + 1
        more[f"p{free[0]}_name"], more[f"p{free[0]}_matters"] = name, "on"
        free.pop(0)
    more["rows"] = str(count)
    return more, lacking


def unsent(data: QueryDict, *, further: int = 0) -> dict[str, Any]:
    """Return what was typed as what an untouched form shows, with further empty rows."""
    shown: dict[str, Any] = {name: data.get(name) for name in data}
    shown["keep"] = data.getlist("keep")
    count = _count(data.get("rows"))
    shown["rows"] = min(MOST_ROWS, count + further)
    return {**{f"p{n}_matters": True for n in range(count, shown["rows"])}, **shown}


def _rows(parameters: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    count = 0
    for n, parameter in enumerate(parameters):
        count = n + 1
        shown |= {f"p{n}_{column}": parameter.get(column, "") for column in ("name", "default", "help")}
        shown[f"p{n}_matters"] = parameter.get("matters", True)
    spare = {f"p{n}_matters": True for n in range(count, count + SPARE)}
    return {**shown, **spare, "rows": min(MOST_ROWS, count + SPARE)}


def _retries(policy: retries.Policy) -> dict[str, Any]:
    return {
        "retry_times": policy.times,
        "retry_on": ", ".join(outcome.value for outcome in policy.on),
        "retry_wait_s": seconds_text(policy.wait_s) if policy.wait_s else "0",
        "retry_longest_s": seconds_text(policy.longest_s) if policy.longest_s else "0",
    }


def _count(text: object) -> int:
    shown = str(text or SPARE)
    return max(1, min(MOST_ROWS, int(shown))) if shown.isascii() and shown.isdecimal() and len(shown) < 4 else SPARE
