"""Django with a database and a data directory of this run alone."""

from __future__ import annotations

import os
import shutil
import tempfile

os.environ["TIDEGATE_DATA"] = tempfile.mkdtemp(prefix="tidegate-test-")
os.environ["DJANGO_SETTINGS_MODULE"] = "scheduler_site.settings"

import django
import pytest
from django.conf import settings

django.setup()
# A real one takes a second of a processor a login, by design; nobody here tells hashers apart.
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

from calibration import rows  # noqa: E402
from placement import estimates  # noqa: E402
from placement.selectors import expected  # noqa: E402


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of files that run real jobs: they know little of Django, and are not repeated on another one."""
    for item in items:
        if isinstance(item, pytest.Function) and "Here" in vars(item.module):
            item.add_marker(pytest.mark.runs)


def pytest_unconfigure() -> None:
    shutil.rmtree(os.environ["TIDEGATE_DATA"], ignore_errors=True)


@pytest.fixture(autouse=True)
def _nothing_learned_before() -> None:
    """Rows are known by their ids, which come again in each test's database and never in a service's.

    How good forecasts were is kept for a minute: without this a page would tell the record of the test before.
    """
    rows.forget()
    estimates.forget()
    expected.forget()


@pytest.fixture
def an_account_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let jobs of whoever be run by whoever runs the tests."""
    monkeypatch.setattr("placement.services.accounts.problem", lambda user: "")
