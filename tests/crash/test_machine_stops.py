"""A machine that stops: of the writes that were not synchronized any may be lost, or torn, and no answer is."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import apsw
import pytest

from sharestate.coordinator import sqlite_log
from sharestate.errors import StateLogError
from tests.crash.answered import Step, Stored, opened, steps, stored_after, stored_in, take
from tests.crash.recorded_files import Change, Connection, Crash, Cursor, Delete, Recorder, Truncate, Write
from tests.crash.sizes import SEED, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

CHECKPOINT_PAGES: Final = 12
"""A few requests fill so many."""

FILES: Final = ("state.db", "state.db-wal", "state.db-shm", "state.db-journal")


def record(sequence: Sequence[Step], path: Path, connection: type[Connection]) -> tuple[list[Change], list[int]]:
    """Have *sequence* answered, and return the changes of files, and how many there were after each answer."""
    recorder = Recorder()

    def connect(name: str, **_: object) -> Connection:
        return connection(name, recorder, CHECKPOINT_PAGES)

    answered_at = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_log, "sqlite3", SimpleNamespace(connect=connect, Error=apsw.Error))
        for part in (sequence[:5], sequence[5:]):
            with opened(path) as persister:
                for step in part:
                    take(persister, step)
                    answered_at.append(len(recorder.changes))
    return recorder.changes, answered_at


def crashes(changes: list[Change]) -> Iterator[tuple[int, Crash]]:
    """Yield what may be on the disk after each change, and its number."""
    crash = Crash({}, [])
    for index, change in enumerate(changes, 1):
        crash = crash.after(change)
        yield index, crash


def write_image(disk: Iterable[tuple[str, bytes]], directory: Path) -> Path:
    """Write the files of *disk*, and return the database."""
    directory.mkdir(exist_ok=True)
    for name in FILES:
        (directory / name).unlink(missing_ok=True)
    for name, data in disk:
        (directory / name).write_bytes(data)
    return directory / FILES[0]


def find_loss(sequence: Sequence[Step], directory: Path, images: int, connection: type[Connection]) -> str | None:
    """Return when a machine has to stop to lose or to tear a request, with *images* of its disk for each time."""
    expected = stored_after(sequence)
    changes, answered_at = record(sequence, directory / FILES[0], connection)
    assert {type(change) for change in changes} >= {Write, Truncate, Delete}
    random = Random(SEED)  # noqa: S311 - a replayable choice

    @lru_cache(maxsize=100)  # many images are alike: what is sure stays the same until a file is synchronized
    def found_on(disk: frozenset[tuple[str, bytes]]) -> Stored:
        return stored_in(write_image(disk, directory / "image"))

    for index, crash in crashes(changes):
        answered = sum(at <= index for at in answered_at)
        for disk in crash.images(random, images):
            try:
                stored = found_on(frozenset((name, bytes(data)) for name, data in disk.items()))
            except StateLogError as error:
                return f"after change {index}: {error}"
            if stored not in expected[answered : answered + 2]:
                return f"after change {index}: not what was answered {answered} times"
    return None


def test_a_machine_that_stops_loses_nothing_that_was_answered(in_memory: Path) -> None:
    """Whenever it stops and whatever it loses, all that was answered is there, and at most the request under way."""
    sequence = list(islice(steps(SEED), size(16, 60)))

    assert find_loss(sequence, in_memory, size(2, 12), Connection) is None


# ---- what would be found


class Hasty(Connection):
    """A connection that does not wait for the disk, but says that it does."""

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Cursor:
        """Execute a statement."""
        replaced = {"PRAGMA synchronous = FULL": "PRAGMA synchronous = NORMAL", "PRAGMA synchronous": "SELECT 2"}
        return super().execute(replaced.get(statement, statement), parameters)


class Piecemeal(Connection):
    """A connection whose statements take effect one by one."""

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Cursor:
        """Execute a statement, if it is none of transactions."""
        return super().execute("SELECT 1" if statement in {"BEGIN IMMEDIATE", "COMMIT"} else statement, parameters)


@pytest.mark.parametrize("connection", [Hasty, Piecemeal])
def test_a_log_that_is_not_safe_is_found_out(in_memory: Path, connection: type[Connection]) -> None:
    """Without waiting for the disk an answered request is lost, and without transactions a part of one is seen."""
    assert find_loss(list(islice(steps(SEED), 12)), in_memory, 0, connection)
