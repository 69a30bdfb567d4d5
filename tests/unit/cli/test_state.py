"""``sharestate state decode``, ``rebuild`` and ``explain``."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result
from confluent_kafka.admin import AdminClient

from sharestate.cli.commands import sharestate
from sharestate.coordinator import COORDINATOR_4_4
from sharestate.coordinator.wire import topic_id_bytes
from sharestate.state_topic import StateTopic, StateTopicFile
from sharestate.state_topic.cluster import Cluster
from tests.support.mock_brokers import TOPIC, Brokers
from tests.support.terminals import on_terminal
from tests.support.watched_cluster import WatchedCluster, snapshot

DATA = Path(__file__).parents[2] / "data"
DUMP = DATA / "coordinator" / "state-4.3.1.jsonl"
SEGMENTS = DATA / "segments"
TORN = "the last 70 bytes are a part of a record batch"


def state(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    """Run a command of the group with *arguments*."""
    return CliRunner().invoke(sharestate, ["state", *map(str, arguments)], input=stdin)


def json_lines(result: Result) -> list[Any]:
    """Return what was printed as JSON lines."""
    assert (result.exit_code, result.stderr) == (0, "")
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """A segment of the state topic that ends in the middle of a batch."""
    data = (SEGMENTS / "__share_group_state-0" / "00000000000000000000.log").read_bytes()
    file = tmp_path / "__share_group_state-0.log"
    file.write_bytes(data + data[:70])
    return file


# ---- decode


def test_decode_prints_what_kafkas_formatter_prints() -> None:
    """With --json, a line for each record, from a file and from standard input."""
    expected = [json.loads(line)["decoded"] for line in DUMP.read_text().splitlines()]

    assert json_lines(state("decode", "--json", DUMP)) == expected
    assert json_lines(state("decode", "--json", "-", stdin=DUMP.read_bytes())) == expected


def test_decode_reads_segments_and_directories() -> None:
    """The broker's directory, one of a partition, and a segment, in the order in which they are named."""
    dumped = json_lines(state("decode", "--json", SEGMENTS / "state.jsonl"))
    directories = [SEGMENTS / f"__share_group_state-{number}" for number in range(3)]
    segment = directories[0] / "00000000000000000000.log"

    assert json_lines(state("decode", "--json", SEGMENTS)) == dumped
    assert json_lines(state("decode", "--json", segment, *directories[1:])) == dumped


def test_decode_shows_a_table() -> None:
    """A heading, and a line for each record whose columns are in line."""
    result = state("decode", DUMP)

    heading, first, second, *_ = lines = result.stdout.splitlines()
    assert (result.exit_code, len(lines)) == (0, 1 + 107)
    assert heading.index("topic id") == first.index("d0B3kAkfQz6usV6daJGpXA")
    assert first.split() == [
        *("0", "0", "2026-11-21", "11:53:22.057", "snapshot", "g-expiry", "d0B3kAkfQz6usV6daJGpXA"),
        *("0", "0", "2", "0", "-1", "-1"),
    ]
    assert second.split()[4:] == [
        *("update", "g-expiry", "d0B3kAkfQz6usV6daJGpXA"),
        *("0", "0", "-", "0", "0", "0", "0-19:available:1"),
    ]
    assert next(line for line in lines if "tombstone" in line).split()[-6:] == ["0", "-", "-", "-", "-", "-"]


def test_decode_shows_what_a_line_does_not_say(tmp_path: Path) -> None:
    """Offset and time may be missing, and a time may be none that a calendar has."""
    row = json.loads(DUMP.read_text().splitlines()[0])
    bare = {name: row[name] for name in ("key", "value")}
    (tmp_path / "dump").write_text(f"{json.dumps(bare)}\n{json.dumps(bare | {'timestamp': 2**62})}\n")

    _, first, second = state("decode", tmp_path / "dump").stdout.splitlines()

    assert first.split()[:4] == ["-", "-", "-", "snapshot"]
    assert second.split()[2] == str(2**62)


