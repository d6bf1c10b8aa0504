"""Reserve device memory from inside a job of Tidegate.

    import tidegate

    with tidegate.cuda(6) as place:            # 6 GB (10^9 bytes each), waits until they are there
        model.to(f"cuda:{place.local_index}")

A placement holds its lease until its last reference is dropped, its ``with`` ends or the process does. Outside a job
the same script runs without a lease. Standard library only, Python 3.8 or newer.
"""

from .asks import Backend, Device
from .calls import check, cuda, cuda_group, reserve, reserve_group
from .errors import Impossible, NotAllowed, NotVisible, Revoked, SequenceChanged, TimedOut, Unavailable
from .placements import CPU_PLACEMENT, Data, Placement, PlacementGroup
from .steps import session

__all__ = [
    "Backend",
    "CPU_PLACEMENT",
    "Data",
    "Device",
    "Impossible",
    "NotAllowed",
    "NotVisible",
    "Placement",
    "PlacementGroup",
    "Revoked",
    "SequenceChanged",
    "TimedOut",
    "Unavailable",
    "check",
    "cuda",
    "cuda_group",
    "reserve",
    "reserve_group",
    "session",
]
