"""
What a run of scripts asks of a cluster besides its members: topics, records, transactions, settings and offsets.

Each request goes to the broker that answers for it, in a version that it has. What was made is deleted in the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

from aiokafka.record import MemoryRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from attrs import frozen
from kio.schema.add_partitions_to_txn.v3 import request as add_schema
from kio.schema.add_partitions_to_txn.v3.response import AddPartitionsToTxnResponse
from kio.schema.create_topics.v7 import request as create_schema
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_groups.v2.response import DeleteGroupsResponse
from kio.schema.delete_records.v2 import request as delete_records_schema
from kio.schema.delete_records.v2.response import DeleteRecordsResponse
from kio.schema.delete_topics.v6 import request as delete_schema
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse
from kio.schema.describe_share_group_offsets.v1 import request as offsets_schema
from kio.schema.describe_share_group_offsets.v1.response import DescribeShareGroupOffsetsResponse
from kio.schema.end_txn.v3.request import EndTxnRequest
from kio.schema.end_txn.v3.response import EndTxnResponse
from kio.schema.fetch.v12 import request as fetch_schema
from kio.schema.fetch.v12.response import FetchResponse
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse
from kio.schema.incremental_alter_configs.v1 import request as configs_schema
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.schema.init_producer_id.v4.request import InitProducerIdRequest
from kio.schema.init_producer_id.v4.response import InitProducerIdResponse
from kio.schema.list_offsets.v7 import request as list_schema
from kio.schema.list_offsets.v7.response import ListOffsetsResponse
from kio.schema.metadata.v12 import request as metadata_schema
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.produce.v11 import request as produce_schema
from kio.schema.produce.v11.response import ProduceResponse
from kio.static.protocol import RequestPayload

from sharestate.errors import ErrorCode, ExternalError, ResponseFormatError
from sharestate.persister.kafka.security import Address, Security, addresses
from sharestate.testing.servers import NegotiatedConnection
from sharestate.testing.servers.connections import only

T = TypeVar("T")

CLIENT_ID: Final = "sharestate-conform"

PATIENCE_S: Final = 30.0
"""How long a broker may take to do what it is asked. [s]"""

ASK_AGAIN_S: Final = 0.05
"""How soon it is asked again. [s]"""

NOT_YET: Final = frozenset(
    {
        "coordinator_not_available",
        "coordinator_load_in_progress",
        "not_coordinator",
        "concurrent_transactions",
        "leader_not_available",
        "not_leader_or_follower",
        "unknown_topic_or_partition",
        "unknown_topic_id",
    }
)
"""Errors after which the same is asked again, as what was made may not be known everywhere."""

NO_ANSWER: Final = (OSError, ExternalError, ResponseFormatError)
"""Errors with which there is no answer: the connection is lost, the request is refused, or what came is none."""

_GROUP, _TRANSACTION, _GROUP_CONFIGS, _SET = 0, 1, 32, 0
"""Types of coordinators' keys, the type of resource that is a group, and the operation that sets a config."""

_LATEST: Final = -1
"""The timestamp by which ListOffsets finds the end of a log."""

_TIMEOUT: Final = timedelta(seconds=PATIENCE_S)

_MAGIC: Final = 2
"""The version of record batches."""


@frozen
class Producer:
    """
    A producer with transactions.

    Attributes:
        name: Its transactional id.
        producer_id: Its id.
        epoch: Its epoch.
        coordinator: The address of its coordinator.
        sequence: Of its next batch.
    """

    name: str
    producer_id: int
    epoch: int
    coordinator: str
    sequence: int = 0


