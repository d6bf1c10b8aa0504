"""The runner's watch: from the moment the command runs until its exit record is on disk."""

from __future__ import annotations

import os
import resource
import signal
import time

from placement.runner import cgroup, engine
from placement.runner.cgroup import NONE, Group
from placement.runner.closing import closed, tell
from placement.runner.descendants import MAX_LISTED, Member, describe, walk
from placement.runner.emptying import empty
from placement.runner.jsonfile import control_path
from placement.runner.limits import LogLimit, TimeLimit
from placement.runner.notes import Notes
from placement.runner.outbox import Outbox
from placement.runner.record import (
    EXIT,
    LEADER,
    ExitRecord,
    LeaderExit,
    LogFigures,
    exit_fields,
    leader_fields,
)
from placement.runner.spawn import Child, trouble_of
from placement.runner.spec import Spec
from placement.runner.stop import AT_ONCE, STOP, Ending, StopRequest, read_stop

# Blocked in the runner and waited for: no handler runs, so nothing is ever interrupted half-way.
WAKING_SIGNALS = (signal.SIGCHLD, signal.SIGTERM)
_LOOK_EVERY_S = 1.0
_FAST_LOOK_S = 0.1
# A storm of short processes must not keep the loop from its other duties.
_REAPED_AT_ONCE = 2000


def read_oom_kills() -> int | None:
    """Return how many processes the kernel has killed for memory since boot, None where it does not say."""
    try:
        descriptor = os.open("/proc/vmstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        for line in os.read(descriptor, 1 << 17).splitlines():
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)
    return None


