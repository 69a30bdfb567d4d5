"""``sharestate dead-letters`` beside a broker: its numbers are those of what clients did, and of the state topic."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from click.testing import CliRunner
from confluent_kafka import Message, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from sharestate.cli.commands import sharestate
from tests.broker.conftest import running
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import ACCEPT, PATIENCE_S, REJECT, RELEASE, configure, member, take

pytestmark = pytest.mark.broker

GROUP: Final = "sorters"
OTHER: Final = "strays"
"""A group with the same queue, whose only letter is lost."""

TOPIC: Final = "parcels"
QUEUE: Final = "dlq.sorters"
QUEUE_NAME: Final = "errors.deadletterqueue.topic.name"
BAD: Final = "bad"
"""The key whose records are rejected."""

ROUNDS: Final = 8
"""How often records with that key come, each time after a pause that is longer than an interval."""

OF_ROUND: Final = 20
SINGLE: Final = 13
"""Which record of each round is rejected besides; each has a key of its own."""

OUTAGE: Final = 60
LOST: Final = 3
INTERVAL_S: Final = 0.4


class Done(NamedTuple):
    """
    What clients did.

    Attributes:
        broker: The broker, with a request log.
        bad: The offsets of records that were rejected, with the bad key.
        single: Those that were rejected, each with another key.
        outage: Those that were released until they were given up.
        lost: Those that were rejected while the group's queue could not be written.
    """

    broker: KafkaBroker
    bad: list[int]
    single: list[int]
    outage: list[int]
    lost: list[int]


def write(broker: KafkaBroker, keys: list[str]) -> None:
    """Write a record with each of *keys*."""
    producer = Producer({"bootstrap.servers": broker.address})
    for key in keys:
        producer.produce(TOPIC, key=key, value="v", partition=0)
    assert producer.flush(PATIENCE_S) == 0


def work(consumer: ShareConsumer, count: int, rejected: set[int], bad: str = BAD) -> None:
    """Reject records with a key, or at some offsets, and accept the others, until there were so many."""
    done = 0
    while done < count:
        for message in take(consumer):
            is_bad = message.key() == bad.encode() or message.offset() in rejected
            consumer.acknowledge(message, REJECT if is_bad else ACCEPT)
            done += 1
        consumer.commit_sync(PATIENCE_S)


def release_all(consumer: ShareConsumer) -> list[int]:
    """Release what comes until it has come twice; the limit is two."""
    counts: dict[int, int] = {}
    while len(counts) < OUTAGE or min(counts.values()) < 2:
        for message in take(consumer):
            counts[message.offset() or 0] = message.delivery_count() or 0
            consumer.acknowledge(message, RELEASE)
        consumer.commit_sync(PATIENCE_S)
    return sorted(counts)


def reject_all(consumer: ShareConsumer) -> list[int]:
    """Reject a few records."""
    messages: list[Message] = []
    while len(messages) < LOST:
        taken = take(consumer)
        messages += taken
        for message in taken:
            consumer.acknowledge(message, REJECT)
        consumer.commit_sync(PATIENCE_S)
    return sorted(message.offset() or 0 for message in messages)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """Poison records among others that succeed, then an outage, then letters that the broker refuses."""
    with running("4.4.0", tmp_path_factory.mktemp("dead-letters"), {"num.io.threads": "2"}) as broker:
        broker.create_topic(TOPIC, 1)
        config = {
            "share.delivery.count.limit": "2",
            QUEUE_NAME: QUEUE,
            "errors.deadletterqueue.copy.record.enable": "true",
        }
        configure(broker, GROUP, config)
        bad, single = [], []
        with member(broker, GROUP, TOPIC) as consumer:
            for number in range(ROUNDS):
                first = number * OF_ROUND
                keys = [BAD if place == 7 else f"k{first + place}" for place in range(OF_ROUND)]
                write(broker, keys)
                work(consumer, OF_ROUND, {first + SINGLE} if number % 2 else set())
                bad.append(first + 7)
                single += [first + SINGLE] if number % 2 else []
                time.sleep(2 * INTERVAL_S)
            write(broker, [f"o{number}" for number in range(OUTAGE)])
            outage = release_all(consumer)
            time.sleep(2 * INTERVAL_S)
            wait_for_the_queue(broker, len(bad) + len(single) + len(outage), 0)
            refuse_letters(broker)
            write(broker, [f"l{number}" for number in range(LOST)])
            lost = reject_all(consumer)
            write(broker, ["end"])
            work(consumer, 1, set())
        configure(broker, OTHER, config)
        with member(broker, OTHER, TOPIC) as consumer:
            work(consumer, 1, {0}, bad="no key")
        wait_for_the_queue(broker, len(bad) + len(single) + len(outage), LOST + 1)
        yield Done(broker, bad, single, outage, lost)


def asked(done: Done, *arguments: str) -> tuple[int, Any]:
    """Return the exit code and the document of the command."""
    options = ("--interval", str(INTERVAL_S), "--json", *arguments)
    result = CliRunner().invoke(sharestate, ["dead-letters", QUEUE, "--bootstrap", done.broker.address, *options])
    assert result.exit_code in {0, 1, 2}, result.output
    return result.exit_code, json.loads(result.stdout)


def refuse_letters(broker: KafkaBroker) -> None:
    """Let the queue be a topic that takes no dead letters any more, and wait until the broker knows."""
    entry = ConfigEntry("errors.deadletterqueue.group.enable", "false", incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ResourceType.TOPIC, QUEUE, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.incremental_alter_configs([topic])[topic].result(PATIENCE_S)
    time.sleep(1)


def wait_for_the_queue(broker: KafkaBroker, letters: int, lost: int) -> None:
    """Wait until so many letters are there, and the end of all records that have one, or lost it, is stored."""
    give_up_s = time.monotonic() + PATIENCE_S
    while True:
        _, found = asked(Done(broker, [], [], [], []))
        (check,) = found["checks"]
        if found["records"] == letters and not check["under_way"] and check["handed_over"] >= letters + lost:
            return
        assert time.monotonic() < give_up_s, found
        time.sleep(0.3)


def test_tls_and_a_login_make_no_difference(done: Done, tmp_path: Path) -> None:
    """The client's settings are those of a file."""
    config = done.broker.login(tmp_path)
    arguments = ["--bootstrap", done.broker.secure_address, "--command-config", str(config), "--json"]
    result = CliRunner().invoke(sharestate, ["dead-letters", QUEUE, "--interval", str(INTERVAL_S), *arguments])

    assert json.loads(result.stdout) == asked(done)[1]


