"""Devices that no probe finds: declared by hand, and removed again. They are edited as all devices are."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from placement.domain.declaring import by_hand, declarations
from placement.domain.errors import NotFound, Refused
from placement.domain.world import text
from placement.models import Device, Lease, Node
from placement.services import audit, members, numbers
from placement.services.cycle_row import changing


def add(user: Any, node_id: int, said: Mapping[str, Any]) -> Device:
    """Declare a device that no probe reads; in force at the next decision. Raise Refused with a sentence per field.

    Fields: kind, backends (a list of words), index (the number that people type), name, declared (bytes),
    exclusive_only, any_gpu, driver_number (None: the index). Without a name it is called by its kind and number. One
    that was removed and is declared again, by the same name and number, is the same device.
    """
    members.need(user, "administer")
    with changing():
        node = Node.objects.filter(pk=node_id).first()
        if node is None:
            raise NotFound(f"There is no node {node_id}.")
        said = {**said, "name": said.get("name") or f"{said.get('kind')}{said.get('index')}".lower()}
        others = list(node.devices.filter(retired=False))
        taken = frozenset(other.name for other in others)
        if wrong := declarations.new_problems(said, taken=taken, numbers=numbers.known(others)):
            raise Refused(" ".join(wrong.values()), wrong)
        fields = {
            "name": said["name"].strip(),
            "kind": str(said["kind"]).upper(),
            "index": said["index"],
            "declared": said["declared"],
            "exclusive_only": said.get("exclusive_only", False),
            "any_gpu": said.get("any_gpu", False),
            "driver_number": said.get("driver_number"),
        }
        row = Device(uuid=f"{by_hand.PREFIX}{uuid.uuid4()}", node=node, measurable=False, by_hand=True, **fields)
        again = {"kind": row.kind, "index": row.index, "name": row.name}
        if before := node.devices.filter(by_hand=True, retired=True, **again).order_by("-pk").first():
            row.pk, row.uuid = before.pk, before.uuid  # who waits for it, or is run again, means this one
        row.backends = backends = by_hand.stored(said["backends"])
        if wrong := numbers.clash(row, said, others):
            raise Refused(" ".join(wrong.values()), wrong)
        row.save(force_insert=row.pk is None)
        told = {**fields, "backends": backends}
        audit.record(user, "declare_device", f"device {row.uuid}", label=f"{row.name} of {node.name}", after=told)
    return row


def remove(user: Any, device_id: int) -> str:
    """Take back a declaration by hand and return what was done; what ran there stays in the history.

    Raise Refused while somebody holds some of it, with who.
    """
    members.need(user, "administer")
    with changing():
        row = Device.objects.select_related("node").filter(pk=device_id, retired=False).first()
        if row is None:
            raise NotFound(f"There is no device {device_id}.")
        if not row.by_hand:
            raise Refused(
                f"{row.name} was found on the machine and stays declared while it is there. Drain it to keep jobs away."
            )
        if who := _holders(row):
            raise Refused(f"{row.name} is held by {text.names(who)}. Drain it, and remove it when that is over.")
        row.retired = True
        row.save(update_fields=["retired"])
        audit.record(user, "remove_device", f"device {row.uuid}", label=f"{row.name} of {row.node.name}")
    return f"{row.name} is removed. What ran on it stays in the history."


def _holders(row: Device) -> list[str]:
    """Return who holds some of a device, in words."""
    live = Lease.objects.filter(node=row.node.name, pool=row.uuid, released_at=None).select_related("job__user")
    jobs = {lease.job_id: lease.job for lease in live.order_by("job_id")}
    return [f"#{job.pk} {job.name} of {job.user.get_username()}" for job in jobs.values()]
