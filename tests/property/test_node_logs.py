"""A log of a node under random appends, transactions, deletions and compactions, beside a model of single offsets."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from sharestate import ControlType, IsolationLevel
from sharestate.broker.node import LogRead, LogRecord, OffsetOutOfRange, PartitionLog, ProducedBatch

PRODUCERS = (1, 1, 2)
RETENTION = 10


class Slot(NamedTuple):
    """What the model knows of an offset: everything that was ever appended there."""

    record: LogRecord
    producer: int | None
    """Whose transaction it belongs to; None if it belongs to none."""

    control: ControlType | None = None


class Model:
    """
    A log as a list of offsets, and answers found by looking at every one of them.

    It forgets nothing: what a compaction may delete is said by the rules, not by what the log has done.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.slots: list[Slot] = []
        self.start = 0

    def outcome(self, offset: int) -> ControlType | None:
        """Return how the transaction of the record at *offset* has ended; None while it is open."""
        producer = self.slots[offset].producer
        ends = (slot.control for slot in self.slots[offset:] if slot.producer == producer and slot.control is not None)
        return next(ends, None)

    def is_open(self, offset: int) -> bool:
        """Return whether the record at *offset* belongs to a transaction that has not ended."""
        slot = self.slots[offset]
        return slot.producer is not None and slot.control is None and self.outcome(offset) is None

    def is_aborted(self, offset: int) -> bool:
        """Return whether a consumer that reads what is committed must not see the record at *offset*."""
        slot = self.slots[offset]
        return slot.producer is not None and slot.control is None and self.outcome(offset) is ControlType.ABORT

    @property
    def first_open(self) -> int | None:
        """The first record whose transaction is open."""
        return next((offset for offset in range(len(self.slots)) if self.is_open(offset)), None)

    @property
    def stable(self) -> int:
        """The end of what is decided: the first record whose transaction is open, or the log start behind it."""
        opened = self.first_open
        return max(len(self.slots) if opened is None else opened, self.start)

    def visible(self, fetch_offset: int, *, is_committed: bool) -> list[int]:
        """Return the offsets of data that a consumer sees from *fetch_offset* on, before any compaction."""
        end = self.stable if is_committed else len(self.slots)
        return [
            offset
            for offset in range(max(fetch_offset, self.start), end)
            if self.slots[offset].control is None and not (is_committed and self.is_aborted(offset))
        ]

    def last_of_keys(self, end: int) -> set[int]:
        """Return the offsets below *end*, of what is not aborted, that have the last record of their key there."""
        last = {
            slot.record.key: offset
            for offset, slot in enumerate(self.slots[:end])
            if slot.control is None and not self.is_aborted(offset) and slot.record.key and offset >= self.start
        }
        return set(last.values())


