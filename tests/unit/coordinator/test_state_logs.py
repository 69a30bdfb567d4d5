"""State logs: what holds for each of them, and what the one in a file promises beyond that."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

import sharestate.coordinator
from sharestate import MalformedInputError, StateLogError
from sharestate.coordinator import LoggedRecord, LogOffsets, MemoryLog, SqliteLog, StateLog
from tests.support.old_state_files import LOG, MARK, of_version_1

RECORDS: list[tuple[bytes, bytes | None]] = [(b"a", b"1"), (b"b", b"2"), (b"a", None)]
LOGGED = [LoggedRecord(0, b"a", b"1"), LoggedRecord(1, b"b", b"2"), LoggedRecord(2, b"a", None)]


@pytest.fixture(params=["memory", "file"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StateLog]:
    """Each state log, without records."""
    made: StateLog = MemoryLog() if request.param == "memory" else SqliteLog(tmp_path / "state.db")
    yield made
    made.close()


def fill(log: StateLog) -> None:
    """Append three records in a transaction."""
    with log.transaction():
        log.append(RECORDS)


def append_and_fail(log: StateLog) -> None:
    """Do all that can be done, and raise something before the transaction ends."""
    with log.transaction():
        log.append(RECORDS)
        log.prune(2)
        log.append(RECORDS)
        assert log.offsets() == LogOffsets(2, 9)
        message = "in the middle of a transaction"
        raise RuntimeError(message)


def append_and_close(log: StateLog) -> None:
    """Close a log before the transaction ends."""
    with log.transaction():
        log.append(RECORDS)
        log.close()


# ---- what holds for each


def test_a_new_log_is_empty(log: StateLog) -> None:
    """It starts and ends at offset 0."""
    with log.transaction():
        assert (log.offsets(), list(log.read(0))) == (LogOffsets(0, 0), [])


def test_records_are_read_as_they_were_appended(log: StateLog) -> None:
    """With offsets that go up by one, from any of them on."""
    fill(log)
    with log.transaction():
        log.append([])
        log.append([(b"c", b"")])

    with log.transaction():
        assert list(log.read(0)) == [*LOGGED, LoggedRecord(3, b"c", b"")]
        assert list(log.read(3)) == [LoggedRecord(3, b"c", b"")]
        assert list(log.read(4)) == []
        assert log.offsets() == LogOffsets(0, 4)


def test_pruned_records_are_gone(log: StateLog) -> None:
    """Those that are left keep their offsets, and new ones go on from there, even if all were pruned."""
    fill(log)
    with log.transaction():
        assert log.prune(1) == 1
        assert list(log.read(0)) == LOGGED[1:]
        assert log.prune(2) == 1
        assert log.prune(1) == 0
    with log.transaction():
        assert (log.offsets(), list(log.read(0))) == (LogOffsets(2, 3), LOGGED[2:])
        assert log.prune(3) == 1
    with log.transaction():
        assert log.offsets() == LogOffsets(3, 3)
        log.append([(b"c", b"3")])
        assert list(log.read(0)) == [LoggedRecord(3, b"c", b"3")]


def test_a_transaction_that_fails_does_nothing(log: StateLog) -> None:
    """Neither what it has appended nor what it has pruned stays so."""
    fill(log)
    with pytest.raises(RuntimeError):
        append_and_fail(log)

    with log.transaction():
        assert (log.offsets(), list(log.read(0))) == (LogOffsets(0, 3), LOGGED)


# ---- the log in a file


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """The connections that are made, of an SQLite that does not wait for the disk unless it is told to."""
    made: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def connected(*place: Any, **options: Any) -> sqlite3.Connection:  # noqa: ANN401 - as of sqlite3
        made.append(connect(*place, **options))
        made[-1].execute("PRAGMA synchronous = OFF")
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", connected)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a log is to be."""
    return tmp_path / "state.db"


def statement(path: Path, text: str) -> Any:  # noqa: ANN401 - whatever it selects
    """Run a statement on a file, and return its first row."""
    database = sqlite3.connect(path)
    try:
        row = database.execute(text).fetchone()
        database.commit()
        return row
    finally:
        database.close()


