"""Start an admitted job on this node: prepare its run directory, write the spec, launch the runner."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from calibration import clock
from placement import snapshots
from placement.domain.containing.containers import refused_names
from placement.domain.containing.environment import DEFAULT_PATH, BadVariable, build_environment
from placement.domain.ending.outcomes import not_started
from placement.domain.errors import Refused
from placement.domain.jobs import State
from placement.domain.submitting.arrays import list_with_index, with_index
from placement.models import Job, Node
from placement.runner.confirmed import begun
from placement.runner.identity import Identity, identify
from placement.runner.jsonfile import write_record
from placement.runner.launch import LaunchResult, launch
from placement.runner.record import claim
from placement.services import (
    accounts,
    capping,
    container_spec,
    containing,
    device_environment,
    job_tokens,
    lifecycle,
    relay,
    secrets,
)

Launch = Callable[[Path], LaunchResult]
"""Starts a runner for a run directory: by itself, or from a nursery that is kept."""
log = logging.getLogger(__name__)
_LISTED = ("TZ", "LD_LIBRARY_PATH", "http_proxy", "https_proxy", "no_proxy")  # of the worker's environment


class NoRow(LookupError):
    """A message came before the row that it names can be read."""


def start_all(
    wanted: Iterable[tuple[int, int]], by: Launch | None = None
) -> tuple[list[tuple[int, str]], list[tuple[int, int]]]:
    """Start attempts (job, attempt); return what came of each, and those that have no row yet.

    A message that comes twice, late or for a job that was cancelled starts nothing: the row and the runner's
    claim decide. A start that cannot be prepared ends the job with the reason.
    What one start raises delays only that one: it has no claim, so it is told again. All are prepared, then one
    transaction notes it, then all are launched: a start that wrote for itself would queue for the database each time.
    """
    _taken()
    asked = list(wanted)
    rows = _rows().in_bulk([job_id for job_id, _ in asked])
    said: list[tuple[int, str]] = []
    ready: list[Job] = []
    for job_id, attempt in asked:
        if job_id not in rows:
            continue
        with _logged(job_id):
            sentence = _prepare(rows[job_id], attempt)
            if sentence:
                said.append((job_id, sentence))
            else:
                ready.append(rows[job_id])
    _note(ready)
    launched: list[Job] = []
    running: list[tuple[Job, Identity, Identity]] = []
    for job in ready:
        with _logged(job.pk):
            heard = (by or launch)(lifecycle.run_dir_of(job)).message
            said.append((job.pk, heard))
            launched.append(job)
            if (who := begun(heard)) is not None:
                running.append((job, *who))
    lifecycle.know(running)
    for job in launched:  # a driver may take its time: no other start waits for what it says
        with _logged(job.pk):
            containing.launched(job)
    return said, [(job_id, attempt) for job_id, attempt in asked if job_id not in rows]


@contextlib.contextmanager
def _logged(job_id: int) -> Iterator[None]:
    try:
        yield
    except Exception:  # one start of a message; without a claim it is told again
        log.exception("#%s could not be looked after", job_id, extra={"action": "start_failed"})


def _taken() -> None:
    Node.objects.filter(name=settings.NODE).update(start_taken_clock=clock.now())


def _rows() -> QuerySet[Job]:
    return Job.objects.select_related("user", "user__member", "workload", "array")


def _prepare(job: Job, attempt: int) -> str:
    """Make the run directory and write the spec; return why the attempt is not to be launched, "" where it is."""
    if (job.state, job.attempt, job.node) != (State.ADMITTED, attempt, settings.NODE):
        return f"#{job.pk} attempt {attempt} is not to be started: it is {job.state}, attempt {job.attempt}."
    if job.stop_requested_at is not None:
        return f"#{job.pk} is being cancelled."
    if job.runner:
        return f"#{job.pk} attempt {attempt} is started already."
    if job.run_dir == str(lifecycle.run_dir_of(job)) and not lifecycle.run_dir_of(job).exists():
        return lifecycle.directory_removed(job)
    try:
        run_dir = make_run_dir(job)
        account, problem = accounts.account_for(job.user)
        if problem:
            raise Refused(problem)
        _own_receipts(run_dir, account)
        if not (run_dir / "control" / "claim").exists():
            write_record(str(run_dir / "control" / "spec.json"), spec(job, run_dir, account))
    except (OSError, Refused, BadVariable) as error:
        sentence = not_started(error.sentence if isinstance(error, Refused) else str(error))
        if not _keep_others_out(job):
            return f"#{job.pk} attempt {attempt} is another starter's; here it did not start. {sentence}"
        lifecycle.start_failed(job, sentence)
        return sentence
    return ""


def _note(jobs: Sequence[Job]) -> None:
    """Put the run directories on the rows: from here on one that is gone says that the attempt may have run."""
    if not jobs:
        return
    with transaction.atomic():
        for job in jobs:
            Job.objects.filter(pk=job.pk, attempt=job.attempt).update(run_dir=str(lifecycle.run_dir_of(job)))


def _keep_others_out(job: Job) -> bool:
    """Take the attempt so that no other start of it runs after this one failed; False where a runner has it."""
    run_dir = lifecycle.run_dir_of(job)
    me = identify(os.getpid(), clock.boot_id())
    try:
        return me is None or claim(str(run_dir), me)
    except OSError:  # no directory, no room: then there is no claim of a runner either
        return not (run_dir / "control" / "claim").exists()


def make_run_dir(job: Job) -> Path:
    """Return an attempt's run directory, made if it is not there; only the service may enter ``control``."""
    run_dir = lifecycle.run_dir_of(job)
    settings.RUNS.mkdir(parents=True, exist_ok=True)
    run_dir.mkdir(mode=0o711, exist_ok=True)
    (run_dir / "control").mkdir(mode=0o700, exist_ok=True)
    (run_dir / "receipts").mkdir(mode=0o700, exist_ok=True)
    return run_dir


