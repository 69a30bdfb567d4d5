"""Pages in headless Chromium: what a page is after its scripts have run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def opened(page: Path, fragment: str = "", *options: str) -> str:
    """
    Return *page* as HTML after ten seconds of the browser's own time; without a browser the test is skipped.

    Args:
        page: The file.
        fragment: What follows ``#`` in the address.
        options: Options of Chromium.
    """
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        reason = "needs Chromium: apt-get install chromium"
        if "chromium" in os.environ.get("SHARESTATE_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    fixed = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={page.parent / 'browser'}"]
    address = f"{page.as_uri()}#{fragment}"
    command = [program, *fixed, "--virtual-time-budget=10000", "--dump-dom", *options, address]
    return subprocess.run(command, check=True, capture_output=True, timeout=120, encoding="utf-8").stdout
