"""Start a runner for a run directory and wait for its word. Service side."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CODE_ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
_CLAIMED_BY_ANOTHER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchResult:
    """What the launch came to. `ok`: the attempt is on record, by this runner or by another before it.

    A command that could not be started is `ok` too: its outcome is in the run directory. `message` is the
    runner's sentence.
    """

    ok: bool
    message: str


def launch(
    run_dir: str | os.PathLike[str],
    python: str = sys.executable,
    root: str | os.PathLike[str] = CODE_ROOT,
    timeout_s: float = 10.0,
) -> LaunchResult:
    """Return once the runner has put the start on record, or why it did not. Raises nothing.

    The runner inherits no file, no environment, no session and no directory of the caller.
    """
    command = [python, "-S", "-E", "-s", "-m", "placement.runner", os.path.abspath(run_dir)]
    try:
        done = subprocess.run(
            command,
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            start_new_session=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        # Only the messenger is ended; the runner, if it lives, says the rest in the run directory.
        return LaunchResult(ok=False, message=f"the runner did not confirm the start within {timeout_s:g} s")
    except (OSError, ValueError) as error:
        return LaunchResult(ok=False, message=f"could not start: the runner cannot be launched: {error}")
    message = done.stderr.decode("utf-8", "replace").strip()[-2000:]
    ok = done.returncode in (0, _CLAIMED_BY_ANOTHER)
    return LaunchResult(ok=ok, message=message or f"the runner's launcher ended with code {done.returncode}")
