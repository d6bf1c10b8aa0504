"""Devices without memory of their own: they take theirs out of the machine's, and both are one pool."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from .resources import total
from .samples import RAM, PoolSample, PoolState

SHARES = "shares the machine's memory"
"""What is said of such a device instead of figures of its own."""
_NAMES = re.compile(r"\b(GB10|Jetson|Tegra|Xavier|Orin|Thor|nvgpu)\b", re.IGNORECASE)
_ASKED = (PoolState.OK, PoolState.UNMEASURED)


def is_one_pool(model: str) -> bool:
    """Return whether devices of this name share the machine's memory; what their memory call answers is no figure.

    Some drivers of them answer "not supported", some a total of 0, some figures that mean nothing.
    """
    return _NAMES.search(model) is not None


def sharing(pools: Mapping[str, PoolSample], declared: Collection[str] = ()) -> dict[str, PoolSample]:
    """Return the pools of one look, with those that share main memory showing its figures.

    ``declared`` are devices of which an admin said so. Used is what the device's processes hold, once; what is free
    is the machine's, from which all of that is already gone.
    """
    ram = pools[RAM]
    return {
        name: _shared(pool, ram)
        if pool.kind != RAM and pool.state in _ASKED and (pool.shares or name in declared)
        else pool
        for name, pool in pools.items()
    }


def _shared(pool: PoolSample, ram: PoolSample) -> PoolSample:
    return replace(
        pool,
        state=ram.state,
        total=ram.total,
        free=ram.free,
        used=total(amount for _, amount in pool.processes),
        reserved=None,
        message=ram.message or pool.message,
        shares=True,
    )
