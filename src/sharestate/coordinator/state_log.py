"""
Logs of records, in which a share coordinator stores the state: their protocol, and one in memory.

``StateLog`` is a ``typing.Protocol``: any class with its methods is a state log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple, Protocol


class LoggedRecord(NamedTuple):
    """
    A record in a log.

    Attributes:
        offset: Its offset.
        key: The bytes of its key.
        value: The bytes of its value; None for a tombstone.
    """

    offset: int
    key: bytes
    value: bytes | None


class LogOffsets(NamedTuple):
    """
    The offsets of the records that a log has.

    Attributes:
        start: The offset of its first record; records below it were pruned.
        end: The offset that the next record will have.
    """

    start: int
    end: int


class StateLog(Protocol):
    """
    A log of records, in the order of their offsets, which begin with 0 and leave none out.

    Everything happens in transactions. What others do to the log is seen in the next one.
    """

    def transaction(self) -> AbstractContextManager[None]:
        """
        Return the context of a transaction, alone with the log: all that is done in it happens, or nothing.

        It ends with what was done in the log, so that no crash loses it, or with an error and nothing done. After an
        error that comes with the end itself either may be the case; the next transaction shows which.

        Raises:
            StateLogError: The log cannot be written to.
        """
        ...

    def offsets(self) -> LogOffsets:
        """Return where the log starts and ends."""
        ...

    def read(self, offset: int) -> Iterable[LoggedRecord]:
        """Return the records from *offset* on."""
        ...

    def append(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Append records, each with its key and value."""
        ...

    def prune(self, offset: int) -> int:
        """Delete the records below *offset*, which is at most the end, and return their number."""
        ...

    def close(self) -> None:
        """Close the log; it cannot be used afterwards."""
        ...


class MemoryLog:
    """
    A state log in memory.

    >>> log = MemoryLog()
    >>> with log.transaction():
    ...     log.append([(b"key", b"value"), (b"key", None)])
    >>> log.offsets(), [record.value for record in log.read(0)]
    (LogOffsets(start=0, end=2), [b'value', None])

    Not thread-safe.
    """

    def __init__(self) -> None:
        """Make a log without records."""
        self._records: list[LoggedRecord] = []
        self._start = 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Return the context of a transaction."""
        start, records, size = self._start, self._records, len(self._records)
        try:
            yield
        except BaseException:
            del records[size:]
            self._start, self._records = start, records
            raise

    def offsets(self) -> LogOffsets:
        """Return where the log starts and ends."""
        return LogOffsets(self._start, self._start + len(self._records))

    def read(self, offset: int) -> Sequence[LoggedRecord]:
        """Return the records from *offset* on."""
        return self._records[max(0, offset - self._start) :]

    def append(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Append records, each with its key and value."""
        end = self.offsets().end
        self._records += [LoggedRecord(end + index, *record) for index, record in enumerate(records)]

    def prune(self, offset: int) -> int:
        """Delete the records below *offset*, which is at most the end, and return their number."""
        count = max(0, offset - self._start)
        self._records = self._records[count:]  # a new list: the old one is what a roll-back restores
        self._start += count
        return count

    def close(self) -> None:
        """Close the log."""
        self._records = []
