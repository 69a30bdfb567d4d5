"""
The test broker as a machine of the kit, `ShareGroupMachine`, through its socket.

What is the same whatever the clients are, and clients that send each request by hand: they renew locks, acknowledge
what they like, and fetch while they hold something, which librdkafka's do not.
"""

# ruff: noqa: D102 - what a machine implements has its docstring there

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from types import MappingProxyType
from typing import Any, ClassVar, Final
from uuid import UUID, uuid4

from aiokafka.record import MemoryRecords

from sharestate import KAFKA_4_4, ErrorCode, Profile
from sharestate.broker import QUICK_SETTINGS, Fail, Fault, StandingClock, TestBroker
from sharestate.broker.node import CreatableTopic, CreateTopicsRequest, LogRecord, ShareBroker
from sharestate.testing.groups import AcknowledgementBatch, AcknowledgeType, AcquireMode, GroupSettings
from sharestate.testing.groups.machine import ShareGroupMachine
from tests.support.batch_bytes import batch_bytes
from tests.support.node_adapter import GROUP, TOPIC
from tests.support.wire_client import WireClient, id_of, uuid_of

ANNOUNCED: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "Produce": (0, 13),
        "DeleteRecords": (21, 2),
        "InitProducerId": (22, 5),
        "AddPartitionsToTxn": (24, 3),
        "EndTxn": (26, 4),
        "ShareGroupHeartbeat": (76, 1),
        "ShareFetch": (78, 2),
        "ShareAcknowledge": (79, 2),
    }
)
"""The key and the version of each API that clients use here; transactions are those that clients begin."""

BROKER_SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {**QUICK_SETTINGS, "group.share.min.record.lock.duration.ms": "1000"}
)
"""Heartbeats that come soon, and locks that last a second."""

PATIENCE: Final = timedelta(minutes=15)
"""The longest that a transaction may be open, as long as a broker lets it (transaction.max.timeout.ms)."""


class BrokerMachine(ShareGroupMachine):
    """A test broker whose clock stands, with a group that fetches the only partition of a topic."""

    profile: ClassVar[Profile] = KAFKA_4_4
    max_record_locks = 200  # the fewest are 100, which is more than there are records in a run
    faults: ClassVar[Sequence[Fault]] = ()
    topic: str = TOPIC
    group: str = GROUP
    server: TestBroker

    def begin(self, settings: GroupSettings) -> None:
        """Make the topic, configure the group, and apply the faults."""
        for fault in self.faults:
            self.server.apply_fault(fault)
        asked = CreateTopicsRequest(topics=[CreatableTopic(name=self.topic)])
        made: Any = self.server.run(lambda node: node.call(asked, now_ms=node.now_ms))
        self.topic_id: UUID = uuid_of(made.topics[0].topic_id)
        self.server.configure_group(
            self.group,
            {
                "share.auto.offset.reset": "earliest",
                "share.delivery.count.limit": str(settings.delivery_count_limit),
                "share.isolation.level": settings.isolation_level,
                "share.record.lock.duration.ms": str(settings.lock_duration_ms),
                "share.renew.acknowledge.enable": str(settings.renew_acknowledge_enable).lower(),
            },
        )

    @property
    def broker(self) -> ShareBroker:
        """The node, of which nobody asks anything just now."""
        return self.server.run(lambda node: node)

    def advance_clock(self, ms: int) -> None:
        self.server.advance(ms=ms)


class Wire(WireClient):
    """A connection on which requests are asked by the names of their APIs."""

    def asked(self, api: str, **values: Any) -> Any:  # noqa: ANN401 - whatever the schema has
        """Return the response to a request."""
        return self.ask(*ANNOUNCED[api], **values)


