"""Files of state logs as earlier releases have made them."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sharestate.coordinator import LoggedRecord

LOG: Final = "CREATE TABLE log (start_offset INTEGER NOT NULL, end_offset INTEGER NOT NULL)"
MARK: Final = "PRAGMA application_id = 1397248852"
_RECORDS: Final = (
    "CREATE TABLE records (record_offset INTEGER PRIMARY KEY, record_key BLOB NOT NULL, record_value BLOB)"
)


def of_version_1(path: Path, records: Sequence[LoggedRecord], *changes: str) -> None:
    """Make a file of schema version 1, of release 0.1, with *records*, which is changed after that."""
    database = sqlite3.connect(path)
    try:
        for each in (_RECORDS, LOG, MARK, "PRAGMA user_version = 1"):
            database.execute(each)
        database.execute("INSERT INTO log VALUES (?, ?)", [records[0].offset, records[-1].offset + 1])
        database.executemany("INSERT INTO records VALUES (?, ?, ?)", records)
        for each in changes:
            database.execute(each)
        database.commit()
    finally:
        database.close()
