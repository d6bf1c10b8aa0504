from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.runner.identity import Identity, alive, holder, identify, parse_stat, read_boot_id, read_stat

_REST = "S 100 200 300 34816 0 4194560 1 2 3 4 5 6 7 8 20 0 1 0 991827 1000 50"


@settings(max_examples=60)
@given(name=st.text(max_size=15).filter(lambda text: "\0" not in text))
def test_any_name_a_process_can_give_itself_leaves_the_fields_in_place(name: str) -> None:
    stat = parse_stat(f"4000 ({name}) {_REST}\n".encode("utf-8", "replace"))
    assert (stat.pid, stat.state, stat.ppid, stat.pgid, stat.sid, stat.start_ticks) == (
        4000, "S", 100, 200, 300, 991827,
    )  # fmt: skip


@pytest.mark.parametrize("raw", [b"", b"4000", b"4000 (sh", b"4000 (sh) S 1 2", b")4000 (", b"x (sh) " + b"1 " * 30])
def test_what_is_no_stat_line_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_stat(raw)


def test_this_process_is_itself_and_nobody_else() -> None:
    me = identify(os.getpid())
    assert me is not None
    assert alive(me)
    assert not alive(me._replace(start_ticks=me.start_ticks + 1))
    assert not alive(me._replace(boot_id="another boot"))
    assert not alive(Identity(0, 0, read_boot_id()))
    assert not alive(Identity(-1, me.start_ticks, read_boot_id()))


def test_a_zombie_holds_its_pid_and_is_not_alive() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    zombie = identify(pid)
    assert zombie is not None
    assert not alive(zombie)
    assert holder(zombie) is not None
    os.waitpid(pid, 0)
    assert holder(zombie) is None
    assert read_stat(pid) is None
