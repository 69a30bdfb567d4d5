"""The logs of topics while a request log is read: which batches are known to be appended so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sharestate.history import AppendedBatch

if TYPE_CHECKING:
    from sharestate.segments import LogBatch

_SEGMENT_NAME: Final = len("00000000000000000000.log")

_SWAPPED_US: Final = 100_000
"""How much earlier than a transaction marker something may seem to be appended that came after it. [µs]"""

_METADATA: Final = "partition.metadata"
"""The file in which a broker notes of which topic a directory is."""


class TopicLog:
    """
    The log of a partition, of which more and more becomes visible.

    Args:
        directory: Its directory of segments.

    Attributes:
        end_offset: The offset after the last batch that is visible.
        start_offset: The log start offset, as far as it is known.
        is_untouched: Whether no batch was made visible yet.
        topic_id: The id of its topic; None if the directory does not say.
    """

    def __init__(self, directory: Path) -> None:
        """Start before the first batch."""
        self._directory = directory
        self._batches = iter(_batches_in(directory))
        self._next = next(self._batches, None)
        self.end_offset = self.start_offset = 0 if self._next is None else self._next.first_offset
        self.is_untouched = True
        self.topic_id = _topic_id(directory)
        self._passed: dict[int, list[int]] = {}

    def appended(self, base_offset: int, at_us: int) -> list[AppendedBatch]:
        """
        Make the batches up to the one at *base_offset* visible, and return those that were not.

        Args:
            base_offset: The first offset of the batch that was appended.
            at_us: When. [µs since 1970]
        """
        self.is_untouched = False
        found = []
        while self._next is not None and self._next.first_offset <= base_offset:
            found.append(self._take(self._next, at_us))
        return found

    def marked(self, producer_id: int, at_us: int) -> list[AppendedBatch]:
        """
        Make the batches up to the next transaction marker of a producer visible, and return those that were not.

        Args:
            producer_id: The producer.
            at_us: When. [µs since 1970]
        """
        self.is_untouched = False
        if not self._is_next(producer_id) and self._has_passed(producer_id, at_us):
            return []
        found = []
        while self._next is not None:
            batch = self._next
            found.append(self._take(batch, at_us))
            if batch.is_control and batch.producer_id == producer_id:
                self._passed[producer_id].pop()
                break
        return found

    def _is_next(self, producer_id: int) -> bool:
        """Return whether the next batch is a marker of a producer."""
        return self._next is not None and self._next.is_control and self._next.producer_id == producer_id

    def _has_passed(self, producer_id: int, at_us: int) -> bool:
        """Return whether the next marker of a producer is visible, as something seemed to be appended before it."""
        passed = [each for each in self._passed.pop(producer_id, ()) if each >= at_us - _SWAPPED_US]
        if passed:
            self._passed[producer_id] = passed[1:]
        return bool(passed)

    def visible(self) -> list[AppendedBatch]:
        """Return all batches that are visible, from the beginning; reads the files again."""
        return list(self._again())

    def all_batches(self) -> Iterator[AppendedBatch]:
        """Yield all batches, visible or not; reads the files again."""
        return map(_appended, _batches_in(self._directory))

    def _again(self) -> Iterator[AppendedBatch]:
        for batch in _batches_in(self._directory):
            if batch.first_offset >= self.end_offset:
                return
            yield _appended(batch)

    def _take(self, batch: LogBatch, at_us: int) -> AppendedBatch:
        if batch.is_control:
            self._passed.setdefault(batch.producer_id, []).append(at_us)
        self._next = next(self._batches, None)
        self.end_offset = batch.last_offset + 1
        return _appended(batch)


def _batches_in(directory: Path) -> Iterable[LogBatch]:
    from sharestate.segments import LogReader  # noqa: PLC0415 - an extra, which is not needed to verify or to explain

    return LogReader(directory)


def _appended(batch: LogBatch) -> AppendedBatch:
    first, last, producer_id, transactional, control = AppendedBatch.of(batch.to_record_batch())[:5]
    segment = int(batch.file[-_SEGMENT_NAME:].partition(".")[0])
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

    def topic_names(self) -> dict[str, str]:
        """Return the names of topics by their ids, as far as the directories of their partitions say."""
        if self._directory is None:
            return {}
        paths = sorted(self._directory.glob(f"*/{_METADATA}"))
        found = {_topic_id(path.parent): path.parent.name.rpartition("-")[0] for path in paths}
        return {topic_id: name for topic_id, name in found.items() if topic_id is not None}

    def of(self, topic: str, partition: int, topic_id: str | None = None) -> TopicLog | None:
        """
        Return the log of a partition; None without segments, or if they are of another topic than *topic_id*.

        Raises:
            SegmentError: Its segments cannot be read.
        """
        key = topic, partition
        if key not in self._logs:
            directory = None if self._directory is None else self._directory / f"{topic}-{partition}"
            self._logs[key] = TopicLog(directory) if directory is not None and directory.is_dir() else None
        log = self._logs[key]
        is_other = log is not None and topic_id is not None and log.topic_id not in {None, topic_id}
        return None if is_other else log


def _topic_id(directory: Path) -> str | None:
    """Return the id of the topic whose partition is in *directory*; None if that does not say."""
    try:
        lines = (directory / _METADATA).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    fields = dict(line.partition(":")[::2] for line in lines)
    return fields.get("topic_id", "").strip() or None