def test_a_file_keeps_its_records(path: Path) -> None:
    """A log that is opened again has what was appended and pruned before."""
    log = SqliteLog(path)
    fill(log)
    with log.transaction():
        log.prune(1)
    log.close()

    again = SqliteLog(str(path))
    assert (again.offsets(), list(again.read(0))) == (LogOffsets(1, 3), LOGGED[1:])
    again.close()


def test_two_logs_see_each_other(path: Path) -> None:
    """What one appends the other one finds in its next transaction, at the right offset."""
    first, second = SqliteLog(path), SqliteLog(path)
    fill(first)
    fill(second)

    with first.transaction():
        assert first.offsets() == LogOffsets(0, 6)
        assert [record.offset for record in first.read(3)] == [3, 4, 5]
    first.close()
    second.close()


def test_a_transaction_is_alone(path: Path) -> None:
    """Another one waits, and fails if that takes too long; it has done nothing then."""
    first, second = SqliteLog(path), SqliteLog(path, busy_timeout_s=0.05)
    with first.transaction():
        first.append(RECORDS)
        with pytest.raises(StateLogError, match="database is locked"), second.transaction():
            second.append(RECORDS)

    assert second.offsets() == LogOffsets(0, 3)
    first.close()
    second.close()


def test_a_transaction_is_in_the_file_when_it_ends(path: Path) -> None:
    """SQLite was told to write ahead and to wait for the disk, and the file shows the mark and version of the log."""
    log = SqliteLog(path)

    assert log._row("PRAGMA journal_mode") == ("wal",)  # noqa: SLF001 - settings of the connection
    assert log._row("PRAGMA synchronous") == (2,)  # noqa: SLF001
    assert log._row("PRAGMA trusted_schema") == (0,)  # noqa: SLF001
    log.close()
    assert statement(path, "PRAGMA journal_mode") == ("wal",)
    assert statement(path, "PRAGMA application_id") == (int.from_bytes(b"SHST"),)
    assert statement(path, "PRAGMA user_version") == (2,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("PRAGMA user_version = 3", "its schema version is 3, and only 1 and 2 are known"),
        ("PRAGMA user_version = 1", "it has not the tables of schema version 1"),
        ("PRAGMA application_id = 7", "it is a database of something else"),
        ("DELETE FROM records WHERE record_offset = 0", "should have the records 0 to 2, and has 2, from 1 to 2"),
        ("DELETE FROM records WHERE record_offset = 1", "should have the records 0 to 2, and has 2, from 0 to 2"),
        ("DELETE FROM records", "should have the records 0 to 2, and has 0, from None to None"),
        ("UPDATE log SET end_offset = 2", "should have the records 0 to 1, and has 3, from 0 to 2"),
        ("DELETE FROM log", "it does not say where it starts and ends, but ()"),
        ("UPDATE log SET start_offset = 'a'", "it does not say where it starts and ends, but ('a', 3)"),
        ("UPDATE log SET start_offset = -1", "it does not say where it starts and ends, but (-1, 3)"),
        ("UPDATE log SET start_offset = 4", "it does not say where it starts and ends, but (4, 3)"),
        ("DROP TABLE log", "it has not the tables of schema version 2"),
        ("CREATE INDEX more ON records (record_key)", "or something else besides"),
        ("CREATE TRIGGER more AFTER DELETE ON records BEGIN DELETE FROM log; END", "or something else besides"),
    ],
)
def test_what_is_unknown_is_refused(path: Path, change: str, message: str) -> None:
    """A file of another version, of something else, or without some of its records is refused, and stays as it is."""
    log = SqliteLog(path)
    fill(log)
    log.close()
    statement(path, change)
    before = path.read_bytes()

    with pytest.raises(StateLogError) as refused:
        SqliteLog(path)

    assert message in str(refused.value)
    assert repr(str(path)) in str(refused.value)
    assert path.read_bytes() == before


def test_a_file_that_is_refused_is_closed(path: Path, connections: list[sqlite3.Connection]) -> None:
    """Whoever keeps the error does not keep the file open."""
    statement(path, "CREATE TABLE accounts (balance)")

    with pytest.raises(StateLogError, match="a database of something else"):
        SqliteLog(path)

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connections[-1].execute("SELECT 1")


def test_the_disk_is_waited_for_however_sqlite_was_built(path: Path, connections: list[sqlite3.Connection]) -> None:
    """Builds differ in what they do by default."""
    log = SqliteLog(path)

    assert connections[0].execute("PRAGMA synchronous").fetchone() == (2,)
    log.close()


