"""
A node of several partitions as a machine of the kit: members have sessions, connections and fetches that wait.

Each partition has a `ClientModel` of its own. An event happens at one partition, and whatever it changes at the others
is judged there.
"""

# ruff: noqa: D102 - what a machine implements has its docstring there

from __future__ import annotations

from collections import deque
from functools import partial
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, NoReturn, TypeVar

from attrs import define, field

from sharestate import (
    KAFKA_4_4,
    AcknowledgementBatch,
    AcknowledgeType,
    AcquiredRecords,
    AutoOffsetReset,
    ErrorCode,
    InMemoryPersister,
    IsolationLevel,
    Profile,
    RecordState,
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
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchResponse,
)
from sharestate.broker.node.transactions import MAX_TIMEOUT_MS
from sharestate.persister import InitializeStateParameters, PartitionStateData
from sharestate.testing.groups import (
    AcquireMode,
    Allowance,
    GroupSettings,
    Guarantee,
    ShareGroupMachine,
)
from sharestate.testing.groups.events import EVERYTHING, ClientEvents, Event, Pick, Range
from sharestate.testing.groups.model import ClientModel, Delivery

T = TypeVar("T")

GROUP: Final = "g"
TOPIC: Final = "orders"
RECORD: Final = LogRecord(b"k", b"v")

MAX_WAIT_MS: Final = 400
"""How long a fetch waits: less than half of a lock, so that locks outlast it, and end while it waits. [ms]"""

LATE_RENEWAL: Final = int(AcknowledgeType.RENEW)

Ranges = tuple[AcquiredRecords, ...]


class WrongAnswerError(AssertionError):
    """
    An answer that a member may not get, or one that it does not get.

    Attributes:
        guarantee: What it breaks, in a few words.
    """

    def __init__(self, guarantee: str, what: str) -> None:
        """Say that *what* breaks *guarantee*."""
        super().__init__(f"{guarantee}: {what}")
        self.guarantee = guarantee


@define
class Waiting:
    """
    A fetch that waits.

    Attributes:
        number: Its number.
        deadline_ms: When it has to be answered. [ms]
        max_records: How many records it asks for.
        may_lack_a_leader: Whether it may wait for a leader that is none any more, or that could not begin.
    """

    number: int
    deadline_ms: int
    max_records: int
    may_lack_a_leader: bool = False


@define
class Producer:
    """A transactional producer: its id and epoch, and the next sequence number of each partition."""

    producer_id: int
    epoch: int
    sequences: dict[int, int] = field(factory=dict)


@define
class Consumer:
    """
    A member, and what it knows of its connection and its session.

    Attributes:
        name: The member id.
        connection: The number of its connections so far.
        epoch: The epoch of its next request.
        joined: The partitions of its session.
        left: The partitions of the session that it had before: what it holds of others goes on being locked.
        due: Those of which a response may say that there is nothing: they are new to the session, or have failed.
        has_had_session: Whether a session was opened on its connection.
        waiting: Its fetch that waits.
    """

    name: str
    connection: int = 0
    epoch: int = 0
    joined: set[int] = field(factory=set)
    left: set[int] = field(factory=set)
    due: set[int] = field(factory=set)
    has_had_session: bool = False
    waiting: Waiting | None = None

    @property
    def connection_id(self) -> str:
        """The connection on which it sends its requests."""
        return f"{self.name}-{self.connection}"

    def forget_session(self) -> None:
        """Know of no session any more."""
        self.epoch = 0
        self.left = self.joined
        self.joined = set()
        self.due.clear()
        self.waiting = None

    def reconnect(self) -> str:
        """Take another connection, and return the one before."""
        before = self.connection_id
        self.connection += 1
        self.has_had_session = False
        return before


EVERYWHERE: Final = frozenset({"time_passed", "writes_changed"})
"""What happens to all partitions at once."""


