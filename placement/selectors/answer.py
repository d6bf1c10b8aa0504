"""The gate's answer to a submission in one sentence: what it would get, what it waits for, or why it never starts."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from calibration.domain.resources import gib
from calibration.domain.samples import RAM
from placement.selectors.wording import listing, mapping, whole

_NEVER = re.compile(r"Can never start( where it asks to run)?[.:] ")


class Asked(Protocol):
    """What the gate said of a submission; ``decision`` as Job keeps it."""

    @property
    def decision(self) -> dict[str, Any]: ...
    @property
    def fits_now(self) -> bool: ...
    @property
    def headline(self) -> str: ...
    @property
    def infeasible(self) -> bool: ...


def of(seen: Asked, names: Mapping[str, str], unread: Collection[str] = ()) -> str:
    """Return "Would get 3.0 GiB on gpu0 and 3.0 GiB on gpu2", "Waits: …" or "Can never be granted: …".

    ``names`` of devices by UUID, ``unread`` those that nobody measures.
    """
    if seen.infeasible:
        found = _NEVER.match(seen.headline)
        where = " where it asks to run" if found and found[1] else ""
        why = seen.headline[found.end() :] if found else seen.headline
        return f"Can never be granted{where}: {why}"
    grant = mapping(seen.decision.get("grant"))
    if seen.fits_now and grant:
        return _gets(grant, names, unread)
    words = seen.headline
    return words if words.startswith("Waits ") else f"Waits: {words.replace('Needs ', 'needs ', 1)}"


def _gets(grant: Mapping[str, Any], names: Mapping[str, str], unread: Collection[str]) -> str:
    charges = mapping(grant.get("charges"))
    uuids = [str(uuid) for uuid in listing(grant.get("devices")) or filter(None, [grant.get("device")])]
    blind = " (booked only: nothing measures it)"
    parts = [
        f"{gib(whole(charges.get(uuid)))} on {names.get(uuid, uuid)}{blind if uuid in unread else ''}"
        for uuid in uuids
        if uuid in charges
    ]
    alone = [names.get(uuid, uuid) for uuid in uuids if uuid not in charges]  # their memory is the node's RAM
    ram = f"{gib(whole(charges.get(RAM)))} of RAM{f' for {_and(alone)}' if alone else ''}"
    return f"Would get {_and(parts)}, with {ram}." if parts else f"Would get {ram}."


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
