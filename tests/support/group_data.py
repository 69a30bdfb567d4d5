"""What was recorded of Kafka's group coordinator, read for tests."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any, Final, NamedTuple

DATA: Final = Path(__file__).parents[1] / "data" / "groups"

RECORDINGS: Final = sorted(DATA.glob("*/*.jsonl"))
"""Conversations with Kafka 4.2.1, 4.3.1 and 4.4.0."""


class ShownRecord(NamedTuple):
    """
    A record that Kafka has written.

    Attributes:
        key: Its bytes.
        value: Its bytes; None for a tombstone.
        shown: Its type, key and value, as Kafka's own converters to JSON show them.
    """

    key: bytes
    value: bytes | None
    shown: dict[str, Any]


def exchanges(recording: Path) -> list[tuple[Any, Any]]:
    """Return the requests of a recording with Kafka's responses."""
    rows = map(json.loads, recording.read_text().splitlines()[1:])
    return [(row["request"], row["response"]) for row in rows]


def records(recording: Path) -> list[ShownRecord]:
    """Return the records that were written in a recording, each once."""
    shown = {tuple(each["raw"]): each for _, response in exchanges(recording) for each in response["records"]}
    return [ShownRecord(b64decode(key), b64decode(value) or None, each) for (key, value), each in shown.items()]


def raw_records(response: Any) -> list[tuple[bytes, bytes | None]]:  # noqa: ANN401 - JSON
    """Return the bytes of the records in a response, key and value; None for that of a tombstone."""
    return [(b64decode(key), b64decode(value) or None) for key, value in (each["raw"] for each in response["records"])]
