"""The page about the core's API."""

from __future__ import annotations

import re
from pathlib import Path

import sharestate

PAGE = Path(__file__).parents[2] / "docs/api.md"


def test_every_public_name_is_documented_once() -> None:
    """Each name that `sharestate` exports has one directive on the page, and nothing else has."""
    names = re.findall(r"^\.\. (?:auto\w+|data):: (\w+)", PAGE.read_text(), re.MULTILINE)

    assert sorted(names) == sorted(sharestate.__all__)
