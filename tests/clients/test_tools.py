"""Kafka's command line tools, unchanged: topics, settings, offsets, groups, consoles and measurements."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.java_clients import (
    API_VERSIONS,
    CLUSTER,
    CONFIGS,
    CONSOLE,
    CONSOLE_CONSUMER,
    CONSOLE_PRODUCER,
    DELETE_RECORDS,
    FEATURES,
    GROUPS,
    OFFSETS,
    PRODUCER_PERFORMANCE,
    SHARE_CONSUMER,
    SHARE_CONSUMER_PERFORMANCE,
    SHARE_GROUPS,
    TOPICS,
    ran,
)
from tests.clients.scenes import ACCEPT, PATIENCE_S, RELEASE, Scene, numbered, seen, values, work

pytestmark = pytest.mark.clients


def tool(scene: Scene, main: str, *arguments: str, fails: bool = False, given: str = "") -> list[list[str]]:
    """Return the words of each line that a tool prints, one that *fails* or one that does not."""
    status, out = ran(main, "--bootstrap-server", scene.target.address, *arguments, given=given)
    assert bool(status) == fails, out
    return [line.split() for line in out.splitlines() if line.strip()]


def share_groups(scene: Scene, *arguments: str, fails: bool = False) -> list[list[str]]:
    """Return the words of each line that kafka-share-groups prints."""
    return tool(scene, SHARE_GROUPS, *arguments, fails=fails)


def has_words(lines: list[list[str]], words: str) -> bool:
    """Return whether *words* come in a row in one of the lines."""
    return any(words in " ".join(line) for line in lines)


def until(holds: Callable[[], bool]) -> None:
    """Return when *holds* does."""
    give_up_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < give_up_s
        time.sleep(0.1)


def left_by(scene: Scene, group: str, *topics: str, count: int) -> None:
    """Have a member take records and leave, and wait until its group is empty."""
    consumer = scene.consumer(group, topics)
    work(consumer, count)
    scene.leave(consumer)
    until(lambda: [group, "Empty"] in share_groups(scene, "--list", "--state"))


# ---- kafka-topics.sh


def test_topics(scene: Scene) -> None:
    """A topic is made, described, enlarged and deleted."""
    topic = scene.name

    made = tool(scene, TOPICS, "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=90000")
    assert made[-1] == ["Created", "topic", f"{topic}."]
    assert ["Created"] not in [
        line[:1] for line in tool(scene, TOPICS, "--create", "--if-not-exists", "--topic", topic)
    ]
    (whole, *partitions) = tool(scene, TOPICS, "--describe", "--topic", topic)
    assert (whole[1], whole[4:8]) == (topic, ["PartitionCount:", "2", "ReplicationFactor:", "1"])
    assert {"retention.ms=90000", "min.insync.replicas=1"} <= set(whole[-1].split(","))
    assert [line[2:10] for line in partitions] == [
        ["Partition:", str(number), "Leader:", "1", "Replicas:", "1", "Isr:", "1"] for number in range(2)
    ]
    for which in ("under-replicated-partitions", "unavailable-partitions", "under-min-isr-partitions"):
        assert tool(scene, TOPICS, "--describe", f"--{which}", "--topic", topic) == []
    tool(scene, TOPICS, "--alter", "--topic", topic, "--partitions", "5")
    until(lambda: len(tool(scene, TOPICS, "--describe", "--topic", topic)) == 6)
    tool(scene, TOPICS, "--delete", "--topic", topic)
    until(lambda: [topic] not in tool(scene, TOPICS, "--list"))
    assert tool(scene, TOPICS, "--delete", "--if-exists", "--topic", topic) == []


def test_topics_that_are_refused(scene: Scene) -> None:
    """What cannot be is said in Kafka's words."""
    topic = scene.topic(2)
    missing = "Topic 'none' does not exist as expected"

    for arguments, says in (
        (("--create", "--topic", topic), f"Topic '{topic}' already exists."),
        (("--create", "--topic", "bad/name"), "'bad/name' contains one or more characters other than"),
        (("--create", "--topic", f"{topic}-x", "--config", "nope=1"), "Unknown topic config name: nope"),
        (("--create", "--topic", f"{topic}-x", "--replication-factor", "3"), "only 1 broker(s) are registered"),
        (
            ("--alter", "--topic", topic, "--partitions", "1"),
            "currently has 2 partition(s); 1 would not be an increase.",
        ),
        (("--alter", "--topic", "none", "--partitions", "3"), missing),
        (("--describe", "--topic", "none"), missing),
        (("--delete", "--topic", "none"), missing),
    ):
        lines = tool(scene, TOPICS, *arguments, fails=True)
        assert has_words(lines, says), lines


