"""Why there is no place at all for a request, whoever runs."""

from __future__ import annotations

from placement.domain import text
from placement.domain.demands import Demand
from placement.domain.device_sets import most_together
from placement.domain.places import Board
from placement.domain.requests import Gpu


def no_place(board: Board, demand: Demand) -> str:
    """Return why there is no place at all for a request."""
    request = demand.request
    known = [n for n in board.snapshot.nodes if n.state != "gone"]
    if not known:
        return "Can never start: no node is declared."
    if request.node is not None and request.node not in {n.name for n in known}:
        return f"Can never start: there is no node {request.node}."
    there = [n for n in known if request.node in (None, n.name)]
    if not any(n.devices for n in there):
        return f"Can never start: it needs a GPU and no GPU is declared on {text.names([n.name for n in there])}."
    sort = "".join(f"{word} " for word in (request.backend, request.kind) if word)
    if request.device is None and (sort or request.gpu is Gpu.GROUP):
        if request.min_devices == 1:
            where = text.names([n.name for n in there])
            return f"Can never start: it needs one {sort}device, and there is none on {where}."
        counts = [most_together(n, request) for n in there]
        has = text.names([f"{count} on {n.name}" for count, n in zip(counts, there, strict=True)])
        are = "is" if counts[0] == 1 else "are"
        return f"Can never start: it needs {request.min_devices} {sort}devices of one node, and there {are} {has}."
    named = next((d for n in there for d in n.devices if d.uuid == request.device), None)
    if named is not None:
        return f"Can never start: it needs one {sort}device, and {named.pool.name} is a {named.backend} {named.kind}."
    return f"Can never start: no device {request.device} is declared on {text.names([n.name for n in there])}."
