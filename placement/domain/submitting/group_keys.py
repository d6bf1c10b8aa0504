"""Under which parameters a group's run is learned: with how many devices it asked for."""

from __future__ import annotations

import json

from placement.domain.world.requests import Request

_DEVICES = "devices taken"
_WORD = "devices: "


def on_devices(params: str, request: Request) -> str:
    """Return a key's parameters with the number of devices asked for: on more of them a run needs less of each.

    A number that stands there already is replaced.
    """
    low, high = request.min_devices, request.max_devices
    said = str(low) if low == high else f"{low} to {high}"
    known = json.loads(params)
    if isinstance(known, dict):
        return json.dumps({**known, _DEVICES: said}, ensure_ascii=False, sort_keys=True)
    rest = known[1:] if known and str(known[0]).startswith(_WORD) else known
    return json.dumps([f"{_WORD}{said}", *rest], ensure_ascii=False)
