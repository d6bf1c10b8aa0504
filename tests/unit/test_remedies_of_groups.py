"""A group is offered fewer devices, and less reserved memory, where it then starts, and only there."""

from __future__ import annotations

from calibration.domain.estimate import Estimate
from placement.domain.unblocking.remedies import Remedy
from placement.domain.world.snapshot import Waiting
from tests.builders import GIB, MIB, a_device, a_node, a_ram, a_snapshot, a_waiting
from tests.unit.test_remedies import told


def found(waiting: Waiting, *rooms: int) -> list[Remedy]:
    """Return what it could ask for instead on devices with so many GiB left, where nobody runs who could end."""

    def on_devices(count: int) -> Estimate:
        return waiting.estimate

    node = a_node(*(a_device(24 * GIB, (24 - room) * GIB, index=n) for n, room in enumerate(rooms)), ram=a_ram())
    return [one for one in told(a_snapshot(node, waiting=(waiting,)), on_devices=on_devices) if one.edit]


def test_the_most_devices_of_those_that_start_are_offered() -> None:
    (one,) = found(a_waiting(9, 8 * GIB, group=(4, 4)), 9, 20, 8, 3)
    assert one.edit is not None
    assert one.edit.devices == 3
    assert (one.place, one.need) == ("gpu0 + gpu1 + gpu2", 8 * GIB)


def test_fewer_devices_are_not_offered_where_they_do_not_help() -> None:
    assert found(a_waiting(9, 8 * GIB, group=(2, 2)), 7, 7, 7) == []
    assert found(a_waiting(9, 30 * GIB, group=(1, 2)), 20, 20) == []


def test_what_is_reserved_of_each_device_can_be_less() -> None:
    offered = found(a_waiting(9, None, 0, group=(2, 2), each=20 * GIB), 12, 9, 3)
    (less,) = [one for one in offered if one.edit and one.edit.reserved]
    assert less.edit is not None
    assert less.edit.reserved == {"per_device_memory": 9 * GIB}
    assert less.need == 9 * GIB
    (alone,) = found(a_waiting(9, None, 0, each=20 * GIB), 12, 9)
    assert alone.edit is not None
    assert alone.edit.reserved == {"per_device_memory": 12 * GIB}


def test_what_a_group_shares_can_be_less_to_a_step_of_64_mib() -> None:
    offered = found(a_waiting(9, None, 0, group=(2, 2), together=30 * GIB, even=False), 12, 9, 3)
    (less,) = [one for one in offered if one.edit and one.edit.reserved]
    assert less.edit is not None
    assert 21 * GIB - 64 * MIB <= less.edit.reserved["group_memory"] <= 21 * GIB