def test_a_file_from_which_all_was_pruned_is_opened(path: Path) -> None:
    """It goes on at the offset at which it ends."""
    log = SqliteLog(path)
    fill(log)
    with log.transaction():
        log.prune(3)
    log.close()

    again = SqliteLog(path)
    assert (again.offsets(), list(again.read(0))) == (LogOffsets(3, 3), [])
    again.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE records SET record_value = x'32' WHERE record_offset = 0",
        "UPDATE records SET record_value = NULL WHERE record_offset = 0",
        "UPDATE records SET record_value = x'' WHERE record_offset = 2",
        "UPDATE records SET record_key = x'62' WHERE record_offset = 0",
        "UPDATE records SET record_key = 'a' WHERE record_offset = 0",
        "UPDATE records SET record_key = 7 WHERE record_offset = 0",
        "UPDATE records SET record_value = '1' WHERE record_offset = 0",
        "UPDATE records SET record_value = CAST(x'ff' AS TEXT) WHERE record_offset = 0",
        "UPDATE records SET checksum = 'a' WHERE record_offset = 0",
        "UPDATE records SET record_offset = -1 - record_offset; UPDATE records SET record_offset = record_offset + 3",
    ],
)
def test_a_damaged_record_is_refused(path: Path, change: str) -> None:
    """Whatever of it has changed, be it its place among the others: its checksum says so."""
    log = SqliteLog(path)
    fill(log)
    log.close()
    for each in change.split(";"):
        database = sqlite3.connect(path)
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute(each)
        database.commit()
        database.close()

    damaged = SqliteLog(path)

    with pytest.raises(StateLogError, match=r"state\.db': the record \d is damaged"), damaged.transaction():
        list(damaged.read(0))
    damaged.close()


def test_files_of_other_releases_have_the_same_checksums(path: Path) -> None:
    """CRC-32 of offset and length of the value, -1 for a tombstone, in 64 bits each, then of the key and the value."""
    log = SqliteLog(path)
    fill(log)
    log.close()
    database = sqlite3.connect(path)

    assert database.execute("SELECT checksum FROM records ORDER BY record_offset").fetchall() == [
        (crc32(bytes(15) + b"\1" + b"a" + b"1"),),
        (crc32(bytes(7) + b"\1" + bytes(7) + b"\1" + b"b" + b"2"),),
        (crc32(bytes(7) + b"\2" + b"\xff" * 8 + b"a"),),
    ]
    database.close()


ENDLESS: str = (
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)"
    " SELECT i AS record_offset, x'61' AS record_key, NULL AS record_value, 0 AS checksum FROM n"
)


@pytest.mark.parametrize("version", [1, 2])
def test_a_view_in_the_place_of_a_table_is_refused(path: Path, version: int) -> None:
    """Before it is read, which might never end; so is a table with a column that is computed."""
    for records in (
        f"CREATE VIEW records AS {ENDLESS}",
        "CREATE TABLE records (record_offset INTEGER PRIMARY KEY, record_key AS (zeroblob(1e9)), record_value)",
    ):
        path.unlink(missing_ok=True)
        for each in (records, LOG, "INSERT INTO log VALUES (0, 9)", MARK, f"PRAGMA user_version = {version}"):
            statement(path, each)

        with pytest.raises(StateLogError, match=f"it has not the tables of schema version {version}"):
            SqliteLog(path)


def test_a_file_of_version_1_becomes_one_of_version_2(path: Path) -> None:
    """Its records are those that it had, and new ones go on from there."""
    of_version_1(path, LOGGED[1:])

    log = SqliteLog(path)

    with log.transaction():
        assert (log.offsets(), list(log.read(0))) == (LogOffsets(1, 3), LOGGED[1:])
        log.append([(b"c", b"3")])
    log.close()
    assert statement(path, "PRAGMA user_version") == (2,)
    again = SqliteLog(path)
    assert list(again.read(0)) == [*LOGGED[1:], LoggedRecord(3, b"c", b"3")]
    again.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE records SET record_key = 'b' WHERE record_offset = 1", "the record 1 is damaged"),
        ("DELETE FROM records WHERE record_offset = 1", "should have the records 1 to 2"),
    ],
)
def test_a_damaged_file_of_version_1_stays_one(path: Path, change: str, message: str) -> None:
    """What has no checksum yet is at least bytes, and all there."""
    of_version_1(path, LOGGED[1:], change)

    with pytest.raises(StateLogError, match=message):
        SqliteLog(path)

    assert statement(path, "PRAGMA user_version") == (1,)
    assert statement(path, "SELECT count(*) FROM sqlite_master") == (2,)


