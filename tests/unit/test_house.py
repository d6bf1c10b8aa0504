"""The promises of the files around the code: locks, containers, import rules, production settings."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler_site import testing
from scheduler_site.__main__ import _parser
from tests import sizes

REPOSITORY = Path(__file__).resolve().parents[2]


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    surroundings = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        env=surroundings | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())


def pins(name: str) -> dict[str, str]:
    lines = (REPOSITORY / name).read_text().splitlines()
    return dict(re.fullmatch(r"([a-z0-9-]+)==([^ ]+)(?: ;.*)?", line).groups() for line in lines[1:])  # type: ignore[union-attr]


def test_locks_pin_every_dependency_once() -> None:
    runtime, tests = pins("requirements.lock"), pins("requirements-test.lock")
    asked = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {re.match(r"[A-Za-z0-9-]+", line)[0].lower() for line in asked}  # type: ignore[index]

    assert names <= runtime.keys()
    assert not runtime.keys() & tests.keys()


def test_the_lock_for_the_newest_django_differs_in_django_alone() -> None:
    runtime, tests, newest = (pins(f"requirements{name}.lock") for name in ("", "-test", "-next"))

    assert int(newest["django"].split(".")[0]) >= 6
    assert runtime.keys() - newest.keys() == {"async-timeout"}  # for a Python older than it is meant for
    assert {name: pin for name, pin in (runtime | tests).items() if newest.get(name) != pin}.keys() & newest.keys() == {
        "django"
    }


def test_locks_name_no_host_and_no_address() -> None:
    for name in ("requirements.lock", "requirements-test.lock", "requirements-next.lock"):
        assert "://" not in (REPOSITORY / name).read_text()


@pytest.mark.parametrize(
    "module",
    ["calibration.domain", "placement.domain", "placement.runner.__main__"],
)
def test_pure_packages_load_without_django(module: str) -> None:
    program = f"import sys, {module}; sys.exit('django' in sys.modules)"

    assert python("-c", program).returncode == 0


def test_every_compose_service_of_ours_runs_a_command_that_exists(compose: Any) -> None:
    ours = {name: service for name, service in compose["services"].items() if service.get("build")}
    assert set(ours) == {"prepare", "web", "node"}
    for name in ("web", "node"):
        options = _parser().parse_args(ours[name]["command"])
        assert options.command == {"web": "web", "node": "worker"}[name]
    help_text = python("-m", *ours["prepare"]["entrypoint"][2:], "--help").stdout
    assert ours["prepare"]["command"][0] in help_text
    assert ours["prepare"]["command"][1] in help_text


def test_compose_reaps_orphans_and_measures_the_hosts_processes(compose: Any) -> None:
    services = compose["services"]

    assert all(services[name]["init"] is True for name in ("web", "node"))
    assert services["node"]["pid"] == "host"
    assert services["web"]["ports"] == ["127.0.0.1:8470:8470"]


def test_compose_brings_no_password_of_its_own(compose: Any) -> None:
    environment = compose["services"]["node"]["environment"]

    assert environment["TIDEGATE_SECRET_KEY"].startswith("${TIDEGATE_SECRET_KEY:?")
    assert ":${TIDEGATE_DB_PASSWORD:?" in environment["TIDEGATE_DATABASE_URL"]


def test_compose_sets_only_variables_that_the_settings_read(compose: Any) -> None:
    settings = (REPOSITORY / "scheduler_site/settings.py").read_text()

    for name in compose["services"]["node"]["environment"]:
        assert f'"{name}"' in settings


def test_every_variable_that_is_read_is_documented() -> None:
    listed = re.findall(r"`(TIDEGATE_[A-Z_]+)(?:=[^`]*)?`", (REPOSITORY / "docs/settings.md").read_text())
    read = re.findall(r'"(TIDEGATE_[A-Z_]+)"', (REPOSITORY / "scheduler_site/settings.py").read_text())
    given = re.findall(
        r'"(TIDEGATE_[A-Z_]+)"',
        (REPOSITORY / "placement/services/starting.py").read_text()
        + (REPOSITORY / "placement/domain/containing/environment.py").read_text()
        + (REPOSITORY / "placement/domain/containing/cap_environment.py").read_text()
        + (REPOSITORY / "placement/domain/containing/visible.py").read_text()
        + (REPOSITORY / "placement/services/relay.py").read_text(),
    )
    assert set(read) - {"TIDEGATE_BIND"} | set(given) - {"TIDEGATE_SIMULATED"} == set(listed)


def test_dockerfile_starts_a_command_that_exists() -> None:
    command = re.search(r"^CMD (\[.*\])$", (REPOSITORY / "Dockerfile").read_text(), re.M)
    assert command is not None

    assert _parser().parse_args(yaml.safe_load(command[1])).host == "0.0.0.0"


def test_production_settings_pass_the_deployment_check(tmp_path: Path) -> None:
    checked = python(
        *("manage.py", "check", "--deploy", "--fail-level", "WARNING"),
        **testing.PRODUCTION,
        TIDEGATE_DATA=str(tmp_path),
    )

    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    "name, value",
    [
        ("TIDEGATE_DEBUG", "perhaps"),
        ("TIDEGATE_DATABASE_URL", "mysql://db/tidegate"),
        ("TIDEGATE_DATABASE_URL", "postgresql://db/"),
        ("TIDEGATE_TEST_KNOBS", "[1]"),
        ("TIDEGATE_RUNS", "runs"),
        ("TIDEGATE_BROKER_URL", "safefs://"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, tmp_path: Path) -> None:
    checked = python("manage.py", "check", **{"TIDEGATE_DATA": str(tmp_path), name: value})

    assert checked.returncode != 0
    assert "ImproperlyConfigured" in checked.stderr
    assert name in checked.stderr.splitlines()[-1]


def test_every_module_has_one_subject() -> None:
    assert sizes.complaints() == []


def test_the_shell_command_lists_what_the_program_knows() -> None:
    known = {"up", "down", "doctor", "worker", "web"}
    shell = (REPOSITORY / "tidegate").read_text()
    usage = shell.partition("usage() {")[2].partition("\n}")[0]

    assert all(re.search(rf"\b{word}\b", usage) for word in known | {"test", "lint", "manage", "shots"})
    assert subprocess.run(["sh", "-n", REPOSITORY / "tidegate"], check=False).returncode == 0
