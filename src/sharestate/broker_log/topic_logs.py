"""The logs of topics while request logs are read: which batches are known to be appended so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import frozen

from sharestate.broker_log.changed_segments import ChangedSegments
from sharestate.broker_log.server_properties import parse_properties
from sharestate.errors import RequestLogError, UnreadableFileError
from sharestate.history import AppendedBatch

if TYPE_CHECKING:
    from sharestate.segments import LogBatch

_SEGMENT_NAME: Final = len("00000000000000000000.log")

_SWAPPED_US: Final = 100_000
"""How much earlier than a transaction marker something may seem to be appended that came after it: 4 x 25 ms. [µs]"""

_METADATA: Final = "partition.metadata"
"""The file in which a broker notes of which topic a directory is."""

_MOST_METADATA: Final = 4096
"""How much of that file is read, or of ``meta.properties``: both have a few lines. [bytes]"""


class TopicLog:
    """
    The log of a partition, of which more and more becomes visible.

    Args:
        directory: Its directory of segments.

    Attributes:
        end_offset: The offset after the last batch that is visible.
        start_offset: The log start offset, as far as it is known.
        is_untouched: Whether no batch was made visible yet.
        changes: What shows that the segments are not what they were while the request log was written.

    Raises:
        UnreadableFileError: There are no segments in the directory.
        SegmentError: They cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        """Start before the first batch."""
        self._directory = directory
        self._begin = int(_files_in(directory)[0].stem)
        self.restart()

    def restart(self) -> None:
        """Start before the first batch again, as the topic was made only now."""
        self._batches = iter(_batches_in(self._directory))
        self.changes = ChangedSegments(self._begin)
        self._next: LogBatch | None = self._read_next()
        self.start_offset = self._begin
        self.end_offset = self._begin if self._next is None else self._next.first_offset
        self.is_untouched = True
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
        self.changes.produced(base_offset)
        return found

    def before(self, base_offset: int) -> list[AppendedBatch]:
        """Make the batches up to an offset visible that were there when the request log began, and return them."""
        found = []
        while self.is_untouched and self._next is not None and self._next.first_offset < base_offset:
            found.append(self._take(self._next, 0))
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

    def rest(self) -> list[AppendedBatch]:
        """Make all batches visible that are not, and return them."""
        found = []
        while self._next is not None:
            found.append(self._take(self._next, 0))
        return found

    def _again(self) -> Iterator[AppendedBatch]:
        for batch in _batches_in(self._directory):
            if batch.first_offset >= self.end_offset:
                return
            yield _appended(batch)

    def _take(self, batch: LogBatch, at_us: int) -> AppendedBatch:
        if batch.is_control:
            self._passed.setdefault(batch.producer_id, []).append(at_us)
        self._next = self._read_next()
        self.end_offset = batch.last_offset + 1
        return _appended(batch)

    def _read_next(self) -> LogBatch | None:
        batch = next(self._batches, None)
        if batch is None:
            self.changes.is_over()
        else:
            self.changes.has_batch(batch.first_offset, batch.last_offset, batch.record_count)
        return batch


def _batches_in(directory: Path) -> Iterable[LogBatch]:
    from sharestate.segments import LogReader  # noqa: PLC0415 - an extra, which is not needed to verify or to explain

    return LogReader(directory)


def _files_in(directory: Path) -> list[Path]:
    from sharestate.segments import segment_files  # noqa: PLC0415 - as above

    return segment_files(directory)


def _appended(batch: LogBatch) -> AppendedBatch:
    first, last, producer_id, transactional, control = AppendedBatch.of(batch.to_record_batch())[:5]
    segment = int(batch.file[-_SEGMENT_NAME:].partition(".")[0])
    return AppendedBatch(first, last, producer_id, transactional, control, batch.size, segment)


