"""Three Kafka brokers on loopback, each of them a controller too, for runs in which leaders move."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from kio.schema.alter_partition_reassignments.v1 import request as reassign_schema
from kio.schema.alter_partition_reassignments.v1.response import AlterPartitionReassignmentsResponse
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
from kio.static.protocol import RequestPayload

from tests.broker.kafka_broker import LISTENERS, KafkaBroker, Node, free_ports

BROKERS: Final = 3

SETTINGS: Final = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "1",
}

_Elect: Any = ElectLeadersRequest
_Reassign: Any = reassign_schema.AlterPartitionReassignmentsRequest
_ReassignedTopic: Any = reassign_schema.ReassignableTopic
_ReassignedPartition: Any = reassign_schema.ReassignablePartition


class KafkaCluster:
    """
    Three brokers.

    Attributes:
        brokers: All of them.
        address: Where they listen, as clients of Kafka's take it.
    """

    def __init__(
        self,
        kafka: str,
        home: Path,
        settings: Mapping[str, str] = MappingProxyType({}),
        request_level: str = "debug",
    ) -> None:
        """
        Prepare brokers of release *kafka* with their data below *home*.

        Raises:
            OracleUnavailableError: A JDK, Maven or the jars are not to be had.
        """
        ports = [free_ports(len(LISTENERS)) for _ in range(BROKERS)]
        ids = [base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=") for _ in ports]
        quorum = tuple(
            f"{number}@127.0.0.1:{controller}:A{identity[1:]}"
            for number, ((*_, controller), identity) in enumerate(zip(ports, ids, strict=True), 1)
        )
        self.brokers = []
        for number, listened in enumerate(ports, 1):
            place = home / f"broker{number}"
            place.mkdir()
            node = Node(number, *listened, quorum=quorum)
            self.brokers.append(KafkaBroker(kafka, place, {**SETTINGS, **settings}, request_level, node))
        self.addresses = [broker.address for broker in self.brokers]
        self.address = ",".join(self.addresses)

    def start(self) -> None:
        """Start all, and return when they answer."""
        for broker in self.brokers:
            broker.launch()
        for broker in self.brokers:
            broker.wait_until_ready()

    def stop(self) -> None:
        """Stop all; their data stay."""
        for broker in self.brokers:
            broker.terminate()
        for broker in self.brokers:
            broker.stop()

    def kill(self) -> None:
        """Kill all."""
        for broker in self.brokers:
            broker.kill()

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str] = MappingProxyType({})) -> str:
        """Create a topic with a replica at each broker, and return its id."""
        return self._living().create_topic(name, partitions, config, BROKERS)

    def set_request_level(self, level: str) -> None:
        """Set the level of the request logger of all brokers."""
        for broker in self.brokers:
            broker.set_request_level(level)

    def ask(self, request: RequestPayload, schema: type[Any]) -> Any:  # noqa: ANN401 - an instance of the schema
        """Return the answer of a broker that runs to a request, of kio's class *schema*."""
        return self._living().ask(request, schema)

    def tool(self, main: str, *arguments: str) -> str:
        """Return what one of Kafka's command line tools prints."""
        return self.brokers[0].tool(main, *arguments)

    def prefer_leaders(self, topic: str, replicas: Mapping[int, Sequence[int]]) -> None:
        """Put the replicas of partitions into another order, whose first one is to lead."""
        partitions = tuple(_ReassignedPartition(partition_index=at, replicas=tuple(to)) for at, to in replicas.items())
        request = _Reassign(
            timeout=timedelta(seconds=30),
            allow_replication_factor_change=True,
            topics=(_ReassignedTopic(name=topic, partitions=partitions),),
        )
        answer = self.ask(request, AlterPartitionReassignmentsResponse)
        codes = {
            answer.error_code.name,
            *(part.error_code.name for each in answer.responses for part in each.partitions),
        }
        assert codes == {"none"}, answer

    def elect_preferred_leaders(self) -> None:
        """Let the first replica of each partition lead, as far as it lives and has all."""
        request = _Elect(election_type=0, topic_partitions=None, timeout=timedelta(seconds=30))
        self.ask(request, ElectLeadersResponse)

    def _living(self) -> KafkaBroker:
        return next(broker for broker in self.brokers if broker.is_running)