def _own_receipts(run_dir: Path, account: dict[str, Any] | None) -> None:
    if account is None:
        return
    os.chown(run_dir / "receipts", account["uid"], account["gid"])
    for folder in (run_dir, settings.RUNS, settings.DATA):
        # The account has to reach its receipts; it may pass through, not look around.
        with contextlib.suppress(PermissionError):
            folder.chmod(0o711)


def spec(job: Job, run_dir: Path, account: dict[str, Any] | None) -> dict[str, Any]:
    """Return what the runner is told to do; the only place where the environment's values are in the clear."""
    knobs, _ = snapshots.knobs_now()
    command: dict[str, Any] = {"argv": job.argv} if job.argv else {"command": job.command}
    if job.array_index is not None:
        command = (
            {"argv": list_with_index(job.argv, job.array_index)}
            if job.argv
            else {"command": with_index(job.command, job.array_index)}
        )
    whole = environment(job, run_dir, account)
    inside = {"env": whole, "setup": job.setup, "account": account}
    if job.image:
        inside |= container_spec.spec(job, run_dir, command, account, whole, containing.limit_of_container(job, knobs))
        command = {"argv": inside.pop("argv")}
    return {
        "version": 1,
        "job_id": job.pk,
        "attempt": job.attempt,
        "node": job.node,
        **command,
        "cwd": job.cwd,
        **inside,
        "umask": 0o022,
        "log_limit_bytes": knobs.log_limit_mib << 20,
        "time_limit_s": job.time_limit_s,
        "grace_s": knobs.grace_seconds,
        "sweep": "after_grace" if knobs.leftovers == "sweep" else "keep",
        "sweep_grace_s": knobs.sweep_seconds,
        "oom_score_adj": 500,
        "containment": containing.spec(job, knobs),
    }


def environment(job: Job, run_dir: Path, account: dict[str, Any] | None) -> dict[str, str]:
    """Return a job's whole environment, built from nothing: base, devices, cap, workload, submission.

    What it is in a container of its own is added to what its image says, so there is no base.
    """
    name = account["name"] if account else accounts.worker_name()
    base = {
        "PATH": os.environ.get("PATH", DEFAULT_PATH) if account is None else DEFAULT_PATH,
        "HOME": account["home"] if account else str(Path.home()),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "USER": name,
        "LOGNAME": name,
        "PYTHONUNBUFFERED": "1",
    }
    listed = {key: os.environ[key] for key in (*_LISTED, *settings.JOB_ENVIRONMENT) if key in os.environ}
    given = secrets.unseal(bytes(job.environment)) if job.environment else {}
    preset = secrets.unseal(bytes(job.workload.environment)) if job.workload and job.workload.environment else {}
    if job.image:
        base, listed = {"PYTHONUNBUFFERED": "1"}, {n: v for n, v in listed.items() if not refused_names([n])}
    python_path = {**listed, **preset, **given}.get("PYTHONPATH", "")
    around = device_environment.of(job, {**preset, **given}, python_path, other_account=account is not None)
    capping.note(run_dir, around.told)
    ours = {
        "TIDEGATE_JOB_ID": str(job.pk),
        "TIDEGATE_ATTEMPT": str(job.attempt),
        "TIDEGATE_WORKERS": str(job.workers),
        "TIDEGATE_RECEIPTS": str(run_dir / "receipts"),
        **_way_back(job),
        **_array_variables(job),
        **around.variables,
    }
    if not job.image:  # there it would replace what the image says
        path = around.variables.get("PYTHONPATH", python_path)
        ours["PYTHONPATH"] = device_environment.client_path(path, other_account=account is not None)
    built = build_environment(base, listed, preset, given, ours)
    if job.image:
        return {name: built[name] for layer in (base, listed, preset, given, ours) for name in layer}
    return built


def _way_back(job: Job) -> dict[str, str]:
    """Return where a job finds the service, and the token with which it may ask for more; {} without an address."""
    if not settings.URL:
        return {}
    address = relay.variables() if job.image else {"TIDEGATE_URL": settings.URL}
    return {**address, "TIDEGATE_TOKEN": job_tokens.of(job)}


def _array_variables(job: Job) -> dict[str, str]:
    if job.array is None:
        return {}
    return {
        "TIDEGATE_ARRAY_ID": str(job.array_id),
        "TIDEGATE_ARRAY_INDEX": str(job.array_index),
        "TIDEGATE_ARRAY_SIZE": str(job.array.size),
    }