# ---- kafka-configs.sh


def test_settings_of_topics(scene: Scene) -> None:
    """What is set is described until it is deleted, and what is wrong is refused."""
    of_topic = ("--entity-type", "topics", "--entity-name", scene.topic())

    tool(scene, CONFIGS, "--alter", *of_topic, "--add-config", "max.message.bytes=1000,cleanup.policy=[compact,delete]")
    described = tool(scene, CONFIGS, "--describe", *of_topic)[1:]
    tool(scene, CONFIGS, "--alter", *of_topic, "--delete-config", "max.message.bytes")
    left = tool(scene, CONFIGS, "--describe", *of_topic)[1:]

    assert {"max.message.bytes=1000", "cleanup.policy=compact,delete"} <= {line[0] for line in described}
    assert "max.message.bytes=1000" not in {line[0] for line in left}
    assert ["retention.bytes=-1", "sensitive=false"] in [
        line[:2] for line in tool(scene, CONFIGS, "--describe", "--all", *of_topic)
    ]
    wrong = tool(scene, CONFIGS, "--alter", *of_topic, "--add-config", "max.message.bytes=x", fails=True)
    assert has_words(wrong, "Invalid value x for configuration max.message.bytes: Not a number of type INT")


def test_settings_of_groups(scene: Scene) -> None:
    """A group has settings before it has members, and what is out of bounds or unknown is refused."""
    of_group = ("--entity-type", "groups", "--entity-name", scene.name)

    assert has_words(tool(scene, CONFIGS, "--describe", *of_group), "doesn't exist and doesn't have dynamic config.")
    tool(
        scene,
        CONFIGS,
        "--alter",
        *of_group,
        "--add-config",
        "share.delivery.count.limit=3,share.isolation.level=read_committed",
    )
    assert {line[0] for line in tool(scene, CONFIGS, "--describe", *of_group)[1:]} == {
        "share.delivery.count.limit=3",
        "share.isolation.level=read_committed",
    }
    tool(scene, CONFIGS, "--alter", *of_group, "--delete-config", "share.isolation.level")
    assert [line[0] for line in tool(scene, CONFIGS, "--describe", "--group", scene.name)[1:]] == [
        "share.delivery.count.limit=3"
    ]
    for wrong, says in (
        ("share.isolation.level=maybe", "Invalid value maybe for configuration share.isolation.level"),
        ("share.record.lock.duration.ms=1", "share.record.lock.duration.ms: Value must be at least 1000"),
        ("nope=1", "Unknown group config name: nope"),
    ):
        lines = tool(scene, CONFIGS, "--alter", *of_group, "--add-config", wrong, fails=True)
        assert has_words(lines, says)


def test_settings_of_the_broker(scene: Scene) -> None:
    """Settings of share groups are not changed while a broker runs."""
    setting = "group.share.delivery.count.limit"

    lines = tool(
        scene, CONFIGS, "--alter", "--entity-type", "brokers", "--entity-name", "1", "--add-config", f"{setting}=4",
        fails=True,
    )  # fmt: skip

    assert has_words(lines, f"Cannot update these configs dynamically: [{setting}]")


# ---- kafka-get-offsets.sh, kafka-delete-records.sh


