"""The request log of a broker: what reads and judges those of Kafka finds nothing to object to."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sharestate import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4, Profile
from sharestate.broker import StandingClock, TestBroker
from sharestate.broker.node import CreatableTopic, CreateTopicsRequest
from sharestate.cli.commands import sharestate
from tests.support.batch_bytes import ONE, batch_bytes
from tests.support.wire_client import WireClient, uuid_of
from tests.support.wire_members import ACCEPT, GROUP, REJECT, RELEASE, SHARE_FETCH, TOPIC, VERSION, WireMember, filled

DATA = Path(__file__).parents[3] / "data" / "broker-log"
GROUP_RESOURCE = 32
SETTINGS = {
    "share.auto.offset.reset": "earliest",
    "share.record.lock.duration.ms": "15000",
    "share.isolation.level": "read_uncommitted",
}
SINCE_4_3 = {
    "share.delivery.count.limit": "3",
    "share.partition.max.record.locks": "200",
    "share.renew.acknowledge.enable": "true",
}
PRODUCE, METADATA, API_VERSIONS, DELETE_RECORDS, INIT_PRODUCER_ID = 0, 3, 18, 21, 22
ADD_PARTITIONS_TO_TXN, END_TXN, ALTER_CONFIGS = 24, 26, 44


def live(broker: TestBroker, seed: int, steps: int) -> None:
    """Let two members fetch, and acknowledge this and that, some of it too late."""
    random = Random(seed)  # noqa: S311 - a seed makes a failure come again
    topic_id = filled(broker, 0)
    members = [WireMember(broker, topic_id) for _ in range(2)]
    held: list[list[tuple[int, int]]] = [[], []]
    client = members[0]
    settings = SETTINGS if broker.profile is KAFKA_4_2 else SETTINGS | SINCE_4_3
    settle(client, settings)
    for _ in range(steps):
        number = random.randrange(2)
        member = members[number]
        if random.random() < 0.4:
            produce(member, topic_id, random.randrange(1, 4))
        if held[number] and random.random() < 0.6:
            types = (ACCEPT, ACCEPT, RELEASE, REJECT)
            member.acknowledge(*((first, last, random.choice(types)) for first, last in held[number]))
            held[number] = []
        elif not held[number]:
            held[number] = [row[:2] for row in member.fetch(max_records=random.randrange(1, 6))]
        broker.advance(ms=16_000 if random.random() < 0.1 else random.randrange(50))
    for member in members:
        member.close()


def settle(client: WireClient, settings: Mapping[str, str]) -> None:
    """Say who asks, and give the group its settings."""
    configs = [{"name": name, "config_operation": 0, "value": value} for name, value in settings.items()]
    client.ask(API_VERSIONS, 3, client_software_name="wire", client_software_version="1")
    client.ask(METADATA, 12, topics=None)
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": GROUP, "configs": configs}
    client.ask(ALTER_CONFIGS, 1, resources=[resource])


def produce(member: WireMember, topic_id: str, count: int) -> None:
    """Send a batch of so many records."""
    records = batch_bytes(*[ONE] * count)
    topic = {"topic_id": uuid_of(topic_id), "partition_data": [{"index": 0, "records": records}]}
    member.ask(0, 13, acks=-1, topic_data=[topic])


def command(*arguments: str | Path) -> Result:
    """Run a command about logs."""
    result = CliRunner().invoke(sharestate, ["log", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result


def verdicts(directory: Path) -> list[dict[str, Any]]:
    """Import and verify the log in a directory, and return what is said of each share partition."""
    arrival = directory / "arrival.jsonl"
    command("import", directory / "request.log", "--segments", directory / "data", "-o", arrival)
    return [json.loads(line) for line in command("verify", arrival, "--json").stdout.splitlines()]


@pytest.mark.parametrize("profile", [KAFKA_4_2, KAFKA_4_3, KAFKA_4_4], ids=lambda profile: profile.name)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_fetch_code_and_write_of_the_log_is_explained(tmp_path: Path, profile: Profile, seed: int) -> None:
    """By what verifies the request logs of real brokers, without a move and without a doubt, whatever its number."""
    config = {"node.id": str(seed)}
    with TestBroker(
        profile=profile, config=config, clock=StandingClock(), request_log=tmp_path / "request.log"
    ) as broker:
        live(broker, seed, 120)
        broker.write_segments(tmp_path / "data")

    (verdict,) = verdicts(tmp_path)
    explained, observed = verdict["explained"], verdict["observed"]
    assert verdict["verdict"] == "explained", verdict["findings"]
    assert (verdict["moves"], explained["undecided_fetches"], verdict["not_checked"]) == (0, 0, 0)
    assert {name: explained[name] for name in observed} == observed
    assert min(observed["fetches_with_records"], observed["codes"], observed["writes"], explained["expiries"]) > 5


def test_the_layout_is_kafkas(tmp_path: Path) -> None:
    """A line has the fields of a broker's in their order; of a ShareFetch, request and response as well."""
    with TestBroker(clock=StandingClock(), request_log=tmp_path / "request.log") as broker:
        live(broker, 1, 20)
    logged = [line_of(line) for line in (tmp_path / "request.log").read_text().splitlines()]
    with gzip.open(DATA / "k440-busy" / "request.log.gz", "rt") as lines:
        real = [line_of(line) for line in lines]

    for api in ("SHARE_FETCH", "SHARE_ACKNOWLEDGE", "WRITE_SHARE_GROUP_STATE", "READ_SHARE_GROUP_STATE"):
        ours, kafkas = (first_of(each, api) for each in (logged, real))
        assert list(ours) == list(kafkas)
        assert (list(ours["request"]), list(ours["requestHeader"])) == (
            list(kafkas["request"]),
            list(kafkas["requestHeader"]),
        )
        assert set(kafkas["response"]) - set(ours["response"]) <= {"nodeEndpoints"}  # a tagged field


