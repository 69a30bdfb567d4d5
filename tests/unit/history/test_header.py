"""The header of a history: what it says of topics, and what of it is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from sharestate.history import Header, HistoryError, create_history, open_history

HEADER: Final = {"sharestate_history": 2, "order": "causal"}


def test_topics_have_names_as_far_as_they_are_known() -> None:
    """One that is not known is called by its id, and a name that none has stands for itself."""
    header = Header(topics={"id-1": "orders", "id-2": "payments"})

    assert [header.topic(topic_id) for topic_id in ("id-1", "id-2", "id-3")] == ["orders", "payments", "id-3"]
    assert [header.topic_id(name) for name in ("orders", "payments", "id-3")] == ["id-1", "id-2", "id-3"]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".parquet"])
def test_names_of_topics_may_come_with_the_events(tmp_path: Path, suffix: str) -> None:
    """Those that are named later stand in the header beside those that were known, and the rest of it stays."""
    path = tmp_path / f"history{suffix}"
    header = Header(source="here", created_ms=7, lacks=frozenset({"write", "log"}), topics={"id-1": "orders"})
    with create_history(path, header) as file:
        file.name_topics({"id-2": "payments"})
        file.name_topics({"id-3": "refunds", "id-1": "orders"})

    with open_history(path) as history:
        read = history.header
    assert read.topics == {"id-1": "orders", "id-2": "payments", "id-3": "refunds"}
    assert (read.source, read.created_ms, read.lacks) == ("here", 7, frozenset({"write", "log"}))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"sharestate_history": 1}, "sharestate_history"),
        ({"sharestate_history": 3}, "sharestate_history"),
        ({"order": "random"}, "order"),
        ({"created_ms": "today"}, "created_ms"),
        ({"lacks": ["write", "nothing"]}, "lacks[1]"),
        ({"topics": ["orders"]}, "topics"),
        ({"topics": {"id-1": 5}}, "topics.id-1"),
        ({"more": 1}, "more"),
    ],
)
def test_a_header_that_is_none_is_refused_at_its_field(tmp_path: Path, changes: dict[str, Any], field: str) -> None:
    """The error says the file, the first line, and the field."""
    path = tmp_path / "history.jsonl"
    path.write_text(json.dumps(HEADER | changes) + "\n")

    with pytest.raises(HistoryError) as caught:
        open_history(path)

    assert (caught.value.file, caught.value.line, caught.value.field) == (str(path), 1, field)
