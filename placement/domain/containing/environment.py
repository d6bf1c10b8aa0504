"""The environment that a command is started with: built from nothing, in a known order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MASK = "•••"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(
    r"(?i)(secret|token|passw|passphrase|credential|cookie|private|signature|apikey|_dsn$|database_url"
    r"|(^|_)(key|pass|pwd|auth|pat|sas)(_|$))"
)
_NOT_SECRET = frozenset({"PWD", "OLDPWD"})
_URL_PASSWORD = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://[^\s/:@]*):[^\s/@]+@")
_JAX_OLD, _JAX_NEW = "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"
_CUPY = "CUPY_GPU_MEMORY_LIMIT"


class BadVariable(ValueError):
    """A variable that no process can be given."""


@dataclass(frozen=True, slots=True)
class Framework:
    """What keeps frameworks within a cap, and the user's own settings that were left as they are."""

    variables: Mapping[str, str]
    kept: Mapping[str, str] = field(default_factory=dict)


def framework_variables(
    cap_bytes: int | None, device_total: int | None, user_env: Mapping[str, str], context_allowance: int
) -> Framework:
    """Return what keeps frameworks within the cap; a value that the user set is kept and listed.

    JAX takes its share under an old or a new name and refuses both, so ours is set only where neither is. Without a
    cap only preallocation is turned off, so that what is measured is what is needed.
    """
    ours = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
    if cap_bytes is not None:
        pool = max(1, cap_bytes - context_allowance)  # 0 would mean no limit
        ours[_CUPY] = str(pool)
        if device_total:
            ours[_JAX_OLD] = f"{min(100, max(1, pool * 100 // device_total)) / 100:.2f}"
    kept = {name: user_env[name] for name in (*ours, _JAX_NEW) if name in user_env}
    if _JAX_NEW in kept:
        ours.pop(_JAX_OLD, None)
    variables = {name: value for name, value in ours.items() if name not in kept}
    if cap_bytes is not None:
        variables["TIDEGATE_VRAM_CAP_BYTES"] = str(cap_bytes)
    return Framework(variables, kept)


def build_environment(
    base: Mapping[str, str],
    listed: Mapping[str, str],
    workload: Mapping[str, str],
    submission: Mapping[str, str],
    ours: Mapping[str, str],
) -> dict[str, str]:
    """Return the whole environment, from nothing. Later wins: base, listed by an admin, workload, submission, ours.

    PATH, HOME and LANG are there even where ``base`` lacks them. Raise BadVariable naming the variable.
    """
    built = {"PATH": DEFAULT_PATH, "HOME": "/", "LANG": "C.UTF-8"}
    for layer in (base, listed, workload, submission, ours):
        for name, value in layer.items():
            _check(name, value)
            built[name] = value
    return built


def overruled(user_env: Mapping[str, str], built: Mapping[str, str]) -> dict[str, str]:
    """Return the user's settings that did not stand, so that a page can say so."""
    return {name: value for name, value in user_env.items() if built.get(name) != value}


def _check(name: str, value: str) -> None:
    if not _NAME.fullmatch(name):
        raise BadVariable(f"{name!r} is no name of a variable. Use letters, digits and _, no digit first.")
    if "\0" in value:
        raise BadVariable(f"The value of {name} holds a zero byte, which no process can be given.")


def shown(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables as they may be shown and logged: what looks secret is masked."""
    return {name: MASK if secret(name) else _URL_PASSWORD.sub(rf"\1:{MASK}@", v) for name, v in variables.items()}


def secret(name: str) -> bool:
    """Return whether a variable's name looks as if its value were secret."""
    return name not in _NOT_SECRET and _SECRET.search(name) is not None
