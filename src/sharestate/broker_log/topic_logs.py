"""The logs of topics while a request log is read: which batches are known to be appended so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sharestate.history import AppendedBatch

if TYPE_CHECKING:
    from sharestate.segments import LogBatch


class TopicLog:
    """
    The log of a partition, of which more and more becomes visible.

    Args:
        directory: Its directory of segments.

    Attributes:
        end_offset: The offset after the last batch that is visible.
        start_offset: The log start offset, as far as it is known.
    """

    def __init__(self, directory: Path) -> None:
        """Start before the first batch."""
        self._directory = directory
        self._batches = iter(_batches_in(directory))
        self._next = next(self._batches, None)
        self.end_offset = self.start_offset = 0 if self._next is None else self._next.first_offset

    def appended(self, base_offset: int) -> list[AppendedBatch]:
        """Make the batches up to the one at *base_offset* visible, and return those that were not."""
        found = []
        while self._next is not None and self._next.first_offset <= base_offset:
            found.append(self._take(self._next))
        return found

    def marked(self, producer_id: int) -> list[AppendedBatch]:
        """Make the batches up to the next transaction marker of a producer visible, and return them."""
        found = []
        while self._next is not None:
            batch = self._next
            found.append(self._take(batch))
            if batch.is_control and batch.producer_id == producer_id:
                break
        return found

    def visible(self) -> list[AppendedBatch]:
        """Return all batches that are visible, from the beginning; reads the files again."""
        return list(self._again())

    def _again(self) -> Iterator[AppendedBatch]:
        for batch in _batches_in(self._directory):
            if batch.first_offset >= self.end_offset:
                return
            yield _appended(batch)

    def _take(self, batch: LogBatch) -> AppendedBatch:
        self._next = next(self._batches, None)
        self.end_offset = batch.last_offset + 1
        return _appended(batch)


def _batches_in(directory: Path) -> Iterable[LogBatch]:
    from sharestate.segments import LogReader  # noqa: PLC0415 - an extra, which is not needed to verify or to explain

    return LogReader(directory)


def _appended(batch: LogBatch) -> AppendedBatch:
    first, last, producer_id, transactional, control = AppendedBatch.of(batch.to_record_batch())[:5]
    segment = int(Path(batch.file).name.partition(".")[0])
    return AppendedBatch(first, last, producer_id, transactional, control, batch.size, segment)


class TopicLogs:
    """
    The logs of all partitions of which there are segments.

    Args:
        directory: The directory of a broker's logs, one directory for each partition; None for none.
    """

    def __init__(self, directory: Path | None) -> None:
        """Open nothing yet."""
        self._directory = directory
        self._logs: dict[tuple[str, int], TopicLog | None] = {}

    def of(self, topic: str, partition: int) -> TopicLog | None:
        """
        Return the log of a partition; None without segments.

        Raises:
            SegmentError: Its segments cannot be read.
        """
        key = topic, partition
        if key not in self._logs:
            directory = None if self._directory is None else self._directory / f"{topic}-{partition}"
            self._logs[key] = TopicLog(directory) if directory is not None and directory.is_dir() else None
        return self._logs[key]
