"""`test` and `lint`: every check that can run here, and an honest list of what could not.

Exit codes: 0 all ran and passed, 1 something failed, 3 all that ran passed but not everything could run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from scheduler_site import next_django

REPOSITORY = Path(__file__).resolve().parent.parent
INCOMPLETE = 3

# What tests need beyond Python packages: a program that shows it is there, and Debian's package for it.
PROGRAMS = {
    "redis-server": "redis-server",
    "initdb": "postgresql",
    "psql": "postgresql",
    "chromium": "chromium",
    "cc": "build-essential",
}
# And for slow tests: a small machine with real systemd and cgroup v2, which is built and booted (tests/uml).
MACHINE = {"linux.uml": "user-mode-linux", "debootstrap": "debootstrap", "mke2fs": "e2fsprogs"}
# And a real engine for containers; docker is tried where it is installed already.
ENGINE = {"podman": "podman", "conmon": "conmon", "runc": "runc", "catatonit": "catatonit", "busybox": "busybox-static"}
# Where `check --deploy` looks: a service behind a TLS proxy.
PRODUCTION = {
    "TIDEGATE_HTTPS": "1",
    "TIDEGATE_DEBUG": "0",
    "TIDEGATE_ALLOWED_HOSTS": "tidegate.example.org",
    "TIDEGATE_SECRET_KEY": "check-deploy-wants-a-long-key-of-many-different-signs-0123456789",
}


def main(command: str, arguments: Sequence[str]) -> int:
    """Run the checks that execute nothing, and for `test` all tests; return the exit code."""
    # An own directory, so that no check touches the data of a service that runs from this checkout.
    os.environ["TIDEGATE_DATA"] = os.environ.get("TIDEGATE_TEST_DATA") or str(_scratch())
    try:
        if command == "lint":
            return 1 if _lint() else 0
        return _test(list(arguments))
    finally:
        shutil.rmtree(os.environ["TIDEGATE_DATA"], ignore_errors=True)


def _test(arguments: list[str]) -> int:
    everything = "--all" in arguments
    arguments = [argument for argument in arguments if argument != "--all"]
    marks = [] if everything else ["-m", "not slow"]
    missing = _programs(PROGRAMS | MACHINE | ENGINE if everything else PROGRAMS)
    failed = []
    if arguments:
        # Somebody works on something: run just that.
        failed += _run("tests", [*_PYTEST, *marks, *arguments])
    else:
        failed += _lint()
        failed += _run("unit tests", [*_PYTEST, *marks, *_UNIT])
        failed += _run("integration tests", [*_PYTEST, *marks, *_INTEGRATION])
        # Each file's services share what it starts. Both tiers wait much: two cores carry three workers.
        failed += _run("acceptance tests", [*_PYTEST, *marks, "-n", "3", "--dist", "loadfile", "tests/acceptance"])
        failed += _on_the_next_django(missing, everything)
    if failed:
        print(f"\nFailed: {', '.join(failed)}.")
        return 1
    if missing and not arguments:
        print("\nPassed, but this machine could not run everything:")
        for sentence in missing:
            print(f"  {sentence}")
        return INCOMPLETE
    print("\nEverything passed." if everything or arguments else "\nEverything passed (--all adds the slow tests).")
    return 0


_PYTEST = (sys.executable, "-m", "pytest", "-q")
_UNIT = ("-p", "no:django", "-n", "2", "tests/unit")
_INTEGRATION = ("-n", "3", "tests/integration")


def _on_the_next_django(missing: list[str], everything: bool) -> list[str]:
    """Run the integration tests once more on the newest Django; return the names of tiers that failed.

    Unit tests know no Django, and integration tests that run real jobs know little of it: only with ``everything`` do
    they run on that newer Python, too.

    Without a Python for it nothing is run and nothing is missing. Packages that cannot be had are added to ``missing``.
    """
    try:
        base = next_django.find_python(os.environ)
        if base is None:
            print("== newest Django: no Python 3.12 or newer was found here, so it is left out", flush=True)
            return []
        python = next_django.environment_for(base, REPOSITORY)
    except ValueError as error:
        print(f"== newest Django: {error}", flush=True)
        return ["newest Django"]
    except next_django.NoPackages as error:
        missing.append(f"tests on the newest Django: {error}")
        return []
    pytest = [python, *_PYTEST[1:], "-m", "not slow" if everything else "not slow and not runs"]
    failed = _run("unit tests on the newest Python", [*pytest, *_UNIT]) if everything else []
    return failed + _run("integration tests on the newest Django", [*pytest, *_INTEGRATION])


def _lint() -> list[str]:
    """Return the names of the checks that failed."""
    python = sys.executable
    tool = str(Path(python).parent) + "/"
    pure = [
        name
        for name in ("calibration/domain", "placement/domain", "placement/runner", "placement/client")
        if (REPOSITORY / name).is_dir()
    ]
    templates = sorted(str(path.relative_to(REPOSITORY)) for path in REPOSITORY.glob("templates/**/*.html"))
    failed = _run("ruff check", [tool + "ruff", "check", "--quiet", "--no-cache", "."])
    failed += _run("ruff format", [tool + "ruff", "format", "--check", "--quiet", "--no-cache", "."])
    failed += _run("mypy", [python, "-m", "mypy", "--cache-dir", "/dev/null", *pure])
    failed += _run("import rules", [tool + "lint-imports", "--no-cache"])
    failed += _run("module sizes", [python, "-m", "tests.sizes"])
    if templates:
        failed += _run("djade", [tool + "djade", "--check", "--target-version", "5.2", *templates])
        failed += _run("djlint", [tool + "djlint", "--lint", "--quiet", *templates])
    failed += _run("migrations", [python, "manage.py", "makemigrations", "--check", "--dry-run"])
    production = [python, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    failed += _run("settings for production", production, PRODUCTION)
    return failed


def _run(name: str, command: Sequence[str], more: dict[str, str] | None = None) -> list[str]:
    print(f"== {name}", flush=True)
    begun = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), **(more or {})}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    if "pytest" in command:
        environment.pop("TIDEGATE_DATA", None)
    code = subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode
    if code:
        print(f"== {name}: FAILED (exit {code}) after {time.monotonic() - begun:.1f} s", flush=True)
    return [name] if code else []


def _scratch() -> Path:
    import tempfile

    return Path(tempfile.mkdtemp(prefix="tidegate-check-"))


def _has(program: str) -> bool:
    if program == "initdb":
        return bool(shutil.which("initdb") or list(Path("/usr/lib/postgresql").glob("*/bin/initdb")))
    return shutil.which(program) is not None


def _programs(wanted: Mapping[str, str]) -> list[str]:
    """Install missing programs as root on Debian; return a sentence for each thing that cannot be tested."""
    lacking = [program for program in wanted if not _has(program)]
    root = os.geteuid() == 0
    if lacking and root and shutil.which("apt-get"):
        packages = sorted({wanted[program] for program in lacking})
        print(f"Installing {', '.join(packages)}", flush=True)
        _apt(packages)
        lacking = [program for program in wanted if not _has(program)]
    sentences = [f"{program} is not installed (Debian: {wanted[program]})" for program in lacking]
    if not root:
        machine = ", a machine with systemd in user-mode Linux, real containers" if "linux.uml" in wanted else ""
        sentences.append(f"not root: jobs under other people's accounts{machine}, and nothing else, need it")
    return sentences


def _apt(packages: Sequence[str]) -> None:
    # PostgreSQL's package would start a cluster of its own; the tests make theirs.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    quiet = {"env": environment, "stdout": subprocess.DEVNULL, "check": False}
    subprocess.run(["apt-get", "update", "-qq"], **quiet)  # type: ignore[call-overload]
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"]
    for package in packages:
        # One at a time: a package that cannot be had must not keep the others away.
        subprocess.run([*install, package], **quiet)  # type: ignore[call-overload]
