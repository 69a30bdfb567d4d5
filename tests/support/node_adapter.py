"""
A node of several partitions behind the kit's methods: requests in, answers out, and what is wrong with an answer.

Each partition has a `ClientModel` of its own; things happen at one partition at a time.
"""

# ruff: noqa: D102 - what a machine implements has its docstring there

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, NoReturn

from sharestate import (
    KAFKA_4_4,
    AcknowledgementBatch,
    AcknowledgeType,
    AcquiredRecords,
    AutoOffsetReset,
    ErrorCode,
    IsolationLevel,
    Profile,
    ShareConfig,
)
from sharestate.broker.node import (
    CreatableTopic,
    CreateTopicsRequest,
    DeletedRecords,
    DeleteRecordsRequest,
    EndTxnRequest,
    GroupConfig,
    InitProducerIdRequest,
    LogRecord,
    LogRequest,
    NodeAnswer,
    NodeConfig,
    PartitionOfRequest,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
    ShareAcknowledgeRequest,
    ShareBroker,
    ShareFetchRequest,
    ShareFetchResponse,
)
from sharestate.broker.node.transactions import MAX_TIMEOUT_MS
from sharestate.persister import InitializeStateParameters, PartitionStateData
from sharestate.testing.groups import (
    AcquireMode,
    GroupSettings,
    ShareGroupMachine,
)
from sharestate.testing.groups.events import ClientEvents
from sharestate.testing.groups.model import ClientModel
from sharestate.testing.programs import Event
from tests.support.node_members import Consumer, Producer, code_of, expect_records, wrong

GROUP: Final = "g"
TOPIC: Final = "orders"
RECORD: Final = LogRecord(b"k", b"v")

MAX_WAIT_MS: Final = 400
"""How long a fetch waits: less than half of a lock, so that locks outlast it, and end while it waits. [ms]"""

RENEW: Final = int(AcknowledgeType.RENEW)

Ranges = tuple[AcquiredRecords, ...]


