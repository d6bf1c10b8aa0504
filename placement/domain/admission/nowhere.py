"""Why there is no place at all for a request, whoever runs."""

from __future__ import annotations

from collections.abc import Sequence

from placement.domain.admission.demands import Demand
from placement.domain.admission.device_sets import most_together
from placement.domain.admission.device_sets import only_named as unmeant
from placement.domain.admission.places import Board, name_of
from placement.domain.world import text
from placement.domain.world.requests import Gpu, Request
from placement.domain.world.snapshot import Node


def no_place(board: Board, demand: Demand) -> str:
    """Return why there is no place at all for a request."""
    request = demand.request
    known = [n for n in board.snapshot.nodes if n.state != "gone"]
    if not known:
        return "Can never start: no node is declared."
    if request.node is not None and request.node not in {n.name for n in known}:
        return f"Can never start: there is no node {request.node}."
    there = [n for n in known if request.node in (None, n.name)]
    if request.engine and not any(n.runs(request.engine) for n in there):
        return f"Can never start: it runs in a container. {no_engine(there, request.engine)}"
    if not any(n.devices for n in there):
        return f"Can never start: it needs a GPU and no GPU is declared on {text.names([n.name for n in there])}."
    closed = only_named(board, request)
    if closed and not any(d.open for n in there for d in n.devices):
        return f"Can never start: it needs a GPU that Tidegate measures, and there is none.{closed}"
    asked = [d for n in there for d in n.devices if request.device in (None, d.uuid)]
    if asked and not any(d.for_container(request.engine) for d in asked):
        return "Can never start: it runs in a container, and containers are given NVIDIA devices alone."
    sort = "".join(f"{word} " for word in (request.backend, request.kind) if word)
    if request.device is None and (sort or request.gpu is Gpu.GROUP):
        if request.min_devices == 1:
            where = text.names([n.name for n in there])
            return f"Can never start: it needs one {sort}device, and there is none on {where}.{closed}"
        counts = [most_together(n, request) for n in there]
        has = text.names([f"{count} on {n.name}" for count, n in zip(counts, there, strict=True)])
        are = "is" if counts[0] == 1 else "are"
        words = f"Can never start: it needs {request.min_devices} {sort}devices of one node, and there {are} {has}."
        return words + closed
    if request.device is None:
        where = text.names([n.name for n in there])
        return f"Can never start: none of the devices that it may have is declared on {where}."
    named = next((d for n in there for d in n.devices if d.uuid == request.device), None)
    if named is not None:
        offers = text.names(named.backends)
        return f"Can never start: it needs one {sort}device, and {named.shown} is a {offers} {named.kind}."
    where = text.names([n.name for n in there])
    if name := board.snapshot.gone.get(request.device):
        return f"Can never start: {name}, which it asks for, is declared no more on {where}."
    return f"Can never start: no device {request.device} is declared on {where}."


def only_named(board: Board, request: Request) -> str:
    """Return, as a further sentence, which devices a request does not mean because it names no kind; "" for none."""
    nodes = [n for n in board.snapshot.nodes if n.state != "gone" and request.node in (None, n.name)]
    closed = [name_of(d, board.many) for n in nodes for d in unmeant(n, request)]
    return f" {text.only_named(closed)}." if closed else ""


def no_engine(nodes: Sequence[Node], engine: str) -> str:
    """Return what each of these nodes says about containers, the first ones by name."""
    told = [
        f"{n.name}: {'no ' + engine if n.engines else (n.engines_why or 'no engine that runs containers').rstrip('.')}."
        for n in nodes
    ]
    return " ".join(told[: text.NAMED])