class WireProducer:
    """A transactional producer."""

    def __init__(self, wire: Wire, name: str) -> None:
        """Begin with an id."""
        timeout = {"transactional_id": name, "transaction_timeout": PATIENCE, "producer_id": -1, "producer_epoch": -1}
        made = wire.asked("InitProducerId", **timeout)
        assert not made.error_code, made
        self._wire, self._sequence = wire, 0
        self._named = {"transactional_id": name, "producer_id": made.producer_id, "producer_epoch": made.producer_epoch}

    def begin(self) -> None:
        """Begin a transaction."""
        named = {f"v3_and_below_{name}": value for name, value in self._named.items()}
        topics = [{"name": TOPIC, "partitions": [0]}]
        (made,) = self._wire.asked(
            "AddPartitionsToTxn", **named, v3_and_below_topics=topics
        ).results_by_topic_v3_and_below
        assert not made.results_by_partition[0].partition_error_code, made

    def batch(self, *records: LogRecord) -> bytes:
        """Return the next batch of the transaction."""
        id_and_epoch = self._named["producer_id"], self._named["producer_epoch"]
        batch = batch_bytes(*records, producer=(*id_and_epoch, self._sequence), is_transactional=True)
        self._sequence += len(records)
        return batch

    def end(self, *, committed: bool) -> None:
        """End the transaction."""
        made = self._wire.asked("EndTxn", **self._named, committed=committed)
        assert not made.error_code, made


class WireShareMember:
    """A member of the group, which sends what it is told."""

    def __init__(self, wire: Wire, topic_id: UUID) -> None:
        """Join, and have a partition."""
        self._wire, self._topic_id = wire, topic_id
        self._is_by_fetch = False
        self.member_id = id_of(uuid4())
        self.epoch = 0
        joined, assigned = 0, None
        while not assigned:
            answer = wire.asked(
                "ShareGroupHeartbeat",
                group_id=GROUP,
                member_id=self.member_id,
                member_epoch=joined,
                rack_id=None,
                subscribed_topic_names=[TOPIC],
            )
            assert not answer.error_code, answer
            joined, assigned = answer.member_epoch, answer.assignment and answer.assignment.topic_partitions

    def ask(self, api: str, batches: Sequence[AcknowledgementBatch] = (), **values: Any) -> Any:  # noqa: ANN401 - as above
        """Return the answer for the partition, None if there is none, to a request of the session."""
        acknowledged = [
            {"first_offset": first, "last_offset": last, "acknowledge_types": tuple(map(int, types))}
            for first, last, types in batches
        ]
        partition = {"partition_index": 0, "acknowledgement_batches": acknowledged}
        names_it = acknowledged or self.epoch == 0
        response = self._wire.asked(
            api,
            group_id=GROUP,
            member_id=self.member_id,
            share_session_epoch=self.epoch,
            topics=[{"topic_id": self._topic_id, "partitions": [partition]}] if names_it else [],
            **values,
        )
        assert not response.error_code, response
        self.epoch += 1
        return response.responses[0].partitions[0] if response.responses else None

    def fetch(self, max_records: int, mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED) -> Any:  # noqa: ANN401 - as above
        """Fetch without waiting."""
        return self.ask(
            "ShareFetch",
            max_bytes=2**20,
            max_records=max_records,
            batch_size=max(max_records, 1),
            share_acquire_mode=int(mode is AcquireMode.RECORD_LIMIT),
        )

    def leave_session(self) -> None:
        """Close the session, with a fetch and with an acknowledgement by turns."""
        self._is_by_fetch = not self._is_by_fetch
        self.epoch = -1
        self.ask("ShareFetch" if self._is_by_fetch else "ShareAcknowledge")
        self.epoch = 0


