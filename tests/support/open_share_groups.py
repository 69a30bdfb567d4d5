"""Share groups in memory that are correct, and do otherwise than `MockShareGroup` what Kafka leaves open."""

# ruff: noqa: D102 - each says in its class what its methods do

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import define, field

from sharestate.testing.groups import AcknowledgementBatch
from tests.support.mock_share_group import MockRecord, MockShareGroup, MockState


@define
class KeepsBatchOfLogStart(MockShareGroup):
    """
    The log keeps the batch in which it starts as a whole, and delivers all of it that is not done.

    What is acknowledged below the log start offset is not stored: a new leader knows nothing of it.
    """

    firsts: dict[int, int] = field(factory=dict)
    """The first offset of the batch of each offset."""

    def produce(self, count: int, producer: str | None) -> list[int]:
        offsets = super().produce(count, producer)
        self.firsts.update(dict.fromkeys(offsets, offsets[0]))
        return offsets

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        code = super().acknowledge(member, batches)
        for offset, _ in self.changes(batches):
            record = self.log.get(offset)
            if code == 0 and offset < self.log_start and record is not None and record.owner == member:
                record.state, record.owner = MockState.TERMINAL, ""
        return code

    def readable(self) -> Iterator[tuple[int, MockRecord]]:
        log_start = self.log_start
        self.log_start = self.firsts.get(log_start, log_start)
        readable = [*super().readable()]
        self.log_start = log_start
        yield from readable


@define
class PassesOneBatch(MockShareGroup):
    """A fetch goes as far as the end of one batch: it brings nothing where that is aborted, or a marker."""

    batches_of_log: list[range] = field(factory=list)
    passed: set[int] = field(factory=set)
    """The batches that fetches have passed."""

    def produce(self, count: int, producer: str | None) -> list[int]:
        offsets = super().produce(count, producer)
        self.batches_of_log.append(range(offsets[0], offsets[-1] + 1))
        return offsets

    def end_transaction(self, producer: str) -> int:
        marker = super().end_transaction(producer)
        self.batches_of_log.append(range(marker, marker + 1))
        return marker

    def fail_over(self) -> None:
        super().fail_over()
        self.passed.clear()

    def readable(self) -> Iterator[tuple[int, MockRecord]]:
        readable = dict(super().readable())
        for number, batch in enumerate(self.batches_of_log):
            if self.is_next(number, batch, readable):
                self.passed.add(number)
                yield from ((offset, readable[offset]) for offset in batch if offset in readable)
                return

    def is_next(self, number: int, batch: range, readable: dict[int, MockRecord]) -> bool:
        """Return whether a batch is where the next fetch begins: something of it is available, or it is not passed."""
        records = [readable[offset] for offset in batch if offset in readable]
        is_open = any(self.log[offset].producer is not None for offset in batch)
        is_deleted = batch[-1] < self.log_start
        return any(self.may_acquire("", record) for record in records) or not (
            records or is_open or is_deleted or number in self.passed
        )


class LooksAtOneBatch(PassesOneBatch):
    """The next fetch looks at the next batch, and after the last one at the first again, whatever there is in it."""

    def is_next(self, number: int, batch: range, readable: dict[int, MockRecord]) -> bool:  # noqa: ARG002 - as above
        if len(self.passed) == len(self.batches_of_log):
            self.passed.clear()
        return number not in self.passed