class NodeMachine(ShareGroupMachine):
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
        made = self.broker.call(CreateTopicsRequest(topics=[topic]), now_ms=0)
        self.topic_id = made.topics[0].topic_id
        states = [PartitionStateData(partition=each) for each in range(self.partition_count)]
        self.broker.call(InitializeStateParameters.of(GROUP, self.topic_id, *states), now_ms=0)
        self.now_ms = 0
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
            self.ask(consumer, self.fetch_request(consumer, 0))  # only a fetch opens a session
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
            is_renew_ack=any(LATE_RENEWAL in types for *_, types in batches),
        )

    def close_session(self, member: str) -> None:
        """Close the session: every other member with a fetch, the others with an acknowledgement."""
        consumer = self.consumers[member]
        if consumer.epoch == 0:
            return
        if self.members.index(member) % 2:
            request = self.acknowledge_request(consumer, (), -1)
        else:
            request = ShareFetchRequest(group_id=GROUP, member_id=member, share_session_epoch=-1, max_wait_ms=0)
        response = self.ask(consumer, request)
        if response.error_code:
            wrong("session goes on", f"{member} leaves, and is answered {response.error_code.name}")
        consumer.forget_session()

    # ---- events of its own

    def pick_event(self, pick: Pick) -> Event:
        """Pick a partition, and what happens there: one of the kit's events, or one of those below."""
        partition = pick(range(self.partition_count))
        self.turn_to(partition)
        kind = pick(BY_WEIGHT)
        if kind is None or not kind.may_happen(self):
            return "at", partition, *super().pick_event(pick)
        return "at", partition, kind.method, *kind.arguments(self, pick)

    def at(self, partition: int, name: str, *arguments: Any) -> None:  # noqa: ANN401 - as events have them
        """Let an event happen at a partition."""
        self.program.append(("at", partition, name, *arguments))
        self.turn_to(partition)
        getattr(self, name)(*arguments)

    def turn_to(self, partition: int) -> None:
        """Let events happen at a partition from now on."""
        self.partition = partition
        self._model, self._events = self.models[partition], self.events[partition]

    def member_waits(self, member: str, max_records: int) -> None:
        """Fetch, and wait if there is nothing."""
        self.finish_waiting(member)
        self._call(self.begin_to_wait, member, max_records)
        self.judge_unjudged()

    def begin_to_wait(self, member: str, max_records: int) -> None:
        """Send a fetch that may wait, and take its answer if it comes at once."""
        consumer = self.consumers[member]
        request = self.fetch_request(consumer, max_records, max_wait_ms=MAX_WAIT_MS)
        number = self.send(consumer, request)
        consumer.waiting = Waiting(number, self.now_ms + MAX_WAIT_MS, max_records, self._model.writes_fail)
        self.take(())

    def finish_waiting(self, member: str) -> None:
        """Let time pass until a member's fetch is answered: a client has one request on its way at a time."""
        waiting = self.consumers[member].waiting
        if waiting is not None:
            self.time_passes(waiting.deadline_ms - self.now_ms)

    def member_acknowledges_and_fetches(self, member: str, ranges: Iterable[Range], max_records: int) -> None:
        """Acknowledge with a fetch: it acquires what it has released itself, too."""
        self.finish_waiting(member)
        consumer = self.consumers[member]
        batches = [AcknowledgementBatch(first, last, types_of(names)) for first, last, names in ranges]
        if consumer.epoch == 0 or any(LATE_RENEWAL in types for *_, types in batches):
            self.member_acknowledges(member, ranges)
            return
        acknowledged = {self.partition: batches}
        response = self._call(self.ask, consumer, self.fetch_request(consumer, max_records, acknowledged=acknowledged))
        found = self._call(self.found, consumer, response, acknowledged, max_records)
        (answer,) = [each for each in response.partitions if each.partition == self.partition]
        types = {
            offset: AcknowledgeType(types[0 if len(types) == 1 else index]).name
            for first, last, types in batches
            for index, offset in enumerate(range(first, last + 1))
        }
        self.note_found(consumer, found, max_records)
        self._judge(self._model.acknowledged, member, types, code_of(answer.acknowledge_error.error_code))

    def member_accepts_and_leaves(self, member: str) -> None:
        """Close the session with an acknowledgement of what the member has of a partition."""
        self.finish_waiting(member)
        consumer = self.consumers[member]
        owned = self._model.owned(member)
        batches = [
            AcknowledgementBatch(first, last, types_of(names))
            for first, last, names in self._events.everything(member, "ACCEPT")
        ]
        if consumer.epoch == 0 or not owned:
            self.member_leaves(member)
            return
        response = self._call(self.ask, consumer, self.acknowledge_request(consumer, batches, -1))
        consumer.forget_session()
        code = response.error_code or code_of(response.partitions[0].error.error_code)
        super()._judge(self._model.acknowledged, member, dict.fromkeys(owned, "ACCEPT"), code)
        self._judge(self._model.left, member)

    def connection_ends(self, member: str) -> None:
        """End a member's connection, and with it its session."""
        if self.profile.quirks:  # N3: what waits goes on
            self.finish_waiting(member)
        consumer = self.consumers[member]
        had_session = consumer.has_had_session
        consumer.forget_session()
        self._call(self.broker.disconnect, consumer.reconnect(), self.now_ms)
        self._call(self.take_due)
        self._judge(self._model.left, member)
        if had_session and not any(each.epoch for each in self.consumers.values()):
            # Nobody is left: the node leads the group's share partitions no longer, until the next fetch.
            self.judge_everywhere("failed_over")

    def member_comes_back(self, member: str, max_records: int) -> None:
        """Open another session on another connection, while there is one; then the former connection ends."""
        self.finish_waiting(member)
        consumer = self.consumers[member]
        consumer.forget_session()
        before = consumer.reconnect()
        self.member_fetches(member, max_records)
        self._call(self.broker.disconnect, before, self.now_ms)
        self._call(self.take_due)
        self.judge_unjudged()

    def member_forgets(self, member: str) -> None:
        """Fetch, but nothing of this partition: its next fetch has it again."""
        self.finish_waiting(member)
        consumer = self.consumers[member]
        request = self.fetch_request(consumer, 1, forgotten=[self.partition])
        response = self._call(self.ask, consumer, request)
        self.note_found(consumer, self._call(self.found, consumer, response, (), 1), 1)
        self.judge_unjudged()

    def node_restarts(self) -> None:
        """Let the node start again: it knows what was persisted, and no session."""
        self._call(self.broker.restart, self.now_ms)
        for consumer in self.consumers.values():
            consumer.forget_session()
            consumer.reconnect()
        self.judge_everywhere("failed_over")

    def take_due(self) -> None:
        """Take the answers that are due."""
        self.take(self.broker.answers())

    # ---- the kit's events, at several partitions

    def member_fetches(self, member: str, max_records: int) -> list[int]:
        waiting = self.consumers[member].waiting
        if waiting is not None and (waiting.may_lack_a_leader or self.profile.quirks):
            # Nobody wakes it if the leader has changed, and in Kafka not in other cases either (N1).
            self.finish_waiting(member)
        return super().member_fetches(member, max_records)

    def member_acknowledges(self, member: str, ranges: Iterable[Range]) -> None:
        self.finish_waiting(member)
        super().member_acknowledges(member, ranges)

    def member_leaves(self, member: str) -> None:
        self.finish_waiting(member)
        super().member_leaves(member)

    def time_passes(self, ms: int) -> None:
        """Let time pass from one deadline of the node to the next: what happens then is judged as of then."""
        until_ms = self.now_ms + ms
        while (deadline_ms := self.broker.next_deadline_ms()) is not None and self.now_ms < deadline_ms < until_ms:
            super().time_passes(deadline_ms - self.now_ms)
        super().time_passes(until_ms - self.now_ms)

    def transaction_ends(self, producer: str, how: str) -> None:
        """End a transaction wherever it has records."""
        markers = self._call(partial(self.end_transaction, producer, committed=how == "commit"))
        for partition, marker in markers.items():
            model = self.models[partition]
            super()._judge(partial(model.transaction_ended, producer, marker, is_committed=how == "commit"))
        self.judge_unjudged()

    # ---- judgement

    def _judge(self, method: Callable[..., Any], *args: Any, **named: Any) -> Any:  # noqa: ANN401 - those of *method*
        """Judge an event, wherever it happens, and what members have got by it."""
        name = getattr(method, "__name__", "")
        result = None
        if name == "left":
            for partition in self.consumers[args[0]].left:
                super()._judge(self.models[partition].left, *args)
        elif name in EVERYWHERE:
            for model in self.models:
                super()._judge(getattr(model, name), *args, **named)
        else:
            result = super()._judge(method, *args, **named)
        self.judge_unjudged()
        return result

    def judge_everywhere(self, name: str) -> None:
        """Judge an event without arguments at all partitions."""
        for model in self.models:
            super()._judge(getattr(model, name))
        self.judge_unjudged()

    def judge_unjudged(self) -> None:
        """Judge what members have got beside the event: by fetches that have waited, and of other partitions."""
        while self.unjudged:
            member, partition, ranges, max_records = self.unjudged.popleft()
            deliveries = [Delivery(*each) for each in ranges]
            super()._judge(self.models[partition].delivered, member, deliveries, max_records)
        self.judge_sleepers()

    def judge_sleepers(self) -> None:
        """Judge that no fetch goes on waiting for what is available."""
        if self.profile.quirks:
            return  # N1
        for consumer in self.consumers.values():
            if consumer.waiting is not None and not consumer.waiting.may_lack_a_leader:
                for partition in consumer.joined:
                    super()._judge(
                        self.models[partition].expect_delivered, consumer.name, self.models[partition].waiting()
                    )

    def _end_trouble(self) -> None:
        for partition in range(self.partition_count):
            self.turn_to(partition)
            super()._end_trouble()

    def _accept_everything(self) -> None:
        for partition in range(self.partition_count):
            self.turn_to(partition)
            super()._accept_everything()
            self._judge(self._model.expect_nothing_left)

    def _fetch_and_accept(self, member: str, max_records: int) -> list[int]:
        offsets = super()._fetch_and_accept(member, max_records)
        here = self.partition
        for partition in range(self.partition_count):
            self.turn_to(partition)
            if self._model.owned(member):
                self.member_acknowledges_all(member, "ACCEPT")
        self.turn_to(here)
        return offsets


