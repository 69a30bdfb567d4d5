"""
Random lives of clients of a node, as they write them down: with clocks that differ, lost answers, crashes and failover.

A message takes some milliseconds to the node and back, so operations of different clients overlap; the order in which
the node takes them is not in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from heapq import heappop, heappush
from random import Random
from typing import Any, Final

from attrs import define, field

from sharestate import (
    KAFKA_4_4,
    AcknowledgementBatch,
    AcknowledgeType,
    AutoOffsetReset,
    IsolationLevel,
    ShareConfig,
)
from sharestate.audit import (
    AcknowledgedAs,
    AcknowledgedRange,
    AcknowledgedRanges,
    AcknowledgeOperation,
    CloseOperation,
    CrashOperation,
    DeliveredRange,
    EndTransactionOperation,
    FaultOperation,
    FetchedRanges,
    FetchOperation,
    LoggedOperation,
    OperationLog,
    OperationsHeader,
    ProduceOperation,
    SettingsOperation,
    View,
)
from sharestate.broker.node import (
    CreatableTopic,
    CreateTopicsRequest,
    EndTxnRequest,
    GroupConfig,
    InitProducerIdRequest,
    LogRecord,
    NodeConfig,
    PartitionOfRequest,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
    ShareAcknowledgeRequest,
    ShareBroker,
    ShareFetchRequest,
)
from sharestate.persister import InitializeStateParameters, PartitionStateData

GROUP: Final = "g"
TOPIC: Final = "orders"
PARTITIONS: Final = (0, 1)
_RECORD: Final = LogRecord(b"k", b"v")

_TYPES: Final = (
    *[AcknowledgeType.ACCEPT] * 6,
    *[AcknowledgeType.RELEASE] * 3,
    AcknowledgeType.REJECT,
    AcknowledgeType.RENEW,
)

Lines = list[tuple[str, LoggedOperation]]
"""The operations with the names of their clients, in the order in which they ended."""


@define
class _Member:
    name: str
    skew_ms: float
    connection: int = 0
    epoch: int = 0
    held: list[tuple[int, int, int]] = field(factory=list)
    is_up: bool = True

    @property
    def connection_id(self) -> str:
        return f"{self.name}-{self.connection}"


class RandomClients:
    """
    Clients of one node that do at random what clients do, and write it down.

    Args:
        seed: What they do follows from it.
        members: How many members the group has.
        skew_ms: By how much their clocks differ from the node's at the most. [ms]
        has_faults: Whether answers are lost, members crash, and partitions fail over.
    """

    def __init__(self, seed: int, *, members: int = 3, skew_ms: float = 0, has_faults: bool = True) -> None:
        """Begin with a topic and a group."""
        self._random = random = Random(seed)  # noqa: S311 - a seed makes a failure come again
        self._has_faults = has_faults
        self._transactions = 0
        self.lock_ms = random.choice([1000, 2000, 4000])
        self.limit = random.choice([2, 3, 5])
        self.most_locks = random.choice([40, 200])
        self.is_committed = random.random() < 0.5
        share = ShareConfig(
            max_record_locks=self.most_locks,
            delivery_count_limit=self.limit,
            record_lock_duration_ms=self.lock_ms,
            auto_offset_reset=AutoOffsetReset.earliest(),
        )
        level = IsolationLevel.READ_COMMITTED if self.is_committed else IsolationLevel.READ_UNCOMMITTED
        self._node = ShareBroker(
            NodeConfig(profile=KAFKA_4_4.healed, group=GroupConfig(share=share, isolation_level=level))
        )
        topic = CreatableTopic(name=TOPIC, partition_count=len(PARTITIONS))
        made: Any = self._node.call(CreateTopicsRequest(topics=[topic]), now_ms=0)
        self._topic_id: str = made.topics[0].topic_id
        states = [PartitionStateData(partition=each) for each in PARTITIONS]
        self._node.call(InitializeStateParameters.of(GROUP, self._topic_id, *states), now_ms=0)
        self._now_ms = 0
        self._sequence = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._answers: dict[int, Callable[[Any], None]] = {}
        self._has_skew = bool(skew_ms)
        self._members = [_Member(f"m{number}", random.uniform(-skew_ms, skew_ms)) for number in range(members)]
        self._producer_skew_ms = random.uniform(-skew_ms, skew_ms)
        self._ended: list[tuple[int, str, LoggedOperation]] = []
        self._quiet_at = 0

    # ---- the life of all

    def run(self, busy_ms: int = 20_000) -> Lines:
        """Let the clients work, then ask until all is done, and return what they wrote down."""
        self._quiet_at = busy_ms
        self._write(
            "m0",
            SettingsOperation(
                at_ms=self._members[0].skew_ms,
                group=GROUP,
                record_lock_duration_ms=self.lock_ms,
                delivery_count_limit=self.limit,
                max_record_locks=self.most_locks,
                isolation_level="read_committed" if self.is_committed else "read_uncommitted",
                auto_offset_reset="earliest",
            ),
        )
        self._later(1, self._produce)
        for member in self._members:
            self._later(self._random.randrange(200), lambda member=member: self._act(member))  # type: ignore[misc] # mypy infers no lambda with a default
        if self._has_faults:
            self._later(self._random.randrange(busy_ms), self._fail_over)
        end_ms = busy_ms + (self.limit + 2) * (self.lock_ms + 3000)
        self._later(end_ms, lambda: None)  # so that answers to fetches that wait are waited for
        while self._now_ms < end_ms:
            at_ms, _, event = heappop(self._events)
            if self._advance(at_ms):
                event()
            else:
                self._sequence += 1
                heappush(self._events, (at_ms, self._sequence, event))
        self._ended.sort(key=lambda each: each[0])
        return [(name, operation) for _, name, operation in self._ended]

    def _advance(self, to_ms: int) -> bool:
        """Let time pass on the node until something is answered, and return whether nothing was before the time."""
        while (due := self._node.next_deadline_ms()) is not None and due < to_ms:
            self._now_ms = max(due, self._now_ms)
            answers = self._node.advance(self._now_ms)
            self._take(answers)
            if answers:
                return False
        self._now_ms = max(to_ms, self._now_ms)
        self._take(self._node.advance(self._now_ms))
        return True

    def _take(self, answers: Any) -> None:  # noqa: ANN401 - of the node
        for number, response in answers:
            answered = self._answers.pop(number, None)
            if answered is not None:
                answered(response)

    def _later(self, ms: int, event: Callable[[], None]) -> None:
        self._sequence += 1
        heappush(self._events, (self._now_ms + ms, self._sequence, event))

    def _write(self, name: str, operation: LoggedOperation) -> None:
        self._ended.append((self._now_ms, name, operation))

    def _way_ms(self) -> int:
        return self._random.choice([1, 1, 2, 5, 30])

    def _is_lost(self) -> bool:
        return self._has_faults and self._now_ms < self._quiet_at and self._random.random() < 0.01

    def _fail_over(self) -> None:
        partition = self._random.choice(PARTITIONS)
        at_ms = self._now_ms + self._members[0].skew_ms
        self._node.fail_over(TOPIC, partition, self._now_ms)
        self._take(self._node.answers())
        fault = FaultOperation(begin_ms=at_ms, end_ms=at_ms, what="failover", topic=TOPIC, partition=partition)
        self._write("m0", fault)

    # ---- the producer

    def _produce(self) -> None:
        if self._now_ms >= self._quiet_at:
            return
        random, partition, count = self._random, self._random.choice(PARTITIONS), self._random.randrange(1, 20)
        if random.random() < 0.7:
            self._append(partition, ProducedBatch(records=[_RECORD] * count), None)
        else:
            self._transactions += 1
            name = f"tx-{self._transactions}"
            made: Any = self._node.call(
                InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), now_ms=self._now_ms
            )
            batch = ProducedBatch(
                records=[_RECORD] * count,
                producer_id=made.producer_id,
                producer_epoch=made.producer_epoch,
                base_sequence=0,
                is_transactional=True,
            )
            self._append(partition, batch, name)
            self._later(random.randrange(100, 500), lambda: self._end(name, made))
        self._later(random.randrange(100, 800), self._produce)

    def _append(self, partition: int, batch: ProducedBatch, name: str | None) -> None:
        before, after = self._way_ms(), self._way_ms()
        begin_ms = self._now_ms - before + self._producer_skew_ms
        produced = [ProducedPartition(self._topic_id, partition, batch)]
        made: Any = self._node.call(ProduceRequest(partitions=produced, transactional_id=name), now_ms=self._now_ms)
        self._take(self._node.answers())
        first = made.partitions[0].base_offset
        operation = ProduceOperation(
            begin_ms=begin_ms,
            end_ms=self._now_ms + after + self._producer_skew_ms,
            topic=TOPIC,
            partition=partition,
            first_offset=first,
            last_offset=first + len(batch.records) - 1,
            transaction=name,
        )
        self._write("p", operation)

    def _end(self, name: str, producer: Any) -> None:  # noqa: ANN401 - an answer
        before, after, committed = self._way_ms(), self._way_ms(), self._random.random() < 0.7
        begin_ms = self._now_ms - before + self._producer_skew_ms
        self._node.call(
            EndTxnRequest(
                transactional_id=name,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                committed=committed,
            ),
            now_ms=self._now_ms,
        )
        self._take(self._node.answers())
        end_ms = self._now_ms + after + self._producer_skew_ms
        ended = EndTransactionOperation(begin_ms=begin_ms, end_ms=end_ms, transaction=name, committed=committed)
        self._write("p", ended)

    # ---- members

    def _act(self, member: _Member) -> None:
        """Let a member do what comes next, once the answer before is there."""
        random = self._random
        chance = random.random()
        is_busy = self._now_ms < self._quiet_at
        if member.epoch == 0 or not member.held:
            self._fetch(member)
        elif self._has_faults and is_busy and chance < 0.02:
            self._crash(member)
        elif is_busy and chance < 0.05:
            self._close(member)
        elif is_busy and chance < 0.25:
            self._fetch(member)
        else:
            self._acknowledge(member)

    def _think(self, member: _Member) -> None:
        is_slow = self._now_ms < self._quiet_at and self._random.random() < 0.1
        pause = (
            self._random.randrange(self.lock_ms // 2, 2 * self.lock_ms) if is_slow else self._random.randrange(1, 80)
        )
        self._later(pause, lambda: self._act(member))

    def _send(self, member: _Member, request: Any, answered: Callable[[float, float | None, Any], None]) -> None:  # noqa: ANN401 - of any kind
        """Send a request; *answered* gets its begin, its end and the answer, or None for both if it is lost."""
        begin_ms = self._now_ms + member.skew_ms
        connection_id = member.connection_id

        def back(response: Any) -> None:  # noqa: ANN401 - of any kind
            if self._is_lost():
                self._later(self._way_ms(), lambda: self._lose(member, begin_ms, answered))
            else:
                self._later(self._way_ms(), lambda: answered(begin_ms, self._now_ms + member.skew_ms, response))

        def arrive() -> None:
            number = self._node.send(request, connection_id=connection_id, now_ms=self._now_ms)
            self._answers[number] = back
            self._take(self._node.answers())

        self._later(self._way_ms(), arrive)

    def _lose(self, member: _Member, begin_ms: float, answered: Callable[[float, float | None, Any], None]) -> None:
        """Let an answer be lost with its connection."""
        self._node.disconnect(member.connection_id, self._now_ms)
        self._take(self._node.answers())
        member.connection += 1
        member.epoch = 0
        answered(begin_ms, None, None)

    def _fetch(self, member: _Member) -> None:
        joined = [PartitionOfRequest(self._topic_id, each) for each in PARTITIONS] if member.epoch == 0 else []
        request = ShareFetchRequest(
            group_id=GROUP,
            member_id=member.name,
            share_session_epoch=member.epoch,
            partitions=joined,
            max_wait_ms=300,
            max_records=self._random.choice([5, 20, 500]),
        )
        member.epoch += 1

        def answered(begin_ms: float, end_ms: float | None, response: Any) -> None:  # noqa: ANN401 - of the node
            got: tuple[FetchedRanges, ...] = ()
            if response is not None:
                got = tuple(
                    _fetched(each) for each in response.partitions if each.acquired_records or each.error.error_code
                )
                member.held += [(each.partition, first, last) for each in got for first, last, _ in each.ranges]
                if response.error_code:
                    member.epoch = 0
                    got = (FetchedRanges(TOPIC, 0, (), int(response.error_code)),)
            self._write(member.name, FetchOperation(begin_ms=begin_ms, end_ms=end_ms, group=GROUP, partitions=got))
            self._think(member)

        self._send(member, request, answered)

    def _acknowledge(self, member: _Member) -> None:
        random = self._random
        partition, first, last = member.held.pop(random.randrange(len(member.held)))
        if last > first and random.random() < 0.3:
            middle = random.randrange(first, last)
            member.held.append((partition, middle + 1, last))
            last = middle
        is_busy = self._now_ms < self._quiet_at
        type_ = random.choice(_TYPES) if is_busy else AcknowledgeType.ACCEPT
        if type_ is AcknowledgeType.RENEW:
            member.held.append((partition, first, last))
        batch = AcknowledgementBatch(first, last, (type_,))
        request = ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=member.name,
            share_session_epoch=member.epoch,
            partitions=[PartitionOfRequest(self._topic_id, partition, [batch])],
            is_renew_ack=type_ is AcknowledgeType.RENEW,
        )
        member.epoch += 1
        ranges = (AcknowledgedRange(first, last, AcknowledgedAs[type_.name]),)

        def answered(begin_ms: float, end_ms: float | None, response: Any) -> None:  # noqa: ANN401 - of the node
            code = None
            if response is not None:
                code = int(response.error_code or response.partitions[0].error.error_code)
                if response.error_code:
                    member.epoch = 0
            acknowledged = (AcknowledgedRanges(TOPIC, partition, ranges, code),)
            self._write(
                member.name,
                AcknowledgeOperation(begin_ms=begin_ms, end_ms=end_ms, group=GROUP, partitions=acknowledged),
            )
            self._think(member)

        self._send(member, request, answered)

    def _close(self, member: _Member) -> None:
        request = ShareAcknowledgeRequest(group_id=GROUP, member_id=member.name, share_session_epoch=-1)
        member.epoch = 0
        member.held.clear()

        def answered(begin_ms: float, end_ms: float | None, _response: Any) -> None:  # noqa: ANN401 - of the node
            self._write(member.name, CloseOperation(begin_ms=begin_ms, end_ms=end_ms, group=GROUP))
            self._think(member)

        self._send(member, request, answered)

    def _crash(self, member: _Member) -> None:
        self._write(member.name, CrashOperation(at_ms=self._now_ms + member.skew_ms, group=GROUP))
        self._node.disconnect(member.connection_id, self._now_ms)
        self._take(self._node.answers())
        member.connection += 1
        member.epoch = 0
        member.held.clear()
        self._later(self._random.randrange(100, 3000), lambda: self._act(member))


@lru_cache(maxsize=64)
def lines_of(seed: int, *, skew_ms: int = 0, has_faults: bool = True) -> Lines:
    """Return what clients wrote down; a run takes a tenth of a second, and is the same each time."""
    return RandomClients(seed, skew_ms=skew_ms, has_faults=has_faults).run()


def _fetched(partition: Any) -> FetchedRanges:  # noqa: ANN401 - of the node
    ranges = tuple(DeliveredRange(*each) for each in partition.acquired_records)
    return FetchedRanges(TOPIC, partition.partition, ranges, int(partition.error.error_code))


def log_of(
    lines: Lines, *, has_own_clocks: bool = False, view: View = View.WIRE, cut_off: str | None = None
) -> OperationLog:
    """Return the log that clients make, with one clock or one for each; of one that is cut off, the middle half."""
    log = OperationLog()
    for name in dict.fromkeys(name for name, _ in lines):
        own = [operation for client, operation in lines if client == name]
        if name == cut_off:
            own = own[len(own) // 4 : -len(own) // 4]
        clock = None if has_own_clocks else "one"
        header = OperationsHeader(client=name, clock=clock, view=view, complete=name != cut_off)
        log.add(name, header, enumerate(own, 2))
    return log