class NodeAdapter(ShareGroupMachine):
    """A node with a group that fetches a topic of several partitions."""

    profile: ClassVar[Profile] = KAFKA_4_4.healed
    partition_count: ClassVar[int] = 2
    runs: ClassVar[int] = 0
    renews = True
    delivers_ranges = True

    # ---- the node

    def start(self, settings: GroupSettings) -> None:
        type(self).runs += 1
        self.program: list[Event] = []
        share = ShareConfig(
            max_record_locks=settings.max_record_locks,
            delivery_count_limit=settings.delivery_count_limit,
            record_lock_duration_ms=settings.lock_duration_ms,
            renew_acknowledge_enable=settings.renew_acknowledge_enable,
            auto_offset_reset=AutoOffsetReset.earliest(),
        )
        group = GroupConfig(share=share, isolation_level=IsolationLevel(settings.isolation_level))
        self.broker = self.node(NodeConfig(profile=self.profile, group=group))
        topic = CreatableTopic(name=TOPIC, partition_count=self.partition_count)
        made: Any = self.broker.call(CreateTopicsRequest(topics=[topic]), now_ms=0)
        self.topic_id: str = made.topics[0].topic_id
        states = [PartitionStateData(partition=each) for each in range(self.partition_count)]
        self.broker.call(InitializeStateParameters.of(GROUP, self.topic_id, *states), now_ms=0)
        self.now_ms = 0
        self.has_former_leaders = False
        self.consumers = {member: Consumer(member) for member in self.members}
        self.answered: dict[int, Any] = {}
        self.producers = {name: self.begin_producer(name) for name in ("p1", "p2")}
        self.unjudged: deque[tuple[str, int, Ranges, int]] = deque()
        self.partition = 0
        self.models = [self._model]
        self.events = [self._events]
        for _ in range(1, self.partition_count):
            model = ClientModel(
                settings, delivers_ranges=True, is_record_limit=self.acquire_mode is AcquireMode.RECORD_LIMIT
            )
            self.models.append(model)
            self.events.append(
                ClientEvents(
                    model=model, members=self.members, has=self._events.has, renews=True, left_out=self._left_out
                )
            )

    def node(self, config: NodeConfig) -> ShareBroker:
        """Return the node, whose share coordinator is its own."""
        return ShareBroker(config)

    def produce(self, count: int, producer: str | None) -> range:
        if producer is None:
            batch = ProducedBatch(records=[RECORD] * count)
        else:
            of_id = self.producers[producer]
            batch = ProducedBatch(
                records=[RECORD] * count,
                producer_id=of_id.producer_id,
                producer_epoch=of_id.epoch,
                base_sequence=of_id.sequences.get(self.partition, 0),
                is_transactional=True,
            )
            of_id.sequences[self.partition] = batch.base_sequence + count
        produced = [ProducedPartition(self.topic_id, self.partition, batch)]
        (result,) = self.call(ProduceRequest(partitions=produced, transactional_id=producer)).partitions
        if result.error_code:
            wrong("no error", f"{batch} is not appended: {result}")
        if result.base_offset < self._model.log_end:
            wrong(
                "offsets go on", f"{batch} is appended at {result.base_offset}; the log ends at {self._model.log_end}"
            )
        return range(result.base_offset, result.base_offset + count)

    def begin_producer(self, name: str) -> Producer:
        """Return a new producer, whose transactions take as long as they may."""
        asked = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=MAX_TIMEOUT_MS)
        made = self.call(asked)
        return Producer(made.producer_id, made.producer_epoch)

    def end_transaction(self, producer: str, *, committed: bool) -> dict[int, int]:
        """End the transaction of a producer, and return the offset of the marker of each partition."""
        of_id = self.producers[producer]
        partitions = [number for number, model in enumerate(self.models) if producer in model.open_transactions()]
        markers = {number: self.broker.log(TOPIC, number).high_watermark for number in partitions}
        asked = EndTxnRequest(
            transactional_id=producer,
            producer_id=of_id.producer_id,
            producer_epoch=of_id.epoch,
            committed=committed,
        )
        made = self.call(asked)
        if made.error_code:
            wrong("no error", f"{asked} is answered {made}")
        self.producers[producer] = Producer(made.producer_id, made.producer_epoch)
        return markers

    def commit_transaction(self, producer: str) -> NoReturn:
        raise NotImplementedError  # transactions end at several partitions at once

    abort_transaction = commit_transaction

    def delete_records(self, before_offset: int) -> None:
        deleted = DeletedRecords(TOPIC, self.partition, before_offset)
        (result,) = self.call(DeleteRecordsRequest(partitions=[deleted])).partitions
        if result.low_watermark != before_offset:
            wrong("no error", f"{deleted} is answered {result}")

    def call(self, request: LogRequest) -> Any:  # noqa: ANN401 - of any kind
        """Return the answer to a request of a producer or an administrator, and take what else is answered."""
        response = self.broker.call(request, now_ms=self.now_ms)
        self.take(self.broker.answers())
        return response

    def fail_over(self) -> None:
        self.broker.fail_over(TOPIC, self.partition, self.now_ms)
        self.take(self.broker.answers())
        for consumer in self.consumers.values():
            if consumer.waiting:
                consumer.waiting.may_lack_a_leader = True

    def advance_clock(self, ms: int) -> None:
        self.now_ms += ms
        self.take(self.broker.advance(self.now_ms))
        for consumer in self.consumers.values():
            if consumer.waiting and consumer.waiting.deadline_ms <= self.now_ms:
                what = f"{consumer.name}'s fetch has waited for {MAX_WAIT_MS} ms, and is not answered"
                wrong("answered in time", what)

    # ---- requests, and answers

    def ask(self, consumer: Consumer, request: ShareFetchRequest | ShareAcknowledgeRequest) -> Any:  # noqa: ANN401 - either
        """Return the answer to a request that does not wait."""
        number = self.send(consumer, request)
        if number not in self.answered:
            wrong("answered in time", f"{consumer.name} sends {request}, and gets no answer")
        return self.answered.pop(number)

    def send(self, consumer: Consumer, request: ShareFetchRequest | ShareAcknowledgeRequest) -> int:
        """Send a request, and take all answers that are due."""
        number = self.broker.send(request, connection_id=consumer.connection_id, now_ms=self.now_ms)
        self.take(self.broker.advance(self.now_ms))
        return number

    def take(self, answers: Iterable[NodeAnswer]) -> None:
        """Take answers; those to fetches that have waited are judged when the event is over."""
        for number, response in answers:
            if number in self.answered:
                wrong("answered once", f"request {number} is answered again")
            self.answered[number] = response
        for consumer in self.consumers.values():
            if (waiting := consumer.waiting) is not None and waiting.number in self.answered:
                consumer.waiting = None
                response = self.answered.pop(waiting.number)
                may_fail = waiting.may_lack_a_leader
                found = self.found(consumer, response, (), waiting.max_records, may_fail=may_fail)
                self.note_found(consumer, found, waiting.max_records)

    def fetch_request(
        self,
        consumer: Consumer,
        max_records: int,
        *,
        acknowledged: Mapping[int, Sequence[AcknowledgementBatch]] | None = None,
        forgotten: Iterable[int] = (),
        max_wait_ms: int = 0,
    ) -> ShareFetchRequest:
        """Return the next fetch of a member, which joins all partitions but those that are forgotten."""
        acknowledged = acknowledged or {}
        forgotten = set(forgotten)
        new = set(range(self.partition_count)) - consumer.joined - forgotten
        request = ShareFetchRequest(
            group_id=GROUP,
            member_id=consumer.name,
            share_session_epoch=consumer.epoch,
            partitions=[
                PartitionOfRequest(self.topic_id, each, list(acknowledged.get(each, ())))
                for each in sorted(new | acknowledged.keys())
            ],
            forgotten=[PartitionOfRequest(self.topic_id, each) for each in sorted(forgotten)],
            max_wait_ms=max_wait_ms,
            max_records=max_records,
            share_acquire_mode=self.acquire_mode,
        )
        if consumer.epoch == 0:
            consumer.joined.clear()
            new = set(range(self.partition_count))
        consumer.due = (consumer.due | new) - forgotten
        consumer.joined = (consumer.joined | new) - forgotten
        consumer.epoch += 1
        consumer.has_had_session = True
        return request

    def found(
        self,
        consumer: Consumer,
        response: ShareFetchResponse,
        acknowledged: Iterable[int],
        max_records: int,
        *,
        may_fail: bool = False,
    ) -> dict[int, Ranges]:
        """Judge the answer to a fetch as far as it is the session's, and return what was acquired."""
        if response.error_code:
            wrong("session goes on", f"{consumer.name}'s fetch is answered {response.error_code.name}")
        found = {}
        for each in response.partitions:
            if each.partition not in consumer.joined and each.partition not in acknowledged:
                wrong("only of the session", f"{consumer.name} gets partition {each.partition}, which it has forgotten")
            has_news = each.acquired_records or each.error.error_code or each.partition in acknowledged
            if not has_news and each.partition not in consumer.due:
                wrong("only what is new", f"{consumer.name} is told that partition {each.partition} has nothing")
            if each.error.error_code is ErrorCode.UNKNOWN_SERVER_ERROR and self.profile.quirks:
                self.give_up("Kafka's acquire throws at an aborted batch, and keeps what it has acquired (B8)")
            if each.error.error_code and not (may_fail or self._model.writes_fail):
                wrong("no error", f"{consumer.name} gets {each.error} for partition {each.partition}")
            if each.error.error_code:
                consumer.due.add(each.partition)  # the first success is told after it
            elif each.partition not in acknowledged:  # which is in the response in any case
                consumer.due.discard(each.partition)
            expect_records(each)
            found[each.partition] = each.acquired_records
        count = sum(last - first + 1 for ranges in found.values() for first, last, _ in ranges)
        if self.acquire_mode is AcquireMode.RECORD_LIMIT and count > max_records:
            wrong("record_limit", f"{consumer.name} asks for {max_records} records and gets {count}")
        return found

    def note_found(self, consumer: Consumer, found: Mapping[int, Ranges], max_records: int) -> None:
        """Note what a member has got; it is judged when the event is over."""
        for partition, ranges in found.items():
            self.unjudged.append((consumer.name, partition, ranges, max_records))

    # ---- what members do

    def fetch(self, member: str, max_records: int) -> Ranges:
        consumer = self.consumers[member]
        if consumer.waiting is not None:
            return ()  # it would have been answered if there were anything
        response = self.ask(consumer, self.fetch_request(consumer, max_records))
        found = self.found(consumer, response, (), max_records)
        here = found.pop(self.partition, ())
        self.note_found(consumer, found, max_records)
        return here

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        consumer = self.consumers[member]
        if consumer.epoch == 0:
            self.found(consumer, self.ask(consumer, self.fetch_request(consumer, 0)), (), 0)  # which opens a session
        response = self.ask(consumer, self.acknowledge_request(consumer, batches, consumer.epoch))
        if response.error_code:
            wrong("session goes on", f"{member}'s acknowledgement is answered {response.error_code.name}")
        consumer.epoch += 1
        return code_of(response.partitions[0].error.error_code)

    def acknowledge_request(
        self, consumer: Consumer, batches: Sequence[AcknowledgementBatch], epoch: int
    ) -> ShareAcknowledgeRequest:
        """Return an acknowledgement of records of the partition at which things happen."""
        return ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=consumer.name,
            share_session_epoch=epoch,
            partitions=[PartitionOfRequest(self.topic_id, self.partition, list(batches))] if batches else [],
            is_renew_ack=any(RENEW in types for *_, types in batches),
        )

    def close_session(self, member: str) -> None:
        """Close the session: every other member with a fetch, the others with an acknowledgement."""
        consumer = self.consumers[member]
        if consumer.epoch == 0:
            return
        request: ShareFetchRequest | ShareAcknowledgeRequest
        if self.members.index(member) % 2:
            request = self.acknowledge_request(consumer, (), -1)
        else:
            request = ShareFetchRequest(group_id=GROUP, member_id=member, share_session_epoch=-1, max_wait_ms=0)
        response = self.ask(consumer, request)
        if response.error_code:
            wrong("session goes on", f"{member} leaves, and is answered {response.error_code.name}")
        consumer.forget_session()