def wrong(guarantee: str, what: str) -> NoReturn:
    """Say what is wrong with an answer."""
    raise WrongAnswerError(guarantee, what)


def code_of(code: ErrorCode) -> ErrorCode:
    """Return the code of an acknowledgement; who acknowledges what is not led yet has acquired nothing of it."""
    return ErrorCode.INVALID_RECORD_STATE if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else code


def types_of(names: Iterable[str]) -> tuple[AcknowledgeType, ...]:
    """Return the acknowledge types with these names."""
    return tuple(AcknowledgeType[name] for name in names)


def expect_records(partition: ShareFetchPartition) -> None:
    """Judge that a response brings the batches in which the acquired records are, and none without them."""
    acquired, batches = partition.acquired_records, partition.records
    if bool(acquired) != bool(batches):
        wrong("records with locks", f"{len(acquired)} ranges are acquired, and {len(batches)} batches come")
    if acquired and not (
        batches[0].batch.first_offset <= acquired[0].first_offset
        and acquired[-1].last_offset <= batches[-1].batch.last_offset
    ):
        wrong("records with locks", f"{acquired} are acquired, and the batches are {[each.batch for each in batches]}")


# ---- events of its own


class Kind(NamedTuple):
    """
    A kind of event.

    Attributes:
        method: The method of the machine that lets it happen.
        may_happen: Whether it may happen now.
        arguments: Picks the arguments of the method.
    """

    method: str
    may_happen: Callable[[NodeMachine], object]
    arguments: Callable[[NodeMachine, Pick], tuple[Any, ...]]


