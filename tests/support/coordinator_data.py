"""What was recorded of Kafka's share coordinator, read for tests."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).parents[1] / "data" / "coordinator"

BROKER_RECORDS: Final = (DATA / "state-4.3.1.jsonl", DATA / "state-4.4.0.jsonl")
"""The state topics of two brokers."""

REPEATED: Final = DATA / "found" / "repeated-initialization.jsonl"
"""What Kafka makes of an initialization that comes again (C2)."""

RECORDINGS: Final = sorted([*DATA.glob("4.3.1/*.jsonl"), *DATA.glob("kafka-tests/*.jsonl"), REPEATED])
"""Conversations with Kafka 4.3.1."""


def broker_records(file: Path) -> Iterator[tuple[bytes, bytes | None, dict[str, Any] | None]]:
    """Yield key and value of each record in *file*, and what Kafka's formatter makes of it, where that is recorded."""
    for line in file.read_text().splitlines():
        row = json.loads(line)
        yield b64decode(row["key"]), None if row["value"] is None else b64decode(row["value"]), row.get("decoded")


def exchanges(recording: Path, kafka: str) -> Iterator[tuple[Any, Any]]:
    """Yield the requests of a recording, and what the release *kafka* has answered."""
    others = {} if kafka == "4.3.1" else differences(kafka)
    for number, line in enumerate(recording.read_text().splitlines()[1:]):
        exchange = json.loads(line)
        yield exchange["request"], others.get((recording.stem, number), exchange["response"])


@cache
def differences(kafka: str) -> dict[tuple[str, int], Any]:
    """Return what another release has answered otherwise, by recording and exchange."""
    rows = map(json.loads, (DATA / f"differences-{kafka}.jsonl").read_text().splitlines()[1:])
    return {(row["recording"], row["exchange"]): row["response"] for row in rows}
