"""What an admin may declare of a device or node, and what a new declaration does to those who are there."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from calibration.domain.resources import MOST, gib
from placement.domain.declaring import by_hand as rules
from placement.domain.ending import watch_policy
from placement.domain.world import devices

_ACCELERATOR = devices.Device(devices.Kind.GPU, (devices.Backend.CUDA,), 0, 1)
DEVICE_FIELDS = ("name", "declared", "exclusive_only", "draining", "one_pool")
NODE_FIELDS = ("ram_declared", "ram_high", "ram_low", "draining", "watch_policy")


def device_problems(
    changes: Mapping[str, object],
    *,
    label: str,
    total: int | None,
    taken: frozenset[str],
    own_backend: str = "CUDA",
    by_hand: str = "",
    numbers: Collection[tuple[str, int]] = (),
) -> dict[str, str]:
    """Return a sentence per field that cannot be taken.

    ``total`` is what the device reports (None: not readable now); ``taken`` are the other devices' names, ``numbers``
    their kinds and ids. ``by_hand`` is the kind of one that an admin declared, "" of one that was found.
    """
    if by_hand:
        found = _unknown(changes, tuple(n for n in (*DEVICE_FIELDS, *rules.FIELDS) if n not in ("kind", "one_pool")))
        found |= rules.problems(changes, numbers=numbers, kind=by_hand)
    else:
        found = _unknown(changes, (*DEVICE_FIELDS, "backends"))
        if "backends" in changes:
            found |= rules.further(changes["backends"], own_backend)
    if "name" in changes:
        found |= _name(changes["name"], taken)
    if "declared" in changes:
        found |= _amount("declared", changes["declared"], total, label, _ACCELERATOR)
    if "exclusive_only" in changes:
        found |= _by_the_rules("exclusive_only", _ACCELERATOR, exclusive_only=changes["exclusive_only"])
    return found | _switches(changes)


def new_problems(
    said: Mapping[str, object], *, taken: frozenset[str], numbers: Collection[tuple[str, int]]
) -> dict[str, str]:
    """Return a sentence per field with which a device cannot be declared by hand; arguments as in device_problems."""
    found = _unknown(said, (*rules.FIELDS, "name", "declared", "exclusive_only"))
    found |= rules.problems(said, numbers=numbers)
    kind = rules.kind_of(said.get("kind"))
    if kind is devices.Kind.CPU or "kind" in found:
        return found
    like = replace(_ACCELERATOR, kind=kind)
    found |= _name(said.get("name", ""), taken) | _amount("declared", said.get("declared"), None, "", like)
    return found | _by_the_rules("exclusive_only", like, exclusive_only=said.get("exclusive_only", False))


def node_problems(
    changes: Mapping[str, object], *, label: str, total: int | None, marks: tuple[object, object]
) -> dict[str, str]:
    """Return a sentence per wrong field; ``marks`` are the high and low share after the change."""
    found = _unknown(changes, NODE_FIELDS)
    if changes.get("ram_declared") is not None:
        found |= _amount("ram_declared", changes["ram_declared"], total, label, devices.Device())
    for name, share in zip(("ram_high", "ram_low"), marks, strict=True):
        if share is not None and not _is_share(share):
            found[name] = "It must be a share above 0 and at most 1, such as 0.9; empty means the knob's."
    if changes.get("watch_policy", "") not in ("", *watch_policy.CHOICES):
        found["watch_policy"] = f"It is one of {', '.join(watch_policy.CHOICES)}; empty means the knob's."
    high, low = marks
    if not found and (high is None) != (low is None):
        found["ram_low"] = "Set both marks, or leave both empty."
    elif not found and isinstance(high, float | int) and isinstance(low, float | int) and low >= high:
        found["ram_low"] = f"The low mark {low:g} must lie below the high mark {high:g}."
    return found | _switches(changes)


def device_effects(
    changes: Mapping[str, object], *, before: int, leased: int, jobs: int, alone: bool = False
) -> list[str]:
    """Return what an edit does to the ``jobs`` that hold ``leased`` bytes, one ``alone``, before it is saved."""
    held = f"{jobs} {'job holds' if jobs == 1 else 'jobs hold'} {gib(leased)} there"
    said = []
    declared = changes.get("declared")
    if isinstance(declared, int) and declared != before:
        said.append(_room(declared, before, leased, held if jobs else "", jobs, alone))
    if changes.get("exclusive_only") is True:
        stay = f"{held}; {_go_on(jobs)}. " if jobs else ""
        said.append(f"{stay}One job at a time from now on.")
    if changes.get("exclusive_only") is False:
        said.append("Jobs may share it from now on.")
    if changes.get("one_pool") is True:
        said.append("It has no memory of its own any more: what jobs need of it comes out of the machine's RAM, once.")
    if changes.get("one_pool") is False:
        said.append("It counts as a device with memory of its own again, unless it is found to have none.")
    if changes.get("any_gpu") is True:
        said.append("Jobs that ask for any GPU may be put on it, though nothing measures what they use.")
    if changes.get("any_gpu") is False:
        said.append("Only jobs that name its kind or backend, or it, are put on it from now on.")
    if isinstance(words := changes.get("backends"), list | tuple):
        said.append(f"It matches requests for {' or '.join(str(word).upper() for word in words)}.")
    if "index" in changes:
        said.append(f"Programs ask for it as number {changes['index']} from now on.")
    if changes.get("draining") is True:
        stay = f"; {held} and {_go_on(jobs)}" if jobs else ""
        said.append(f"Nothing new starts there{stay}.")
    if changes.get("draining") is False:
        said.append("Jobs may start there again.")
    return said


def policy_effects(changes: Mapping[str, object]) -> list[str]:
    """Return what another policy of the watchdog means for those who run there."""
    chosen = changes.get("watch_policy")
    if not isinstance(chosen, str):
        return []
    if not chosen:
        return ["The watchdog does there what the knob watch_policy says."]
    told = {
        watch_policy.Policy.WARN: "The watchdog stops nobody there, not even when memory runs out; it says so.",
        watch_policy.Policy.RISK: "The watchdog stops whoever is above its charge when memory runs out there.",
        watch_policy.Policy.CAP: "The watchdog stops a job there that stays above its cap, those that run now, too.",
    }
    return [told[watch_policy.Policy(chosen)]]


def _room(declared: int, before: int, leased: int, held: str, jobs: int, alone: bool) -> str:
    if leased > declared:
        return (
            f"{held}; {_go_on(jobs)}; {gib(leased - declared)} more than declared: nothing new starts "
            f"until {'it ends' if jobs == 1 else 'they end'}."
        )
    left = f"{gib(declared - leased)} of {gib(declared, before)} stays for others"
    if alone:
        left = f"nothing of {gib(declared, before)} stays for others while one has it alone"
    if held:
        return f"{held}; {_go_on(jobs)}; {left}."
    return f"{gib(declared, before)} instead of {gib(before, declared)}; no job holds anything there."


def _go_on(jobs: int) -> str:
    return "it goes on" if jobs == 1 else "they go on"


def _unknown(changes: Mapping[str, object], allowed: tuple[str, ...]) -> dict[str, str]:
    return {str(name): "This cannot be edited here." for name in changes if name not in allowed}


def _switches(changes: Mapping[str, object]) -> dict[str, str]:
    found = {}
    for name in ("draining", "one_pool"):
        try:
            devices.switch(name, changes.get(name, False))
        except TypeError as error:
            found[name] = str(error)
    return found


def _by_the_rules(field: str, like: devices.Device, **value: Any) -> dict[str, str]:
    """Return why a device cannot be declared with a value, in the words of the rules for declared devices."""
    try:
        replace(like, **value)
    except (TypeError, ValueError) as error:
        return {field: str(error)}
    return {}


def _name(name: object, taken: frozenset[str]) -> dict[str, str]:
    if not isinstance(name, str) or not name.strip() or len(name) > 40:
        return {"name": "A name has 1 to 40 characters."}
    if any(unicodedata.category(c)[0] == "C" for c in name):
        return {"name": "A name must not hold control characters."}
    if folded(name) in {folded(other) for other in taken}:
        return {"name": f"Another device of this node is called {name.strip()}."}
    return {}


def folded(name: str) -> str:
    """Return a name as it is compared: whoever types it knows neither its case nor which blanks it has."""
    return " ".join(name.split()).casefold()


def _amount(field: str, amount: object, total: int | None, label: str, like: devices.Device) -> dict[str, str]:
    if amount is None and like.kind is not devices.Kind.CPU:
        return {field: "Say how much memory jobs may take of it, such as 16 GiB."}
    if wrong := _by_the_rules(field, like, capacity=amount):
        return wrong
    assert isinstance(amount, int)
    if amount > MOST:
        return {field: f"{gib(amount)} are more than any machine has."}
    if total is not None and amount > total:
        return {field: f"{label} has {gib(total, amount)}; {gib(amount, total)} cannot be declared."}
    return {}


def _is_share(share: object) -> bool:
    return isinstance(share, int | float) and not isinstance(share, bool) and 0 < share <= 1
