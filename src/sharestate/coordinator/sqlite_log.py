"""
A state log in a file of SQLite: the only module of the package that does I/O.

What a transaction has done is in the file when it ends, and survives the end of the process and of the machine. Several
processes may use one file at a time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike, fspath
from typing import Any, Final, NoReturn

from sharestate.coordinator.state_log import LoggedRecord, LogOffsets
from sharestate.errors import StateLogError

SCHEMA_VERSION: Final = 1
"""The version of the tables, kept in the file as ``user_version``."""

APPLICATION_ID: Final = 0x53485354
"""The mark of the file, kept in it as ``application_id``: "SHST"."""

BUSY_TIMEOUT_S: Final = 30.0
"""The longest that a transaction waits for that of another process. [s]"""

_SCHEMA: Final = (
    "CREATE TABLE records (record_offset INTEGER PRIMARY KEY, record_key BLOB NOT NULL, record_value BLOB)",
    "CREATE TABLE log (start_offset INTEGER NOT NULL, end_offset INTEGER NOT NULL)",
    "INSERT INTO log VALUES (0, 0)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
_FULL: Final = 2
_WAL_ATTEMPTS: Final = 10


class SqliteLog:
    """
    A state log in a file of SQLite, with write-ahead logging and full synchronization.

    One thread at a time, the one that has opened it.

    Raises:
        StateLogError: The file cannot be opened, is not such a log, has another schema version, or lacks records.
    """

    def __init__(self, path: str | PathLike[str], *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        """
        Open the log in the file *path*, which is made if it does not exist.

        Args:
            path: The file; SQLite keeps two others beside it while it is open.
            busy_timeout_s: How long a transaction waits for that of another process at most. [s]
        """
        self._path = fspath(path)
        self._errors = _Errors(self._path)
        with self._errors:
            self._db = sqlite3.connect(self._path, timeout=busy_timeout_s, isolation_level=None)
        try:
            with self.transaction():
                self._is_new()  # the settings are written into the file, which has to be one of these logs
            self._configure()
            with self.transaction():
                if self._is_new():
                    self._make_tables()
                self._check_records()
        except BaseException:
            self._db.close()
            raise

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Return the context of a transaction; others wait until it ends."""
        self._execute("BEGIN IMMEDIATE")
        try:
            yield
            self._execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # the error that is under way says more
                self._db.rollback()
            raise

    def offsets(self) -> LogOffsets:
        """Return where the log starts and ends."""
        return LogOffsets(*self._row("SELECT start_offset, end_offset FROM log"))

    def read(self, offset: int) -> Iterator[LoggedRecord]:
        """Return the records from *offset* on."""
        with self._errors:
            yield from map(
                LoggedRecord._make,
                self._db.execute(
                    "SELECT record_offset, record_key, record_value FROM records WHERE record_offset >= ? "
                    "ORDER BY record_offset",
                    (offset,),
                ),
            )

    def append(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Append records, each with its key and value."""
        end = self.offsets().end
        rows = [(end + index, *record) for index, record in enumerate(records)]
        with self._errors:
            self._db.executemany("INSERT INTO records VALUES (?, ?, ?)", rows)
        self._execute("UPDATE log SET end_offset = end_offset + ?", len(rows))

    def prune(self, offset: int) -> int:
        """Delete the records below *offset*, which is at most the end, and return their number."""
        deleted = self._execute("DELETE FROM records WHERE record_offset < ?", offset).rowcount
        self._execute("UPDATE log SET start_offset = max(start_offset, ?)", offset)
        return deleted

    def close(self) -> None:
        """Close the file; the log cannot be used afterwards."""
        self._db.close()

    # ---- opening

    def _configure(self) -> None:
        """Set what makes a transaction durable, and see to it that SQLite has taken it."""
        for _ in range(_WAL_ATTEMPTS):
            try:
                mode = self._row("PRAGMA journal_mode = WAL")[0]
                break
            except StateLogError:
                # Another process is making the file; a transaction waits for it, which this setting does not.
                with self.transaction():
                    pass
        else:
            self._refuse("another process keeps it locked")
        self._execute("PRAGMA synchronous = FULL")
        if mode != "wal" or self._row("PRAGMA synchronous")[0] != _FULL:
            self._refuse(f"SQLite does not keep it safe: its journal mode is {mode!r}")

    def _is_new(self) -> bool:
        """Return whether there are no tables yet; those that are not ours are refused."""
        version, application = self._row("PRAGMA user_version")[0], self._row("PRAGMA application_id")[0]
        if (version, application) == (0, 0) and self._row("SELECT count(*) FROM sqlite_master")[0] == 0:
            return True
        if application != APPLICATION_ID:
            self._refuse("it is a database of something else")
        if version != SCHEMA_VERSION:
            self._refuse(f"its schema version is {version}, and only {SCHEMA_VERSION} is known")
        return False

    def _make_tables(self) -> None:
        for statement in _SCHEMA:
            self._execute(statement)

    def _check_records(self) -> None:
        """See to it that no record is missing."""
        start, end = self.offsets()
        count, first, last = self._row("SELECT count(*), min(record_offset), max(record_offset) FROM records")
        if (count, first, last) != ((end - start, start, end - 1) if count else (end - start, None, None)):
            self._refuse(f"it should have the records {start} to {end - 1}, and has {count}, from {first} to {last}")

    # ---- SQLite

    def _refuse(self, why: str) -> NoReturn:
        message = f"the state log {self._path!r}: {why}"
        raise StateLogError(message)

    def _execute(self, statement: str, *parameters: int) -> sqlite3.Cursor:
        with self._errors:
            return self._db.execute(statement, parameters)

    def _row(self, statement: str) -> tuple[Any, ...]:
        with self._errors:
            row: tuple[Any, ...] = self._db.execute(statement).fetchone()
            return row


class _Errors:
    """The context in which errors of SQLite become those of a state log; one for all statements, which are many."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, sqlite3.Error):
            message = f"the state log {self._path!r}: {error}"
            raise StateLogError(message) from error
