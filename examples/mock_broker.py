"""
A mock broker for share groups, in memory: an example to copy from.

It does what a broker does around `Leader`: it keeps the logs, opens and closes share sessions, runs the fetch loop over
several partitions under one `max_records`, and moves the leadership of a partition. `Consumer` does the client's part.
There is no network, nobody waits, and the time is `MockBroker.now_ms`.
"""

from typing import NamedTuple

from sharestate import (
    NO_PRODUCER_ID,
    AcknowledgementBatch,
    AcknowledgeType,
    AcquiredRecords,
    ControlType,
    ErrorCode,
    FetchedRecords,
    InMemoryPersister,
    IsolationLevel,
    Leader,
    RecordBatch,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    ShareStateError,
    TransactionIndex,
)
from sharestate.persister import InitializeStateParameters, PartitionStateData

GROUP_ID = "orders"
TOPIC_ID = "dGhlIHRvcGljJ3MgaWQhIQ"
DEFAULTS = ShareConfig()


class Log:
    """The log of one partition: its batches, and the value of each record. It has no other replica."""

    def __init__(self) -> None:
        """Begin with an empty log."""
        self.batches: list[RecordBatch] = []
        self.transactions = TransactionIndex()
        self.values: dict[int, str] = {}
        self.start_offset = 0

    def append(self, *values: str, producer_id: int = NO_PRODUCER_ID, control: ControlType | None = None) -> None:
        """Append a batch, which with a producer id is part of its transaction; or, with *control*, the end of that."""
        first = self.transactions.next_offset
        last = first if control else first + len(values) - 1
        batch = RecordBatch(first, last, producer_id, producer_id != NO_PRODUCER_ID, control)
        self.transactions.append(batch)
        self.batches.append(batch)
        self.values.update(enumerate(values, first))

    def delete_records(self, before: int) -> None:
        """Move the log start offset, as retention does."""
        self.start_offset = before
        self.batches = [batch for batch in self.batches if batch.last_offset >= before]


class Fetched(NamedTuple):
    """One partition of a ShareFetch response: the acquired ranges, and the values of their records."""

    acquired: tuple[AcquiredRecords, ...]
    values: dict[int, str]


class MockBroker:
    """The leader of every partition of one topic, with one share group."""

    def __init__(self, partitions: int, config: ShareConfig = DEFAULTS) -> None:
        """Begin with empty logs; *config* has the settings of the group."""
        self.now_ms = 0
        self.config = config
        self.logs = [Log() for _ in range(partitions)]
        self.sessions: dict[str, int] = {}  # the partition with which the next fetch begins, by member
        # The group coordinator initializes the persisted state; before that no leader can read it.
        self.persister = InMemoryPersister()
        states = [PartitionStateData(partition=partition) for partition in range(partitions)]
        self.persister.initialize_state(InitializeStateParameters.of(GROUP_ID, TOPIC_ID, *states)).result()
        self.leaders = [self._lead(partition, leader_epoch=0) for partition in range(partitions)]

    def advance_clock(self, ms: int) -> bool:
        """Advance the clock and expire locks; return whether fetches that wait for records should look again."""
        self.now_ms += ms
        results = [leader.poll(now_ms=self.now_ms) for leader in self.leaders]
        return any(result.wake for result in results)

    def fail_over(self, partition: int) -> None:
        """Move *partition* to another broker, which knows what was persisted, and not what is acquired."""
        self.leaders[partition].close()
        self.leaders[partition] = self._lead(partition, self.leaders[partition].partition.leader_epoch + 1)

    def open_session(self, member: str) -> None:
        """Open the share session of a member, as its first ShareFetch does."""
        self.sessions[member] = 0

    def close_session(self, member: str) -> None:
        """Close it, as its last ShareFetch does: what the member still holds is available again."""
        del self.sessions[member]
        for leader in self.leaders:
            leader.release(member, now_ms=self.now_ms).result()

    def share_fetch(self, member: str, max_records: int) -> dict[int, Fetched]:
        """Acquire for a member up to *max_records* from one partition after another; batches are not cut."""
        begin = self.sessions[member]
        self.sessions[member] = (begin + 1) % len(self.logs)  # in turn, so that no partition starves
        response = {}
        for partition in (*range(begin, len(self.logs)), *range(begin)):
            if max_records > 0 and (acquired := self._acquire(member, partition, max_records)):
                offsets = {offset for first, last, _ in acquired for offset in range(first, last + 1)}
                values = self.logs[partition].values
                response[partition] = Fetched(acquired, {n: values[n] for n in sorted(offsets & values.keys())})
                max_records -= len(offsets)
        return response

    def share_acknowledge(self, member: str, partition: int, batches: list[AcknowledgementBatch]) -> ErrorCode:
        """Acknowledge, and return the error code of the response."""
        try:
            self.leaders[partition].acknowledge(member, batches, now_ms=self.now_ms).result()
        except ShareStateError as error:
            return error.code
        return ErrorCode.NONE

    def _lead(self, partition: int, leader_epoch: int) -> Leader:
        key = SharePartitionKey(group_id=GROUP_ID, topic_id=TOPIC_ID, partition=partition)
        share_partition = SharePartition(key, leader_epoch=leader_epoch, config=self.config)
        leader = Leader(share_partition, self.persister, reset_offset=lambda _: self.logs[partition].start_offset)
        leader.start(now_ms=self.now_ms).result()  # this persister answers at once; for another: `leader.wait`
        return leader

    def _acquire(self, member: str, partition: int, max_records: int) -> tuple[AcquiredRecords, ...]:
        leader, log = self.leaders[partition], self.logs[partition]
        if not leader.can_acquire(now_ms=self.now_ms):  # as many records are in flight as may be
            return ()
        fetch_offset = leader.next_fetch_offset(now_ms=self.now_ms)
        if fetch_offset < log.start_offset:  # out of range: the next fetch begins at the log start
            leader.advance_log_start(log.start_offset, now_ms=self.now_ms)
            return ()
        fetched = FetchedRecords.from_log(
            log.batches, log.transactions, fetch_offset=fetch_offset, isolation=IsolationLevel.READ_COMMITTED
        )
        return leader.acquire(member, fetched, now_ms=self.now_ms, max_records=max_records)


