"""The loop of one node in this process, without workers or broker: real runners, and a tick whenever a test wants."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from calibration.probes.choose import Instrument
from placement import loop
from placement.domain.jobs import State
from placement.domain.submitting.submission import Submission
from placement.models import Job, Lease, Role
from placement.runner import cgroup
from placement.runner.containment import group_of_run
from placement.runner.members import kill_members, members
from placement.runner.record import read_started
from placement.services import cycle_row, explaining, jobs, lifecycle, nodes, starting
from tests.integration.rows import a_user
from tests.wait import until

MIB = 1 << 20
GIB = 1 << 30
KNOBS = {
    "grace_seconds": 1.0,
    "sweep_seconds": 0.5,
    "floor_ram_mib": 256,
    "redispatch_seconds": 0.2,
    "watch_ram_mib": 1,
    "watch_ram_share": 0.0,
}


BEFORE_THE_END = frozenset(State) - {State.FINISHED}


class Here:
    """One node with simulated devices; ``sent`` are the starts that were told, ``deliver`` whether they arrive."""

    def __init__(self) -> None:
        self.user = a_user("ann", Role.ADMIN)
        self.sent: list[tuple[str, int, int]] = []
        self.messages = 0
        self.said: list[str] = []
        self.deliver = True

    def send(self, node: str, starts: Sequence[tuple[int, int]]) -> bool:
        self.sent += [(node, job_id, attempt) for job_id, attempt in starts]
        self.messages += 1
        if self.deliver:
            self.said += [sentence for _, sentence in starting.start_all(starts)[0]]
        return True

    def tick(self) -> None:
        assert loop.tick(self.send, asked_by_end=True)

    def new_worker(self) -> None:
        """Forget all that a worker keeps in memory, as its death does."""
        loop.made_agent.cache_clear()
        explaining.forget_all_but(())

    def submit(self, command: str, **fields: Any) -> Job:
        asked = {"name": command[:30], "cwd": "/tmp", "declared_ram": 32 * MIB, **fields}
        return jobs.submit(self.user, Submission(command=command, **asked))

    def run(self, command: str, **fields: Any) -> Job:
        """Submit, and return the job once it runs."""
        return self.reach(self.submit(command, **fields), State.RUNNING)

    def reach(self, job: Job, state: State, timeout: float = 20.0) -> Job:
        """Tick until the job is in a state, and return it."""

        def there() -> bool:
            self.tick()
            job.refresh_from_db()
            assert job.state in (state, *BEFORE_THE_END), f"{job} has ended before it was seen {state.value}"
            return job.state == state

        until(there, timeout, f"{job} to be {state.value}", 0.05)
        return job

    def end(self, job: Job) -> Job:
        return self.reach(job, State.FINISHED)


def control(job: Job) -> Path:
    """Return the records of a job's present attempt."""
    return lifecycle.run_dir_of(job) / "control"


def leased(job: Job | None = None) -> int:
    """Return how many leases (of one job) are not released."""
    live = Lease.objects.filter(released_at=None)
    return live.count() if job is None else live.filter(job=job).count()


def alive(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@contextmanager
def here(settings: Any, folder: Path, *, simulate: str = "1x24GiB", **knobs: Any) -> Iterator[Here]:
    """Make a node in this process; whatever still runs at the end is killed."""
    settings.DATA, settings.RUNS, settings.SIMULATED_DIR = folder, folder / "runs", folder / "simulated"
    settings.SIMULATE, settings.NODE, settings.KNOB_OVERRIDES = simulate, "testnode", {**KNOBS, **knobs}
    settings.ALLOWED_ROOTS = [Path("/tmp"), folder]
    cycle_row.ensure()
    instrument = Instrument("testnode", simulate=simulate, simulated_dir=settings.SIMULATED_DIR)
    nodes.discover("testnode", instrument.read())
    made = Here()
    made.new_worker()
    try:
        yield made
    finally:
        for run_dir in settings.RUNS.glob("*-*"):
            started = read_started(run_dir)
            if started is not None:
                kill_members(members(started), signal.SIGKILL)
                if alive(started.runner.pid):
                    psutil.Process(started.runner.pid).kill()
            group = group_of_run(run_dir)  # its runner would have removed it
            until(lambda group=group: cgroup.remove(group), 5, "the end of a control group")
        made.new_worker()


def started(job_id: int) -> str:
    """Start the first attempt of a job as a message of its own does; return what came of it."""
    ((_, sentence),), _ = starting.start_all([(job_id, 1)])
    return sentence
