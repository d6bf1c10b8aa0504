"""What stories share: one browser a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser import browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A running browser; two at once are not possible in one process, so it ends with its module."""
    with browser() as running:
        yield running
