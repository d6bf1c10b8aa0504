"""What all tests share: settings for those that need Django, servers to throw away, no silent skips in CI."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.examples import quick_run, whatever_the_pace

# Imported by pytest before anything reads the settings. A child (xdist) inherits its parent's directory.
_DATA = os.environ.get("TIDEGATE_TEST_DATA") or tempfile.mkdtemp(prefix="tidegate-test-")
os.environ["TIDEGATE_TEST_DATA"] = _DATA
for _name in [name for name in os.environ if name.startswith("TIDEGATE_")]:
    # The tester's own service must not colour the tests; a database to test against may be given.
    if _name not in {"TIDEGATE_TEST_DATA", "TIDEGATE_DATABASE_URL"}:
        del os.environ[_name]
os.environ["TIDEGATE_DATA"] = _DATA
os.environ["TIDEGATE_SECRET_KEY"] = "only-for-tests-" * 4
os.environ["TIDEGATE_NODE"] = "testnode"


def _only_unit_tests(arguments: list[str]) -> bool:
    paths = [Path(argument.split("::")[0]).resolve() for argument in arguments]
    unit = Path(__file__).parent.resolve() / "unit"
    return bool(paths) and all(path == unit or unit in path.parents for path in paths)


def pytest_configure(config: pytest.Config) -> None:
    # Before any test module is read: decorators ask for it.
    whatever_the_pace()
    if config.getoption("markexpr") == "not slow":
        quick_run()
    if not _only_unit_tests(config.args):
        import django

        os.environ["DJANGO_SETTINGS_MODULE"] = "scheduler_site.settings"
        django.setup()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(_DATA, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: skipped, but in CI nothing may be: {call.excinfo and call.excinfo.value}"
    return report


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A Redis server of this session's own."""
    with servers.redis() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """An empty PostgreSQL database on a server of this session's own."""
    with servers.postgres() as url:
        yield url
