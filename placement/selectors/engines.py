"""Whether jobs can run in containers anywhere, as the nodes' rows say."""

from __future__ import annotations

from placement.models import Node
from placement.selectors.wording import listing, mapping


def anywhere() -> tuple[str, ...]:
    """Return the engines that some node has, by name."""
    told = Node.objects.values_list("containers", flat=True)
    return tuple(sorted({str(engine) for row in told for engine in listing(mapping(row).get("works"))}))