def test_names_are_escaped(tmp_path: Path) -> None:
    """A group may have any name; none acts on a terminal."""
    group = b"\x1b[2J[red]"
    key = b"\0\0" + len(group).to_bytes(2) + group + bytes(20)
    value = bytes(2) + bytes(36) + b"\x01\x00"
    row = {"key": b64encode(key).decode(), "value": b64encode(value).decode()}
    (tmp_path / "dump").write_text(json.dumps(row))

    for command in ("decode", "rebuild"):
        result = state(command, tmp_path / "dump")
        assert (result.exit_code, r"\x1b[2J[red]" in result.stdout) == (0, True)


# ---- rebuild


def test_rebuild_prints_a_line_for_each_share_partition() -> None:
    """With --json, exactly the fields that are promised, with the state that Kafka's own class has."""
    (kafka,) = [
        key
        for row in map(json.loads, (SEGMENTS / "rebuilt.jsonl").read_text().splitlines())
        if row["dump"] == "coordinator/state-4.3.1.jsonl"
        for key in row["keys"]
        if key["group"] == "g-limit"
    ]

    for path, stdin in ((DUMP, None), ("-", DUMP.read_bytes())):
        lines = json_lines(state("rebuild", "--json", path, stdin=stdin))
        assert len(lines) == 4
        assert lines[0] == {
            "group_id": "g-limit",
            "topic_id": kafka["topic"],
            "partition": 0,
            "state_epoch": kafka["state_epoch"],
            "leader_epoch": kafka["leader_epoch"],
            "snapshot_epoch": kafka["data"]["snapshot_epoch"],
            "start_offset": kafka["data"]["start_offset"],
            "delivery_complete_count": kafka["data"]["complete"],
            "state_batches": kafka["data"]["batches"],
        }


def test_rebuild_reads_what_decode_prints() -> None:
    """One command may feed the other."""
    decoded = state("decode", "--json", SEGMENTS).stdout

    assert json_lines(state("rebuild", "--json", "-", stdin=decoded.encode())) == json_lines(
        state("rebuild", "--json", SEGMENTS)
    )


def test_standard_input_may_be_compressed() -> None:
    """With gzip, as files may be; one that is torn is an error."""
    data = gzip.compress(DUMP.read_bytes())

    torn = state("decode", "--json", "-", stdin=data[:-20])

    assert json_lines(state("decode", "--json", "-", stdin=data)) == json_lines(state("decode", "--json", DUMP))
    assert (torn.exit_code, torn.stderr[:50]) == (2, "Error: standard input: not all of it can be decomp")


def test_segments_on_standard_input_are_refused() -> None:
    """They have no name there that says the partition."""
    segment = next((SEGMENTS / "__share_group_state-0").glob("*.log"))

    result = state("decode", "-", stdin=segment.read_bytes())

    assert (result.exit_code, result.stderr[:50]) == (2, "Error: standard input: not JSON lines; log segment")


def test_rebuild_follows_a_release() -> None:
    """Releases differ in where state batches are cut."""
    dump = DATA / "coordinator" / "state-4.4.0.jsonl"
    topic = StateTopic(COORDINATOR_4_4)
    topic.read([StateTopicFile(dump)])

    assert json_lines(state("rebuild", "--json", "--profile", "kafka-4.4", dump)) == [
        each.to_json() for each in topic.share_partitions()
    ]


def test_rebuild_shows_tables() -> None:
    """Share partitions, partitions of the topic with what blocks pruning, and groups."""
    result = state("rebuild", "--stuck-after", "5", "--delivery-limit", "3", SEGMENTS)

    text = result.stdout
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
    assert result.exit_code == 0
    assert rows[0] == [
        *("del-a", "LVwfhBDcT1S69ZWeei0LGw", "0", "2", "0", "0", "2231", "2026-11-22 05:12:19.290"),
        *("5", "4", "40", "30 changes"),
    ]
    assert ["0", "335", "0-334", "2", "333", "0", "166.5", "-", "del-b-tH8XVyAnSQijF0cG5al_Ow-0", "1"] in rows
    assert rows[-3][0] == "del-a"


