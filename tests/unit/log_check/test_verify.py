"""The check of histories from brokers' logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sharestate.broker_log import LogImport, RequestLog, TopicLogs, read_properties
from sharestate.cli.commands import sharestate
from sharestate.history import Header, Order, create_history
from sharestate.log_check import PartitionReport, Verdict, verify
from sharestate.log_check.budget import LEAST_WORK, WORK_OF_ORDER, Budget
from sharestate.log_check.precedence import in_order
from sharestate.log_check.schedule import schedule
from sharestate.log_check.verify import check_partition, repeated_requests
from tests.fuzz import costly_histories
from tests.support.broker_logs import RUN, imported_of, lines, rewritten
from tests.support.hand_made_events import HandMadeLife

GROUP = "seq-b"
"""The group whose answers are falsified: it has three share partitions."""

TOPIC = "6_UGRzRhTHKhR9UaPcC76Q"
"""One of its topics."""


def log(*arguments: str | Path) -> Result:
    """Run a command of the group with *arguments*."""
    return CliRunner().invoke(sharestate, ["log", *map(str, arguments)])


def reports_of(request_log: Path, target: Path, group_id: str | None = None, run: Path = RUN) -> list[PartitionReport]:
    """Import a request log with the segments of a run, and check it."""
    events = LogImport(
        RequestLog([request_log]),
        TopicLogs(run / "segments"),
        broker=read_properties(run / "server.properties"),
        group_id=group_id,
    )
    with create_history(target, Header(order=Order.ARRIVAL)) as file:
        file.write(events)
    return list(verify(target))


def test_a_run_of_a_broker_is_explained(tmp_path: Path) -> None:
    """Every acquisition, every code and every write of the run follows from the rules of its release."""
    history = tmp_path / "history.jsonl"
    options = ("--segments", RUN / "segments", "--config", RUN / "server.properties", "-o", history)
    made = log("import", RUN / "request.log.gz", *options)
    assert made.exit_code == 0
    said, times, assumed = made.output.splitlines()
    assert said == f"{len(lines()):,} lines, 3,753 events"
    assert times.startswith("Times do not say their offset from UTC")
    assert assumed.startswith("Not all settings of 3 groups are known: seq-a, seq-b, seq-c.")

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
    assert report["explained"]["fetches_with_records"] == report["observed"]["fetches_with_records"] > 10


@pytest.mark.parametrize("name", ["k440-busy", "k440-dlq"])
def test_a_busy_broker_is_explained(name: str, tmp_path: Path) -> None:
    """Handlers have taken 50 ms, so writes overtake one another, have the heads of later ones, and come in bursts."""
    run = RUN.with_name(name)

    (report,) = reports_of(run / "request.log.gz", tmp_path / "history.jsonl", run=run)

    assert (report.verdict, report.findings) == (Verdict.EXPLAINED, [])
    for what in ("fetches_with_records", "codes", "writes"):
        assert getattr(report.explained, what) == getattr(report.observed, what) > 30
    assert report.explained.undecided_fetches <= 1
    assert (report.explained.dead_letters > 0) == (name == "k440-dlq")


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


def count_more(request: dict[str, Any]) -> bool:
    """Let a fetch have acquired with a delivery count that is higher by one."""
    if request["requestHeader"]["requestApiKeyName"] != "SHARE_FETCH":
        return False
    partitions = [each for topic in request["response"]["responses"] for each in topic["partitions"]]
    for partition in partitions:
        for batch in partition["acquiredRecords"]:
            batch["deliveryCount"] += 1
            return True
    return False


def test_a_contradiction_ends_with_exit_code_1(tmp_path: Path) -> None:
    """It is shown with its line of the request log, and with what was observed and computed."""
    path, index = rewritten(tmp_path / "request.log", count_more, skip=15)
    history = tmp_path / "history.jsonl"
    log("import", path, "--segments", RUN / "segments", "--config", RUN / "server.properties", "-o", history)

    checked = log("verify", history)

    assert checked.exit_code == 1
    assert f"{path}:{index + 1}: " in checked.output
    assert "contradiction: a fetch has acquired something else" in checked.output


def test_findings_come_in_the_order_of_events() -> None:
    """Whatever finds them: here a fetch has acquired what was acquired, after one with a wrong lock duration."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.fetches(120, 100, "m1", 2)
    life.events[-1] = life.events[-1]._replace(response={"acquired": (), "lock_ms": 7000})
    life.fetches(320, 100, "m1", 3)
    life.fetches(520, 2, "m1", 4, (0, 3, 1))
    life.fetches(620, 2, "m1", 5, (0, 3, 1))
    key, own = life.events[0].key, [*enumerate(life.events, 2)]

    checked = check_partition(key, own, "history.jsonl", Header(order=Order.ARRIVAL))

    assert [(finding.event.request_no, finding.observed) for finding in checked.report.findings] == [
        (2, {"lock_ms": 7000}),
        (4, [[0, 3, 1]]),
    ]
    verdicts = [event.request or {} for event in checked.events() if event.kind == "verdict"]
    assert [each["reason"] for each in verdicts] == [finding.reason for finding in checked.report.findings]


def test_a_request_that_is_there_twice_is_named(tmp_path: Path) -> None:
    """Nothing would contradict a fetch without records that has come twice, but a connection numbers its requests."""
    own = lines()
    index = next(
        i
        for i, line in enumerate(own)
        if "SHARE_FETCH" in line and '"groupId":"seq-a"' in line and not records_in(line)
    )
    path = tmp_path / "request.log"
    path.write_text("".join([*own[: index + 300], own[index]]))

    (report,) = reports_of(path, tmp_path / "history.jsonl", "seq-a")

    (finding,) = report.findings
    assert finding.verdict is Verdict.CONTRADICTION
    assert finding.reason.endswith(" is in the log twice")
    assert {finding.place.line, *(place.line for place in finding.other_places)} == {index + 1, index + 301}


