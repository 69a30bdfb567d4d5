"""The example that tells a story."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

STORY = Path(__file__).parents[3] / "examples/story.py"


def test_the_story_ends_well() -> None:
    """It runs on its own, warns of nothing, and its last line is its verdict."""
    result = subprocess.run([sys.executable, "-W", "error", str(STORY)], capture_output=True, check=True, text=True)

    assert result.stderr == ""
    assert result.stdout.splitlines()[-1].startswith(
        "VERDICT: as it should be. 7 records were processed, 1 was given up"
    )