@frozen
class _Directory:
    """A directory of segments."""

    path: Path
    node_id: int | None
    """The broker's; None if its directory does not say."""

    @property
    def extent(self) -> tuple[int, int]:
        """How much of the log it has: what begins first, and then what is larger, sorts first."""
        try:
            files = _files_in(self.path)
            return int(files[0].stem), -sum(file.stat().st_size for file in files)
        except (OSError, UnreadableFileError):
            return 2**63, 0


class TopicLogs:
    """
    The logs of all partitions of which there are segments.

    Args:
        directories: The directories of brokers' logs, in any order, with one directory for each partition.

    Attributes:
        are_given: Whether there are any directories of logs.
    """

    def __init__(self, directories: Path | Iterable[Path] | None = None) -> None:
        """Look which partitions there are; no segments are read yet."""
        if directories is None or isinstance(directories, Path):
            directories = () if directories is None else (directories,)
        directories = tuple(directories)
        self.are_given = bool(directories)
        self._found: dict[tuple[str | None, int], list[_Directory]] = {}
        self._unnamed: dict[tuple[str, int], list[_Directory]] = {}
        self._names: dict[str, str] = {}
        self._ids: dict[tuple[str, int], str] = {}
        self._logs: dict[tuple[str, int], TopicLog | None] = {}
        for directory in directories:
            node_id = _node_id(directory)
            for path in sorted(directory.iterdir()):
                self._add(path, node_id)

    def _add(self, path: Path, node_id: int | None) -> None:
        name, _, index = path.name.rpartition("-")
        if not (name and index.isascii() and index.isdigit() and path.is_dir()):
            return
        topic_id = _fields(path / _METADATA).get("topic_id")
        found = _Directory(path, node_id)
        if topic_id:
            self._names[topic_id] = name
            self._ids[name, int(index)] = topic_id
            self._found.setdefault((topic_id, int(index)), []).append(found)
        else:
            self._unnamed.setdefault((name, int(index)), []).append(found)

    def topic_names(self) -> dict[str, str]:
        """Return the names of topics by their ids, as far as the directories of their partitions say."""
        return dict(self._names)

    def of(self, topic_id: str, partition: int, name: str | None = None, leader: int | None = None) -> TopicLog | None:
        """
        Return the log of a partition; None without segments.

        Args:
            topic_id: The topic's id.
            partition: The partition.
            name: The topic's name, for directories that do not say of which topic they are; None if it is not known.
            leader: The node id of the broker that leads, whose segments are taken if others have no more of the log.

        Raises:
            SegmentError: Its segments cannot be read.
        """
        key = topic_id, partition
        if self._logs.get(key) is None:
            found = self._found.get(key) or self._unnamed.pop((name or "", partition), [])
            least = min((each.extent for each in found), default=None)
            found = sorted((each for each in found if each.extent == least), key=lambda each: each.node_id != leader)
            self._logs[key] = TopicLog(found[0].path) if found else None
        return self._logs[key]

    def opened(self) -> list[tuple[str, int]]:
        """Return the partitions whose segments were read, by topic id and index."""
        return [key for key, log in self._logs.items() if log is not None]

    def restart(self, topic_id: str) -> None:
        """Start before the first batch of a topic's partitions again."""
        for key, log in self._logs.items():
            if log is not None and key[0] == topic_id:
                log.restart()

    def other_id(self, name: str, partition: int) -> str | None:
        """Return the id of the topic whose partition is in the directory of a name; None if there is none."""
        return self._ids.get((name, partition))


def _node_id(directory: Path) -> int | None:
    """Return the node id of the broker whose logs are in *directory*; None if that does not say."""
    value = _fields(directory / "meta.properties").get("node.id", "")
    return int(value) if value.isascii() and value.isdigit() else None


def _fields(path: Path) -> dict[str, str]:
    """Return the fields in a small file of a broker's; none if it is not there, or no such file."""
    try:
        with path.open("rb") as file:
            return {each.name: each.value for each in parse_properties(file.read(_MOST_METADATA), str(path))}
    except (OSError, RequestLogError):
        return {}
