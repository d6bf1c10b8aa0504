"""Which device a submission asks for, by its UUID or its name, and whether the node that it names has it."""

from __future__ import annotations

from placement.domain.declaring.declarations import folded
from placement.domain.submitting.submission import Submission
from placement.domain.world import text
from placement.models import Device, Node, Workload


def uuid_of(submission: Submission, workload: Workload | None, wrong: dict[str, str]) -> str | None:
    """Return the UUID of the device that is asked for by it or by its name; what no device has is left to the gate."""
    asked = (submission.device or "").strip()
    if not asked:
        return submission.device
    declared = Device.objects.filter(retired=False).order_by("node__name")
    there: list[tuple[str, str, str]] = list(declared.values_list("uuid", "name", "node__name"))
    known = [one for one in there if submission.node in (None, "", one[2])]
    if not any(_is(asked, one) for one in known) and (elsewhere := [one for one in there if _is(asked, one)]):
        _elsewhere(elsewhere, submission, workload, wrong)
        return asked
    alike = [one for one in known if folded(one[1]) == folded(asked)]
    found = {uuid: node for uuid, name, node in alike if name == asked or asked not in {one[1] for one in alike}}
    if not found or any(uuid == asked for uuid, _, _ in known):
        return asked
    if len(found) > 1:
        names = ", ".join(found.values())
        wrong["device"] = f"There is a {asked} on each of {names}; say which node, or the UUID of the device."
        return None
    return next(iter(found))


def _is(asked: str, one: tuple[str, str, str]) -> bool:
    """Return whether a device, told as its UUID, name and node, is asked for by its UUID, or its name in any case."""
    return asked == one[0] or folded(asked) == folded(one[1])


def _elsewhere(
    found: list[tuple[str, str, str]], submission: Submission, workload: Workload | None, wrong: dict[str, str]
) -> None:
    """Say that the device is not on the node that is asked for; that there is no such node is left to the gate."""
    node = submission.node
    if not Node.objects.filter(name=node).exists():
        return
    name, where = found[0][1], text.names([one[2] for one in found])
    if workload and (workload.placement or {}).get("device") == submission.device:
        wrong["node"] = (
            f"{workload.name} asks for {name}, which is on {where} and not on {node}: "
            f"say a device of {node}, too, or leave the node out."
        )
    else:
        wrong["device"] = f"{name} is on {where}, not on {node}: say a device of {node}, or leave the node out."