# ---- a live cluster


TOPIC_ID = "U0FlQWlnQnSEW67v64w5cw"
"""The id of a topic of that dump, of which two groups have done 33 records, and have not moved the SPSO from 0."""


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    """A cluster that has the records of that dump, and one of the topics that they are about, with 40 records."""
    brokers = Brokers()
    brokers.write_dump()
    for number in range(40):
        brokers.write("txn", 0, b"k", b"%d" % number)
    known = {"txn": UUID(bytes=topic_id_bytes(TOPIC_ID))}
    monkeypatch.setattr(AdminClient, "describe_topics", brokers.describe(known))
    monkeypatch.setattr(Cluster, "group_configs", lambda *_, **__: {})
    return brokers


@pytest.mark.parametrize("files", [(), (DUMP,)], ids=["the topic of the cluster", "the topic of a file"])
def test_rebuild_asks_a_cluster(brokers: Brokers, files: tuple[Path, ...]) -> None:
    """The state is that of the records, wherever they come from; the lag is known where there still is a topic."""
    without = json_lines(state("rebuild", "--json", DUMP))

    lines = json_lines(state("rebuild", "--json", "--bootstrap", brokers.address, *files))

    assert [{name: value for name, value in line.items() if name in without[0]} for line in lines] == without
    assert [(line["group_id"], line["log_end_offset"], line["lag"]) for line in lines] == [
        ("g-limit", None, None),
        ("g-mixed", None, None),
        ("g-txn-read_committed", 40, 7),
        ("g-txn-read_uncommitted", 40, 7),
    ]


def test_rebuild_shows_the_lag(brokers: Brokers) -> None:
    """In two columns, which are not there without a cluster."""
    shown = state("rebuild", "--bootstrap", brokers.address).stdout

    assert "log end ┃ lag" in shown
    assert "log end" not in state("rebuild", DUMP).stdout


