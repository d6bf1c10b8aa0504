"""What keeps a job in its main memory, in words: on the node's page, in the doctor, on the job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from calibration.domain.resources import gib

WORDS = {
    "scope": "a control group per job, made by systemd",
    "direct": "a control group per job, made by the worker",
    "user": "a control group per job, made by the account's own systemd",
    "delegated": "a control group per job, below the worker's own",
    "container": "a control group per job, inside this container's",
    "v1": "a control group per job (cgroup v1)",
}
TRIED = {
    "scope": "a scope of systemd",
    "direct": "groups made by root",
    "user": "a scope of the account's systemd",
    "delegated": "groups below our own",
    "container": "groups in a container's",
    "v1": "cgroup v1",
}


@dataclass(frozen=True, slots=True)
class Force:
    """What is in force for one job's main memory; ``limit`` in bytes, None where only the watchdog looks."""

    kind: str  # "cgroup" or "watched"
    limit: int | None
    sentence: str


def of_node(kind: str, grouped: bool) -> str:
    """Return how a node keeps its jobs; ``grouped``: they have groups, though nothing limits these."""
    if kind in WORDS:
        return f"kernel: {WORDS[kind]}"
    group = "; a control group per job tells its processes and ends them" if grouped else ""
    return f"watchdog only: no control group can limit memory here{group}"


def why_not(tried: Iterable[tuple[str, str]]) -> str:
    """Return the rungs that were tried in vain, each with its reason."""
    return "; ".join(f"{TRIED.get(kind, kind)}: {why}" for kind, why in tried)


def of_job(limit: int | None, why: str, *, warns_only: bool, planned: bool) -> Force:
    """Return what is in force for a job; ``planned``: its node could have limited it."""
    if limit is not None:
        return Force("cgroup", limit, f"kept in {gib(limit)} by its control group")
    if warns_only:
        return Force("watched", None, "watched, not kept: the policy only warns")
    reason = why or ("it began without one" if planned else "no control group can limit memory on its node")
    return Force("watched", None, f"watched, not kept: {reason}")


def of_container(limit: int | None, refused: str = "", *, warns_only: bool = False) -> Force:
    """Return what is in force for a job that runs in a container of its own; ``refused``: it was to be another."""
    if limit is None:
        why = refused or ("the policy only warns" if warns_only else "its container was given no limit")
        return Force("watched", None, f"watched, not kept: {why}")
    wrong = f"; {'the policy only warns, but ' if warns_only else ''}{refused}" if refused else ""
    return Force("cgroup", limit, f"kept in {gib(limit)} by its container's own limit{wrong}")


def fields(force: Force, evidence: dict[str, Any]) -> dict[str, Any]:
    """Return what a charge keeps of it."""
    return {"kind": force.kind, "bytes": force.limit, "sentence": force.sentence, "evidence": evidence}