def records_in(line: str) -> bool:
    """Return whether a fetch has acquired records, or a session was closed."""
    return '"acquiredRecords":[{' in line or '"shareSessionEpoch":-1' in line


def test_a_client_that_gives_all_requests_one_number_repeats_none() -> None:
    """As a broker works on one request of a connection after the other, those that do not overlap are others."""
    log = RequestLog([RUN / "request.log.gz"])
    events = [event for event in LogImport(log, TopicLogs(None), group_id="seq-a") if event.kind == "fetch"]
    connection = events[0].connection
    own = [event._replace(request_no=0) for event in events if event.connection == connection]
    located = list(enumerate(own))
    assert len(own) > 10

    assert repeated_requests(located) == []
    assert repeated_requests([located[3], (99, own[3]._replace(seq=999))]) == [
        (located[3], (99, own[3]._replace(seq=999)))
    ]


@pytest.mark.parametrize("number", [0, None])
def test_what_a_client_does_that_gives_all_requests_one_number_is_explained(number: int | None) -> None:
    """It fetches and acknowledges twice; no acknowledgement comes before the fetch that has acquired its records."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    for first in (0, 4):
        life.appends(12 + 100 * first, first, first + 3)
        life.fetches(20 + 100 * first, 2, "m1", 1, (first, first + 3, 1))
        life.acknowledges(300 + 100 * first, 5, "m1", 1, (first, first + 3, 1), None)
        life.writes(301 + 100 * first, 101 + first, (first, 4), (first, first + 3, 2, 1))
    events = [event if event.kind == "write" else event._replace(request_no=number) for event in life.events]

    report = check_partition(
        events[0].key, [*enumerate(events, 2)], "history.jsonl", Header(order=Order.ARRIVAL)
    ).report

    assert report.verdict is Verdict.EXPLAINED
    assert report.explained.codes == 2


def test_a_file_that_is_no_history_ends_with_exit_code_2(tmp_path: Path) -> None:
    """The message names file and line."""
    path = tmp_path / "history.jsonl"
    path.write_text("{}\n")

    checked = log("verify", path)

    assert checked.exit_code == 2
    assert f"{path}:1" in checked.output


def test_a_history_in_causal_order_ends_with_exit_code_2(tmp_path: Path) -> None:
    """Its order was found already: the message says so, and nothing is checked."""
    path = tmp_path / "history.jsonl"
    with create_history(path, Header(order=Order.CAUSAL)) as file:
        file.write([])

    checked = log("verify", path)

    assert (checked.exit_code, checked.stdout) == (2, "")
    assert str(path) in checked.output
    assert "its events are in causal order: there is nothing to look for" in checked.output


def test_a_budget_that_is_spent_at_once_is_no_error() -> None:
    """What is left after the steps were ordered may be too little for the first of them."""
    events = imported_of(GROUP, has_properties=False)
    own = [*enumerate((event for event in events if event.topic_id == TOPIC and event.partition == 0), 2)]
    counted = Budget(10**9)
    in_order(schedule(own), budget=counted)

    for most in (counted.spent - 1, counted.spent, counted.spent + 1):
        checked = check_partition((GROUP, TOPIC, 0), own, "history.jsonl", Header(order=Order.ARRIVAL), Budget(most))
        assert checked.report.verdict is Verdict.BOUND_REACHED


def test_what_is_known_of_the_order_has_a_budget_of_its_own(tmp_path: Path) -> None:
    """Where any step may have come at any time, all that a check may cost would go into what is known before."""
    path = tmp_path / "history.jsonl"
    path.write_text("".join(costly_histories.lines(costly_histories.at_once(100))))
    made: list[Budget] = []

    def budget(events: int) -> Budget:
        made.append(Budget.of(events))
        return made[-1]

    (report,) = verify(path, budget=budget)

    assert report.verdict is Verdict.BOUND_REACHED
    assert made[0].spent < LEAST_WORK + 2 * WORK_OF_ORDER * report.events


def test_a_run_whose_groups_were_altered_before_the_log_began_is_not_checked(tmp_path: Path) -> None:
    """Their settings are assumed then: what does not fit is no contradiction, and the reason says what shows that."""
    request_log = tmp_path / "request.log"
    request_log.write_text("".join(line for line in lines() if '"INCREMENTAL_ALTER_CONFIGS"' not in line))

    reports = reports_of(request_log, tmp_path / "history.jsonl")

    reasons = [finding.reason for report in reports for finding in report.findings]
    assert {report.verdict for report in reports} == {Verdict.NOT_CHECKED}
    assert all(reason.startswith("the group's settings are not known: auto_offset_reset latest") for reason in reasons)
    assert any("acquisition locks last 1500 ms" in reason for reason in reasons)


def test_a_cluster_that_cannot_be_asked_ends_with_exit_code_2(tmp_path: Path) -> None:
    """Nothing is written then; and settings of a client are of no use without a cluster."""
    target, settings = tmp_path / "history.jsonl", tmp_path / "client.properties"
    settings.write_text("socket.connection.setup.timeout.ms=1000\nno.such.setting=1\n")
    options = (RUN / "request.log.gz", "-o", target, "--command-config", settings)

    without = log("import", *options)
    refused = log("import", *options, "--bootstrap", "127.0.0.1:1")

    assert (without.exit_code, refused.exit_code) == (2, 2)
    assert "--command-config needs --bootstrap." in without.output
    assert "no.such.setting" in refused.output
    assert not target.exists()