class ClusterUnderTest:
    """
    A cluster, by the addresses of brokers to begin with.

    Raises:
        MalformedInputError: *bootstrap_servers* has no address, or one that is none.
    """

    def __init__(self, bootstrap_servers: str | Iterable[str], security: Security | None = None) -> None:
        """Know where it is; connections are made when they are needed."""
        self._begin = [str(address) for address in addresses(bootstrap_servers)]
        self._security = security
        self._connections: dict[str, NegotiatedConnection] = {}
        self._producers: dict[str, Producer] = {}

    def check(self) -> None:
        """
        See that a broker answers.

        Raises:
            OSError: None can be reached.
            ExternalError, ResponseFormatError: It refuses the login, or what it says is no answer.
        """
        self._metadata()

    def close(self) -> None:
        """Hang up."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # ---- topics

    def create_topic(self, name: str, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic with one partition; where topics are not created so, with as many as the broker gives it."""
        setting: Any = create_schema.CreatableTopicConfig
        topic: Any = create_schema.CreatableTopic
        request: Any = create_schema.CreateTopicsRequest
        wanted = topic(
            name=name,
            num_partitions=1,
            replication_factor=-1,
            assignments=(),
            configs=tuple(setting(name=key, value=value) for key, value in (configs or {}).items()),
        )
        try:
            made = request(topics=(wanted,), timeout=_TIMEOUT, validate_only=False)
            created = only(self._ask(self._controller(), made, CreateTopicsResponse).topics, "topics")
            _expect_none(created.error_code.name, f"CreateTopics: {created.error_message}")
        except ExternalError as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION or configs:
                raise
        self.topic(name, creates=True)

    def topic(self, name: str, *, creates: bool = False) -> tuple[UUID, str]:
        """Return the id of a topic, and the address of the leader of its first partition."""

        def asked() -> tuple[str, tuple[UUID, str]]:
            answer = self._metadata(name, creates=creates)
            brokers = {broker.node_id: str(Address(broker.host, int(broker.port))) for broker in answer.brokers}
            topic = only(answer.topics, "topics")
            leaders = [part.leader_id for part in topic.partitions if part.partition_index == 0]
            if topic.error_code.name == "none" and leaders and leaders[0] in brokers:
                return "none", (topic.topic_id or UUID(int=0), brokers[leaders[0]])
            return topic.error_code.name if leaders else "leader_not_available", (UUID(int=0), "")

        return _until_done("Metadata", asked)

    def partition_count(self, name: str) -> int:
        """Return how many partitions a topic has. [partitions]"""
        return len(only(self._metadata(name).topics, "topics").partitions)

    def delete_records(self, name: str, before: int) -> None:
        """Have the log of a topic's first partition begin at an offset."""
        part: Any = delete_records_schema.DeleteRecordsPartition
        topic: Any = delete_records_schema.DeleteRecordsTopic
        request: Any = delete_records_schema.DeleteRecordsRequest
        wanted = topic(name=name, partitions=(part(partition_index=0, offset=before),))
        _, leader = self.topic(name)
        answer = self._ask(leader, request(topics=(wanted,), timeout=_TIMEOUT), DeleteRecordsResponse)
        _expect_none(_only_partition(answer.topics).error_code.name, "DeleteRecords")

    # ---- records

    def produce(self, name: str, count: int, transaction: str | None = None) -> int:
        """Write a batch to a topic's first partition, in a transaction if one is named; return its first offset."""
        _, leader = self.topic(name)
        producer = None if transaction is None else self._producer(transaction, name)
        part: Any = produce_schema.PartitionProduceData
        topic: Any = produce_schema.TopicProduceData
        request: Any = produce_schema.ProduceRequest
        data = topic(name=name, partition_data=(part(index=0, records=_batch(count, producer)),))
        made = request(transactional_id=transaction, acks=-1, timeout=_TIMEOUT, topic_data=(data,))
        if producer is not None:
            self._producers[producer.name] = Producer(
                producer.name,
                producer.producer_id,
                producer.epoch,
                producer.coordinator,
                producer.sequence + count,
            )

        def asked() -> tuple[str, int]:
            answer = only(self._ask(leader, made, ProduceResponse).responses, "topics")
            part = only(answer.partition_responses, "partitions")
            return part.error_code.name, int(part.base_offset)

        return _until_done("Produce", asked)

    def end_transaction(self, transaction: str, name: str, *, is_committed: bool) -> None:
        """Commit or abort a transaction, and return when its marker is in a topic's first partition."""
        log_end = self.log_end(name)
        producer = self._producers[transaction]
        request: Any = EndTxnRequest
        made = request(
            transactional_id=transaction,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=is_committed,
        )
        _until_done("EndTxn", lambda: (self._ask(producer.coordinator, made, EndTxnResponse).error_code.name, None))
        give_up_s = time.monotonic() + PATIENCE_S
        while self.log_end(name) == log_end and time.monotonic() < give_up_s:
            time.sleep(ASK_AGAIN_S)

    def log_end(self, name: str) -> int:
        """Return the end of the log of a topic's first partition, open transactions included."""
        part: Any = list_schema.ListOffsetsPartition
        topic: Any = list_schema.ListOffsetsTopic
        request: Any = list_schema.ListOffsetsRequest
        wanted = topic(name=name, partitions=(part(partition_index=0, current_leader_epoch=-1, timestamp=_LATEST),))
        _, leader = self.topic(name)
        made = request(replica_id=-1, isolation_level=0, topics=(wanted,))
        answer = _only_partition(self._ask(leader, made, ListOffsetsResponse).topics)
        _expect_none(answer.error_code.name, "ListOffsets")
        return int(answer.offset)

    def records(self, name: str, count: int, patience_s: float = PATIENCE_S) -> list[Any]:
        """Return the records of a topic's first partition, as soon as there are *count*, or patience is lost."""
        part: Any = fetch_schema.FetchPartition
        topic: Any = fetch_schema.FetchTopic
        request: Any = fetch_schema.FetchRequest
        wanted = topic(
            topic=name,
            partitions=(part(partition=0, fetch_offset=0, partition_max_bytes=2**20, current_leader_epoch=-1),),
        )
        made = request(
            max_wait=timedelta(milliseconds=200),
            min_bytes=1,
            max_bytes=2**20,
            topics=(wanted,),
            forgotten_topics_data=(),
        )
        _, leader = self.topic(name)
        give_up_s = time.monotonic() + patience_s
        while True:
            answer = _only_partition(self._ask(leader, made, FetchResponse).responses)
            found = list(_records(bytes(answer.records or b"")))
            if len(found) >= count or time.monotonic() > give_up_s:
                return found
            time.sleep(ASK_AGAIN_S)

    def _producer(self, transaction: str, topic: str) -> Producer:
        """Return the producer of a transaction, which has the topic's first partition in it."""
        if transaction not in self._producers:
            self._producers[transaction] = self._new_producer(transaction)
        producer = self._producers[transaction]
        added: Any = add_schema.AddPartitionsToTxnTopic
        request: Any = add_schema.AddPartitionsToTxnRequest
        made = request(
            v3_and_below_transactional_id=transaction,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=(added(name=topic, partitions=(0,)),),
        )

        def asked() -> tuple[str, None]:
            answer = self._ask(producer.coordinator, made, AddPartitionsToTxnResponse)
            topic = only(answer.results_by_topic_v3_and_below, "topics")
            return only(topic.results_by_partition, "partitions").partition_error_code.name, None

        _until_done("AddPartitionsToTxn", asked)
        return producer

    def _new_producer(self, transaction: str) -> Producer:
        coordinator = self._coordinator(transaction, _TRANSACTION)
        request: Any = InitProducerIdRequest
        made = request(transactional_id=transaction, transaction_timeout=timedelta(minutes=1))

        def asked() -> tuple[str, Producer]:
            answer = self._ask(coordinator, made, InitProducerIdResponse)
            name = answer.error_code.name
            return name, Producer(transaction, int(answer.producer_id), int(answer.producer_epoch), coordinator)

        return _until_done("InitProducerId", asked)

    # ---- groups

    def configure_group(self, group_id: str, settings: Mapping[str, str]) -> None:
        """Set configs of a group."""
        config: Any = configs_schema.AlterableConfig
        resource: Any = configs_schema.AlterConfigsResource
        request: Any = configs_schema.IncrementalAlterConfigsRequest
        altered = resource(
            resource_type=_GROUP_CONFIGS,
            resource_name=group_id,
            configs=tuple(config(name=key, config_operation=_SET, value=value) for key, value in settings.items()),
        )
        made = request(resources=(altered,), validate_only=False)
        answer = only(self._ask(self._controller(), made, IncrementalAlterConfigsResponse).responses, "groups")
        _expect_none(answer.error_code.name, f"IncrementalAlterConfigs: {answer.error_message}")

    def group_offsets(self, group_id: str, topic: str) -> tuple[int, int]:
        """Return the start offset that is stored for a topic's first partition, and the lag; -1 for what is unknown."""
        named: Any = offsets_schema.DescribeShareGroupOffsetsRequestTopic
        group: Any = offsets_schema.DescribeShareGroupOffsetsRequestGroup
        request: Any = offsets_schema.DescribeShareGroupOffsetsRequest
        made = request(groups=(group(group_id=group_id, topics=(named(topic_name=topic, partitions=(0,)),)),))
        coordinator = self._coordinator(group_id, _GROUP)

        def asked() -> tuple[str, tuple[int, int]]:
            answer = only(self._ask(coordinator, made, DescribeShareGroupOffsetsResponse).groups, "groups")
            if answer.error_code.name != "none":
                return answer.error_code.name, (-1, -1)
            part = _only_partition(answer.topics)
            return part.error_code.name, (int(part.start_offset), int(getattr(part, "lag", -1)))

        return _until_done("DescribeShareGroupOffsets", asked)

    # ---- the end

    def delete(self, groups: Iterable[str], topics: Iterable[str]) -> None:
        """Delete groups and topics, as far as the cluster lets them be deleted."""
        for group_id in groups:
            request: Any = DeleteGroupsRequest
            with suppress(*NO_ANSWER):
                self._ask(self._coordinator(group_id, _GROUP), request(groups_names=(group_id,)), DeleteGroupsResponse)
        topic: Any = delete_schema.DeleteTopicState
        made: Any = delete_schema.DeleteTopicsRequest
        named = tuple(topic(name=name, topic_id=None) for name in topics)
        with suppress(*NO_ANSWER):
            self._ask(self._controller(), made(topics=named, timeout=_TIMEOUT), DeleteTopicsResponse)

    # ---- who answers

    def _coordinator(self, key: str, kind: int) -> str:
        request: Any = FindCoordinatorRequest
        made = request(key_type=kind, coordinator_keys=(key,))

        def asked() -> tuple[str, str]:
            answer = self._ask(None, made, FindCoordinatorResponse)
            found = only(getattr(answer, "coordinators", (answer,)), "coordinators")
            return found.error_code.name, str(Address(found.host, int(found.port)))

        return _until_done("FindCoordinator", asked)

    def _controller(self) -> str | None:
        """Return the address of the broker that creates topics, as far as it is known."""
        answer = self._metadata()
        return next(
            (
                str(Address(each.host, int(each.port)))
                for each in answer.brokers
                if each.node_id == answer.controller_id
            ),
            None,
        )

    def _metadata(self, *topics: str, creates: bool = False) -> Any:  # noqa: ANN401 - a class of kio's
        named: Any = metadata_schema.MetadataRequestTopic
        request: Any = metadata_schema.MetadataRequest
        made = request(
            topics=tuple(named(name=name, topic_id=None) for name in topics),
            allow_auto_topic_creation=creates,
            include_topic_authorized_operations=False,
        )
        return self._ask(None, made, MetadataResponse)

    def _ask(self, address: str | None, request: RequestPayload, schema: type[T]) -> Any:  # noqa: ANN401 - of any version
        """Return the answer of a broker; without an address, of the first one that can be reached."""
        places = self._begin if address is None else [address]
        for place in places:
            try:
                if place not in self._connections:
                    self._connections[place] = NegotiatedConnection(place, CLIENT_ID, self._security, PATIENCE_S)
                return self._connections[place].ask(request, schema)
            except (OSError, ResponseFormatError) as error:
                if connection := self._connections.pop(place, None):
                    connection.close()
                if place == places[-1] or isinstance(error, ResponseFormatError):
                    raise
        raise AssertionError  # there is a place