def test_what_is_no_path_is_refused() -> None:
    """Whatever a caller has in its place."""
    for path in (None, 5):
        with pytest.raises(MalformedInputError, match=f"path: expected a path, got {path}"):
            SqliteLog(path)  # type: ignore[arg-type] # that is the point
    with pytest.raises(StateLogError, match="embedded null"):
        SqliteLog("state\0.db")


def test_a_database_of_something_else_is_refused(path: Path) -> None:
    """Tables that are not ours are left alone."""
    statement(path, "CREATE TABLE accounts (balance)")
    before = path.read_bytes()

    with pytest.raises(StateLogError, match="a database of something else"):
        SqliteLog(path)

    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    """A file of SQLite is recognized by its beginning."""
    path.write_bytes(b"no database at all" * 100)

    with pytest.raises(StateLogError, match="file is not a database"):
        SqliteLog(path)


def test_a_place_without_files_is_refused(tmp_path: Path) -> None:
    """A directory that does not exist is not made."""
    with pytest.raises(StateLogError, match="unable to open database file"):
        SqliteLog(tmp_path / "nowhere" / "state.db")


def test_a_database_in_memory_is_refused() -> None:
    """It cannot write ahead, so it would not keep anything."""
    with pytest.raises(StateLogError, match="SQLite does not keep it safe: its journal mode is 'memory'"):
        SqliteLog(":memory:")


def test_a_file_that_others_keep_locked_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Setting it up is tried again when another process is just making the file, but not for ever."""
    attempts = []

    row = SqliteLog._row  # noqa: SLF001 - as below

    def locked(log: SqliteLog, text: str) -> object:
        if "journal_mode" not in text:
            return row(log, text)
        attempts.append(text)
        message = "database is locked"
        raise StateLogError(message)

    monkeypatch.setattr(SqliteLog, "_row", locked)
    with pytest.raises(StateLogError, match="another process keeps it locked"):
        SqliteLog(path)

    assert attempts == ["PRAGMA journal_mode = WAL"] * 10


def test_a_log_that_is_closed_is_refused(path: Path) -> None:
    """Every method of a closed log raises the error of the library."""
    log = SqliteLog(path)
    log.close()

    with pytest.raises(StateLogError, match="closed database"), log.transaction():
        pass
    with pytest.raises(StateLogError, match="closed database"):
        list(log.read(0))


def test_a_transaction_that_is_closed_does_nothing(path: Path) -> None:
    """Closing the log in the middle of a transaction ends it with an error, and without what was done."""
    log = SqliteLog(path)
    with pytest.raises(StateLogError, match="closed database"):
        append_and_close(log)

    again = SqliteLog(path)
    assert again.offsets() == LogOffsets(0, 0)
    again.close()


def test_a_torn_file_has_whole_transactions(path: Path, tmp_path: Path) -> None:
    """Wherever the file of the last transactions is cut off, as many of them as are whole are there, and no part."""
    log = SqliteLog(path)
    for _ in range(8):
        fill(log)
    ahead = path.with_name("state.db-wal")
    whole, size = ahead.read_bytes(), ahead.stat().st_size
    ends = set()
    for cut in range(size, 0, -1500):
        copy = tmp_path / str(cut) / "state.db"
        copy.parent.mkdir()
        shutil.copy(path, copy)
        copy.with_name("state.db-wal").write_bytes(whole[:cut])
        torn = SqliteLog(copy)
        end = torn.offsets().end
        assert [record.offset for record in torn.read(0)] == list(range(end))
        assert end % 3 == 0
        ends.add(end)
        torn.close()
    log.close()

    assert {0, 3, 12, 24} <= ends


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    """SqliteLog is loaded on first use; other names are not there."""
    with suppress(KeyError):
        del sharestate.coordinator.__dict__["SqliteLog"]

    assert sharestate.coordinator.SqliteLog is SqliteLog
    assert not hasattr(sharestate.coordinator, "PostgresLog")
