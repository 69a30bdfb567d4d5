"""The files of ``tests/data`` that pages are made from."""

import json
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).parents[2] / "tests/data"
SOURCE: Final = "../tests/data"
"""The same directory, as pages link to it."""


def read_rows(name: str, kind: str, field: str = "rows") -> list[dict[str, Any]]:
    """
    Return the rows of a file.

    Raises:
        ValueError: It is not version 1 of *kind*.
    """
    content = json.loads((DATA / name).read_text())
    if content.get(kind) != 1:
        message = f"{name}: not version 1 of {kind}"
        raise ValueError(message)
    rows: list[dict[str, Any]] = content[field]
    return rows
