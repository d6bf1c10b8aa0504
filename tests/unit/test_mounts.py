from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from placement.domain.mounts import NETWORK, kind_of

TABLE = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:21 / /home rw,relatime shared:1 - nfs4 nas:/home rw
24 23 254:1 / /home/ann/local\\040disk rw - xfs /dev/vdb rw
25 22 0:30 / /homework rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/tidegate", "ext4"),
        ("/home", "nfs4"),
        ("/home/ann/data", "nfs4"),
        ("/home/ann/local disk/data", "xfs"),
        ("/homework/data", "tmpfs"),
    ],
)
def test_the_longest_mount_point_above_the_path_decides(path: str, kind: str) -> None:
    assert kind_of(PurePosixPath(path), TABLE) == kind


def test_a_table_that_does_not_tell_gives_nothing() -> None:
    assert kind_of(PurePosixPath("/x"), "garbage\n1 2 3 - \n") == ""


def test_nfs_is_a_network_and_ext4_is_not() -> None:
    assert "nfs4" in NETWORK
    assert "ext4" not in NETWORK
