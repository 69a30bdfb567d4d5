"""Runs of brokers of which not all is known: nothing is called a contradiction, and each reason is the true one."""

from __future__ import annotations

import gzip
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from sharestate.broker_log import LogImport, RequestLog, TopicLogs, read_group_configs, read_properties
from sharestate.history import Header, Order, create_history
from sharestate.log_check import Verdict, verify
from tests.support.broker_logs import reports_of

RUNS: Final = Path(__file__).parents[2] / "data" / "broker-log"
ALTERATION: Final = b'"INCREMENTAL_ALTER_CONFIGS"'

LOST: Final = ("retention or DeleteRecords", "compaction")


def checked(run: str, scratch: Path, *, is_altered: bool = True) -> dict[Verdict, list[str]]:
    """
    Return the reasons by the verdicts on share partitions.

    Args:
        run: The run, of one broker or three.
        scratch: A directory for files.
        is_altered: Whether what says the settings of groups is given: their alterations, or their description.
    """
    homes = sorted((RUNS / run).glob("broker?")) or [RUNS / run]
    logs = []
    for home in homes:
        lines = gzip.decompress((home / "request.log.gz").read_bytes()).splitlines(keepends=True)
        logs.append(scratch / f"{home.name}.log")
        logs[-1].write_bytes(b"".join(line for line in lines if is_altered or ALTERATION not in line))
    described = RUNS / run / "group-config.txt"
    events = LogImport(
        RequestLog(logs),
        TopicLogs([home / "segments" for home in homes]),
        broker=read_properties(homes[0] / "server.properties"),
        groups=read_group_configs([described] if is_altered and described.exists() else []),
    )
    found: dict[Verdict, list[str]] = {}
    for report in reports_of(events):
        found.setdefault(report.verdict, []).append("; ".join(finding.reason for finding in report.findings))
    return found


@pytest.mark.parametrize("run", ["k431-compact", "k440-retention"])
def test_segments_that_have_changed_are_named(run: str, tmp_path: Path) -> None:
    """What was produced while the log ran is not in them any more."""
    found = checked(run, tmp_path)

    assert set(found) == {Verdict.NOT_CHECKED}
    assert all(reason.endswith(LOST) for reason in found[Verdict.NOT_CHECKED])


def test_the_living_topics_of_a_name_are_explained(tmp_path: Path) -> None:
    """Of those that were deleted there are no segments; one fetch of a topic that is left was not answered."""
    found = checked("k431-topics", tmp_path)

    assert {verdict: len(reasons) for verdict, reasons in found.items()} == {
        Verdict.EXPLAINED: 4,
        Verdict.NOT_CHECKED: 7,
    }
    deleted = [reason for reason in found[Verdict.NOT_CHECKED] if reason.startswith("the topic was deleted while")]
    assert len(deleted) == 6
    assert sum("was answered with an error" in reason for reason in found[Verdict.NOT_CHECKED]) == 1


def test_settings_from_before_the_log_are_described(tmp_path: Path) -> None:
    """With what kafka-configs.sh prints all is explained; without it the settings are assumed, which does not fit."""
    assert set(checked("k440-settings", tmp_path)) == {Verdict.EXPLAINED}
    found = checked("k440-settings", tmp_path, is_altered=False)
    assert set(found) == {Verdict.NOT_CHECKED}
    assert all("the group's settings are not known" in reason for reason in found[Verdict.NOT_CHECKED])


@pytest.mark.parametrize("run", ["k431-three", "k440-three"])
def test_leaders_that_move_between_three_brokers_are_explained(run: str, tmp_path: Path) -> None:
    """But for what the broker of a share coordinator has not logged before it stopped."""
    found = checked(run, tmp_path)

    assert len(found[Verdict.EXPLAINED]) == 5
    (reason,) = found[Verdict.NOT_CHECKED]
    assert reason.startswith("the share coordinator moved or stopped, and no log has what it wrote for the")
    assert Verdict.CONTRADICTION not in found


@pytest.mark.parametrize("run", ["k431-topics", "k431-three", "k440-three", "k431-reset", "k440-busy", "k440-dlq"])
def test_without_the_alterations_of_groups_nothing_contradicts(run: str, tmp_path: Path) -> None:
    """What does not fit then may be due to settings, and is not held against the broker."""
    assert set(checked(run, tmp_path, is_altered=False)) <= {Verdict.EXPLAINED, Verdict.NOT_CHECKED}


@pytest.mark.parametrize("ahead", [2, 3])  # that of broker 1 is not measured here: nothing bounds it from both sides
def test_a_clock_that_is_wrong_is_not_held_against_the_brokers(ahead: int, tmp_path: Path) -> None:
    """Two of three clocks agree; whatever has logs of the third one and of another broker is not checked."""
    homes = sorted((RUNS / "k431-three").glob("broker?"))
    logs = [tmp_path / f"{home.name}.log" for home in homes]
    for log, home in zip(logs, homes, strict=True):
        lines = gzip.decompress((home / "request.log.gz").read_bytes()).splitlines(keepends=True)
        log.write_bytes(b"".join(two_seconds_later(line) if home.name == f"broker{ahead}" else line for line in lines))
    imported = LogImport(
        RequestLog(logs),
        TopicLogs([home / "segments" for home in homes]),
        broker=read_properties(homes[0] / "server.properties"),
    )
    with create_history(tmp_path / "history.jsonl", Header(order=Order.ARRIVAL)) as file:
        file.write(imported)

    reports = list(verify(tmp_path / "history.jsonl"))

    assert {offset.us // 100_000 for offset in imported.clock_offsets()} & {*range(-22, -15), *range(15, 22)}
    assert {report.verdict for report in reports} <= {Verdict.EXPLAINED, Verdict.NOT_CHECKED}
    assert any("the clocks of brokers disagree" in each.reason for report in reports for each in report.findings)


def two_seconds_later(line: bytes) -> bytes:
    """Return a line as a broker has it whose clock is ahead."""
    stamp = datetime.fromisoformat(f"{line[:26].decode()}+00:00") + timedelta(seconds=2)
    return stamp.strftime("%Y-%m-%dT%H:%M:%S.%f").encode() + line[26:]
