"""The part of a submission that says which devices, how many of them, with whom, and what is reserved of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from placement.domain.submitting.group_terms import MOST_DEVICES
from placement.domain.submitting.usual_placement import AMOUNTS
from placement.domain.submitting.workload_text import amount_text
from placement.forms.fields import Amount
from placement.selectors.submit import Choices


class PlacementForm(forms.Form):
    """Fields named as in Submission; ``uneven`` is what it calls ``even``, turned round. What does not apply is left.

    So a number of devices that was typed for a group is nothing once one device is chosen, as the page hides it.
    """

    gpu = forms.ChoiceField(
        choices=[("none", "No device"), ("one", "One device"), ("group", "A group")],
        widget=forms.RadioSelect,
        required=False,
        label="Device",
    )
    min_devices = forms.IntegerField(required=False, min_value=1, max_value=MOST_DEVICES, label="Devices, at least")
    max_devices = forms.IntegerField(required=False, min_value=1, max_value=MOST_DEVICES, label="Devices, at most")
    prefer_max = forms.BooleanField(required=False, label="As many as fit, where a group would take as few")
    memory = forms.ChoiceField(
        choices=[("auto", "Let Tidegate decide"), ("exact", "Reserve exactly")],
        widget=forms.RadioSelect,
        required=False,
        label="Device memory",
    )
    per_device_memory = Amount(required=False, label="Of each device")
    group_memory = Amount(required=False, label="Of the group together")
    uneven = forms.BooleanField(required=False, label="Divide it by the room of each device, not evenly")
    device = forms.ChoiceField(required=False, label="Which device")
    node = forms.ChoiceField(required=False, label="Which node")
    device_kind = forms.ChoiceField(required=False, label="Kind of device")
    backend = forms.ChoiceField(required=False, label="Backend")
    exclusive = forms.ChoiceField(
        choices=[("no", "Share"), ("device", "The device alone"), ("machine", "The whole machine alone")],
        required=False,
        label="Sharing",
    )

    def offer(self, choices: Choices, said: Mapping[str, Any]) -> None:
        """Offer what is declared, and what a workload says; where there is nothing to choose from, nothing is asked."""
        known = {"device": choices.devices, "node": choices.nodes}
        for name, offered in (known | {"device_kind": choices.kinds, "backend": choices.backends}).items():
            word = str(said.get(name) or "")
            if word and word not in dict(offered):
                offered = (*offered, (word, word))
            if offered or name == "device":
                self.fields[name].choices = [("", "any"), *offered]  # type: ignore[attr-defined]
            else:
                del self.fields[name]

    @property
    def placement_given(self) -> bool:
        """Return whether a field that is folded away says something, so that the page shows it."""
        usual = {"exclusive": ("no", "", None), "memory": ("auto", "", None)}
        names = ("device", "node", "device_kind", "backend", "exclusive", "memory", "uneven")
        return any(
            name in self.fields and self[name].value() not in usual.get(name, ("", None, False)) for name in names
        )

    def placement(self) -> dict[str, Any]:
        """Return these fields of a submission; call it on a valid form."""
        data = self.cleaned_data
        gpu = data["gpu"] or "none"
        said = {"gpu": gpu, "exclusive": data["exclusive"] or "no", "node": data.get("node", "")}
        if gpu == "none":
            return said
        said |= {name: data.get(name, "") for name in ("device_kind", "backend")}
        if gpu == "group":
            least = data["min_devices"] or 1
            most = data["max_devices"] or least
            said |= {"min_devices": least, "max_devices": most, "prefer_max": data["prefer_max"]}
        else:
            said["device"] = data["device"]
        if data["memory"] != "exact":
            return said
        said |= {"memory": "exact", "per_device_memory": data["per_device_memory"]}
        if gpu == "group":
            said |= {"group_memory": data["group_memory"], "even": not data["uneven"]}
        return said


def shown(gpu: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a workload says of devices beside ``gpu`` as the form's fields show it."""
    least = said.get("min_devices", 1) if gpu == "group" else 2
    return {
        "min_devices": str(least),
        "max_devices": str(said.get("max_devices", 1)) if gpu == "group" else "",
        "prefer_max": bool(said.get("prefer_max")),
        "memory": said.get("memory", "auto"),
        **{name: amount_text(said[name]) if name in said else "" for name in AMOUNTS},
        "uneven": not said.get("even", True),
        **{name: said.get(name, "") for name in ("device", "node", "device_kind", "backend")},
    }