class WireMachine(BrokerMachine):
    """A test broker, and clients that send each request by hand."""

    renews = True
    delivers_ranges = True
    partition: ClassVar[int] = 0
    has_former_leaders: ClassVar[bool] = False
    runs: ClassVar[int] = 0

    def start(self, settings: GroupSettings) -> None:
        type(self).runs += 1
        self.open = ExitStack()
        server = TestBroker(profile=self.profile, config=BROKER_SETTINGS, clock=StandingClock())
        self.server = self.open.enter_context(server)
        self.begin(settings)
        self.values: dict[int, bytes] = {}
        self.wire = self.open.enter_context(Wire(self.server.port))
        self.consumers = {
            name: WireShareMember(self.open.enter_context(Wire(self.server.port)), self.topic_id)
            for name in self.members
        }
        self.producers: dict[str, WireProducer] = {}

    def stop(self) -> None:
        self.open.close()

    # ---- producers and administrators

    def produce(self, count: int, producer: str | None) -> range:
        records = [LogRecord(None, uuid4().bytes, (), 0) for _ in range(count)]
        batch = self.producers[producer].batch(*records) if producer else batch_bytes(*records)
        partitions = [{"index": 0, "records": batch}]
        response = self.wire.asked(
            "Produce",
            transactional_id=producer,
            acks=-1,
            topic_data=[{"topic_id": self.topic_id, "partition_data": partitions}],
        )
        (made,) = response.responses[0].partition_responses
        assert not made.error_code, made
        offsets = range(made.base_offset, made.base_offset + count)
        self.values.update(zip(offsets, (record.value or b"" for record in records), strict=True))
        return offsets

    def begin_transaction(self, producer: str) -> None:
        if producer not in self.producers:
            self.producers[producer] = WireProducer(self.wire, producer)
        self.producers[producer].begin()

    def commit_transaction(self, producer: str) -> None:
        self.producers[producer].end(committed=True)

    def abort_transaction(self, producer: str) -> None:
        self.producers[producer].end(committed=False)

    def delete_records(self, before_offset: int) -> None:
        topics = [{"name": TOPIC, "partitions": [{"partition_index": 0, "offset": before_offset}]}]
        (made,) = self.wire.asked("DeleteRecords", topics=topics).topics
        assert made.partitions[0].low_watermark == before_offset, made

    # ---- the broker

    def fail_over(self) -> None:
        self.server.fail_over(TOPIC, 0)

    def fail_writes(self) -> None:
        lost, refused = (Fail(ErrorCode.NOT_COORDINATOR, is_carried_out=is_lost) for is_lost in (True, False))
        self.failing = [
            self.server.apply_fault(Fault(on="WriteShareGroupState", action=lost, probability=0.5)),
            self.server.apply_fault(Fault(on="WriteShareGroupState", action=refused)),
        ]

    def mend_writes(self) -> None:
        for fault in self.failing:
            self.server.remove_fault(fault)

    # ---- members

    def fetch(self, member: str, max_records: int) -> list[tuple[int, int, int]]:
        found = self.consumers[member].fetch(max_records, self.acquire_mode)
        if found is None:
            return []
        if found.error_code == ErrorCode.UNKNOWN_SERVER_ERROR and self.profile.quirks:
            self.give_up("Kafka's acquire throws at an aborted batch, and keeps what it has acquired (B8)")
        assert not found.error_code or self._model.writes_fail, found
        acquired = [(each.first_offset, each.last_offset, each.delivery_count) for each in found.acquired_records]
        for offset, value in values_of(bytes(found.records or b"")):
            assert self.values.get(offset) == value
        return acquired

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        consumer = self.consumers[member]
        if not consumer.epoch:
            consumer.fetch(0)  # which opens a session
        renews = any(AcknowledgeType.RENEW in batch.acknowledge_types for batch in batches)
        answer = consumer.ask("ShareAcknowledge", batches, is_renew_ack=renews)
        if answer is None or answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return ErrorCode.INVALID_RECORD_STATE if answer else ErrorCode.NONE  # nobody leads it, and so owns nothing
        return int(answer.error_code)

    def close_session(self, member: str) -> None:
        if self.consumers[member].epoch:
            self.consumers[member].leave_session()


def values_of(records: bytes) -> list[tuple[int, bytes]]:
    """Return the offset and the value of each record that is not a marker."""
    found: list[tuple[int, bytes]] = []
    reader = MemoryRecords(records)
    while (batch := reader.next_batch()) is not None:
        if not batch.is_control_batch:
            found += [(record.offset, record.value or b"") for record in batch]
    return found
