"""The Unix account of a person's jobs on this machine."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.contrib.auth import get_user_model

from placement.domain.containing import accounts
from placement.domain.containing.accounts import Account
from placement.services import members


def find(name: str) -> Account | None:
    """Return the account of this name on this machine, None where there is none."""
    try:
        entry = pwd.getpwnam(name)
    except (KeyError, ValueError, OSError):  # ValueError: a NUL; OSError: the directory service is away
        return None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, entry.pw_dir)


def account_for(user: Any) -> tuple[dict[str, Any] | None, str]:
    """Return what the runner drops to (None: it stays the worker's account), and why nothing can start.

    A sentence that is not empty means: the job waits, with the code no_account.
    """
    person = members.person(user)
    answer = accounts.runs_as(
        person, worker_is_root=worker_is_root(), found=find(person.mapped) if person.mapped else None
    )
    return (asdict(answer.account) if answer.account else None), answer.sentence


def problem(user: Any) -> str:
    """Return why a person's jobs have no account to run as, "" where they have one."""
    return account_for(user)[1]


def trust_notice() -> str:
    """Return what pages say about accounts, "" when every job runs as its own person's account."""
    users = get_user_model().objects.filter(is_active=True).select_related("member")
    people = [members.person(user) for user in users]
    able = [p for p, user in zip(people, users, strict=True) if members.may(user, "submit")]
    return accounts.trust_notice(worker_name(), worker_is_root=worker_is_root(), people=able)


def worker_is_root() -> bool:
    return os.geteuid() == 0


def worker_name() -> str:
    """Return the name of the account that this process runs as, its number where it has none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


def may_enter(account: Mapping[str, Any] | None, folder: str) -> bool:
    """Return whether a job's account may enter a folder: whoever mounts one for it may enter them all."""
    if account is None or not worker_is_root():
        return os.access(folder, os.R_OK | os.X_OK)
    groups = (
        account["groups"] if account.get("groups") is not None else os.getgrouplist(account["name"], account["gid"])
    )
    looked = subprocess.run(
        ["/bin/sh", "-c", 'cd -- "$1" && ls -- . >/dev/null', "sh", folder],
        user=account["uid"], group=account["gid"], extra_groups=groups, cwd="/", env={"PATH": os.defpath},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=10, check=False,
    )  # fmt: skip
    return looked.returncode == 0