def _until_done(what: str, ask: Callable[[], tuple[str, T]]) -> T:
    """Return the second of what *ask* returns as soon as the first is no error of those that pass."""
    give_up_s = time.monotonic() + PATIENCE_S
    while True:
        error, answer = ask()
        if error not in NOT_YET or time.monotonic() > give_up_s:
            _expect_none(error, what)
            return answer
        time.sleep(ASK_AGAIN_S)


def _expect_none(error: str, what: str) -> None:
    if error != "none":
        code = next((known for known in ErrorCode if known.name.lower() == error), ErrorCode.UNKNOWN_SERVER_ERROR)
        message = f"{what} is answered with {error.upper()}"
        raise ExternalError(message, code, code.exception)


def _only_partition(topics: Iterable[Any]) -> Any:  # noqa: ANN401 - a class of kio's
    """Return the only partition of the only topic in an answer."""
    return only(only(topics, "topics").partitions, "partitions")


def _batch(count: int, producer: Producer | None) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=_MAGIC,
        compression_type=0,
        is_transactional=producer is not None,
        producer_id=-1 if producer is None else producer.producer_id,
        producer_epoch=-1 if producer is None else producer.epoch,
        base_sequence=-1 if producer is None else producer.sequence,
        batch_size=2**20,
    )
    now_ms = time.time_ns() // 1_000_000
    for offset in range(count):
        builder.append(offset, now_ms, key=None, value=b"%d" % offset, headers=[])
    return bytes(builder.build())


def _records(data: bytes) -> Iterator[Any]:
    reader = MemoryRecords(data)
    while (batch := reader.next_batch()) is not None:
        yield from batch
