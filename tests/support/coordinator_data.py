"""What was recorded of Kafka's share coordinator, read for tests."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).parents[1] / "data" / "coordinator"

BROKER_RECORDS: Final = (DATA / "state-4.3.1.jsonl", DATA / "state-4.4.0.jsonl")
"""The state topics of two brokers."""


def broker_records(file: Path) -> Iterator[tuple[bytes, bytes | None, dict[str, Any] | None]]:
    """Yield key and value of each record in *file*, and what Kafka's formatter makes of it, where that is recorded."""
    for line in file.read_text().splitlines():
        row = json.loads(line)
        yield b64decode(row["key"]), None if row["value"] is None else b64decode(row["value"]), row.get("decoded")
