"""Turn a knob: checked against the table, on record, in force at the next decision."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from calibration.domain.errors import BadKnob
from calibration.domain.knobs import KNOBS
from calibration.domain.knobs import Knobs as InstrumentKnobs
from placement.domain.errors import Refused
from placement.domain.knobs import TABLE, KnobError, Knobs
from placement.models import KnobOverride
from placement.services import audit, cycle_row
from placement.snapshots import knobs_now

NAMES = frozenset((*(knob.name for knob in TABLE), *(knob.name for knob in KNOBS)))


def turn(user: Any, name: str, text: str | None) -> str:
    """Set a knob from text, or put it back to its default with None; return the sentence that says so."""
    if name not in NAMES:
        raise Refused(f"There is no knob {name!r}. docs/knobs.md lists them.")
    before = KnobOverride.objects.filter(name=name).values_list("value", flat=True).first()
    with cycle_row.changing():
        value = _checked(name, text)
        if value is None:
            KnobOverride.objects.filter(name=name).delete()
        else:
            KnobOverride.objects.update_or_create(name=name, defaults={"value": value, "who": audit.name_of(user)})
        audit.record(user, "turn_knob", f"knob {name}", before=before, after=value)
    return f"{name} is back at its default." if value is None else f"{name} is {value} from the next decision on."


def _checked(name: str, text: str | None) -> Any:
    """Return the value that stands beside the others in force, None for the default. Raise Refused with a sentence."""
    value: Any = None
    if text is not None:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
    ours, _ = knobs_now()
    try:
        if name in Knobs.__dataclass_fields__:
            given = getattr(Knobs(), name) if text is None else value
            taken = getattr(Knobs.with_overrides({**asdict(ours), name: given}), name)
            value = taken if isinstance(value, str) else value  # 1_000, or other scripts' digits
        if name in InstrumentKnobs.__dataclass_fields__ and text is not None:
            InstrumentKnobs.defaults().replace(**{name: value})
    except (KnobError, BadKnob) as error:
        raise Refused(str(error)) from error
    return value