def transact(client: WireClient, topic_id: str, *, version: int, committed: bool, partition: int = 0) -> None:
    """Send two records in a transaction, by the first or the second version of the protocol, and end it."""
    asked = {"transactional_id": "x", "transaction_timeout": timedelta(minutes=1)}
    begun = client.ask(INIT_PRODUCER_ID, 5, **asked)
    producer = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
    if version == 1:
        topics = [{"name": TOPIC, "partitions": (partition,)}]
        old = {"transactional_id": "x", "topics": topics, **producer}
        client.ask(ADD_PARTITIONS_TO_TXN, 3, **{f"v3_and_below_{name}": value for name, value in old.items()})
    records = batch_bytes(ONE, ONE, producer=(*producer.values(), 0), is_transactional=True)
    key = {"topic_id": uuid_of(topic_id)} if version == 2 else {"name": TOPIC}
    partitions = [{**key, "partition_data": [{"index": partition, "records": records}]}]
    client.ask(PRODUCE, 13 if version == 2 else 11, acks=-1, transactional_id="x", topic_data=partitions)
    end_version = 5 if version == 2 else 4
    assert client.ask(END_TXN, end_version, transactional_id="x", committed=committed, **producer).error_code.value == 0


@pytest.mark.parametrize("version", [1, 2])
def test_transactions_are_explained_too(tmp_path: Path, version: int) -> None:
    """A group that reads what is committed gets records when a marker is written, which has a line as Kafka's has."""
    with TestBroker(clock=StandingClock(), request_log=tmp_path / "request.log") as broker:
        topic_id = filled(broker, 0)
        member = WireMember(broker, topic_id)
        settle(member, SETTINGS | SINCE_4_3 | {"share.isolation.level": "read_committed"})
        member.fetch()
        for committed in (True, False, True, False):
            transact(member, topic_id, version=version, committed=committed)
            ranges = member.fetch()
            broker.advance(ms=5)
            if ranges:
                member.acknowledge(*((first, last, ACCEPT) for first, last, _ in ranges))
        broker.write_segments(tmp_path / "data")
        member.close()
    logged = [line_of(line) for line in (tmp_path / "request.log").read_text().splitlines()]
    markers = [line for line in logged if line["requestHeader"]["requestApiKeyName"] == "WRITE_TXN_MARKERS"]

    (verdict,) = verdicts(tmp_path)
    assert verdict["verdict"] == "explained", verdict["findings"]
    assert {name: verdict["explained"][name] for name in verdict["observed"]} == verdict["observed"]
    assert (verdict["moves"], verdict["not_checked"]) == (0, 0)
    assert verdict["observed"]["fetches_with_records"] > 1
    request = [
        {
            "producerId": 0,
            "producerEpoch": number if version == 1 else 2 * number + 1,
            "transactionResult": number % 2 == 0,
            "topics": [{"name": TOPIC, "partitionIndexes": [0]}],
            "coordinatorEpoch": 0,
            "transactionVersion": 0 if version == 1 else 2,
        }
        for number in range(4)
    ]
    answer = {"producerId": 0, "topics": [{"name": TOPIC, "partitions": [{"partitionIndex": 0, "errorCode": 0}]}]}
    assert [line["request"] for line in markers] == [{"markers": [each]} for each in request]
    assert [line["response"] for line in markers] == [{"markers": [answer]}] * 4


def line_of(line: str) -> dict[str, Any]:
    """Return the JSON of a line."""
    found: dict[str, Any] = json.loads(line.partition(" Completed request:")[2])
    return found


