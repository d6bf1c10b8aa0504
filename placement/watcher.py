"""A thread that sees a runner's end at once, and keeps looking when no tick comes."""

from __future__ import annotations

import os
import select
import threading
import time

from placement import loop

_QUIET = 3.0  # seconds without a tick after which the broker counts as away
_AFTER_END = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)  # seconds after an end at which to look while memory drains

_lock = threading.Lock()
_watched: dict[int, int] = {}  # pidfd of a runner -> its pid
_pids: dict[tuple[int, int], int] = {}  # (pid, start ticks) -> pidfd
_last_tick = time.monotonic()
_thread: threading.Thread | None = None
_send: loop.Send | None = None
_wake_at: float | None = None  # monotonic second of a cycle that was put off
_wake_r, _wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)


def saw_tick(send: loop.Send) -> None:
    """Note that a tick arrived, and start the thread on the first one; ``send`` is how it dispatches."""
    global _last_tick, _thread, _send
    _last_tick, _send = time.monotonic(), send
    if _thread is None or not _thread.is_alive():
        _thread = threading.Thread(target=_run, name="watcher", daemon=True)
        _thread.start()
    loop.broker_is(here=True)


def wake_later(seconds: float) -> None:
    """Run a cycle in so many seconds; one that is planned already does for all who ask until then."""
    global _wake_at
    if _wake_at is None:
        _wake_at = time.monotonic() + seconds
        _nudge()


def follow() -> None:
    """Watch the runners that this node has now, adopted ones too; forget those that are gone."""
    wanted = {(i.pid, i.start_ticks) for i in loop.agent().runners.values()}
    with _lock:
        for key in set(_pids) - wanted:
            fd = _pids.pop(key)
            _watched.pop(fd, None)
            os.close(fd)
        for key in wanted - set(_pids):
            try:
                fd = os.pidfd_open(key[0])
            except OSError:  # gone already: the next look sees its exit record
                continue
            _pids[key] = fd
            _watched[fd] = key[0]
    _nudge()


def _nudge() -> None:
    try:
        os.write(_wake_w, b"x")
    except BlockingIOError:
        pass


def _run() -> None:
    looks: list[float] = []
    while True:
        looks = _round(looks)


def _round(looks: list[float]) -> list[float]:
    """Wait once and do what is due; return the monotonic seconds at which to look from then on."""
    ended = _wait(looks)
    now = time.monotonic()
    if ended or (not looks and loop.agent().drains.active()):  # a tick may have reaped before we saw the end
        first = now + loop.looks.wait(now)  # where many end, one look does for several
        looks = [min([first, *looks]), *(first + after for after in _AFTER_END[1:])]
    due = [at for at in looks if at <= now]
    if due:
        looks = [at for at in looks if at > now]
        loop.guarded(_tick)
        if not loop.agent().drains.active():
            looks = []
    if _wake_at is not None and _wake_at <= time.monotonic():
        loop.guarded(_wake)
    if loop.agent().watchdog.every() is not None:
        loop.guarded(loop.agent().glance)
    if time.monotonic() - max(_last_tick, loop.agent().began) > _QUIET:
        loop.guarded(_tick_without_broker)
    return looks


def _tick() -> None:
    if _send is not None:
        loop.tick(_send, asked_by_end=True)
        follow()


def _wake() -> None:
    global _wake_at
    _wake_at = None
    if _send is not None and (left := loop.wake(_send)):
        wake_later(left)


def _tick_without_broker() -> None:
    loop.tick_without_broker()
    follow()


def _wait(looks: list[float]) -> bool:
    """Return whether a runner ended; come back when a look is due, or after a second (near a cap sooner)."""
    with _lock:
        fds = list(_watched)
    planned = [*looks, *([] if _wake_at is None else [_wake_at])]
    longest = loop.agent().watchdog.every() or 1.0
    timeout = max(0.0, min([longest, *(at - time.monotonic() for at in planned)]))
    poller = select.poll()
    poller.register(_wake_r, select.POLLIN)
    for fd in fds:
        poller.register(fd, select.POLLIN)
    ready = {fd for fd, _ in poller.poll(timeout * 1000)}
    if _wake_r in ready:
        os.read(_wake_r, 4096)
    over = ready & set(fds)
    with _lock:
        for fd in over:
            _watched.pop(fd, None)  # once is enough; it is closed when its job's row is done
    return bool(over)
