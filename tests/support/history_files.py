"""Files of histories that are malformed, and what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sharestate.history import HistoryError, open_history

KEY = ("g", "dGhlIHRvcGljJ3MgaWQhIQ", 0)
LINE: dict[str, Any] = {
    "group_id": "g",
    "topic_id": "dGhlIHRvcGljJ3MgaWQhIQ",
    "partition": 0,
    "seq": 0,
    "at_us": 5,
    "kind": "log_start",
    "request": {"offset": 3},
}
HEADER = {"sharestate_history": 2, "order": "causal"}


def refused(path: Path) -> HistoryError:
    """Return the error with which reading *path* ends."""
    with pytest.raises(HistoryError) as caught:
        list(open_history(path))
    return caught.value
