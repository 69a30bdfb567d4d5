"""A browser for the tests of reports."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.browser import Browser, chromium


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser; the test is skipped where there is none."""
    with chromium(tmp_path_factory.mktemp("browser")) as opened:
        yield opened
