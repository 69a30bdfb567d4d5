"""State logs: what holds for each of them, and what the one in a file promises beyond that."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import sharestate.coordinator
from sharestate import StateLogError
from sharestate.coordinator import LoggedRecord, LogOffsets, MemoryLog, SqliteLog, StateLog

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
        assert log.prune(2) == 2
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
    log.close()
    assert statement(path, "PRAGMA journal_mode") == ("wal",)
    assert statement(path, "PRAGMA application_id") == (int.from_bytes(b"SHST"),)
    assert statement(path, "PRAGMA user_version") == (1,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("PRAGMA user_version = 2", "its schema version is 2, and only 1 is known"),
        ("PRAGMA application_id = 7", "it is a database of something else"),
        ("DELETE FROM records WHERE record_offset = 0", "should have the records 0 to 2, and has 2, from 1 to 2"),
        ("DELETE FROM records WHERE record_offset = 1", "should have the records 0 to 2, and has 2, from 0 to 2"),
        ("DELETE FROM records", "should have the records 0 to 2, and has 0, from None to None"),
        ("UPDATE log SET end_offset = 2", "should have the records 0 to 1, and has 3, from 0 to 2"),
        ("DROP TABLE log", "no such table: log"),
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
