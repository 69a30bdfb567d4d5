"""``sharestate dead-letters``: what it prints, writes, and ends with; on files of a broker, and on a live cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource

from sharestate import SharePartitionKey, StateBatch
from sharestate.cli.commands import sharestate
from sharestate.coordinator import ShareSnapshot, ShareUpdate, StateRecord, encode_record
from sharestate.coordinator.wire import topic_id_text
from tests.support.dead_letter_topics import BAD, BROKER, LOST, OUTAGE, RECORDED, SINGLE, STATE, Planted
from tests.support.mock_brokers import TOPIC, Brokers

QUEUE = "dlq.sorters"
NAMED = ("--topic-id", "parcels=9wkrfnXhRzy9iNef9hHqYw")
STATE_GIVEN = ("--state", RECORDED / "data", "--queue-copied-last")
TOPIC_ID = UUID("fedcba98-7654-3210-8fff-123456789abc")


def dead_letters(*arguments: str | Path) -> Result:
    """Run the command with *arguments*."""
    return CliRunner().invoke(sharestate, ["dead-letters", *map(str, arguments)])


def document(*arguments: str | Path) -> Any:  # noqa: ANN401 - JSON
    """Return the one document that is printed."""
    return json.loads(dead_letters(*arguments, "--json").stdout)


# ---- files


def test_it_says_what_came_and_what_is_lost() -> None:
    """Of a broker's topics, with the lives of the records; the numbers are those of what members did."""
    arguments = (*STATE_GIVEN, *NAMED, "--history", RECORDED / "history.jsonl.gz", "--interval", "0.4")
    result = dead_letters(QUEUE, RECORDED / "data", *arguments, "--group", "strays")
    lines = result.stdout.splitlines()

    assert (result.exit_code, result.stderr) == (1, "")
    assert lines[0].startswith("dlq.sorters: 72 letters of 72 records, 0 duplicates; ")
    assert any(line.startswith("  sorters: 60 letters at ") and "100 % of 60 offsets" in line for line in lines)
    assert any("key 'bad', on 8 occasions; 4 other keys have 1.0 on average" in line for line in lines)
    assert any(
        line.strip().startswith("160-219: ARCHIVED at the limit after 2 deliveries, each released") for line in lines
    )
    assert any("the last to have them were all members that the history knows: rdkafka (" in line for line in lines)
    assert lines.count("Lost letters: 4") == 2
    assert "  partition 0 of parcels, group sorters: 220-222, handed over at 2026-11-28T16:49:19.215Z" in lines


def test_the_document_has_the_same_numbers() -> None:
    """With all groups, rules and findings."""
    others = ("--other-group", "strays")
    found = document(QUEUE, RECORDED / "data", *STATE_GIVEN, *NAMED, *others, "--interval", "0.4")
    by_rule = {each["rule"]: each["records"] for each in found["findings"]}

    assert (found["dead_letters"], found["topic"], found["not_checked"]) == (1, QUEUE, [])
    assert found["patterns"] == {"poison record": 12, "outage": 60, "cannot be told": 0}
    assert [each["first_offset"] for each in by_rule["same key"]] == BAD
    assert [each["first_offset"] for each in by_rule["alone"]] == SINGLE
    assert [(each["first_offset"], each["last_offset"]) for each in by_rule["many together"]] == [
        (OUTAGE[0], OUTAGE[-1])
    ]
    assert found["checks"][0]["lost_records"][0]["first_offset"] == LOST[0]
    assert found["checks"][0]["other_groups"] == {"strays": 1}


def test_the_exit_code_is_the_gravest() -> None:
    """0 if all was checked and is there, 1 if something is lost, 2 if something was not checked, or not read."""
    orders = ("--topic-id", "orders=PYtH_lhPRMK9oVo1bMxcGQ", "--state", STATE, "--queue-copied-last")
    strays = document("dlq.orders", BROKER, *orders)["checks"][0]["unknown_groups"]
    whole = dead_letters("dlq.orders", BROKER, *orders, *(word for each in strays for word in ("--other-group", each)))
    lost = dead_letters("dlq.orders", BROKER, *orders, "--group", "g3-plain")
    unknown = dead_letters("dlq.orders", BROKER, *orders)
    unchecked = dead_letters("dlq.orders", BROKER)
    unread = dead_letters("dlq.nothing", BROKER)

    assert strays["g3-plain"] == 6
    assert [each.exit_code for each in (whole, lost, unknown, unchecked, unread)] == [0, 1, 2, 2, 2]
    assert unchecked.stdout.splitlines()[-2:] == [
        "Not checked:",
        "  lost letters: the state topic is not given (--state)",
    ]
    assert "no log segments of dlq.nothing in this directory" in unread.stderr


