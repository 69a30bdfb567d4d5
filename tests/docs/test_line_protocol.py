"""The page about the line protocol."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sharestate import KAFKA_4_3
from sharestate.conversation import BadRequestError, Conversation

PAGE = Path(__file__).parents[2] / "docs/line-protocol.md"


def operations() -> list[str]:
    """Return the operations that there are, as a request for another one is told."""
    with pytest.raises(BadRequestError, match="expected one of") as refusal:
        Conversation(KAFKA_4_3).answer({"op": "?"}, 1)
    return re.findall(r"\w+", str(refusal.value).partition("one of ")[2].partition(", got")[0])


def test_every_operation_is_on_the_page_once() -> None:
    """The table of requests has each operation that is understood, and no other."""
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", PAGE.read_text(), re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"\w+", row)]

    assert sorted(names) == sorted(operations())
