"""The fast tests once more on the newest Django, where this machine has a Python that is new enough for it.

The service runs on Django's release with long support; this shows in time what the next one would break.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

LOCK = "requirements-next.lock"
OLDEST = (3, 12)
NAMES = ("python3.14", "python3.13", "python3.12", "python3")
VARIABLE = "TIDEGATE_NEXT_PYTHON"


class NoPackages(Exception):
    """The packages for the newest Django could not be installed."""


def find_python(environment: Mapping[str, str]) -> str | None:
    """Return the newest Python here that is new enough, the one that ``TIDEGATE_NEXT_PYTHON`` names before all others.

    Each is started once: a shim of a version manager may name a Python that it does not have. Raises ValueError
    when the variable names one that does not start or is too old.
    """
    if named := environment.get(VARIABLE):
        if (_version(named) or (0, 0)) < OLDEST:
            raise ValueError(f"{VARIABLE} is {named}, which is no Python {_dotted(OLDEST)} or newer that starts here.")
        return named
    found: dict[tuple[int, ...], str] = {}
    for path in _candidates(environment):
        version = _version(path)
        if version is not None and version >= OLDEST:
            found.setdefault(version, path)
    return found[max(found)] if found else None


def environment_for(python: str, repository: Path) -> str:
    """Return the Python of ``.venv-next``, made from ``python`` and with what the lock pins installed.

    Made anew when the lock or the Python is another one than before. Raises NoPackages.
    """
    lock, venv = repository / LOCK, repository / ".venv-next"
    inside, stamp = venv / "bin" / "python", venv / ".installed"
    wanted = f"{python} {_version(python)}\n{lock.read_text()}"
    if _version(str(inside)) is not None and stamp.is_file() and stamp.read_text() == wanted:
        return str(inside)
    print(f"Installing packages from {LOCK} into .venv-next (once)", flush=True)
    shutil.rmtree(venv, ignore_errors=True)
    pip = [str(inside), "-m", "pip"]
    if _run([python, "-m", "venv", str(venv)]):
        # Debian keeps pip for this in a package of its own; the pip of the other environment can do it.
        shutil.rmtree(venv, ignore_errors=True)
        if problem := _run([python, "-m", "venv", "--without-pip", str(venv)]):
            raise NoPackages(f"{python} could not make {venv}: {problem}")
        pip = [sys.executable, "-m", "pip", "--python", str(inside)]
    options = ["install", "--quiet", "--disable-pip-version-check", "--no-input", "--requirement", str(lock)]
    if problem := _run([*pip, *options]) and _run([*pip, *options]):
        raise NoPackages(f"the packages of {LOCK} could not be installed: {problem}")
    stamp.write_text(wanted)
    return str(inside)


def _candidates(environment: Mapping[str, str]) -> Iterator[str]:
    for name in NAMES:
        if path := shutil.which(name, path=environment.get("PATH")):
            yield path
    home = Path(environment.get("HOME") or "/nonexistent")
    for kept in (Path(environment.get("PYENV_ROOT") or home / ".pyenv") / "versions", home / ".local/share/uv/python"):
        yield from (str(path) for path in sorted(kept.glob("*/bin/python3")))


def _version(python: str) -> tuple[int, ...] | None:
    """Return the version, None for what does not start, is no Python, or is a trial release."""
    program = "import sys; print(*sys.version_info[:3]); sys.exit(sys.version_info[3] != 'final')"
    # None of ours: a module beside the code must not be taken for one of Python's.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        asked = subprocess.run(
            [python, "-I", "-c", program], env=clean, capture_output=True, text=True, timeout=20, check=True
        )
        return tuple(int(part) for part in asked.stdout.split())
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def _run(command: list[str]) -> str:
    """Return what is wrong in its last line, "" when nothing is."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, env=clean, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if not done.returncode:
        return ""
    return (done.stdout.strip().splitlines() or [f"exit {done.returncode}"])[-1]


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)