class Pair:
    """The log and its model, which are given the same."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.log = PartitionLog()
        self.model = Model()
        self.now_ms = 0
        self.sequences: dict[int, int] = {}
        self.open: set[int] = set()

    def append(self, keys: list[int], producer: int, *, transactional: bool, size: int) -> None:
        """Append a batch; a producer with an open transaction appends to that."""
        transactional = transactional or producer in self.open
        records = [LogRecord(b"%d" % key if key else None, b"v" * size or None, (), self.now_ms) for key in keys]
        sequence = self.sequences.get(producer, 0)
        self.sequences[producer] = sequence + len(keys)
        self.log.append(
            ProducedBatch(
                records=records,
                producer_id=producer,
                producer_epoch=0,
                base_sequence=sequence,
                is_transactional=transactional,
            )
        )
        self.model.slots += [Slot(record, producer if transactional else None) for record in records]
        if transactional:
            self.open.add(producer)

    def end(self, producer: int, control: ControlType) -> None:
        """End a producer's transaction, if it has one or not."""
        marker = self.log.append_marker(control, producer_id=producer, producer_epoch=0, now_ms=self.now_ms)
        assert not isinstance(marker.records, bytes)
        (record,) = marker.records
        assert record is not None
        self.model.slots.append(Slot(record, producer, control))
        self.open.discard(producer)

    def delete(self, share: int) -> None:
        """Delete a part of what there is, in tenths."""
        offset = self.model.start + (len(self.model.slots) - self.model.start) * share // 10
        self.log.advance_log_start(offset)
        self.model.start = offset

    def compact(self) -> None:
        """Compact what is decided."""
        before = self.survivors()
        end = self.model.stable
        self.log.compact(self.now_ms, delete_retention_ms=RETENTION)
        after = self.survivors()
        last = self.model.last_of_keys(end)
        data = {offset for offset in after if offset < end and self.model.slots[offset].control is None}
        assert data <= last
        assert {offset for offset in last & before if self.model.slots[offset].record.value is not None} <= data
        assert {offset for offset in before if offset >= end} <= after <= before

    def survivors(self) -> set[int]:
        """Return the offsets that have records, each of which is the one that was appended."""
        found = set()
        for offset, slot in enumerate(self.model.slots):
            record = self.log.record_at(offset)
            if record is not None:
                assert record == slot.record
                found.add(offset)
        return found

    def last_stable_offset(self) -> int:
        """Return what a broker says: of a transaction open below the log start, the batch in which the log starts."""
        opened = self.model.first_open
        if opened is None or opened >= self.model.start:
            return self.model.stable
        ranges = [(each.batch.first_offset, each.batch.last_offset) for each in self.log.batches]
        begins = [first for first, last in ranges if first <= self.model.start <= last]
        return max(opened, *begins) if begins else self.model.start

    def check(self, fetch_offset: int, max_bytes: int) -> None:
        """Compare all that can be seen."""
        model, log = self.model, self.log
        assert (log.log_start_offset, log.high_watermark, log.last_stable_offset) == (
            model.start,
            len(model.slots),
            self.last_stable_offset(),
        )
        assert log.size_in_bytes == sum(batch.size_in_bytes for batch in log.batches)
        survivors = self.survivors()
        for isolation in IsolationLevel:
            is_committed = isolation is IsolationLevel.READ_COMMITTED
            read = log.read(fetch_offset, isolation=isolation)
            if not model.start <= fetch_offset <= len(model.slots):
                assert isinstance(read, OffsetOutOfRange)
                continue
            assert isinstance(read, LogRead)
            expected = [each for each in model.visible(fetch_offset, is_committed=is_committed) if each in survivors]
            assert seen(read, fetch_offset) == expected
            part = log.read(fetch_offset, isolation=isolation, max_bytes=max_bytes)
            assert isinstance(part, LogRead)
            assert part.batches == read.batches[: len(part.batches)]
            assert bool(part.batches) is bool(read.batches)
            assert part.size_in_bytes <= max_bytes or len(part.batches) == 1
            if len(part.batches) < len(read.batches):
                assert part.size_in_bytes + read.batches[len(part.batches)].size_in_bytes > max_bytes
        for wanted in (0, self.now_ms // 2, self.now_ms):
            found = log.find_timestamp(wanted)
            offsets = [each for each in sorted(survivors) if model.slots[each].record.timestamp_ms >= wanted]
            assert (found and found.offset) == next((each for each in offsets if each >= model.start), None)


def seen(read: LogRead, fetch_offset: int) -> list[int]:
    """Return the offsets of data that a consumer makes of a read, by its own rule (CompletedFetch, Kafka 4.4)."""
    ahead = sorted(read.fetched.aborted_transactions, key=lambda transaction: transaction.first_offset)
    aborted: set[int] = set()
    found = []
    for batch in read.batches:
        first, last, producer, is_transactional, control = batch.batch
        while ahead and ahead[0].first_offset <= last:
            aborted.add(ahead.pop(0).producer_id)
        if control is not None:
            if control is ControlType.ABORT and batch.records:
                aborted.discard(producer)
        elif not (is_transactional and producer in aborted):
            found += [offset for offset, record in enumerate(batch.records, first) if record and offset >= fetch_offset]
    return found


appends = st.tuples(
    st.just("append"),
    st.lists(st.integers(0, 4), min_size=1, max_size=4),
    st.sampled_from(PRODUCERS),
    st.booleans(),
    st.integers(0, 3),
)
steps = st.one_of(
    appends,
    appends,
    st.tuples(st.just("end"), st.sampled_from(PRODUCERS), st.sampled_from(ControlType)),
    st.tuples(st.just("delete"), st.integers(0, 10)),
    st.tuples(st.just("compact"), st.integers(1, 4)),
    st.tuples(st.just("wait"), st.integers(1, 2 * RETENTION)),
)


@given(steps=st.lists(steps, min_size=8, max_size=40), fetch_offset=st.integers(0, 60), max_bytes=st.integers(0, 400))
def test_a_log_is_what_its_offsets_say(steps: list[tuple[object, ...]], fetch_offset: int, max_bytes: int) -> None:
    """Ends, reads, aborted transactions, timestamps and what compaction leaves are those of the model."""
    pair = Pair()
    for step in steps:
        match step:
            case ("append", list(keys), int(producer), bool(transactional), int(size)):
                pair.append(keys, producer, transactional=transactional, size=size)
            case ("end", int(producer), ControlType() as control):
                pair.end(producer, control)
            case ("delete", int(share)):
                pair.delete(share)
            case ("compact", int(times)):
                for _ in range(times):
                    pair.compact()
                    pair.now_ms += RETENTION
            case (_, int(passed)):
                pair.now_ms += passed
            case _:
                raise AssertionError(step)
        for each in (fetch_offset, pair.model.start):
            pair.check(each, max_bytes)
