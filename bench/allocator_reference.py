"""The same requests asked of jayrun 0.3.0, in an environment of its own: the request on stdin, the answer on stdout.

Run by ``bench.allocator``; knows nothing of this project. jayrun's controller gives capacity back when a placement is
dropped, so a list of placements is all that is held here.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
import tracemalloc
from typing import Any

from jayrun.engine.context.step_reference import StepReference  # type: ignore[import-not-found]
from jayrun.engine.resource.placement import Backend, Device  # type: ignore[import-not-found]
from jayrun.engine.resource.placement_controller import PlacementController  # type: ignore[import-not-found]
from jayrun.engine.resource.placement_request import PlacementRequest  # type: ignore[import-not-found]
from jayrun.engine.settings.engine import RuntimeDevice  # type: ignore[import-not-found]


def main() -> None:
    """Answer one request: the decisions of a stream, timed, or the memory of leases that are held."""
    asked = json.load(sys.stdin)
    controller = PlacementController(
        tuple(
            RuntimeDevice(device=Device.GPU, backends=(Backend.CUDA,), device_id=i, memory_limit_gb=asked["gb"])
            for i in range(asked["devices"])
        )
    )
    step = StepReference("bench", "operator", 0, (0, 0))
    requests = [request(step, number, count, size) for number, (count, size) in enumerate(asked["stream"])]
    if asked["memory"]:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        held = [controller.reserve(one)[1] for one in requests]
        took = tracemalloc.get_traced_memory()[0] - before
        json.dump({"leases": sum(one is not None for one in held), "bytes": took}, sys.stdout)
        return
    live: list[Any] = []
    given: list[Any] = []
    began = time.process_time()
    for one in requests:
        group = controller.reserve(one)[1]
        given.append(None if group is None else [(p.device_id, p.memory_bytes) for p in group.placements])
        if group is not None:
            live.append(group)
            del group
            if len(live) > asked["live"]:
                live.pop(0)
    took_s = time.process_time() - began
    digest = hashlib.sha256(json.dumps(given).encode()).hexdigest()
    json.dump({"seconds": took_s, "granted": sum(one is not None for one in given), "digest": digest}, sys.stdout)


def request(step: Any, number: int, count: int, size: int) -> Any:
    return PlacementRequest(
        context_id=number,
        step_reference=step,
        iteration=0,
        execution=1,
        request_index=0,
        device=Device.GPU,
        backend=Backend.CUDA,
        group_memory_bytes=size,
        per_device_memory_bytes=0,
        min_devices=count,
        max_devices=count,
    )


if __name__ == "__main__":
    main()
