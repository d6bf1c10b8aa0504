"""A /proc made of plain files, for processes that a test cannot or should not start."""

from __future__ import annotations

import os
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
MIB = 2**20


class FakeProc:
    """Writes the files that the probes read. Sizes in bytes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def process(
        self,
        pid: int,
        *,
        ppid: int = 1,
        start_ticks: int = 100,
        name: str = "python",
        state: str = "S",
        uid: int | None = 0,
        rss: int = 0,
        own: int | None = None,
    ) -> Path:
        """Make or replace one process; ``own`` are the pages in statm that no file or shared memory backs."""
        folder = self.root / str(pid)
        folder.mkdir(exist_ok=True)
        rest = [state, ppid, pid, pid, *([0] * 15), start_ticks, 0, rss // PAGE, *([0] * 28)]
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(map(str, rest))}\n")
        if uid is not None:
            (folder / "status").write_text(f"Name:\t{name}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        own = rss if own is None else own
        (folder / "statm").write_text(f"{rss // PAGE} {rss // PAGE} {(rss - own) // PAGE} 0 0 0 0\n")
        return folder

    def rollup(self, pid: int, **kib: int) -> None:
        """Write smaps_rollup lines in KiB: rollup(7, Pss_Anon=100, Pss_File=3)."""
        lines = "".join(f"{name}: {size:>10} kB\n" for name, size in kib.items())
        (self.root / str(pid) / "smaps_rollup").write_text("0-1 ---p 0 00:00 0 [rollup]\n" + lines)
