"""Lineage: which owner a process belongs to, by rules from the strongest to the weakest."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from .samples import Claim, Identity, ProcessSample, Reading

SERVICE = "tidegate"
"""Owner of the runners themselves: their memory is the service's, not the jobs'."""

Owned = tuple[str, str]
"""An owner and the rule that found it."""


def owners_of(
    reading: Reading,
    claims: Sequence[Claim],
    marker_of: Callable[[int], str | None] | None,
    container_of: Callable[[str], str | None] | None = None,
    disputes: dict[int, tuple[str, str]] | None = None,
    service: int | None = None,
) -> dict[int, Owned]:
    """Return (owner, rule) per pid that can be attributed; the rest belongs to nobody of ours.

    The rules in order: the control group ("cgroup"); the chain of parents up to a runner ("supervisor") or a recorded
    leader ("root"), nearest first; an identity attributed before, or a descendant of one ("known"); the label of the
    container whose group it is in ("container"); the marker in the environment ("marker"); the session of a member
    ("session"); last the pid ``service``, which started the service's own processes ("service").
    ``disputes`` is filled with (by group, by parents) where these two differ.
    """
    table = reading.processes
    marker = marker_of or (lambda pid: None)
    supervisors = _index((claim.supervisor, claim) for claim in claims if claim.supervisor is not None)
    roots = _index((root, claim) for claim in claims for root in claim.roots)
    known = _index((identity, claim) for claim in claims for identity in claim.known)

    def pick(found: Mapping[int, list[tuple[Identity, Claim]]], process: ProcessSample) -> str | None:
        named = found.get(process.pid)
        if named is None:
            return None
        itself = _identity(reading, process)
        rivals = [claim for identity, claim in named if identity == itself]
        if len(rivals) > 1:
            told = marker(process.pid)
            rivals = [claim for claim in rivals if claim.marker and claim.marker == told] or rivals
        return rivals[-1].owner if rivals else None

    inside = _Inside(claims, container_of)
    rules: dict[int, Owned] = {}
    above: dict[int, Owned | None] = {}  # what a pid hands down to its children
    for process in table.values():
        if pick(supervisors, process) is not None:
            rules[process.pid] = (SERVICE, "supervisor")
            continue
        hit = _inherit(
            table,
            process,
            lambda p: _tag(pick(roots, p), "root") or _tag(pick(supervisors, p), "supervisor"),
            above,
        )
        kept_in = inside.group(process.cgroup)
        if kept_in is not None:
            if disputes is not None and hit is not None and hit[0] != kept_in:
                disputes[process.pid] = (kept_in, hit[0])
            hit = (kept_in, "cgroup")
        if hit is not None:
            rules[process.pid] = hit
    above_known: dict[int, Owned | None] = {}
    for process in table.values():
        if process.pid not in rules:
            hit = _inherit(table, process, lambda p: _tag(pick(known, p), "known"), above_known)
            if hit is not None:
                rules[process.pid] = hit
    for process in table.values():
        if process.pid not in rules and (owner := inside.container(process.cgroup)) is not None:
            rules[process.pid] = (owner, "container")
    rules |= _marked(reading, claims, rules, marker)
    rules |= _in_session(reading, claims, rules)
    return rules | _of_the_service(table, rules, service)


def _of_the_service(
    table: Mapping[int, ProcessSample], rules: Mapping[int, Owned], service: int | None
) -> dict[int, Owned]:
    """Return the service's own processes: those below the one that started them which are nobody's by a better rule."""
    if service not in table:
        return {}
    above: dict[int, Owned | None] = {}
    found: dict[int, Owned] = {}
    for process in table.values():
        if process.pid in rules:
            continue
        hit = _inherit(table, process, lambda p: (SERVICE, "service") if p.pid == service else None, above)
        if hit is not None:
            found[process.pid] = hit
    return found


class _Inside:
    """Whose a control group is; each path is looked at once, and most processes share a few."""

    def __init__(self, claims: Sequence[Claim], container_of: Callable[[str], str | None] | None) -> None:
        self._ends = {claim.group: claim.owner for claim in claims if claim.group}
        self._owners = {claim.owner for claim in claims}
        self._container_of = container_of or (lambda path: None)
        self._groups: dict[str, str | None] = {}
        self._containers: dict[str, str | None] = {}

    def group(self, path: str) -> str | None:
        """Return the owner of a group or of one above it, however long the path before its name is."""
        if not path or not self._ends:
            return None
        if path not in self._groups:
            parts = path.split("/")
            names = [*parts, *("/".join(pair) for pair in itertools.pairwise(parts))]
            self._groups[path] = next((self._ends[name] for name in reversed(names) if name in self._ends), None)
        return self._groups[path]

    def container(self, path: str) -> str | None:
        """Return the owner that the container of this group is labelled with, if it is one of ours."""
        if not path:
            return None
        if path not in self._containers:
            owner = self._container_of(path)
            self._containers[path] = owner if owner in self._owners else None
        return self._containers[path]


def _identity(reading: Reading, process: ProcessSample) -> Identity:
    return Identity(reading.boot_id, process.pid, process.start_ticks)


def _index(pairs: Iterable[tuple[Identity, Claim]]) -> dict[int, list[tuple[Identity, Claim]]]:
    found: dict[int, list[tuple[Identity, Claim]]] = {}
    for identity, claim in pairs:
        found.setdefault(identity.pid, []).append((identity, claim))
    return found


def _tag(owner: str | None, rule: str) -> Owned | None:
    return None if owner is None else (owner, rule)


def _inherit(
    table: Mapping[int, ProcessSample],
    process: ProcessSample,
    hit: Callable[[ProcessSample], Owned | None],
    memo: dict[int, Owned | None],
) -> Owned | None:
    """Return the first hit on the way up, the process itself included.

    A link counts only if the parent started no later than the child: otherwise the number was used again.
    """
    path: list[int] = []
    node, result = process, None
    while True:
        if node.pid in memo:
            result = memo[node.pid]
            break
        path.append(node.pid)
        memo[node.pid] = None  # a cycle ends here
        result = hit(node)
        parent = table.get(node.ppid)
        if result is not None or parent is None or parent.start_ticks > node.start_ticks:
            break
        node = parent
    memo.update(dict.fromkeys(path, result))
    return result


def _marked(
    reading: Reading,
    claims: Sequence[Claim],
    rules: Mapping[int, Owned],
    marker: Callable[[int], str | None],
) -> dict[int, Owned]:
    by_marker: dict[str, list[Claim]] = {}
    for claim in claims:
        if claim.marker:
            by_marker.setdefault(claim.marker, []).append(claim)
    found: dict[int, Owned] = {}
    for process in reading.processes.values() if by_marker else ():
        if process.pid in rules:
            continue
        rivals = by_marker.get(marker(process.pid) or "", [])
        # An environment can be copied, so it proves nothing for what is older than the owner.
        if len(rivals) == 1 and _since(rivals[0], reading.boot_id, process):
            found[process.pid] = (rivals[0].owner, "marker")
    return found


def _since(claim: Claim, boot_id: str, process: ProcessSample) -> bool:
    """Return whether a process started no earlier than its would-be owner, who has none before it began."""
    first = [*claim.roots, *([] if claim.supervisor is None else [claim.supervisor])]
    began = min((identity.start_ticks for identity in first if identity.boot_id == boot_id), default=None)
    return began is not None and process.start_ticks >= began


def _in_session(reading: Reading, claims: Sequence[Claim], rules: Mapping[int, Owned]) -> dict[int, Owned]:
    """Attribute what shares a session with a member alive now.

    The number of a session cannot be given out again while a member of it lives, so that proves it is the
    same.
    """
    members: dict[int, set[str]] = {}
    for pid, (owner, _) in rules.items():
        members.setdefault(reading.processes[pid].session, set()).add(owner)
    by_session: dict[int, list[Claim]] = {}
    for claim in claims:
        for session in claim.sessions:
            by_session.setdefault(session, []).append(claim)
    found: dict[int, Owned] = {}
    for process in reading.processes.values():
        rivals = by_session.get(process.session, [])
        if process.pid in rules or len(rivals) != 1:
            continue
        if not _since(rivals[0], reading.boot_id, process):
            continue
        claim, alive = rivals[0], members.get(process.session, set())
        leader = reading.processes.get(process.session)
        runs = leader is not None and _identity(reading, leader) == claim.supervisor
        if runs or claim.owner in alive:
            found[process.pid] = (claim.owner, "session")
    return found