def with_session(machine: NodeMachine) -> list[str]:
    """Return the members that have a session."""
    return [name for name, consumer in machine.consumers.items() if consumer.epoch]


MAX_RECORDS: Final = (EVERYTHING, 1, 2)

KINDS: Final = (
    Kind("member_waits", lambda _: True, lambda machine, pick: (pick(machine.members), pick(MAX_RECORDS))),
    Kind("member_waits", lambda _: True, lambda machine, pick: (pick(machine.members), pick(MAX_RECORDS))),
    Kind(
        "member_acknowledges_and_fetches",
        lambda machine: machine._events.owners(),
        lambda machine, pick: (*machine._events.some(pick), pick(MAX_RECORDS)),
    ),
    Kind(
        "member_accepts_and_leaves",
        lambda machine: machine._events.owners(),
        lambda machine, pick: (pick(machine._events.owners()),),
    ),
    Kind(
        "connection_ends",
        lambda machine: with_session(machine) and not machine._model.writes_fail,
        lambda machine, pick: (pick(with_session(machine)),),
    ),
    Kind("member_comes_back", with_session, lambda machine, pick: (pick(with_session(machine)), pick(MAX_RECORDS))),
    Kind("member_forgets", with_session, lambda machine, pick: (pick(with_session(machine)),)),
    Kind("node_restarts", lambda machine: not machine._model.writes_fail, lambda _machine, _pick: ()),
)
"""What may happen around a node, beside what happens around any share group."""

