"""A partition's log as producers, compaction and retention leave it: what fetches answer is read from here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attrs import Factory, define

from sharestate.values.records import NO_PRODUCER_ID, AbortedTransaction, ControlType, RecordBatch

if TYPE_CHECKING:
    from sharestate.testing.choices import Choices

PRODUCERS: Final = (NO_PRODUCER_ID, 1, 2, 3)
"""The producers' ids; the first stands for producers without one."""

MOST_BATCHES: Final = 60
"""Retention drops the oldest batches beyond this number."""


@define
class Log:
    """
    The record batches of one partition, in ascending order, with holes where compaction removed some.

    >>> from random import Random
    >>> from sharestate.testing.choices import Choices
    >>> log = Log(Choices(Random(5)))
    >>> log.grow_to(8)
    >>> [(batch.first_offset, batch.last_offset) for batch in log.read(4, most=2)]
    [(0, 4), (5, 5)]
    """

    choices: Choices
    """Where the sizes, producers and holes come from."""

    longest_batch: int = 20
    """The largest batch that is appended. [records]"""

    batches: list[RecordBatch] = Factory(list)
    """What the log holds now."""

    start: int = 0
    """The log start offset; it may lie inside the first batch."""

    end: int = 0
    """The log end offset: that of the next record. Everything below it is replicated."""

    ongoing: dict[int, int] = Factory(dict)
    """The first offset of each producer's transaction that has no marker yet."""

    aborted: list[tuple[AbortedTransaction, int]] = Factory(list)
    """The aborted transactions, each with the offset of its marker."""

    @property
    def stable_end(self) -> int:
        """The last stable offset: from here on, transactions may still be undecided."""
        return min(self.ongoing.values(), default=self.end)

    def grow_to(self, offset: int) -> None:
        """Append batches until *offset* has been written."""
        while self.end <= offset:
            self.append()

    def append(self) -> None:
        """Append a batch, or end a transaction that has gone on for long enough."""
        if self.ongoing and self.choices.chance(35):
            self.end_transaction()
            return
        producer_id = self.choices.one_of(PRODUCERS)
        transactional = producer_id != NO_PRODUCER_ID and (producer_id in self.ongoing or self.choices.chance(60))
        if transactional:
            self.ongoing.setdefault(producer_id, self.end)
        longest = self.longest_batch if self.choices.chance(25) else min(5, self.longest_batch)
        size = self.choices.between(1, longest)
        self._add(RecordBatch(self.end, self.end + size - 1, producer_id, transactional))

    def end_transaction(self) -> None:
        """Write the marker of one of the transactions that go on; there must be one."""
        producer_id = self.choices.one_of(sorted(self.ongoing))
        first_offset = self.ongoing.pop(producer_id)
        control = ControlType.ABORT if self.choices.chance(60) else ControlType.COMMIT
        if control is ControlType.ABORT:
            self.aborted.append((AbortedTransaction(producer_id, first_offset), self.end))
        self._add(RecordBatch(self.end, self.end, producer_id, True, control))  # noqa: FBT003 - markers are transactional

    def decide_below(self, offset: int) -> None:
        """End transactions until everything below *offset* is stable."""
        while self.ongoing and self.stable_end < offset:
            self.end_transaction()

    def _add(self, batch: RecordBatch) -> None:
        self.batches.append(batch)
        self.end = batch.last_offset + 1
        if len(self.batches) > MOST_BATCHES:
            self.move_start(self.batches[MOST_BATCHES // 2].first_offset)

    def compact(self) -> None:
        """Remove some of the batches for good; others keep their offsets, however few of their records are left."""
        percent = self.choices.one_of((25, 50, 90))
        decided = self.stable_end
        self.batches = [
            batch for batch in self.batches if batch.last_offset >= decided or not self.choices.chance(percent)
        ]

    def move_start(self, offset: int) -> None:
        """Delete the records below *offset*, as retention and DeleteRecords do; never moves back."""
        self.start = max(self.start, offset)
        self.end = max(self.end, offset)
        self.batches = [batch for batch in self.batches if batch.last_offset >= self.start]
        self.aborted = [(entry, marker) for entry, marker in self.aborted if marker >= self.start]
        self.ongoing = {producer_id: max(first, self.start) for producer_id, first in self.ongoing.items()}

    def read(self, offset: int, *, most: int, committed: bool = False) -> list[RecordBatch]:
        """Return up to *most* batches from the one that contains *offset* on, or from the first after it."""
        end = self.stable_end if committed else self.end
        found = [batch for batch in self.batches if batch.last_offset >= offset and batch.first_offset < end]
        return found[:most]

    def aborted_in(self, first_offset: int, last_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions with a record or their marker in *first_offset* .. *last_offset*."""
        return [entry for entry, marker in self.aborted if entry.first_offset <= last_offset and marker >= first_offset]


def batch_on_the_line(batch: RecordBatch) -> list[Any]:
    """
    Return *batch* as the line protocol writes it.

    >>> batch_on_the_line(RecordBatch(3, 6)), batch_on_the_line(RecordBatch(7, 8, 1, True))
    ([3, 6], [7, 8, {'producer_id': 1, 'transactional': True, 'control': None}])
    """
    if batch.producer_id == NO_PRODUCER_ID and not batch.is_transactional:
        return [batch.first_offset, batch.last_offset]
    control = None if batch.control is None else batch.control.value
    attributes = {
        "producer_id": batch.producer_id,
        "transactional": batch.is_transactional,
        "control": control,
    }
    return [batch.first_offset, batch.last_offset, attributes]
