"""Nodes: their RAM declared by admins, held and drained by operators."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query

from calibration.domain.samples import RAM
from placement.api import devices_told
from placement.api.devices import drained, of_pool, until
from placement.api.nouns import Noun
from placement.api.shapes.device import (
    DrainBody,
    Effects,
    NodeAnswer,
    NodeBody,
    NodeList,
    NodeSaid,
    Series,
    SeriesAsked,
)
from placement.api.shapes.kinds import Id
from placement.api.shapes.queue import HoldBody
from placement.domain.errors import NotFound
from placement.models import Node, Role
from placement.selectors import devices
from placement.services import nodes
from placement.views import wake

noun = Noun("Nodes")
SAMPLE = {"ram_declared": "48 GiB"}


@noun.read("/nodes", NodeList)
def listed(request: HttpRequest) -> dict[str, Any]:
    """Return all nodes with their devices and newest readings."""
    return {"nodes": devices_told.nodes(request.user)}


@noun.read("/nodes/{int:node_id}", NodeAnswer)
def look(request: HttpRequest, node_id: Id) -> dict[str, Any]:
    """Return one node."""
    return {"node": devices_told.node(request.user, _found(node_id))}


@noun.read("/nodes/{int:node_id}/series", Series)
def series(request: HttpRequest, node_id: Id, asked: Query[SeriesAsked]) -> dict[str, Any]:
    """Return the history of a node's RAM, by owner."""
    return of_pool(_found(node_id).name, RAM, asked)


@noun.change("/nodes/{int:node_id}", NodeSaid, Role.ADMIN, method="PATCH", sample=SAMPLE)
def declare(request: HttpRequest, node_id: Id, asked: NodeBody) -> dict[str, Any]:
    """Change what is declared of a node; in force at the next decision."""
    _found(node_id)
    nodes.edit_node(request.user, node_id, asked.given(), expected=asked.seen())
    return _done(request, node_id, "It is saved.")


@noun.change("/nodes/{int:node_id}/preview", Effects, Role.ADMIN, sample=SAMPLE)
def preview(request: HttpRequest, node_id: Id, asked: NodeBody) -> dict[str, Any]:
    """Say what a change would do to running jobs; nothing is changed."""
    return {"effects": nodes.preview_node(_found(node_id), asked.given())}


@noun.change("/nodes/{int:node_id}/hold", NodeSaid, Role.OPERATOR, sample={"why": "a reboot", "hours": 1})
def hold(request: HttpRequest, node_id: Id, asked: HoldBody) -> dict[str, Any]:
    """Let nothing new start on a node, for some hours or until released; what runs goes on."""
    _found(node_id)
    nodes.hold(request.user, "node", node_id, until=until(asked), why=asked.why)
    return _done(request, node_id, "Held: what runs there goes on, nothing new starts.")


@noun.change("/nodes/{int:node_id}/release", NodeSaid, Role.OPERATOR)
def release(request: HttpRequest, node_id: Id) -> dict[str, Any]:
    """End a hold."""
    _found(node_id)
    nodes.release(request.user, "node", node_id)
    return _done(request, node_id, "Released.")


@noun.change("/nodes/{int:node_id}/drain", NodeSaid, Role.OPERATOR, sample={"on": True})
def drain(request: HttpRequest, node_id: Id, asked: DrainBody) -> dict[str, Any]:
    """Let what runs on a node end and nothing new start; or end that."""
    _found(node_id)
    nodes.drain(request.user, "node", node_id, asked.on)
    return _done(request, node_id, drained(asked.on))


def _found(node_id: int) -> Node:
    row = devices.node(node_id) if node_id < 2**63 else None
    if row is None:
        raise NotFound(f"There is no node {node_id}.")
    return row


def _done(request: HttpRequest, node_id: int, said: str) -> dict[str, Any]:
    wake.soon()
    return {"message": said, "node": devices_told.node(request.user, _found(node_id))}