def test_what_a_torn_file_does_not_show_is_not_lost(tmp_path: Path) -> None:
    """Letters may be in the batch at which a file ends early: those from then on are not checked, and not lost."""
    whole = RECORDED / "data" / "dlq.sorters-0" / "00000000000000000000.log"
    queue = tmp_path / "dlq.sorters-0"
    queue.mkdir()
    (queue / whole.name).write_bytes(whole.read_bytes()[:-50])
    result = dead_letters(QUEUE, queue, "--queue-copied-last", "--history", RECORDED / "history.jsonl.gz")

    assert result.exit_code == 2
    assert "0 have lost it" in result.output


def test_json_lines_need_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only log segments are read with the record reader of another library."""
    monkeypatch.setitem(sys.modules, "sharestate.segments", None)
    result = dead_letters(QUEUE, RECORDED / "kcat.jsonl.gz")

    assert (result.exit_code, result.stderr) == (2, "")
    assert result.stdout.startswith("dlq.sorters: 72 letters of 72 records")


def test_a_plan_and_a_page_are_written(tmp_path: Path) -> None:
    """And nothing else."""
    plan, page = tmp_path / "plan.jsonl", tmp_path / "page.html"
    arguments = (*STATE_GIVEN, *NAMED, "--interval", "0.4", "--redrive", plan, "--html", page)
    result = dead_letters(QUEUE, RECORDED / "kcat.jsonl.gz", *arguments)
    header, *ranges = map(json.loads, plan.read_text().splitlines())

    assert result.stdout.splitlines()[-1] == (
        f"{plan}: 60 records to process again, 12 excluded as poison records, in 13 ranges"
    )
    assert (header["queue"], header["redriven"], header["excluded"], len(ranges)) == (QUEUE, 60, 12, 13)
    assert "3 letters lost" in page.read_text(encoding="utf-8")
    assert sorted(tmp_path.iterdir()) == [page, plan]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("q",), "Letters are read from files or with --bootstrap"),
        (("q", BROKER, "--bootstrap", "127.0.0.1:1"), "Letters are read from files or with --bootstrap"),
        (("q", BROKER, "--group", "g", "--other-group", "g"), "--group and --other-group both name g."),
        (("q", BROKER, "--topic-id", "orders"), "expected NAME=ID, got 'orders'"),
        (("q", BROKER, "--interval", "0"), "--interval"),
        (("q", BROKER, "--interval", "nan"), "'nan' is not a finite number."),
        (("q", BROKER, "--interval", "inf"), "'inf' is not a finite number."),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: tuple[str | Path, ...], problem: str) -> None:
    """With a word on what is wrong."""
    result = dead_letters(*arguments)

    assert result.exit_code == 2
    assert problem in result.stderr


def test_what_a_topic_says_does_not_reach_the_terminal(tmp_path: Path) -> None:
    """Headers and keys may have anything."""
    headers = [
        *("__dlq.errors.topic", "t\u001b[2J", "__dlq.errors.partition", "0", "__dlq.errors.offset", "1"),
        *("__dlq.errors.group", "g\u001b[2J"),
    ]
    line = {"partition": 0, "offset": 0, "headers": headers, "key": "k\u001b[2J", "ts": 1}
    (tmp_path / "f").write_text(json.dumps(line))

    assert "\x1b[2J" not in dead_letters("q", tmp_path / "f").stdout


# ---- a live cluster


def a_state(group_id: str, *batches: tuple[int, int, int, int]) -> list[tuple[bytes, bytes | None]]:
    """Return the records of a share partition whose SPSO has passed all *batches*."""
    key = SharePartitionKey(group_id=group_id, topic_id=topic_id_text(TOPIC_ID.bytes), partition=0)
    begin = ShareSnapshot(
        snapshot_epoch=0, state_epoch=1, leader_epoch=1, start_offset=0, create_timestamp_ms=0, write_timestamp_ms=0
    )
    changes = [
        ShareUpdate(snapshot_epoch=0, leader_epoch=1, start_offset=0, state_batches=(StateBatch(*batch),))
        for batch in batches
    ]
    end = ShareUpdate(snapshot_epoch=0, leader_epoch=1, start_offset=100)
    values: list[ShareSnapshot | ShareUpdate] = [begin, *changes, end]
    return [encode_record(StateRecord(key, value)) for value in values]


def answer_queues(monkeypatch: pytest.MonkeyPatch, queues: Mapping[str, str | KafkaError]) -> None:
    """Have brokers answer which queue groups have, or with an error."""

    def described(_: AdminClient, asked: Sequence[ConfigResource], **__: object) -> dict[ConfigResource, Future[Any]]:
        futures: dict[ConfigResource, Future[Any]] = {each: Future() for each in asked}
        for resource, future in futures.items():
            queue = queues[resource.name]
            if isinstance(queue, KafkaError):
                future.set_exception(KafkaException(queue))
            else:
                name = "errors.deadletterqueue.topic.name"
                future.set_result({name: ConfigEntry(name, queue)})
        return futures

    monkeypatch.setattr(AdminClient, "describe_configs", described)


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    """A cluster with a queue, in which two of a group's letters are missing, and all of another one's."""
    brokers = Brokers()
    brokers.write_letters("dlq.q", [Planted(offset, topic="orders") for offset in (3, 50, 52)])
    brokers.write_letters("dlq.q", [Planted(7, group="gone", topic="orders")], partition=1)
    for group_id in ("g", "strays", "others"):
        for key, value in a_state(group_id, (3, 3, 3, 5), (3, 3, 4, 5), (50, 53, 3, 5), (50, 53, 4, 5)):
            brokers.write(TOPIC, 0, key, value)
    monkeypatch.setattr(AdminClient, "describe_topics", brokers.describe({"orders": TOPIC_ID}))
    answer_queues(monkeypatch, {"strays": "dlq.q", "others": "dlq.other"})
    brokers.write("orders", 0, b"k", b"v")
    return brokers


def test_a_live_cluster_is_read(brokers: Brokers) -> None:
    """Its letters, its state topic, its names of topics, and which groups have the queue."""
    result = dead_letters("dlq.q", "--bootstrap", brokers.address, "--json")
    found: Any = json.loads(result.stdout)
    (check,) = found["checks"]
    lost = [
        (each["group_id"], each["topic"], each["first_offset"], each["last_offset"]) for each in check["lost_records"]
    ]

    assert result.exit_code == 1
    assert lost == [
        *(("g", "orders", 51, 51), ("g", "orders", 53, 53)),
        *(("strays", "orders", 3, 3), ("strays", "orders", 50, 53)),
    ]
    assert check["other_groups"] == {"others": 5}
    assert found["patterns"] == {"poison record": 3, "outage": 0, "cannot be told": 1}
    assert len(found["partitions"]) == 4


def test_a_group_whose_settings_are_not_shown_is_not_checked(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that may not describe groups does not know whose queue it is; it says so, and ends with 2."""
    answer_queues(
        monkeypatch, {"strays": KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED), "others": "dlq.other", "g": "dlq.q"}
    )
    result = dead_letters("dlq.q", "--bootstrap", brokers.address, "--other-group", "g")
    (check,) = document("dlq.q", "--bootstrap", brokers.address)["checks"]

    assert (check["unknown_groups"], check["other_groups"]) == ({"strays": 5}, {"others": 5})
    assert "5 records of groups without a letter here: the cluster does not say whether this is" in result.stdout