def test_offsets(scene: Scene) -> None:
    """Where partitions begin and end, and where times are."""
    topic = scene.topic(2)
    producer = scene.producer()
    for number in range(5):
        producer.produce(topic, value=str(number), partition=0, timestamp=1_760_000_000_000 + number * 1000)
    assert producer.flush(PATIENCE_S) == 0

    def offsets(*arguments: str) -> list[str]:
        return [line[0].removeprefix(f"{topic}:") for line in tool(scene, OFFSETS, *arguments)]

    of_topic = ("--topic", topic)
    assert offsets(*of_topic) == ["0:5", "1:0"]
    assert offsets(*of_topic, "--time", "earliest") == ["0:0", "1:0"]
    assert offsets(*of_topic, "--time", "-1", "--partitions", "0") == ["0:5"]
    assert offsets(*of_topic, "--time", "max-timestamp") == ["0:4"]
    assert offsets(*of_topic, "--time", "1760000002500", "--partitions", "0") == ["0:3"]
    assert offsets("--topic-partitions", f"{topic}:0-1") == ["0:5"]
    nothing = tool(scene, OFFSETS, "--topic", "none", fails=True)
    assert has_words(nothing, "Could not match any topic-partitions with the specified filters")


def test_records_are_deleted(scene: Scene, tmp_path: Path) -> None:
    """What comes before an offset is gone, and an offset that is not there is refused."""
    topic = scene.topic(2)
    scene.produce(topic, numbered(5))
    file = tmp_path / "offsets.json"
    partitions = [{"topic": topic, "partition": 0, "offset": 3}, {"topic": topic, "partition": 1, "offset": 9}]
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))

    lines = tool(scene, DELETE_RECORDS, "--offset-json-file", str(file))

    assert ["partition:", f"{topic}-0", "low_watermark:", "3"] in lines
    assert has_words(lines, f"partition: {topic}-1 error: org.apache.kafka.common.errors.OffsetOutOfRangeException")


# ---- kafka-groups.sh, kafka-share-groups.sh


