"""
A state log in a file of SQLite: the only module of the package that does I/O.

What a transaction has done is in the file when it ends, and survives the end of the process and of the machine. Several
processes may use one file at a time.
"""

from __future__ import annotations

import sqlite3
from binascii import crc32
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from os import PathLike, fspath
from struct import Struct
from types import MappingProxyType
from typing import Any, Final, NoReturn

from sharestate.coordinator.state_log import LoggedRecord, LogOffsets
from sharestate.errors import StateLogError
from sharestate.values.checks import brief_repr, refuse

SCHEMA_VERSION: Final = 2
"""The version of the tables, kept in the file as ``user_version``: since version 2, records have checksums."""

APPLICATION_ID: Final = 0x53485354
"""The mark of the file, kept in it as ``application_id``: "SHST"."""

BUSY_TIMEOUT_S: Final = 30.0
"""The longest that a transaction waits for that of another process. [s]"""

# Checks in the place of STRICT, which SQLite has since 3.37: RHEL 9 has 3.34, and could not open a file that has it.
_RECORDS: Final = (
    "CREATE TABLE records (record_offset INTEGER PRIMARY KEY,"
    " record_key BLOB NOT NULL CHECK (typeof(record_key) = 'blob'),"
    " record_value BLOB CHECK (typeof(record_value) IN ('blob', 'null')), checksum INTEGER NOT NULL)"
)
_RECORDS_1: Final = (
    "CREATE TABLE records (record_offset INTEGER PRIMARY KEY, record_key BLOB NOT NULL, record_value BLOB)"
)
_LOG: Final = "CREATE TABLE log (start_offset INTEGER NOT NULL, end_offset INTEGER NOT NULL)"
_SCHEMA: Final = (
    _RECORDS,
    _LOG,
    "INSERT INTO log VALUES (0, 0)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)

_TABLES: Final[Mapping[int, frozenset[tuple[str, str]]]] = MappingProxyType(
    {version: frozenset({("records", records), ("log", _LOG)}) for version, records in ((1, _RECORDS_1), (2, _RECORDS))}
)
"""What a file of each version has, with the statements that have made it; whatever else it has may cost anything."""

_CHECKED: Final = Struct(">qq")
"""What a checksum begins with: the offset, and the length of the value; -1 for a tombstone."""

_FULL: Final = 2
_WAL_ATTEMPTS: Final = 10


class SqliteLog:
    """
    A state log in a file of SQLite, with write-ahead logging and full synchronization.

    One thread at a time, the one that has opened it.

    Raises:
        StateLogError: The file cannot be opened, is of a schema version that is not known, is not such a log, or
            lacks records.
        MalformedInputError: The path is none.
    """

    def __init__(self, path: str | PathLike[str], *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        """
        Open the log in the file *path*, which is made if it does not exist.

        Args:
            path: The file; SQLite keeps two others beside it while it is open.
            busy_timeout_s: How long a transaction waits for that of another process at most. [s]
        """
        try:
            self._path = fspath(path)
        except TypeError:
            refuse(f"expected a path, got {brief_repr(path)}", "path")
        self._errors = _Errors(self._path)
        with self._errors:
            self._db = sqlite3.connect(self._path, timeout=busy_timeout_s, isolation_level=None)
        self._db.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")  # where bytes should be
        try:
            self._execute("PRAGMA trusted_schema = OFF")
            with self.transaction():
                self._version()  # the settings are written into the file, which has to be one of these logs
            self._configure()
            with self.transaction():
                version = self._version()
                if not version:
                    self._make_tables()
                self._check_records()
                if version == 1:
                    self._add_checksums()
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
        """
        Return where the log starts and ends.

        Raises:
            StateLogError: The file is damaged.
        """
        row = self._row("SELECT start_offset, end_offset FROM log")
        if not row or not all(type(offset) is int for offset in row) or not 0 <= row[0] <= row[1]:
            self._refuse(f"it does not say where it starts and ends, but {brief_repr(row)}")
        return LogOffsets(*row)

    def read(self, offset: int) -> Iterator[LoggedRecord]:
        """
        Return the records from *offset* on.

        Raises:
            StateLogError: One of them is damaged: it has another checksum.
        """
        selected = (
            "SELECT record_offset, record_key, record_value, checksum FROM records WHERE record_offset >= ?"
            " ORDER BY record_offset"
        )
        with self._errors:
            for *fields, checksum in self._db.execute(selected, (offset,)):
                record = self._record(*fields)
                if _checksum(*record) != checksum:
                    self._refuse(f"the record {record.offset} is damaged")
                yield record

    def append(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Append records, each with its key and value."""
        end = self.offsets().end
        rows = [(end + index, *record, _checksum(end + index, *record)) for index, record in enumerate(records)]
        with self._errors:
            self._db.executemany(_INSERTED, rows)
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
                mode = self._value("PRAGMA journal_mode = WAL")
                break
            except StateLogError:
                # Another process is making the file; a transaction waits for it, which this setting does not.
                with self.transaction():
                    pass
        else:
            self._refuse("another process keeps it locked")
        self._execute("PRAGMA synchronous = FULL")
        if mode != "wal" or self._value("PRAGMA synchronous") != _FULL:
            self._refuse(f"SQLite does not keep it safe: its journal mode is {mode!r}")

    def _version(self) -> int:
        """Return the version of the tables, 0 if there are none yet; those that are not ours are refused."""
        version, application = self._value("PRAGMA user_version"), self._value("PRAGMA application_id")
        if (version, application) == (0, 0) and self._value("SELECT count(*) FROM sqlite_master") == 0:
            return 0
        if application != APPLICATION_ID:
            self._refuse("it is a database of something else")
        if version not in _TABLES:
            self._refuse(f"its schema version is {version}, and only {' and '.join(map(str, _TABLES))} are known")
        with self._errors:
            if {*self._db.execute("SELECT name, sql FROM sqlite_master")} != _TABLES[version]:
                self._refuse(f"it has not the tables of schema version {version}, or something else besides")
        return int(version)

    def _make_tables(self) -> None:
        for statement in _SCHEMA:
            self._execute(statement)

    def _add_checksums(self) -> None:
        """Make the tables of version 2 of those of version 1."""
        self._execute("ALTER TABLE records RENAME TO records_1")
        self._execute(_RECORDS)
        with self._errors:
            rows = self._db.execute("SELECT record_offset, record_key, record_value FROM records_1")
            records = (self._record(*row) for row in rows)
            self._db.executemany(_INSERTED, ((*record, _checksum(*record)) for record in records))
        self._execute("DROP TABLE records_1")
        self._execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _check_records(self) -> None:
        """See to it that no record is missing."""
        start, end = self.offsets()
        count, first, last = self._row("SELECT count(*), min(record_offset), max(record_offset) FROM records")
        if (count, first, last) != ((end - start, start, end - 1) if count else (end - start, None, None)):
            self._refuse(f"it should have the records {start} to {end - 1}, and has {count}, from {first} to {last}")

    def _record(self, offset: int, key: object, value: object) -> LoggedRecord:
        """Return a record whose types are right: SQLite says of no column what a file may have there."""
        if not isinstance(key, bytes) or not isinstance(value, bytes | None):
            self._refuse(f"the record {offset} is damaged: its key and its value are no bytes")
        return LoggedRecord(offset, key, value)

    # ---- SQLite

    def _refuse(self, why: str) -> NoReturn:
        message = f"the state log {self._path!r}: {why}"
        raise StateLogError(message)

    def _execute(self, statement: str, *parameters: int) -> sqlite3.Cursor:
        with self._errors:
            return self._db.execute(statement, parameters)

    def _row(self, statement: str) -> tuple[Any, ...]:
        """Return the first row that a statement finds; an empty one if there is none."""
        with self._errors:
            row: tuple[Any, ...] | None = self._db.execute(statement).fetchone()
            return row or ()

    def _value(self, statement: str) -> Any:  # noqa: ANN401 - whatever SQLite has
        """Return the value that a statement finds, which has one."""
        return self._row(statement)[0]


_INSERTED: Final = "INSERT INTO records VALUES (?, ?, ?, ?)"


def _checksum(offset: int, key: bytes, value: bytes | None) -> int:
    """Return the checksum of a record, which is that of no other record of the log."""
    length = -1 if value is None else len(value)
    return crc32(value or b"", crc32(key, crc32(_CHECKED.pack(offset, length))))


class _Errors:
    """The context in which errors of SQLite become those of a state log; one for all statements, which are many."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, (sqlite3.Error, ValueError)):  # of text that is not UTF-8, or a path with a NUL
            message = f"the state log {self._path!r}: {error}"
            raise StateLogError(message) from error
