"""A short search for differences, for each release whose rules the library has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.oracle.build import RELEASES, Oracle

pytestmark = pytest.mark.oracle

OPERATIONS = 60_000


@pytest.mark.parametrize("oracle", RELEASES, indirect=True)
def test_a_short_search_finds_no_difference(oracle: Oracle, tmp_path: Path) -> None:
    """Random sequences are answered as Kafka answers them, but for the known divergences."""
    arguments = ["--kafka", oracle.kafka, "--ops", str(OPERATIONS), "--jobs", "2", "--out", str(tmp_path)]

    ended = subprocess.run(
        [sys.executable, "-m", "tests.oracle.search", *arguments], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "; 0 differences; " in ended.stdout.splitlines()[-1]