def offsets_of(rows: list[Any]) -> list[int]:
    """Return the offsets of ranges."""
    return [offset for row in rows for offset in range(row["first_offset"], row["last_offset"] + 1)]


def test_its_numbers_are_those_of_the_clients_and_of_the_state_topic(done: Done) -> None:
    """Each letter is of a record that was rejected or given up; those that the broker refused are lost."""
    code, found = asked(done)
    (check,) = found["checks"]
    rejected, released = len(done.bad) + len(done.single), len(done.outage)
    lost = {group: [each for each in check["lost_records"] if each["group_id"] == group] for group in (GROUP, OTHER)}

    assert code == 1
    assert found["kinds"] == {"letter": rejected + released, "of another tool": 0, "malformed": 0}
    assert found["by"]["cause"] == {"delivery_count_exceeded": released, "client_reject": rejected}
    assert found["by"]["delivery count"] == {"2": released, "1": rejected}
    assert (found["duplicates"], found["copied"]) == (0, rejected + released)
    assert (check["found"], check["lost"], check["without_archived_record"]) == (rejected + released, LOST + 1, 0)
    assert {group: offsets_of(rows) for group, rows in lost.items()} == {GROUP: done.lost, OTHER: [0]}
    assert found["not_checked"] == []


def test_poison_records_are_not_taken_for_an_outage(done: Done) -> None:
    """The key that comes again and again, single records among others that succeed, and all of a minute."""
    _, found = asked(done)
    offsets = {each["rule"]: offsets_of(each["records"]) for each in found["findings"]}

    assert offsets == {"many together": done.outage, "same key": done.bad, "alone": done.single}
    (key,) = (each["key"] for each in found["findings"] if each["rule"] == "same key")
    assert key == BAD
    assert found["patterns"] == {
        "poison record": len(done.bad) + len(done.single),
        "outage": len(done.outage),
        "cannot be told": 0,
    }


def test_the_plan_has_what_failed_in_the_outage_only(done: Done, tmp_path: Path) -> None:
    """Poison records are in it, and excluded."""
    asked(done, "--redrive", str(tmp_path / "plan.jsonl"))
    header, *ranges = map(json.loads, (tmp_path / "plan.jsonl").read_text().splitlines())

    assert header["redriven"] == len(done.outage)
    assert offsets_of([each for each in ranges if each["redrive"]]) == done.outage
    assert offsets_of([each for each in ranges if not each["redrive"]]) == sorted(done.bad + done.single)


def test_the_lives_are_those_of_the_request_log(done: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a history, each letter has its life, and the member that had the record; the same is lost by it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(done.broker.log_dir / f"{TOPIC}-0", tmp_path / "data" / f"{TOPIC}-0")
    steps = [
        ["log", "import", str(done.broker.request_log), "--segments", "data", "--config", str(done.broker.properties)],
        ["log", "verify", "arrival.jsonl", "-o", "history.jsonl"],
    ]
    steps[0] += ["--bootstrap", done.broker.address, "-o", "arrival.jsonl"]
    for step in steps:
        result = CliRunner().invoke(sharestate, step)
        assert result.exit_code == 0, result.output
    code, found = asked(done, "--history", "history.jsonl")
    _, by_history = found["checks"]
    (outage,) = (each for each in found["findings"] if each["rule"] == "many together")

    assert code == 1
    assert by_history["source"] == "history"
    assert (by_history["found"], by_history["lost"]) == (found["records"], LOST + 1)
    assert offsets_of(by_history["lost_records"]) == [*done.lost, 0]
    assert found["by"]["client"] == {"rdkafka": found["records"]}
    assert list(outage["members"].values()) == [len(done.outage)]
    assert "archived at the limit" in outage["lives"][0]["text"].lower()
