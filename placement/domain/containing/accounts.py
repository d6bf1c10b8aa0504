"""Which Unix account a person's jobs run as, and what that means for everybody else's files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Account:
    """A Unix account as the machine knows it."""

    name: str
    uid: int
    gid: int
    home: str


@dataclass(frozen=True, slots=True)
class Person:
    """Whose job it is; ``mapped`` is the account's name that an admin set, "" for none."""

    name: str
    is_admin: bool
    mapped: str = ""


@dataclass(frozen=True, slots=True)
class RunsAs:
    """The answer: the account to drop to (None: the worker's own), or the sentence why nothing can start."""

    account: Account | None = None
    sentence: str = ""


def runs_as(person: Person, *, worker_is_root: bool, found: Account | None) -> RunsAs:
    """Return the account for a person's jobs; ``found`` is the mapped account where this machine has it."""
    if not worker_is_root:
        return RunsAs()
    if person.mapped and found is None:
        return RunsAs(
            sentence=f"{person.name} is mapped to the Unix account {person.mapped}, which this machine does "
            "not have; an admin sets another one on the page People."
        )
    if person.mapped:
        return RunsAs(account=found)
    if person.is_admin:
        return RunsAs()
    return RunsAs(sentence=f"No Unix account is mapped for {person.name}; an admin sets one on the page People.")


def trust_notice(worker: str, *, worker_is_root: bool, people: Sequence[Person]) -> str:
    """Return what people have to know about accounts, "" when every job runs as its own person's account."""
    if not worker_is_root:
        return (
            f"Every job runs as the Unix account {worker}, the service's own: whoever may submit can read "
            "and change all that this account can."
        )
    as_root = sorted(p.name for p in people if p.is_admin and not p.mapped)
    waiting = sorted(p.name for p in people if not p.is_admin and not p.mapped)
    sentences = []
    if as_root:
        sentences.append(f"Jobs of {_names(as_root)} run as root: no Unix account is mapped.")
    if waiting:
        sentences.append(f"Jobs of {_names(waiting)} wait until an admin maps a Unix account.")
    return " ".join(sentences)


def _names(names: Sequence[str]) -> str:
    shown = list(names[:3])
    if len(names) > 3:
        shown.append(f"{len(names) - 3} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