class Watch:
    """One run under watch. Durations are monotonic seconds, `*_at` fields wall time."""

    def __init__(
        self,
        run_dir: str,
        spec: Spec,
        child: Child,
        boot_id: str,
        logs: tuple[LogLimit, LogLimit],
        outbox: Outbox,
        notes: Notes,
        group: Group = NONE,
    ) -> None:
        self._group = group
        self._run_dir, self._spec, self._child = run_dir, spec, child
        self._logs, self._outbox, self._notes = logs, outbox, notes
        self._began = time.monotonic()
        self._oom_kills = read_oom_kills()
        self._fetching = spec.container is not None  # until there is a container its time has not begun
        self._time_limit = TimeLimit(None if self._fetching else spec.time_limit_s, self._began)
        self._ending = Ending(child.identity, group)
        self._record = ExitRecord(spec.job_id, spec.attempt, boot_id, started_at=time.time())
        self._leader_ended = False
        self._sweep_at: float | None = None
        self._stop_mark: tuple[int, int, int] | None = None
        self._look_at = self._began
        self._pause_s: float | None = None
        self._helpers: set[int] = set()  # programs of an engine that end the run's container

    def run(self) -> ExitRecord:
        """Return how the run ended, once no process of it is left."""
        while True:
            signalled = self._wait_and_reap()
            if signalled is None:
                return self._finished()
            now = time.monotonic()
            if signalled or now >= self._look_at:
                self._look(now, signalled)
            self._keep_limits(now)
            self._pause_s = self._ending.step(now)

    def _wait_and_reap(self) -> bool | None:
        """Return whether somebody sent us TERM, or None once wait() knows no child any more."""
        signalled = False
        timeout = self._timeout(time.monotonic())
        # Each kind waits at most once; in a storm of ends there would always be one more.
        for _ in WAKING_SIGNALS:
            info = signal.sigtimedwait(WAKING_SIGNALS, timeout)
            if info is None:
                break
            signalled = signalled or info.si_signo == signal.SIGTERM
            timeout = 0.0
        for _ in range(_REAPED_AT_ONCE):
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == 0:
                break
            if pid == self._child.identity.pid:
                self._leader_exit(status)
            elif pid in self._helpers and status and self._spec.container is not None:
                name = os.path.basename(self._spec.container.stop[0])
                said = f"{name} was asked to end it, and failed with code {os.waitstatus_to_exitcode(status)}"
                tell(self._run_dir, said, time.time(), self._notes)
        return signalled

    def _timeout(self, now: float) -> float:
        waits = [self._look_at - now, self._pause_s, self._time_limit.left(now)]
        if self._sweep_at is not None:
            waits.append(self._sweep_at - now)
        return max(0.0, min(wait for wait in waits if wait is not None))

    def _leader_exit(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        start_error = trouble_of(self._child)
        left = describe(one for one in walk(os.getpid()) if one.pid not in self._helpers)
        at = time.time()
        self._leader_ended = True
        self._record = self._record._replace(
            code=code if code >= 0 and start_error is None else None,
            signal=-code if code < 0 else None,
            start_error=start_error,
            leader_exit_at=at,
            leftovers=tuple(left[:MAX_LISTED]),
        )
        self._put_leader(at, left)
        # Even where nothing was seen: only wait() proves that nothing is left.
        if self._spec.sweep == "after_grace":
            self._sweep_at = time.monotonic() + self._spec.sweep_grace_s

    def _put_leader(self, at: float, left: list[Member]) -> None:
        leader = LeaderExit(self._record.code, self._record.signal, at, tuple(left[:MAX_LISTED]), len(left))
        # News for the page, soon replaced by exit.json: worth no wait for the disk.
        self._outbox.put(LEADER, leader_fields(leader), durable=False)
        self._outbox.flush()

    def _look(self, now: float, signalled: bool) -> None:
        """The duties of each second: requests to stop, logs, records that could not be written yet."""
        self._see_container()
        request = self._new_request()
        if request is None and signalled and self._record.stopped_by is None:
            request = StopRequest("signal", time.time(), None)
        if request is not None:
            self._stop(request, now)
        if cgroup.killed_for_memory(self._group):
            # A run that lost a part of itself is no run any more; where the kernel ends one process, we end the rest.
            self._begin_end(now, 0.0)
        for log in self._logs:
            log.look()
        self._outbox.flush()
        if self._ending.stubborn:
            self._notes.say("stubborn", f"not allowed to end processes {self._ending.stubborn[:10]}")
        fast = any(log.growing_fast for log in self._logs)
        self._look_at = now + (_FAST_LOOK_S if fast else _LOOK_EVERY_S)

    def _see_container(self) -> None:
        """Begin the run's time with its container: what it took to fetch an image is none of it."""
        if not self._fetching or self._spec.container is None:
            return
        made = engine.made_at(self._spec.container)
        if made is not None:
            self._fetching = False
            self._began = max(self._began, time.monotonic() - max(0.0, time.time() - made))
            self._record = self._record._replace(started_at=max(made, self._record.started_at or 0.0))
            if not self._ending.begun:
                self._time_limit = TimeLimit(self._spec.time_limit_s, self._began)

    def _new_request(self) -> StopRequest | None:
        """Return what stop.json asks where it is new or rewritten since the last look."""
        try:
            stat = os.stat(control_path(self._run_dir, STOP), follow_symlinks=False)
        except OSError:
            return None
        mark = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        if mark == self._stop_mark:
            return None
        self._stop_mark = mark
        return read_stop(self._run_dir)

    def _keep_limits(self, now: float) -> None:
        if self._time_limit.left(now) == 0.0:
            self._time_limit = TimeLimit(None, now)
            self._stop(StopRequest("time_limit", time.time(), None), now)
        if self._sweep_at is not None and now >= self._sweep_at:
            self._sweep_at = None
            if not self._ending.begun:
                self._record = self._record._replace(swept=True)
                self._begin_end(now, self._spec.grace_s)

    def _stop(self, request: StopRequest, now: float) -> None:
        """Begin the end, or hasten it; the first reason stands."""
        if self._record.stopped_by is None:
            at = time.time() if request.at is None else request.at
            self._record = self._record._replace(stopped_by=request.reason, stop_requested_at=at)
        grace_s = self._spec.grace_s if request.grace_s is None else request.grace_s
        self._begin_end(now, 0.0 if request.reason in AT_ONCE else grace_s)

    def _begin_end(self, now: float, grace_s: float) -> None:
        """End the run; a container is ended by its engine, and the client that waits for it ends with it."""
        container = self._spec.container
        if container is None or not engine.ident(container):
            self._ending.begin(now, grace_s)
            return
        helper = engine.begin_end(container, grace_s)
        if helper is not None:
            self._helpers.add(helper)
        self._ending.expect(now, grace_s + engine.TAKES_S)

    def _finished(self) -> ExitRecord:
        self._see_container()
        self._empty_group()
        if self._spec.container is not None:
            self._record = closed(self._spec, self._record, self._run_dir, self._notes, stopped=self._ending.begun)
        for log in self._logs:
            log.look()
        kills = read_oom_kills()
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return self._record._replace(
            killed=self._record.killed or self._ending.killed,
            ended_at=time.time(),
            duration_s=time.monotonic() - self._began,
            # The kernel counts KiB, of the largest single process.
            max_rss_bytes=usage.ru_maxrss * 1024,
            oom_kill_delta=None if kills is None or self._oom_kills is None else kills - self._oom_kills,
            log=log_figures(self._logs),
            cgroup=cgroup.figures(self._group),
        )

    def _empty_group(self) -> None:
        if self._spec.sweep == "keep" and not self._ending.begun:
            return
        empty(self._group, self._child.identity.boot_id, lambda text: self._notes.say("stubborn", text))


def log_figures(logs: tuple[LogLimit, LogLimit]) -> LogFigures:
    """Return the lengths of both logs and what was freed of them."""
    stdout, stderr = logs
    return LogFigures(stdout.size(), stderr.size(), stdout.trimmed_bytes + stderr.trimmed_bytes)


def write_exit(outbox: Outbox, record: ExitRecord) -> None:
    """Return once the exit record is on disk; a full disk is tried again each second, for ever."""
    outbox.put(EXIT, exit_fields(record))
    while not outbox.flush():
        signal.sigtimedwait((signal.SIGTERM,), 1.0)
