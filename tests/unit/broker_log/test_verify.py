"""The check of histories from brokers' logs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sharestate.broker_log import LogImport, PartitionReport, RequestLog, TopicLogs, Verdict, read_properties, verify
from sharestate.cli.commands import sharestate
from sharestate.history import Header, create_history
from tests.support.broker_logs import RUN, Rewrite, lines, rewritten

GROUP = "seq-b"
"""The group whose answers are falsified: it has three share partitions."""


def log(*arguments: str | Path) -> Result:
    """Run a command of the group with *arguments*."""
    return CliRunner().invoke(sharestate, ["log", *map(str, arguments)])


def reports_of(request_log: Path, target: Path, group_id: str | None = None) -> list[PartitionReport]:
    """Import a request log with the segments of the run, and check it."""
    events = LogImport(
        RequestLog([request_log]),
        TopicLogs(RUN / "segments"),
        broker=read_properties(RUN / "server.properties"),
        group_id=group_id,
    )
    with create_history(target, Header()) as file:
        file.write(events)
    return list(verify(target))


def test_a_run_of_a_broker_is_explained(tmp_path: Path) -> None:
    """Every acquisition, every code and every write of the run follows from the rules of its release."""
    history = tmp_path / "history.jsonl"
    options = ("--segments", RUN / "segments", "--config", RUN / "server.properties", "-o", history)
    made = log("import", RUN / "request.log.gz", *options)
    assert (made.exit_code, made.output) == (0, f"{len(lines()):,} lines, 3,753 events\n")

    checked = log("verify", "--json", history)

    reports = [json.loads(line) for line in checked.stdout.splitlines()]
    assert checked.exit_code == 0
    assert [report["verdict"] for report in reports] == ["explained"] * 6
    for report in reports:
        explained, observed = report["explained"], report["observed"]
        assert report["findings"] == []
        assert report["not_checked"] == 0
        for what in ("fetches_with_records", "codes", "writes"):
            assert explained[what] == observed[what] > 10
        assert explained["empty_fetches"] == observed["empty_fetches"]
    assert sum(report["explained"]["expiries"] for report in reports) > 100


def test_a_defect_of_kafka_is_named(tmp_path: Path) -> None:
    """Three fetches have failed with B8, which the library does not copy; nothing is called a contradiction."""
    run = RUN.with_name("k431-del")
    history = tmp_path / "history.jsonl"
    options = ("--segments", run / "segments", "--config", run / "server.properties", "-o", history)
    assert log("import", run / "request.log.gz", "--group", "del-b", *options).exit_code == 0

    checked = log("verify", "--json", history)

    reports = {report["topic_id"]: report for report in map(json.loads, checked.stdout.splitlines())}
    report = reports["LVwfhBDcT1S69ZWeei0LGw"]
    assert checked.exit_code == 0
    assert report["verdict"] == "kafka_defect"
    assert [finding["request_no"] for finding in report["findings"]] == [37, 46, 54]
    assert {finding["connection"] for finding in report["findings"]} == {"127.0.0.1:19710-127.0.0.1:52952-1-4"}
    assert all(finding["reason"].startswith("B8: ") for finding in report["findings"])


# ---- falsified logs


def partition_of(request: dict[str, Any], api: str) -> dict[str, Any] | None:
    """Return what a request of the group has in its only partition; None if it is another request."""
    if request["requestHeader"]["requestApiKeyName"] != api or request["request"].get("groupId") != GROUP:
        return None
    side = request["request"] if api == "WRITE_SHARE_GROUP_STATE" else request["response"]
    topics = side["topics"] if api == "WRITE_SHARE_GROUP_STATE" else side["responses"]
    partitions = [partition for topic in topics for partition in topic["partitions"]]
    return partitions[0] if len(partitions) == 1 else None


def in_acquired(change: Callable[[list[dict[str, int]]], Any]) -> Rewrite:
    """Change what a fetch has acquired."""

    def rewrite(request: dict[str, Any]) -> bool:
        partition = partition_of(request, "SHARE_FETCH")
        if partition is None or not partition["acquiredRecords"]:
            return False
        return change(partition["acquiredRecords"]) is not False

    return rewrite


def in_write(change: Callable[[dict[str, Any]], Any]) -> Rewrite:
    """Change what a write says."""

    def rewrite(request: dict[str, Any]) -> bool:
        partition = partition_of(request, "WRITE_SHARE_GROUP_STATE")
        return partition is not None and change(partition) is not False

    return rewrite


def in_code(api: str, field: str, before: int, after: int) -> Rewrite:
    """Change the code with which an acknowledgement is answered."""

    def rewrite(request: dict[str, Any]) -> bool:
        partition = partition_of(request, api)
        if partition is None or partition[field] != before:
            return False
        asked = [each for topic in request["request"]["topics"] for each in topic["partitions"]]
        if not any(each["acknowledgementBatches"] for each in asked):
            return False
        partition[field] = after
        return True

    return rewrite


def add(name: str, number: int) -> Callable[[list[dict[str, int]]], Any]:
    """Add a number to a field of the last of some ranges."""

    def change(ranges: list[dict[str, int]]) -> None:
        ranges[-1][name] += number

    return change


def drop_last(ranges: list[dict[str, int]]) -> bool:
    """Drop the last of several ranges."""
    if len(ranges) < 2:
        return False
    ranges.pop()
    return True


def shift(ranges: list[dict[str, int]]) -> None:
    """Move a range to the next offsets."""
    ranges[0]["firstOffset"] += 1
    ranges[0]["lastOffset"] += 1


def swap_state(partition: dict[str, Any]) -> None:
    """Say of an acknowledged record that it is archived, and the other way round."""
    batch = partition["stateBatches"][0]
    batch["deliveryState"] = {0: 4, 2: 4, 4: 2}[batch["deliveryState"]]


FALSIFIED = {
    "acquired one record more": in_acquired(add("lastOffset", 1)),
    "acquired other records": in_acquired(shift),
    "acquired with another delivery count": in_acquired(add("deliveryCount", 1)),
    "acquired a range less": in_acquired(drop_last),
    "an acknowledgement refused": in_code("SHARE_ACKNOWLEDGE", "errorCode", 0, 121),
    "an acknowledgement taken": in_code("SHARE_ACKNOWLEDGE", "errorCode", 121, 0),
    "an acknowledgement of a fetch refused": in_code("SHARE_FETCH", "acknowledgeErrorCode", 0, 42),
    "a write with another start offset": in_write(lambda each: each.update(startOffset=each["startOffset"] + 1)),
    "a write with another count": in_write(
        lambda each: each.update(deliveryCompleteCount=each["deliveryCompleteCount"] + 1)
    ),
    "a write with another state": in_write(swap_state),
    "a write with another delivery count": in_write(lambda each: add("deliveryCount", 1)(each["stateBatches"])),
    "a write with another range": in_write(lambda each: add("lastOffset", 1)(each["stateBatches"])),
    "a write with a range less": in_write(lambda each: drop_last(each["stateBatches"])),
}


@pytest.mark.parametrize("name", FALSIFIED)
def test_a_falsified_log_is_caught(tmp_path: Path, name: str) -> None:
    """One line says something else: that contradicts the rest, and that line is named."""
    path, index = rewritten(tmp_path / "request.log", FALSIFIED[name], skip=15)
    request = json.loads(lines()[index].partition("request:")[2])

    reports = reports_of(path, tmp_path / "history.jsonl", GROUP)

    (bad,) = [report for report in reports if report.verdict is not Verdict.EXPLAINED]
    finding = bad.findings[0]
    assert finding.verdict in {Verdict.CONTRADICTION, Verdict.BOUND_REACHED}
    number = request["requestHeader"]["correlationId"]
    assert (finding.event.connection, finding.event.request_no) == (request["connection"], number)
    assert finding.place == (str(path), index + 1)


def test_a_write_that_is_missing_is_caught(tmp_path: Path) -> None:
    """A write without a line contradicts what comes after it."""
    kept = lines()
    written = [i for i, line in enumerate(kept) if '"WRITE_SHARE_GROUP_STATE"' in line and f'"{GROUP}"' in line]
    del kept[written[40]]
    path = tmp_path / "request.log"
    path.write_text("".join(kept[: written[40] + 400]))

    verdicts = {report.verdict for report in reports_of(path, tmp_path / "history.jsonl", GROUP)}

    assert verdicts & {Verdict.CONTRADICTION, Verdict.BOUND_REACHED}


# ---- harmless changes


def test_harmless_changes_stay_clean(tmp_path: Path) -> None:
    """Swapped lines, times that are 1 ms off, missing heartbeats, unknown fields and other lines change no verdict."""
    draw = random.Random(7)  # noqa: S311 - the same changes each time
    changed = ["2026-11-22T04:35:00.000000 INFO something else\n"]
    for line in lines():
        if '"SHARE_GROUP_HEARTBEAT"' in line and '"memberEpoch":-1' not in line.partition('"response"')[0]:
            continue
        stamp, _, text = line.partition(" ")
        second, micros = stamp.split(".")
        micros = str(min(999_999, max(0, int(micros) + draw.randint(-1000, 1000)))).zfill(6)
        text = text.replace('"isForwarded":false', '"isForwarded":false,"unknown":[{}]', 1)
        changed.append(f"{second}.{micros} {text}")
    for at in range(0, len(changed) - 1, 2):
        changed[at], changed[at + 1] = changed[at + 1], changed[at]
    path = tmp_path / "request.log"
    path.write_text("".join(changed))

    reports = reports_of(path, tmp_path / "history.jsonl")

    assert {report.verdict for report in reports} == {Verdict.EXPLAINED}


# ---- what cannot be checked


def test_without_segments_it_is_said_what_cannot_be_checked(tmp_path: Path) -> None:
    """The import says so, and so does each verdict; nothing is called a contradiction."""
    history = tmp_path / "history.jsonl.gz"
    made = log("import", RUN / "request.log.gz", "--group", GROUP, "-o", history)
    assert made.exit_code == 0
    assert "Without --segments it cannot be checked what was acquired" in made.output

    checked = log("verify", history)

    assert checked.exit_code == 0
    assert checked.output.count("not_checked: the history lacks events of the kind log") == 3


def test_a_log_that_begins_later_is_not_checked(tmp_path: Path) -> None:
    """As long as no state was read, nothing is known of a share partition."""
    path = tmp_path / "request.log"
    path.write_text("".join(line for line in lines() if '"READ_SHARE_GROUP_STATE"' not in line))

    (report,) = reports_of(path, tmp_path / "history.jsonl", "seq-a")

    assert report.verdict is Verdict.NOT_CHECKED
    assert "begins in the middle of its life" in report.findings[0].reason


def test_a_contradiction_ends_with_exit_code_1(tmp_path: Path) -> None:
    """It is shown with its line of the request log, and with what was observed and computed."""
    path, index = rewritten(tmp_path / "request.log", FALSIFIED["acquired with another delivery count"], skip=15)
    history = tmp_path / "history.jsonl"
    log("import", path, "--segments", RUN / "segments", "--config", RUN / "server.properties", "-o", history)

    checked = log("verify", history)

    assert checked.exit_code == 1
    assert f"{path}:{index + 1}: " in checked.output
    assert "contradiction: a fetch has acquired something else" in checked.output


def test_a_file_that_is_no_history_ends_with_exit_code_2(tmp_path: Path) -> None:
    """The message names file and line."""
    path = tmp_path / "history.jsonl"
    path.write_text("{}\n")

    checked = log("verify", path)

    assert checked.exit_code == 2
    assert f"{path}:1" in checked.output