def test_groups(scene: Scene) -> None:
    """A share group is among those of its type and its protocol, and of its state."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(1))
    work(scene.consumer(group, [topic]), 1)

    for which in ((), ("--share",), ("--group-type", "share"), ("--protocol", "share")):
        assert [group, "Share", "share"] in tool(scene, GROUPS, "--list", *which)
    for which in (("--consumer",), ("--group-type", "classic"), ("--streams",)):
        header, *others = tool(scene, GROUPS, "--list", *which)  # those of other tests
        assert header == ["GROUP", "TYPE", "PROTOCOL"]
        assert group not in {each[0] for each in others}
    assert [group, "Stable"] in share_groups(scene, "--list", "--state", "Stable,empty")
    assert [group, "Stable"] not in share_groups(scene, "--list", "--state", "Dead")
    assert has_words(share_groups(scene, "--list", "--state", "nope", fails=True), "Invalid state list 'nope'.")


def test_a_group_with_a_member(scene: Scene) -> None:
    """Its offsets, members and states are described, in short and verbosely, and it is neither deleted nor reset."""
    topic, group = scene.topic(2), scene.group()
    for partition in (0, 1):
        scene.produce(topic, numbered(2), partition)
    work(scene.consumer(group, [topic], client_id="cli"), 4)
    of_group = ("--describe", "--group", group)

    assert [line[:4] for line in share_groups(scene, *of_group)[1:]] == [[group, topic, str(n), "0"] for n in (0, 1)]
    header, *offsets = share_groups(scene, *of_group, "--offsets", "--verbose")
    assert header == ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "START-OFFSET", "LAG"]
    assert [line[:5] for line in offsets] == [[group, topic, str(n), "0", "0"] for n in (0, 1)]
    _, member = share_groups(scene, *of_group, "--members")
    assert (member[0], member[2:]) == (group, ["/127.0.0.1", "cli", "2", f"{topic}:0,1"])
    header, verbose = share_groups(scene, *of_group, "--members", "--verbose")
    assert dict(zip(header, verbose, strict=True))["MEMBER-EPOCH"].isdecimal()
    assert share_groups(scene, *of_group, "--state")[1] == [group, scene.target.address, "(1)", "Stable", "1"]
    header, verbose = share_groups(scene, *of_group, "--state", "--verbose")
    assert header[-3:] == ["GROUP-EPOCH", "ASSIGNMENT-EPOCH", "#MEMBERS"]
    assert verbose[-3] == verbose[-2]  # the members have what was assigned last
    assert [group, scene.target.address, "(1)", "Stable", "1"] in share_groups(
        scene, "--describe", "--all-groups", "--state"
    )
    assert has_words(share_groups(scene, "--delete", "--group", group), f"Share group '{group}' is not EMPTY.")
    deleted = share_groups(scene, "--delete-offsets", "--group", group, "--topic", topic)
    assert deleted[-1] == [topic, "Error:", "The", "group", "is", "not", "empty."]
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--dry-run")
    assert has_words(share_groups(scene, *reset, fails=True), f"Share group '{group}' is not empty.")


def test_a_group_without_members(scene: Scene) -> None:
    """It is described as empty, and begins where its offsets are reset to."""
    topic, other, group = scene.topic(2), scene.topic(suffix="-other"), scene.group()
    for name, partition in ((topic, 0), (topic, 1), (other, 0)):
        scene.produce(name, numbered(3), partition)
    left_by(scene, group, topic, other, count=9)

    def reset(*arguments: str) -> list[list[str]]:
        lines = share_groups(scene, "--reset-offsets", "--group", group, *arguments)
        assert lines[-4:][0][0] in {"GROUP", group, "Warn:"}, lines
        return sorted(line[1:] for line in lines if line[0] == group)

    everything = sorted([[other, "0"], [topic, "0"], [topic, "1"]])
    of_group = ("--describe", "--group", group)
    assert share_groups(scene, *of_group, "--members") == [f"Share group '{group}' has no active members.".split()]
    assert share_groups(scene, *of_group, "--state")[-1] == [group, scene.target.address, "(1)", "Empty", "0"]
    for to, offset, executes in (
        (("--to-earliest",), "0", True),
        (("--to-latest",), "3", False),
        (("--to-latest",), "3", True),
        (("--to-datetime", "2020-01-01T00:00:00.000"), "0", True),
        (("--to-datetime", "2040-01-01T00:00:00.000"), "3", True),
    ):
        how = "--execute" if executes else "--dry-run"
        assert reset("--all-topics", *to, how) == [[*partition, offset] for partition in everything]
        described = sorted(line[1:4] for line in share_groups(scene, *of_group)[1:])
        stored = offset if executes else "0"
        assert described == [[*partition, stored] for partition in everything]
    assert reset("--topic", f"{topic}:1", "--topic", other, "--to-earliest", "--execute") == sorted(
        [[other, "0", "0"], [topic, "1", "0"]]
    )
    messages = work(scene.consumer(group, [topic, other]), 6)
    assert sorted((message.topic(), message.partition()) for message in messages) == sorted(
        [(topic, 1), (other, 0)] * 3
    )


def test_resets_that_are_refused(scene: Scene) -> None:
    """Partitions, topics and times that there are not are refused, and what says too little."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(1))
    left_by(scene, group, topic, count=1)

    for arguments, says, fails in (
        (("--topic", f"{topic}:7", "--to-latest", "--execute"), f'The partitions "{topic}-7" do not exist', False),
        (("--topic", "none", "--to-latest", "--execute"), "This server does not host this topic-partition.", False),
        (("--all-topics", "--to-datetime", "soon", "--execute"), "Error parsing timestamp.", False),
        (("--topic", topic, "--to-earliest"), "takes the option: [execute] or [dry-run]", True),
        (("--to-earliest", "--execute"), "takes one of these options: [all-topics], [topic]", True),
    ):
        assert has_words(share_groups(scene, "--reset-offsets", "--group", group, *arguments, fails=fails), says)


