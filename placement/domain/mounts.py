"""Which kind of file system holds a path, from the kernel's table of mounts."""

from __future__ import annotations

from pathlib import PurePosixPath

_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "glusterfs")
_CLUSTER = ("ceph", "lustre", "gpfs", "beegfs", "ocfs2", "gfs2", "orangefs")
_FUSE = ("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.ceph-fuse", "fuse.s3fs", "fuse.rclone")
NETWORK = frozenset((*_REMOTE, *_CLUSTER, *_FUSE))
"""Kinds on which locks or renames are not seen alike by every client: no place for a database file."""


def kind_of(path: PurePosixPath, mountinfo: str) -> str:
    """Return the kind of the file system that holds an absolute path, "" where the table does not tell."""
    best, kind = "", ""
    for line in mountinfo.splitlines():
        mount, _, rest = line.partition(" - ")
        fields = mount.split()
        if len(fields) < 5 or not rest.split():
            continue
        point = PurePosixPath(_plain(fields[4]))
        if (path == point or point in path.parents) and len(str(point)) >= len(best):
            best, kind = str(point), rest.split()[0]
    return kind


def _plain(text: str) -> str:
    """Return a mount point as it is: the table writes blanks and backslashes as octal numbers."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
