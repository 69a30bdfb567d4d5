"""The state topic as a data source, from a broker that runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import SparkSession

from sharestate import StateBatch
from sharestate.cli.commands import sharestate
from sharestate.persister import (
    InitializeStateParameters,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateData,
    ReadStateParameters,
    WriteStateParameters,
)
from sharestate.persister.kafka import KafkaPersister
from sharestate.spark import rebuild_state, register
from sharestate.state_topic.cluster import Cluster
from tests.broker.kafka_broker import KafkaBroker, free_ports
from tests.oracle.build import OracleUnavailableError
from tests.spark.test_cli import spark as spark_command

pytestmark = [pytest.mark.spark, pytest.mark.broker]

FORMAT: Final = "share_group_state"
GROUPS: Final = ("one", "two", "three", "four")
PATIENCE_S: Final = 60


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that runs."""
    try:
        broker = KafkaBroker("4.4.0", tmp_path_factory.mktemp("kafka"))
    except OracleUnavailableError as error:
        if "broker" in os.environ.get("SHARESTATE_REQUIRE", "").split(","):
            raise
        pytest.skip(str(error))
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


def write_states(persister: KafkaPersister, topic_id: str) -> None:
    """Write a state for each of several groups, some of them with updates."""
    for number, group in enumerate(GROUPS):
        start = PartitionStateData(partition=0, state_epoch=1, start_offset=10)
        persister.initialize_state(InitializeStateParameters.of(group, topic_id, start)).result(PATIENCE_S)
        for step in range(number):
            change = PartitionStateBatchData(
                partition=0,
                state_epoch=1,
                start_offset=10 + step,
                delivery_complete_count=step,
                state_batches=(StateBatch(20 + step, 25 + step, 2, 1 + step),),
            )
            persister.write_state(WriteStateParameters.of(group, topic_id, change)).result(PATIENCE_S)


def stored(persister: KafkaPersister, topic_id: str) -> dict[str, tuple[object, ...]]:
    """Return what the broker answers a leader, by group."""
    found: dict[str, tuple[object, ...]] = {}
    for group in GROUPS:
        request = ReadStateParameters.of(group, topic_id, PartitionIdLeaderEpochData(partition=0, leader_epoch=0))
        entry = persister.read_state(request).result(PATIENCE_S).find(topic_id, 0)
        assert entry is not None
        found[group] = (entry.state_epoch, entry.start_offset, [tuple(batch) for batch in entry.state_batches])
    return found


def test_states_are_rebuilt_beside_a_broker(spark: SparkSession, broker: KafkaBroker) -> None:
    """Spark makes of the topic what the broker answers, and a frame stays as it was made."""
    register(spark)
    topic_id = broker.create_topic("orders", 1)
    with KafkaPersister(broker.address, take_over=True) as persister:
        write_states(persister, topic_id)
        answered = stored(persister, topic_id)
        frame = spark.read.format(FORMAT).option("bootstrap", broker.address).load()

        rows = rebuild_state(frame).collect()
        count = frame.count()
        write_states(persister, topic_id)

        assert {
            row.group_id: (row.state_epoch, row.start_offset, list(map(tuple, row.state_batches))) for row in rows
        } == answered
        assert count == 4 + 0 + 1 + 2 + 3
        assert frame.count() == count
        assert frame.rdd.getNumPartitions() == 3
        one = spark.read.format(FORMAT).options(bootstrap=broker.address, group="four").load()
        assert one.selectExpr("value IS NULL").count() >= 4


def test_the_command_rebuilds_the_topic_of_a_cluster(broker: KafkaBroker, tmp_path: Path) -> None:
    """It counts the share partitions that the command without Spark finds there, with settings from a file."""
    topic_id = broker.create_topic("returns", 1)
    with KafkaPersister(broker.address, take_over=True) as persister:
        write_states(persister, topic_id)
    plain = CliRunner().invoke(sharestate, ["state", "rebuild", "--json", "--bootstrap", broker.address])
    settings = tmp_path / "client.properties"
    settings.write_text("client.id=operator\n")
    out = str(tmp_path / "out")

    run = spark_command("rebuild", "--json", "--bootstrap", broker.address, "--command-config", settings, out)

    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(run.stdout)["share_partitions"] == len(plain.stdout.splitlines()) >= len(GROUPS)


def test_records_that_brokers_have_deleted_end_the_job(spark: SparkSession, broker: KafkaBroker) -> None:
    """A log that has started later since the frame was made is no shorter frame; a new one begins where it starts."""
    register(spark)
    broker.create_topic("copy", 1)  # brokers let nobody delete records of the state topic itself
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(5):
        producer.produce("copy", key=b"key", value=bytes([number]))
    producer.flush(PATIENCE_S)
    reader = spark.read.format(FORMAT).options(bootstrap=broker.address, topic="copy")
    frame = reader.load()
    whole = frame.select("topic", "offset", "value", "timestampType").collect()

    admin = AdminClient({"bootstrap.servers": broker.address})
    for future in admin.delete_records([TopicPartition("copy", 0, 2)]).values():
        future.result(PATIENCE_S)

    assert whole == [("copy", number, bytearray([number]), 0) for number in range(5)]
    with pytest.raises(PythonException, match="the log has started at offset 0, and brokers have deleted records"):
        frame.count()
    assert reader.load().select("offset").collect() == [(2,), (3,), (4,)]
    with Cluster(broker.address, topic="copy") as cluster:
        assert [each.offset for each in cluster.remaining_records({0: range(5)})] == [2, 3, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partitions": "0,9"}, "UnreadableFileError: .*-9 of .*: there is no such partition, but 3 others"),
        ({"kafka.no.such.setting": "1"}, "No such configuration property"),
    ],
)
def test_what_a_cluster_does_not_have_is_refused(
    spark: SparkSession, broker: KafkaBroker, options: dict[str, str], message: str
) -> None:
    """When the frame is made."""
    register(spark)
    with pytest.raises(AnalysisException, match=message):
        spark.read.format(FORMAT).options(bootstrap=broker.address, **options).load()


def test_a_cluster_that_does_not_answer_is_refused(spark: SparkSession) -> None:
    """After as many milliseconds as the option says."""
    register(spark)
    (port,) = free_ports(1)
    with pytest.raises(AnalysisException, match=r"ExternalError: 127.0.0.1:"):
        spark.read.format(FORMAT).options(bootstrap=f"127.0.0.1:{port}", timeout_ms="300").load()