def first_of(lines: list[dict[str, Any]], api: str) -> dict[str, Any]:
    """Return the first line of a kind."""
    return next(line for line in lines if line["requestHeader"]["requestApiKeyName"] == api)


def test_a_write_that_fails_and_settings_of_a_broker_are_explained_too(tmp_path: Path) -> None:
    """A write that is tried again has a line for each time, and what only the test has given a group has one, too."""
    config = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": "4"}
    with TestBroker(config=config, clock=StandingClock(), request_log=tmp_path / "request.log") as broker:
        topic_id = filled(broker, 0)
        broker.configure_group(GROUP, {"share.delivery.count.limit": "2"})
        member = WireMember(broker, topic_id)
        member.ask(API_VERSIONS, 3, client_software_name="wire", client_software_version="1")
        member.ask(METADATA, 12, topics=None)
        produce(member, topic_id, 4)
        with broker.failing_writes(times=1):
            member.acknowledge(*((first, last, ACCEPT) for first, last, _ in member.fetch()))
        broker.advance(seconds=31)
        assert [row[2] for row in member.fetch()] == [2]
        broker.advance(seconds=31)
        assert member.fetch() == []
        member.close()
        broker.write_segments(tmp_path / "data")

    (verdict,) = verdicts(tmp_path)
    assert verdict["verdict"] == "explained", verdict["findings"]
    assert verdict["explained"]["writes"] == verdict["observed"]["writes"] == 3


def test_a_slow_fetch_and_a_slow_write_are_explained_too(tmp_path: Path) -> None:
    """Answers that come later have the time that they took."""
    with TestBroker(clock=StandingClock(), request_log=tmp_path / "request.log") as broker:
        with broker.slow_fetches(20), broker.slow_writes(30), broker.auto_advance(quiet_s=0.001):
            live(broker, 3, 40)
        broker.write_segments(tmp_path / "data")

    (verdict,) = verdicts(tmp_path)
    assert verdict["verdict"] == "explained", verdict["findings"]


@pytest.mark.parametrize(("throwing", "other"), [(0, "not_checked"), (1, "explained")])
def test_what_else_a_fetch_was_for_that_has_thrown_is_no_contradiction(
    tmp_path: Path, throwing: int, other: str
) -> None:
    """Kafka's acquire throws for one partition (B8); what it has acquired of the other before, no answer says."""
    with TestBroker(clock=StandingClock(), request_log=tmp_path / "request.log") as broker:
        topic = CreatableTopic(name=TOPIC, partition_count=2)
        broker.run(lambda node: node.call(CreateTopicsRequest(topics=[topic]), now_ms=broker.now_ms))
        topic_id = filled(broker, 0, partition=throwing)
        filled(broker, 3, partition=1 - throwing)
        member = WireMember(broker, topic_id)
        settle(member, SETTINGS | SINCE_4_3 | {"share.isolation.level": "read_committed"})
        transact(member, topic_id, version=2, committed=False, partition=throwing)
        partitions = [{"partition_index": throwing, "offset": 1}]
        member.ask(DELETE_RECORDS, 2, topics=[{"name": TOPIC, "partitions": partitions}], timeout=timedelta(seconds=1))
        codes = [fetch_both(member, topic_id, epoch) for epoch in range(3)]
        broker.advance(ms=16_000)
        codes += [fetch_both(member, topic_id, epoch) for epoch in range(3, 5)]
        broker.write_segments(tmp_path / "data")
        member.close()

    found = {each["partition"]: each for each in verdicts(tmp_path)}
    assert codes == [[0, 0], [-1, -1], [0, 0], [-1, -1], [0, 0]]
    assert (found[throwing]["verdict"], found[1 - throwing]["verdict"]) == ("kafka_defect", other)
    assert {each["reason"][:3] for each in found[throwing]["findings"]} == {"B8:"}
    reasons = [each["reason"] for each in found[1 - throwing]["findings"]]
    assert all("was answered with an error, so it is not known what it has acquired" in each for each in reasons)


def fetch_both(member: WireMember, topic_id: str, epoch: int) -> list[int]:
    """Fetch from two partitions, and return the error code of each."""
    partitions = [{"partition_index": number, "acknowledgement_batches": ()} for number in range(2)]
    response = member.ask(
        SHARE_FETCH,
        VERSION,
        group_id=GROUP,
        member_id=member.member_id,
        share_session_epoch=epoch,
        max_wait=timedelta(0),
        min_bytes=1,
        max_bytes=2**20,
        max_records=500,
        batch_size=500,
        topics=[] if epoch else [{"topic_id": uuid_of(topic_id), "partitions": partitions}],
    )
    return [int(partition.error_code) for topic in response.responses for partition in topic.partitions]