def test_a_cluster_that_says_nothing_of_settings_leaves_groups_unchecked(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reason that it gives, and the exit code of what is not checked where nothing else is lost."""
    fresh = Brokers()
    fresh.write_letters("dlq.q", [Planted(7, group="gone", topic="orders")], partition=1)
    for key, value in a_state("strays", (3, 3, 3, 5), (3, 3, 4, 5)):
        fresh.write(TOPIC, 0, key, value)
    answer_queues(monkeypatch, {"strays": KafkaError(KafkaError._TIMED_OUT)})  # noqa: SLF001 - its public name
    result = dead_letters("dlq.q", "--bootstrap", fresh.address)

    assert brokers.address != fresh.address
    assert result.exit_code == 2
    assert "1 record of groups without a letter here: whether this is their queue is not known: " in result.stdout
    assert "timed out" in result.stdout.lower()


def test_a_cluster_without_a_state_topic_is_not_checked(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The letters are counted all the same."""
    fresh = Brokers()
    fresh.write_letters("dlq.q", [Planted(3, topic="orders")])
    monkeypatch.setattr(AdminClient, "describe_topics", fresh.describe({"orders": TOPIC_ID}))
    result = dead_letters("dlq.q", "--bootstrap", fresh.address)

    assert brokers.address != fresh.address
    assert result.exit_code == 2
    assert "1 letter of 1 record" in result.stdout
    assert "lost letters: the state topic cannot be read: " in result.stdout


def test_a_cluster_without_the_queue_is_an_error(brokers: Brokers) -> None:
    """It names the topic."""
    result = dead_letters("dlq.none", "--bootstrap", brokers.address)

    assert result.exit_code == 2
    assert "there is no topic dlq.none" in result.stderr
    assert "share group" not in result.stderr