class Consumer:
    """A member whose next poll accepts what it has not acknowledged otherwise."""

    def __init__(self, broker: MockBroker, member: str) -> None:
        """Open the share session."""
        self.broker, self.member = broker, member
        self.types: dict[int, dict[int, AcknowledgeType]] = {}  # by partition, by offset
        broker.open_session(member)

    def poll(self, max_records: int = 500) -> list[str]:
        """Commit, then return the values of newly acquired records."""
        self.commit()
        polled: list[str] = []
        for partition, (acquired, values) in self.broker.share_fetch(self.member, max_records).items():
            # Markers and compacted records are acquired too, and have no value. It is the client that says GAP.
            self.types[partition] = {
                offset: AcknowledgeType.ACCEPT if offset in values else AcknowledgeType.GAP
                for first, last, _ in acquired
                for offset in range(first, last + 1)
            }
            polled += values.values()
        return polled

    def acknowledge(self, partition: int, offset: int, acknowledge_type: AcknowledgeType) -> None:
        """Acknowledge one record at the next commit, in another way than accepting it."""
        self.types[partition][offset] = acknowledge_type

    def commit(self) -> dict[int, ErrorCode]:
        """Acknowledge all that the last poll acquired; return what came of it in each partition."""
        codes = {}
        for partition, types in self.types.items():
            batches = [AcknowledgementBatch(offset, offset, (type_,)) for offset, type_ in types.items()]
            codes[partition] = self.broker.share_acknowledge(self.member, partition, batches)
        self.types = {}
        return codes


def main() -> None:
    """Deliver the records of two partitions to two members."""
    broker = MockBroker(partitions=2)
    ann, bob = Consumer(broker, "ann"), Consumer(broker, "bob")
    broker.logs[0].append("a0", "a1", "a2")
    broker.logs[1].append("b0", "b1", producer_id=7)
    broker.logs[1].append(producer_id=7, control=ControlType.ABORT)
    broker.logs[1].append("b3", "b4")
    print("ann gets", ann.poll(max_records=3), "and bob gets", bob.poll())
    ann.acknowledge(0, 1, AcknowledgeType.RELEASE)
    print("ann releases a1 and accepts the others:", ann.commit())
    broker.fail_over(1)
    print("bob acknowledges what he acquired from the former leader:", bob.commit())
    print("ann gets", ann.poll(), "and lets her locks expire")
    broker.advance_clock(30_001)
    print("bob gets", bob.poll(), "and accepts them:", bob.commit())


if __name__ == "__main__":
    main()
