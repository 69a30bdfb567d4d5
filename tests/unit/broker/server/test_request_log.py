"""The request log of a broker: what reads and judges those of Kafka finds nothing to object to."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sharestate import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4, Profile
from sharestate.broker import StandingClock, TestBroker
from sharestate.cli.commands import sharestate
from tests.support.batch_bytes import ONE, batch_bytes
from tests.support.wire_client import uuid_of
from tests.support.wire_members import ACCEPT, GROUP, REJECT, RELEASE, WireMember, filled

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
METADATA, API_VERSIONS, ALTER_CONFIGS = 3, 18, 44


def live(broker: TestBroker, seed: int, steps: int) -> None:
    """Let two members fetch, and acknowledge this and that, some of it too late."""
    random = Random(seed)  # noqa: S311 - a seed makes a failure come again
    topic_id = filled(broker, 0)
    members = [WireMember(broker, topic_id) for _ in range(2)]
    held: list[list[tuple[int, int]]] = [[], []]
    client = members[0]
    settings = SETTINGS if broker.profile is KAFKA_4_2 else SETTINGS | SINCE_4_3
    configs = [{"name": name, "config_operation": 0, "value": value} for name, value in settings.items()]
    client.ask(API_VERSIONS, 3, client_software_name="wire", client_software_version="1")
    client.ask(METADATA, 12, topics=None)
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": GROUP, "configs": configs}
    client.ask(ALTER_CONFIGS, 1, resources=[resource])
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
    """By what verifies the request logs of real brokers, without a move and without a doubt."""
    with TestBroker(profile=profile, clock=StandingClock(), request_log=tmp_path / "request.log") as broker:
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


def line_of(line: str) -> dict[str, Any]:
    """Return the JSON of a line."""
    found: dict[str, Any] = json.loads(line.partition(" Completed request:")[2])
    return found


def first_of(lines: list[dict[str, Any]], api: str) -> dict[str, Any]:
    """Return the first line of a kind."""
    return next(line for line in lines if line["requestHeader"]["requestApiKeyName"] == api)


def test_a_slow_fetch_and_a_slow_write_are_explained_too(tmp_path: Path) -> None:
    """Answers that come later have the time that they took."""
    with TestBroker(clock=StandingClock(), request_log=tmp_path / "request.log") as broker:
        with broker.slow_fetches(20), broker.slow_writes(30), broker.auto_advance(quiet_s=0.001):
            live(broker, 3, 40)
        broker.write_segments(tmp_path / "data")

    (verdict,) = verdicts(tmp_path)
    assert verdict["verdict"] == "explained", verdict["findings"]
