"""
Files whose changes are recorded, and what a machine that stops may leave of them.

SQLite does its I/O through a VFS. That of the standard library cannot be replaced from Python, so apsw, which brings
SQLite along, runs the same statements over a VFS that notes each write, change of size, deletion and synchronization.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import apsw

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

SECTOR: Final = 512
"""What a disk writes whole or not at all. [bytes]"""

_JOURNALS: Final = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL
_NUMBERS: Final = count()


class Write(NamedTuple):
    """Bytes that were written to a file."""

    file: str
    offset: int
    data: bytes


class Truncate(NamedTuple):
    """A file that was made shorter."""

    file: str
    size: int


class Delete(NamedTuple):
    """A file that was deleted."""

    file: str


class Sync(NamedTuple):
    """A file whose writes are on the disk by now."""

    file: str
    is_of_directory: bool
    """Whether the directory is too: SQLite sees to that when a journal was new (unixSync in its os_unix.c)."""


Change: TypeAlias = Write | Truncate | Delete | Sync


class Recorder(apsw.VFS):
    """The VFS: it does what SQLite's own does, and notes what changes a file."""

    def __init__(self) -> None:
        """Register it under a name of its own."""
        self.name = f"recorder-{next(_NUMBERS)}"
        self.changes: list[Change] = []
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> RecordedFile:  # noqa: N802 - apsw's
        """Open a file."""
        return RecordedFile(name, flags, self.changes)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802, FBT001 - as in apsw
        """Delete a file."""
        super().xDelete(filename, syncdir)
        self.changes.append(Delete(Path(filename).name))


class RecordedFile(apsw.VFSFile):
    """A file of the VFS."""

    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int], changes: list[Change]) -> None:
        """Open it; what happens to it goes to *changes*."""
        path = Path((name.filename() if isinstance(name, apsw.URIFilename) else name) or "temporary")
        self._is_new_journal = bool(flags[0] & _JOURNALS) and not path.exists()
        super().__init__("", name, flags)
        self._name = path.name
        self._changes = changes

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - apsw's
        """Write bytes."""
        super().xWrite(data, offset)
        self._changes.append(Write(self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - apsw's
        """Make it shorter."""
        super().xTruncate(newsize)
        self._changes.append(Truncate(self._name, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802 - apsw's
        """Wait until it is on the disk."""
        super().xSync(flags)
        self._changes.append(Sync(self._name, self._is_new_journal))
        self._is_new_journal = False


class Connection:
    """What a state log uses of a connection of ``sqlite3``, over one of apsw."""

    def __init__(self, path: str, recorder: Recorder, checkpoint_pages: int) -> None:
        """Open a database, whose frames are copied to it once there are *checkpoint_pages*."""
        self._db = apsw.Connection(path, vfs=recorder.name)
        self._db.wal_autocheckpoint(checkpoint_pages)

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Cursor:
        """Execute a statement."""
        return Cursor(self._db, statement, parameters)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for each of *rows*."""
        self._db.executemany(statement, rows)

    def rollback(self) -> None:
        """Undo the transaction."""
        self._db.execute("ROLLBACK")

    def close(self) -> None:
        """Close the database."""
        self._db.close()


class Cursor:
    """The rows that a statement has found."""

    def __init__(self, db: apsw.Connection, statement: str, parameters: Sequence[Any]) -> None:
        """Execute it."""
        self._rows = iter(list(db.execute(statement, parameters)))
        self.rowcount = db.changes()

    def __iter__(self) -> Cursor:
        """Return itself."""
        return self

    def __next__(self) -> tuple[Any, ...]:
        """Return the next row."""
        return next(self._rows)

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, or None."""
        return next(self._rows, None)


# ---- what a machine leaves


Disk: TypeAlias = dict[str, bytearray]
"""The bytes of each file."""


class Crash(NamedTuple):
    """What is on the disk for sure when a machine stops, and what may be."""

    disk: Disk
    unsynced: list[Change]

    def after(self, change: Change) -> Crash:
        """Return what holds one change later; deletions wait for a synchronization of the directory."""
        if not isinstance(change, Sync):
            return Crash(self.disk, [*self.unsynced, change])
        files = {change.file}
        if change.is_of_directory:
            files |= {earlier.file for earlier in self.unsynced if isinstance(earlier, Delete)}
        synced = [earlier for earlier in self.unsynced if earlier.file in files]
        return Crash(applied(self.disk, synced), [earlier for earlier in self.unsynced if earlier.file not in files])

    def images(self, random: Random, count: int) -> list[Disk]:
        """Return disks as they may be: nothing more than is sure, all, and *count* between, torn at sectors."""
        if not self.unsynced:
            return [self.disk]
        between = [applied(self.disk, _survivors(random, self.unsynced)) for _ in range(count)]
        return [self.disk, applied(self.disk, self.unsynced), *between]


def applied(disk: Disk, changes: Sequence[Change]) -> Disk:
    """Return *disk* after *changes*."""
    disk = {name: bytearray(data) for name, data in disk.items()}
    for change in changes:
        if isinstance(change, Write):
            data = disk.setdefault(change.file, bytearray())
            data.extend(bytes(max(0, change.offset - len(data))))
            data[change.offset : change.offset + len(change.data)] = change.data
        elif isinstance(change, Truncate):
            del disk.setdefault(change.file, bytearray())[change.size :]
        elif isinstance(change, Delete):
            disk.pop(change.file, None)
    return disk


def _survivors(random: Random, changes: Sequence[Change]) -> list[Change]:
    """Return those of *changes* that chance lets through: whole, not at all, or some sectors of a write."""
    through = random.random()
    survivors: list[Change] = []
    kept: set[str] = set()  # files that should have been deleted: later changes went to others of the same names
    for change in changes:
        if change.file in kept:
            continue
        if isinstance(change, Write) and random.random() < 1 / 3:
            survivors += [part for part in _sectors(change) if random.random() < through]
        elif random.random() < through:
            survivors.append(change)
        elif isinstance(change, Delete):
            kept.add(change.file)
    return survivors


def _sectors(write: Write) -> list[Write]:
    """Return the parts of *write* that are in one sector each."""
    end = write.offset + len(write.data)
    begins = [write.offset, *range(write.offset // SECTOR * SECTOR + SECTOR, end, SECTOR)]
    return [
        Write(write.file, begin, write.data[begin - write.offset : following - write.offset])
        for begin, following in zip(begins, [*begins[1:], end], strict=True)
    ]
