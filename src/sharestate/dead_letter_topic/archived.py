"""
What the state topic says of records on their way to a dead-letter queue: which were, and whether that is over.

A leader stores a record as ARCHIVING before it hands it to the queue, and as ARCHIVED once the queue has answered,
whatever the answer is (rules 21.2 and 21.3). What is archived for another reason is stored as ARCHIVED at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sharestate.coordinator import ShareSnapshot, ShareUpdate
from sharestate.explain.totals import without
from sharestate.history.record_states import OffsetRuns
from sharestate.state_topic import StateTopic, TopicRecord
from sharestate.state_topic.rebuild import begins_state
from sharestate.values.records import RecordState, SharePartitionKey


class HandedOver(NamedTuple):
    """
    When records were handed to the queue.

    Attributes:
        at_ms: When they were stored as ARCHIVING; None if no file says it. [ms since 1970]
        answered_ms: When they were stored as ARCHIVED after that; None if that is not known. [ms since 1970]
        is_under_way: Whether the state topic has them as ARCHIVING in the end.
    """

    at_ms: int | None
    answered_ms: int | None = None
    is_under_way: bool = False


class StoredRecords:
    """
    What the state topic has said of the records of one share partition.

    Attributes:
        key: The share partition.
        state_partition: The partition of the state topic; None if no file says it.
        is_whole: Whether the topic has the first record of the share partition, and not only the oldest that is left.
        first_ms: The timestamp of that record; None if no file says it. [ms since 1970]
        first_start: The least SPSO that was stored; None if none was.
        direct: Records that were stored as ARCHIVED at once, and need no letter. [records]
        unclear: Records that the oldest record that is left has as ARCHIVED: whether they were ARCHIVING before is not
            known. [records]

    Complexity:
        O(log n) for each state batch that is ARCHIVING or ARCHIVED, n the ranges of these; memory for the ranges.
    """

    def __init__(self, key: SharePartitionKey, logged: TopicRecord, *, is_whole: bool) -> None:
        """Begin with the first record that there is of *key*."""
        self.key = key
        self.state_partition = logged.state_partition
        self.is_whole = is_whole
        self.first_ms = logged.timestamp_ms
        self.first_start: int | None = None
        self.direct = self.unclear = 0
        self._handed = OffsetRuns[HandedOver]()
        self._archived = OffsetRuns[bool]()
        self._is_first = True

    def apply(self, value: ShareSnapshot | ShareUpdate, at_ms: int | None) -> None:
        """Take the next record of the share partition."""
        if value.start_offset >= 0 and (self.first_start is None or value.start_offset < self.first_start):
            self.first_start = value.start_offset
        for batch in value.state_batches:
            if batch.delivery_state == RecordState.ARCHIVING:
                self._hand_over(batch.first_offset, batch.last_offset, at_ms)
            elif batch.delivery_state == RecordState.ARCHIVED:
                self._archive(batch.first_offset, batch.last_offset, at_ms)
        self._is_first = False

    def finish(self, under_way: Iterable[tuple[int, int]]) -> None:
        """Note which records are *under_way* in the end: first and last offsets."""
        for first, last in under_way:
            for begin, end, handed in self._handed.take(first, last):
                self._handed.put(begin, end, handed._replace(is_under_way=True))

    def handed_over(self) -> Iterator[tuple[int, int, HandedOver]]:
        """Yield the records that were handed to the queue, in order: first offset, last offset, when."""
        runs = self._handed.take_all()
        for first, last, handed in runs:
            self._handed.put(first, last, handed)
        yield from runs

    @property
    def has_handed_over(self) -> bool:
        """Whether any record was handed to the queue."""
        return len(self._handed) > 0

    def has_archived(self, offset: int) -> bool:
        """Return whether the record at *offset* was ever stored as ARCHIVING or ARCHIVED."""
        return self._handed.at(offset) is not None or self._archived.at(offset) is not None

    def _hand_over(self, first: int, last: int, at_ms: int | None) -> None:
        """Take ARCHIVING: a snapshot says again what was said before, unless it has been ARCHIVED meanwhile."""
        runs = self._handed.take(first, last)
        at = first
        for begin, end, handed in runs:
            if at < begin:
                self._handed.put(at, begin - 1, HandedOver(at_ms))
            self._handed.put(begin, end, handed if handed.answered_ms is None else HandedOver(at_ms))
            at = end + 1
        if at <= last:
            self._handed.put(at, last, HandedOver(at_ms))

    def _archive(self, first: int, last: int, at_ms: int | None) -> None:
        """Take ARCHIVED: what was handed to the queue is answered, and anything else was archived at once."""
        handed = self._handed.take(first, last)
        known = self._archived.take(first, last)
        for begin, end, when in handed:
            self._handed.put(begin, end, when._replace(answered_ms=at_ms) if when.answered_ms is None else when)
        self._archived.put(first, last, value=True)
        others = (gap for gap in without(first, last, [run[:2] for run in handed]))
        new = [left for gap in others for left in without(*gap, [run[:2] for run in known])]
        records = sum(end - begin + 1 for begin, end in new)
        if self._is_first and not self.is_whole:
            self.unclear += records
        else:
            self.direct += records


class ArchivedRecords:
    """
    What the state topic has said of the records of all share partitions.

    Args:
        topic: The state topic, to which nothing was added yet.

    Attributes:
        topic: The state topic.
        stored: What it has said of each share partition.
        last_ms: The timestamp of the last record of each of its partitions; None where no file says it.
    """

    def __init__(self, topic: StateTopic) -> None:
        """Begin before the first record."""
        self.topic = topic
        self.stored: dict[SharePartitionKey, StoredRecords] = {}
        self.last_ms: dict[int | None, int | None] = {}

    def read(self, records: Iterable[TopicRecord]) -> None:
        """
        Add *records*, those of each partition of the state topic in order.

        Raises:
            UnreadableFileError: A record is not of this topic, or its offset does not ascend.
        """
        for logged in records:
            self.add(logged)
        for rebuilt in self.topic.share_partitions():
            batches = rebuilt.state.state_batches
            under_way = [each[:2] for each in batches if each.delivery_state == RecordState.ARCHIVING]
            self.stored[rebuilt.key].finish(under_way)

    def add(self, logged: TopicRecord) -> None:
        """Add the next record of a partition of the state topic."""
        record = self.topic.add(logged)
        self.last_ms[logged.state_partition] = logged.timestamp_ms
        if record is None or record.value is None:
            return
        stored = self.stored.get(record.key)
        if stored is None:
            stored = StoredRecords(record.key, logged, is_whole=begins_state(record))
            self.stored[record.key] = stored
        stored.apply(record.value, logged.timestamp_ms)

    def group_ids(self) -> set[str]:
        """Return the groups that have handed records to a queue."""
        return {key.group_id for key, stored in self.stored.items() if stored.has_handed_over}

    def start_offsets(self) -> dict[SharePartitionKey, int]:
        """Return the SPSO of each share partition in the end."""
        return {each.key: each.state.start_offset for each in self.topic.share_partitions()}

    def accepted(self) -> dict[SharePartitionKey, list[tuple[int, int]]]:
        """Return the records that are ACKNOWLEDGED in the end, and not passed yet, by share partition."""
        return {
            each.key: [
                batch[:2] for batch in each.state.state_batches if batch.delivery_state == RecordState.ACKNOWLEDGED
            ]
            for each in self.topic.share_partitions()
        }
