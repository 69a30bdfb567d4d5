"""
Where a monitor goes on after a restart: what was folded and up to which offsets, in a file of SQLite.

Both are written in one transaction, at the end of a round. A monitor that is killed goes on from the last one: it reads
what came after it again, and counts nothing twice.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import attrgetter
from os import PathLike, fspath
from types import TracebackType
from typing import Any, Final, NoReturn, Self

from attrs import fields as fields_of

from sharestate.coordinator import COORDINATOR_4_3, CoordinatorProfile, StoredState
from sharestate.errors import MalformedInputError, StateLogError
from sharestate.json_checks import Check, Field, integer, list_of, nullable, one_of, record, refuse, row, text
from sharestate.json_lines import Json, read_json, write_json
from sharestate.monitor.following import COUNT_REASONS, FollowedPartition, Follower, Happened
from sharestate.state_topic import StandingStart
from sharestate.values.records import SharePartitionKey
from sharestate.values.requests import StateBatch

SCHEMA_VERSION: Final = 1
"""The version of the tables and of the documents in them, kept in the file as ``user_version``."""

APPLICATION_ID: Final = 0x53484D4F
"""The mark of the file, kept in it as ``application_id``: "SHMO"."""

_BUSY_TIMEOUT_S: Final = 30.0
"""The longest that a transaction waits for that of another process. [s]"""

_TOPIC: Final = "CREATE TABLE topic (document TEXT NOT NULL)"
_STATE_PARTITIONS: Final = "CREATE TABLE state_partitions (number INTEGER PRIMARY KEY, document TEXT NOT NULL)"
_SHARE_PARTITIONS: Final = (
    "CREATE TABLE share_partitions (state_partition INTEGER NOT NULL, group_id TEXT NOT NULL, topic_id TEXT NOT NULL,"
    " topic_partition INTEGER NOT NULL, document TEXT NOT NULL,"
    " PRIMARY KEY (state_partition, group_id, topic_id, topic_partition)) WITHOUT ROWID"
)
_TABLES: Final = frozenset(
    {("topic", _TOPIC), ("state_partitions", _STATE_PARTITIONS), ("share_partitions", _SHARE_PARTITIONS)}
)
"""What a file has, with the statements that have made it; whatever else it has may cost anything."""

_count: Final = integer(0, 2**127)
_known: Final = nullable(integer())


def _state(**state: Any) -> StoredState:  # noqa: ANN401 - the fields of a state, each of which is checked
    return StoredState(**state)


_batch: Final[Check[StateBatch]] = row(*[integer()] * 4, make=StateBatch)
_state_fields: Final = {field.name: Field(integer()) for field in fields_of(StoredState)} | {
    name: Field(_known) for name in ("highest_state_epoch", "update_count", "snapshot_offset")
}
_happened_fields: Final = {field.name: Field(_count) for field in fields_of(Happened)} | {
    "first_seen_ms": Field(_known),
    "miscounted": Field(nullable(one_of({name: name for name in COUNT_REASONS}))),
}
_start: Final[Check[StandingStart]] = row(
    integer(),
    _known,
    integer(0, 1),
    _count,
    make=lambda at, ms, oldest, count: StandingStart(at, ms, bool(oldest), count),
)
_share_partition: Final = record(
    {
        "state": Field(record(_state_fields | {"state_batches": Field(list_of(_batch))}, _state)),
        "start": Field(_start),
        "happened": Field(record(_happened_fields, Happened)),
    },
    lambda state, start, happened: (state, start, happened),
)
_NUMBERS: Final = ("position", "read_count", "read_bytes", "missed_count", "unreadable_count")
_state_partition: Final[Check[dict[str, Any]]] = record(
    {name: Field(_count) for name in _NUMBERS} | {"last_offset": Field(_known), "last_snapshot": Field(_known)},
    dict,
)
_topic: Final[Check[dict[str, Any]]] = record({"topic_id": Field(nullable(text)), "restarts": Field(_count)}, dict)

_state_values: Final = {field.name: attrgetter(field.name) for field in fields_of(StoredState)}
_happened_values: Final = {field.name: attrgetter(field.name) for field in fields_of(Happened)}


class Checkpoint:
    """
    The file; use it as a context manager.

    One thread at a time, the one that has opened it.

    Raises:
        StateLogError: The file cannot be opened, is of a version that is not known, is no checkpoint, or is damaged.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        """Open the file *path*, which is made if it does not exist."""
        self._path = fspath(path)
        with self._errors():
            self._db = sqlite3.connect(self._path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
        try:
            with self._errors():
                self._db.execute("PRAGMA trusted_schema = OFF")
            with self._transaction():
                if not self._has_tables():
                    self._make_tables()
        except BaseException:
            self._db.close()
            raise

    def load(self, profile: CoordinatorProfile = COORDINATOR_4_3) -> Follower:
        """
        Return a follower that goes on where the last one was saved; a new one if none was.

        Raises:
            StateLogError: The file is damaged.
        """
        follower = Follower(profile)
        with self._errors():
            for (document,) in self._db.execute("SELECT document FROM topic"):
                topic = _topic(_json(document), "topic")
                follower.topic_id, follower.restarts = topic["topic_id"], topic["restarts"]
            for number, document in self._db.execute("SELECT number, document FROM state_partitions ORDER BY number"):
                place = f"state partition {number}"
                follower.partitions[number] = self._loaded(number, _state_partition(_json(document), place), profile)
        return follower

    def save(self, follower: Follower) -> None:
        """
        Write what has changed since the follower was loaded, or saved last.

        Complexity:
            O(n) in the state batches of the share partitions that have changed.
        """
        with self._transaction():
            topic = write_json({"topic_id": follower.topic_id, "restarts": follower.restarts})
            self._db.execute("DELETE FROM topic")
            self._db.execute("INSERT INTO topic VALUES (?)", (topic,))
            saved = self._db.execute("SELECT number FROM state_partitions").fetchall()
            for number in {number for (number,) in saved} - follower.partitions.keys():
                self._forget(number)
            for followed in follower.partitions.values():
                self._save(followed)
        for followed in follower.partitions.values():
            followed.is_saved = True
            followed.changed = set()

    def close(self) -> None:
        """Close the file; the checkpoint cannot be used afterwards."""
        self._db.close()

    def __enter__(self) -> Self:
        """Return the checkpoint."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    # ---- rows

    def _loaded(self, number: int, numbers: dict[str, Any], profile: CoordinatorProfile) -> FollowedPartition:
        followed = FollowedPartition(number, profile)
        for name in _NUMBERS:
            setattr(followed, name, numbers[name])
        states, starts = {}, {}
        for *names, document in self._db.execute(_SELECTED, (number,)):
            key = SharePartitionKey(group_id=names[0], topic_id=names[1], partition=names[2])
            states[key], starts[key], followed.happened[key] = _share_partition(_json(document), str(key))
        followed.rebuilt.resume(
            states, starts, last_snapshot=numbers["last_snapshot"], last_offset=numbers["last_offset"]
        )
        followed.is_saved = True
        return followed

    def _save(self, followed: FollowedPartition) -> None:
        if not followed.is_saved:
            self._forget(followed.number)
        rebuilt = followed.rebuilt
        numbers = {name: getattr(followed, name) for name in _NUMBERS}
        numbers |= {"last_offset": rebuilt.last_offset, "last_snapshot": rebuilt.shard.last_snapshot}
        self._db.execute(
            "INSERT OR REPLACE INTO state_partitions VALUES (?, ?)", (followed.number, write_json(numbers))
        )
        for key in followed.changed if followed.is_saved else rebuilt.shard.states:
            names = (followed.number, key.group_id, key.topic_id, key.partition)
            if key in rebuilt.shard.states:
                document = write_json(_document(followed, key))
                self._db.execute("INSERT OR REPLACE INTO share_partitions VALUES (?, ?, ?, ?, ?)", (*names, document))
            else:
                self._db.execute(_DELETED, names)

    def _forget(self, number: int) -> None:
        self._db.execute("DELETE FROM state_partitions WHERE number = ?", (number,))
        self._db.execute("DELETE FROM share_partitions WHERE state_partition = ?", (number,))

    # ---- the file

    def _has_tables(self) -> bool:
        """Return whether the file is a checkpoint; an empty one may become one, and others are refused."""
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        tables = {*self._db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")}
        if (version, application, tables) == (0, 0, set()):
            return False
        if application != APPLICATION_ID:
            self._refuse("it is a database of something else")
        if version != SCHEMA_VERSION:
            self._refuse(f"its version is {version}, and only {SCHEMA_VERSION} is known")
        if tables != _TABLES:
            self._refuse("it has not the tables of its version, or something else besides")
        return True

    def _make_tables(self) -> None:
        for statement in (_TOPIC, _STATE_PARTITIONS, _SHARE_PARTITIONS):
            self._db.execute(statement)
        self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._errors():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # the error that is under way says more
                    self._db.rollback()
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Make errors of SQLite, and of what is in the file, those of a checkpoint."""
        try:
            yield
        except (sqlite3.Error, MalformedInputError, ValueError) as error:
            self._refuse(str(error), error)

    def _refuse(self, why: str, cause: Exception | None = None) -> NoReturn:
        message = f"the checkpoint {self._path!r}: {why}"
        raise StateLogError(message) from cause


_SELECTED: Final = (
    "SELECT group_id, topic_id, topic_partition, document FROM share_partitions WHERE state_partition = ?"
)
_DELETED: Final = (
    "DELETE FROM share_partitions WHERE state_partition = ? AND group_id = ? AND topic_id = ? AND topic_partition = ?"
)


def _json(document: object) -> Json:
    """Return the JSON of a column, of which SQLite does not say that it is text."""
    return read_json(document) if isinstance(document, str) else refuse("text", None, "document")


def _document(followed: FollowedPartition, key: SharePartitionKey) -> Json:
    start = followed.rebuilt.starts[key]
    state, happened = followed.rebuilt.shard.states[key], followed.happened[key]
    return {
        "state": {name: value(state) for name, value in _state_values.items()},
        "start": [start.offset, start.timestamp_ms, int(start.is_oldest), start.change_count],
        "happened": {name: value(happened) for name, value in _happened_values.items()},
    }