BY_WEIGHT: Final = (*(None,) * 2 * len(KINDS), *KINDS)
"""One event in three is one of these."""


# ---- Kafka's bugs


def stalls_in_the_gap(machine: NodeMachine) -> bool:
    """Return whether a gap of the previous leader is fetched next, though the SPSO has passed it."""
    partition = machine.broker.share_partition(GROUP, TOPIC, machine.partition)
    window = partition and partition.gap_window
    return bool(partition and window and window.first_offset < partition.start_offset)


def is_full_of_terminal_records(machine: NodeMachine) -> bool:
    """Return whether nothing beyond what is in flight can be acquired, and nothing in flight is to be delivered."""
    partition = machine.broker.share_partition(GROUP, TOPIC, machine.partition)
    if partition is None:
        return False
    states = {run.state for batch in partition.batches() for run in batch.runs}
    size = partition.end_offset - partition.start_offset + 1
    is_full = size >= partition.config.max_record_locks
    return is_full and states <= {RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}


ALLOWANCES: Final = (
    Allowance("F5", Guarantee.NOTHING_LOST, stalls_in_the_gap),
    Allowance("F4 and F7", Guarantee.NOTHING_LOST, is_full_of_terminal_records),
)
"""The bugs of Kafka that clients notice under the profiles of releases: docs/kafka-bugs.md."""


class UnwrittenMachine(NodeMachine):
    """A node whose persister may fail, of a group that gets no more records than it asks for."""

    acquire_mode = AcquireMode.RECORD_LIMIT

    def node(self, config: NodeConfig) -> ShareBroker:
        self.persister = InMemoryPersister()
        return ShareBroker(config, persister=self.persister)

    def fail_writes(self) -> None:
        self.persister.is_holding = True

    def mend_writes(self) -> None:
        self.persister.is_holding = False

    def take(self, answers: Iterable[NodeAnswer]) -> None:
        """Let the requests fail that are held back: some are not carried out, of others only the answer gets lost."""
        taken = [*answers]
        while self.persister.held:
            held = self.persister.held[0]
            if len(self.persister.requests) % 2:
                held.fail(ErrorCode.NOT_COORDINATOR)
            else:
                held.lose()
            taken += self.broker.advance(self.now_ms)
        super().take(taken)


def machine_of(machine: type[NodeMachine], profile: Profile) -> type[NodeMachine]:
    """Return a machine under a profile; its runs are counted from 0."""
    fields = {"profile": profile, "allowances": ALLOWANCES if profile.quirks else (), "runs": 0}
    return type(machine.__name__, (machine,), fields)
