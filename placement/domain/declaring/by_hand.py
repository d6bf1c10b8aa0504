"""What an admin may say of a device that no probe found, and which further backends of one that a probe did."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from calibration.domain.resources import gib
from placement.domain.containing.visible import Seen, masks_of
from placement.domain.world import devices
from placement.domain.world.devices import Backend, Kind

FIELDS = ("kind", "backends", "index", "any_gpu", "driver_number")
"""What is said of such a device besides what every declaration has; words in any case, ``index`` the number typed."""
PREFIX = "HAND-"  # of their UUIDs
MOST_NUMBER = 2**31 - 1
_LIKE = devices.Device(Kind.GPU, (Backend.CUDA,), 0, 1)


def kind_of(word: object) -> Any:
    """Return the kind that a word names, the word itself where it names none: the rules refuse it."""
    return _member(Kind, word)


def problems(said: Mapping[str, object], *, numbers: Collection[tuple[str, int]], kind: str = "") -> dict[str, str]:
    """Return a sentence per wrong field of FIELDS that is said; ``numbers`` are (kind, index) of the node's others.

    Without ``kind`` it is a new device: what it needs has to be said.
    """
    found: dict[str, str] = {}
    new = not kind
    own = kind_of(said.get("kind", kind))
    if new and (wrong := _refused(kind=own)):
        return {"kind": wrong}
    if own is Kind.CPU:
        return _cpu(said)
    backends = _backends(said.get("backends", ())) if new or "backends" in said else _LIKE.backends
    if backends == () or backends is None:
        found["backends"] = f"Say at least one of {', '.join(Backend).upper()}: requests find it by them."
    elif wrong := _refused(kind=own, backends=backends):
        found["backends"] = wrong
    index = said.get("index") if new or "index" in said else _LIKE.id
    if index is None:
        found["index"] = "Say its number, 0 or more: what people type for it."
    elif wrong := _refused(kind=own, id=index) or _too_large(index):
        found["index"] = wrong
    elif (new or "index" in said) and (own.value.upper(), index) in numbers:
        twice = devices.Device(own, _LIKE.backends, int(str(index)), 1)
        found["index"] = _sentence(lambda: devices.declared((twice, twice)))
    if said.get("any_gpu") is True and own is not Kind.GPU:
        found["any_gpu"] = f"A {own.upper()} is no GPU: jobs that ask for any GPU are never put on it."
    elif wrong := _sentence(lambda: devices.switch("any_gpu", said.get("any_gpu", False))):
        found["any_gpu"] = wrong
    number = said.get("driver_number")
    if number is not None and (wrong := _refused(kind=own, id=number) or _too_large(number)):
        found["driver_number"] = wrong
    return found


def seen_twice(own: Seen, others: Sequence[Seen]) -> str:
    """Return why a job would see another device by this one's number; "" where none has it. UUIDs are names here."""
    for other in others:
        both = masks_of(own) & masks_of(other)
        if both and (own.kind, own.number) == (other.kind, other.number):
            return (
                f"{other.uuid} is number {own.number} of its driver ({', '.join(sorted(both))}) already: jobs here "
                "would be shown that device. Say this one's own number there."
            )
    return ""


def closed(own: Seen, declared: int, others: Sequence[tuple[Seen, int]]) -> str:
    """Return why nothing new starts on a device by hand: a probe found one with its driver's number; "" if none did.

    Each with its declared bytes. UUIDs are names here.
    """
    for other, found in others:
        if seen_twice(own, [other]):
            masks = ", ".join(sorted(masks_of(own) & masks_of(other)))
            return (
                f"{own.uuid} ({gib(declared)} by hand) and {other.uuid} ({gib(found)}, found on the machine) are both "
                f"number {own.number} of their driver ({masks}): a job on one would run on the other, unseen there. "
                f"Nothing new starts on {own.uuid}: an admin says its own number, or removes it."
            )
    return ""


def further(said: object, own: str) -> dict[str, str]:
    """Return what is wrong with the backends said of a device that a probe found, whose ``own`` stays among them."""
    backends = _backends(said)
    if backends != () and (wrong := _refused(kind=Kind.GPU, backends=backends)):
        return {"backends": wrong}
    if own.lower() not in backends:
        return {"backends": f"{own} is what its driver offers: it stays, and others can be said beside it."}
    return {}


def stored(words: Sequence[object], first: str = "") -> list[str]:
    """Return backends as rows keep them, one that a probe says (``first``) before the others."""
    named = [str(word).upper() for word in words]
    return [first, *(word for word in named if word != first)] if first else named


def _backends(words: object) -> Any:
    """Return the backends that words name; what names none stays as it is, and the rules refuse it."""
    return tuple(_member(Backend, word) for word in words) if isinstance(words, list | tuple) else words


def _cpu(said: Mapping[str, object]) -> dict[str, str]:
    """Return why a CPU cannot be declared: it has none of what a device has, and each node has its own already."""
    if words := said.get("backends"):
        return {"backends": _refused(kind=Kind.CPU, backends=_backends(words))}
    if (index := said.get("index")) is not None:
        return {"index": _refused(kind=Kind.CPU, id=index)}
    twice = _sentence(lambda: devices.declared((devices.Device(), devices.Device())))
    return {"kind": f"{twice} It is the node's RAM: say there how much of it jobs may take."}


def _member(kind: Any, word: object) -> Any:
    try:
        return kind(word.lower()) if isinstance(word, str) else word
    except ValueError:
        return word


def _refused(**fields: Any) -> str:
    """Return why a device with these fields cannot be declared, whatever else is said; "" where it can."""
    usual = {} if fields.get("kind") is Kind.CPU else {"backends": _LIKE.backends, "id": 0, "capacity": 1}
    return _sentence(lambda: devices.Device(**{**usual, **fields}))


def _sentence(act: Callable[[], object]) -> str:
    try:
        act()
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def _too_large(number: object) -> str:
    large = isinstance(number, int) and number > MOST_NUMBER
    return f"A number of a device is at most {MOST_NUMBER:,}." if large else ""