def test_limits_are_those_of_the_groups(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster says them, so what is near the limit is what a monitor counts; an option comes first."""
    watched = WatchedCluster()
    watched.write(snapshot(0, (0, 3, 0, 1)))
    for key, value in watched.logs[0]:
        brokers.write(TOPIC, 0, key, value)
    monkeypatch.setattr(Cluster, "group_configs", lambda *_, **__: {"g": {"share.delivery.count.limit": "2"}})

    def near(*options: str) -> str:
        """Return what is near the limit of a group."""
        rows = state("rebuild", "--bootstrap", brokers.address, *options).stdout.splitlines()
        (row,) = (row for row in rows if row.startswith("│ g ") and row.count("│") > 3)
        return row.split("│")[-3].strip()

    (explained,) = json_lines(state("explain", "--bootstrap", brokers.address, "--group", "g", "--json"))
    assert (near(), near("--delivery-limit", "5"), explained["near_limit"]) == ("4", "", [[0, 3, 0, 1]])


def test_rebuild_says_since_before_where_older_records_are_gone(tmp_path: Path) -> None:
    """The oldest record that is left is a later snapshot: the SPSO may have been there for longer."""
    rows = map(json.loads, DUMP.read_text().splitlines())
    left = tmp_path / "left.jsonl"
    left.write_text(
        "".join(f"{json.dumps(row)}\n" for row in rows if row["statePartition"] != 1 or row["offset"] >= 34)
    )

    assert "│ 2026-11-21 11:53:27.387 │" in state("rebuild", DUMP).stdout
    assert "│ before 2026-11-21 11:53:27.387 │" in state("rebuild", left).stdout


def test_topics_go_by_their_names(brokers: Brokers) -> None:
    """A cluster is asked for them: tables have them, JSON has them besides, and --topic takes them."""
    options = ("--bootstrap", brokers.address)
    rebuilt = state("rebuild", *options).stdout
    named = json_lines(state("rebuild", "--json", *options))
    explained = state("explain", *options, "--topic", "txn", "--group", "g-txn-read_committed")
    missed = state("explain", *options, "--topic", "other")

    assert ("│ txn " in rebuilt, TOPIC_ID in rebuilt.partition("By partition")[0]) == (True, False)
    assert [line.get("topic") for line in named] == [None, None, "txn", "txn"]
    assert explained.stdout.startswith("Partition 0 of topic txn, group g-txn-read_committed\n")
    assert "  txn  " in state("decode", *options).stdout
    assert (missed.exit_code, "--group g-txn-read_committed --topic txn --partition 0" in missed.output) == (2, True)


def test_a_brokers_directory_names_topics_too(tmp_path: Path) -> None:
    """Beside the state topic lie the directories of topics, of which each says what topic it is."""
    logs = tmp_path / "logs"
    shutil.copytree(SEGMENTS, logs)
    (logs / "orders-0").mkdir()
    (logs / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: tH8XVyAnSQijF0cG5al_Ow\n")

    assert "Partition 0 of topic orders, group del-b\n" in state("explain", logs, "--topic", "orders").stdout


def test_explain_asks_a_cluster(brokers: Brokers) -> None:
    """It has the log end, beyond which nothing is delivered, and the lag."""
    options = ("--group", "g-txn-read_committed", "--offset", "40", "--json")

    (line,) = json_lines(state("explain", "--bootstrap", brokers.address, *options))

    assert (line["log_end_offset"], line["lag"], line["deliverable"]) == (40, 7, "later")
    assert "log" not in line["unsaid"]


def test_decode_shows_the_records_of_a_cluster(brokers: Brokers) -> None:
    """Those of each partition of the topic in their order; of the partitions, any may come first."""
    lines = json_lines(state("decode", "--json", "--bootstrap", brokers.address))

    def by_share_partition(records: list[Any]) -> list[Any]:
        return sorted(records, key=lambda each: (each["groupId"], each["topicId"], each["partition"]))

    assert by_share_partition(lines) == by_share_partition(json_lines(state("decode", "--json", DUMP)))


@pytest.mark.parametrize("command", ["decode", "rebuild", "explain"])
def test_something_to_read_is_needed(command: str) -> None:
    """A file or a cluster, and one that answers."""
    assert "Missing argument 'FILE_OR_DIR...', or --bootstrap." in state(command).stderr
    result = state(command, "--bootstrap", "127.0.0.1:1")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: 127.0.0.1:1: ")


def test_what_does_not_go_together_is_refused() -> None:
    """Settings without a cluster, and records from two places."""
    assert "--command-config needs --bootstrap." in state("rebuild", "--command-config", DUMP, DUMP).stderr
    assert "not from both" in state("decode", "--bootstrap", "127.0.0.1:1", DUMP).stderr


def test_settings_of_the_client_are_checked(tmp_path: Path) -> None:
    """A line that is none, and a name that librdkafka does not know."""
    for text, message in (("nope", f"{tmp_path / 'settings'}:1: expected name=value"), ("nope=1", "nope")):
        (tmp_path / "settings").write_text(text)
        result = state("rebuild", "--bootstrap", "127.0.0.1:1", "--command-config", tmp_path / "settings")
        assert (result.exit_code, message in result.stderr) == (2, True)


# ---- what cannot be read


def test_a_bad_line_ends_with_2(tmp_path: Path) -> None:
    """File, line and field are said, after what comes before was printed."""
    good = DUMP.read_text().splitlines()[0]
    bad = tmp_path / "bad.jsonl"
    bad.write_text(f'{good}\n{{"key": "AAc=", "value": "!"}}\n')

    for command in ("decode", "rebuild"):
        result = state(command, "--json", bad)
        assert (result.exit_code, result.stderr) == (2, f'Error: {bad}:2: value: expected base64, got "!"\n')
    assert state("decode", "--json", bad).stdout.startswith('{"type":0,')


def test_damage_in_a_segment_ends_with_2(torn: Path) -> None:
    """File and byte are said; a torn end is only said."""
    size = torn.stat().st_size - 70
    result = state("decode", "--json", torn)
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 335)
    assert result.stderr == f"{torn}, byte {size}: {TORN}; what comes before has been read\n"

    data = bytearray(torn.read_bytes())
    data[100] ^= 1
    torn.write_bytes(data)

    result = state("rebuild", torn)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {torn}, byte 0: the checksum of the record batch is not 0x")


@pytest.mark.parametrize("command", ["decode", "rebuild"])
def test_nothing_to_read_is_an_error(tmp_path: Path, command: str) -> None:
    """A directory without segments, and a path that is not there."""
    result = state(command, tmp_path)
    assert (result.exit_code, result.stderr) == (
        2,
        f"Error: {tmp_path}: no log segments of __share_group_state in this directory\n",
    )
    assert state(command, tmp_path / "none").exit_code == 2
    assert state(command).exit_code == 2


def test_without_an_extra_what_needs_it_is_an_error() -> None:
    """The message names the extra; JSON lines need none."""
    runs: dict[tuple[str | Path, ...], tuple[int, str]] = {
        ("decode", DUMP): (0, ""),
        ("decode", SEGMENTS): (2, f"Error: sharestate.segments {NEEDED.format('segments')}\n"),
        ("rebuild", "--bootstrap", "x"): (2, f"Error: a cluster {NEEDED.format('consumer')}\n"),
    }
    told = [json.dumps([*map(str, arguments)]) for arguments in runs]

    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, *told], capture_output=True, check=True, text=True, timeout=60
    )

    assert [tuple(ended) for ended in json.loads(result.stdout)] == [*runs.values()]


NEEDED = "needs the extra '{0}': pip install 'sharestate[{0}]'"
WITHOUT_EXTRAS = """
import json, sys
sys.modules["aiokafka"] = sys.modules["confluent_kafka"] = None
from click.testing import CliRunner
from sharestate.cli.commands import sharestate
ended = [CliRunner().invoke(sharestate, ["state", *json.loads(arguments)]) for arguments in sys.argv[1:]]
print(json.dumps([[each.exit_code, each.stderr] for each in ended]))
"""
"""Runs commands in a process that cannot import what two extras have."""


# ---- terminals


@pytest.mark.parametrize("command", ["decode", "rebuild"])
def test_progress_is_shown_on_a_terminal_and_nowhere_else(tmp_path: Path, command: str) -> None:
    """Standard output has the same as without it."""
    shown = on_terminal(tmp_path / "printed", "state", command, "--json", DUMP)

    assert "reading" in shown
    assert (tmp_path / "printed").read_text() == state(command, "--json", DUMP).stdout


def test_ctrl_c_ends_with_130() -> None:
    """A command that waits for input stops without a traceback."""
    with subprocess.Popen(
        [sys.executable, "-m", "sharestate", "state", "decode", "--json", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(DUMP.read_bytes()[:50_000])  # less than a pipe takes
        process.stdin.flush()
        process.stdout.read(1000)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors.strip()) == (130, b"")


def test_a_closed_pipe_ends_with_141(tmp_path: Path) -> None:
    """As with `head`: nothing is reported."""
    big = tmp_path / "big.jsonl"
    with big.open("wb") as stream:
        for _ in range(20):
            with DUMP.open("rb") as dump:
                shutil.copyfileobj(dump, stream)
    reader, writer = os.pipe()
    os.close(reader)

    result = subprocess.run(
        [sys.executable, "-m", "sharestate", "state", "decode", str(big)],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )

    os.close(writer)
    assert (result.returncode, result.stderr) == (141, b"")