def test_a_reset_makes_a_group(scene: Scene) -> None:
    """A group that there is not is made when its offsets are set, and begins there."""
    topic, group = scene.topic(), scene.group()
    scene.produce(topic, numbered(2))

    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-latest", "--execute")
    assert share_groups(scene, *reset)[-1] == [group, topic, "0", "2"]

    assert [group, "Empty"] in share_groups(scene, "--list", "--state")
    scene.produce(topic, ["new"])
    assert values(work(scene.consumer(group, [topic]), 1)) == ["new"]


def test_offsets_and_groups_are_deleted(scene: Scene) -> None:
    """Offsets go by topic, those that there are not are told apart, and groups go with what they have."""
    topic, other, group = scene.topic(), scene.topic(suffix="-other"), scene.group()
    for name in (topic, other):
        scene.produce(name, numbered(2))
    left_by(scene, group, topic, other, count=4)

    def deleted(*topics: str, of: str = group) -> dict[str, str]:
        named = [word for name in topics for word in ("--topic", name)]
        lines = share_groups(scene, "--delete-offsets", "--group", of, *named)
        return {line[0]: " ".join(line[1:]) for line in lines[-len(topics) :]}

    unknown = "Error: This server does not host this topic-partition."
    assert deleted(topic, "none") == {topic: "Successful", "none": unknown}
    assert deleted(topic) == {topic: "Error: There is no offset information to delete."}
    assert [line[:3] for line in share_groups(scene, "--describe", "--group", group)[1:]] == [[group, other, "0"]]
    assert deleted(other) == {other: "Successful"}
    assert share_groups(scene, "--describe", "--group", group) == [
        f"Share group '{group}' has no offset information.".split()
    ]
    nobody = f"{group}-nobody"
    assert deleted(topic, of=nobody) == {topic: f"Error: Group {nobody} not found."}
    lines = share_groups(scene, "--delete", "--group", group, "--group", nobody)
    assert has_words(lines, f"Group '{nobody}' is not a share group.")
    assert has_words(lines, f"These share groups were deleted successfully: '{group}'")
    assert [group] not in share_groups(scene, "--list")
    assert has_words(share_groups(scene, "--describe", "--group", group), f"Group {group} not found.")
    consumer = scene.consumer(scene.group(), [topic])
    assert seen(work(consumer, 2)) == [(0, 1), (1, 1)]


# ---- consoles


def test_consoles(scene: Scene) -> None:
    """What the console's producer reads, the consoles' consumers print, with keys and headers."""
    topic, group = scene.topic(), scene.group()
    properties = [f"--reader-property={each}" for each in ("parse.key=true", "parse.headers=true")]
    tool(scene, CONSOLE_PRODUCER, "--topic", topic, *properties, given="h:1\tk1\tv1\nh:2,i:3\tk2\tv2\n")
    shows = [f"--formatter-property=print.{each}=true" for each in ("key", "headers", "partition", "offset")]

    shared = tool(scene, CONSOLE, "--topic", topic, "--group", group, "--max-messages", "2", *shows)
    plain = tool(
        scene,
        CONSOLE_CONSUMER,
        "--topic",
        topic,
        "--partition",
        "0",
        "--offset",
        "earliest",
        "--max-messages",
        "2",
        *shows,
    )

    expected = [
        ["Partition:0", "Offset:0", "h:1", "k1", "v1"],
        ["Partition:0", "Offset:1", "h:2,i:3", "k2", "v2"],
    ]
    assert [line for line in shared if line[0].startswith("Partition")] == expected
    assert [line for line in plain if line[0].startswith("Partition")] == expected


