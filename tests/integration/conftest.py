"""Django with a database and a data directory of this run alone."""

from __future__ import annotations

import os
import shutil
import tempfile

os.environ["TIDEGATE_DATA"] = tempfile.mkdtemp(prefix="tidegate-test-")
os.environ["DJANGO_SETTINGS_MODULE"] = "scheduler_site.settings"

import django

django.setup()


def pytest_unconfigure() -> None:
    shutil.rmtree(os.environ["TIDEGATE_DATA"], ignore_errors=True)