@pytest.mark.parametrize(("how", "again"), [("--reject", []), ("--release", [(0, 2), (1, 2)])])
def test_the_console_gives_back(scene: Scene, how: str, again: list[tuple[int, int]]) -> None:
    """What it rejects is gone, and what it releases goes to somebody else."""
    topic, group = scene.topic(), scene.group(delivery_count_limit="2")
    scene.produce(topic, numbered(2))

    lines = tool(scene, CONSOLE, "--topic", topic, "--group", group, "--max-messages", "2", how)

    assert [line for line in lines if line[0].startswith("v")] == [["v0"], ["v1"]]
    scene.produce(topic, ["last"])
    messages = work(scene.consumer(group, [topic]), len(again) + 1, lambda _: ACCEPT)
    assert seen(messages) == [*again, (2, 1)]


def test_the_console_gives_up(scene: Scene) -> None:
    """It ends when nothing has come for a while."""
    lines = tool(scene, CONSOLE, "--topic", scene.topic(), "--group", scene.group(), "--timeout-ms", "1500")

    assert has_words(lines, "Processed a total of 0 messages")


# ---- measurements and the verifiable consumer


def test_measurements(scene: Scene) -> None:
    """The tools that measure write and read so many records."""
    topic, group = scene.topic(2), scene.group()
    to = f"bootstrap.servers={scene.target.address}"
    status, out = ran(
        PRODUCER_PERFORMANCE,
        *("--topic", topic, "--num-records", "500", "--record-size", "100", "--throughput", "-1"),
        *("--producer-props", to, "compression.type=lz4"),
    )
    assert (status, out.splitlines()[-1].split()[:3]) == (0, ["500", "records", "sent,"])

    header, *_, row = tool(
        scene, SHARE_CONSUMER_PERFORMANCE, "--topic", topic, "--group", group, "--num-records", "500"
    )

    names = " ".join(header).split(", ")
    read = dict(zip(names, " ".join(row).split(", "), strict=True))
    assert read["data.consumed.in.nMsg"] == "500"


def test_the_verifiable_share_consumer(scene: Scene) -> None:
    """It sets where its group begins, takes all records once, and hears what becomes of its acknowledgements."""
    topic, group = scene.topic(), scene.name
    scene.produce(topic, numbered(30))

    lines = tool(
        scene,
        SHARE_CONSUMER,
        *("--topic", topic, "--group-id", group, "--max-messages", "30", "--acknowledgement-mode", "sync"),
        *("--offset-reset-strategy", "earliest"),
    )

    said = [json.loads(" ".join(line)) for line in lines if line[0].startswith("{")]
    assert [each["offsetResetStrategy"] for each in said if each["name"] == "offset_reset_strategy_set"] == ["earliest"]
    assert sum(each["count"] for each in said if each["name"] == "records_consumed") == 30
    acknowledged = [each for each in said if each["name"] == "offsets_acknowledged"]
    assert sum(each["count"] for each in acknowledged if each["success"]) == 30
    scene.produce(topic, ["last"])
    assert values(work(scene.consumer(group, [topic]), 1, lambda _: RELEASE)) == ["last"]


# ---- the cluster


def test_the_cluster(scene: Scene) -> None:
    """It has an id, one broker, the APIs of share groups, and the features of its release."""
    address = scene.target.address
    host, _, port = address.partition(":")

    assert ran(CLUSTER, "cluster-id", "--bootstrap-server", address)[1].startswith("Cluster ID: ")
    assert f"1 {host} {port} null unfenced broker".split() in [
        line.split() for line in ran(CLUSTER, "list-endpoints", "--bootstrap-server", address)[1].splitlines()
    ]
    lines = tool(scene, API_VERSIONS)
    assert has_words(lines, f"{address} (id: 1 rack: null isFenced: false) -> (")
    assert has_words(lines, "ShareFetch(78): 1 to 2 [usable: 2]")
    features = {line[1]: line[-3] for line in tool(scene, FEATURES, "describe")}
    assert features["share.version"] == ("2" if scene.target.has_dead_letters else "1")
    assert features["group.version"] == "1"
