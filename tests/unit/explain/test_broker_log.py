"""Explanations of what a broker has logged, beside what it has answered."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from sharestate import Cause
from sharestate.broker_log import LogImport, RequestLog, TopicLogs, read_properties
from sharestate.cli.commands import sharestate
from sharestate.explain import PartitionLife, Reason, RecordLife, VerifiedReplay, is_verifiable
from sharestate.explain.sentences import REASONS, sentence
from sharestate.history import Event, Header, create_history
from tests.support.broker_logs import RUN


@pytest.fixture(scope="module")
def events() -> list[Event]:
    """The events of one group of the run."""
    log, topics = RequestLog([RUN / "request.log.gz"]), TopicLogs(RUN / "segments")
    return list(LogImport(log, topics, broker=read_properties(RUN / "server.properties"), group_id="seq-b"))


def by_partition(events: list[Event]) -> dict[tuple[str, str, int], list[Event]]:
    """Return the events of each share partition."""
    found = defaultdict(list)
    for event in events:
        found[event.key].append(event)
    return dict(found)


def acquired_of(events: list[Event]) -> dict[tuple[str | None, int | None], dict[tuple[str, int], int]]:
    """Return how many records each request has acquired of each topic and partition."""
    acquired: dict[tuple[str | None, int | None], dict[tuple[str, int], int]] = defaultdict(dict)
    for event in events:
        for first, last, _ in (event.response or {}).get("acquired", ()) if event.kind == "fetch" else ():
            counts = acquired[event.connection, event.request_no]
            counts[event.key[1:]] = counts.get(event.key[1:], 0) + last - first + 1
    return acquired


def test_deliveries_are_those_that_the_broker_has_answered(events: list[Event]) -> None:
    """Each acquisition of a record's life, with its member and delivery count, is in an answer of the broker."""
    acquired = acquired_of(events)
    checked = 0
    for key, own in by_partition(events).items():
        assert is_verifiable(own, frozenset())
        answered: dict[int, list[tuple[str | None, int]]] = defaultdict(list)
        for event in own:
            for first, last, count in (event.response or {}).get("acquired", ()) if event.kind == "fetch" else ():
                for offset in range(first, last + 1):
                    answered[offset].append((event.member_id, count))
        most = sorted(answered, key=lambda offset: -len(answered[offset]))[:2]
        for offset in most:
            replay = VerifiedReplay(key, own, acquired)
            life = RecordLife(key, offset, replay=replay)
            for event in replay.events():
                life.apply(event)
            explanation = life.explanation()
            lived = [
                (str(moment.facts["member"]), moment.facts["delivery_count"])
                for moment in explanation.moments
                if moment.what is Cause.ACQUIRED
            ]

            assert explanation.differences == 0
            assert sorted(lived) == sorted(answered[offset])
            assert len(lived) > 1
            checked += len(lived)

    assert checked > 10


def test_each_moment_names_its_line(events: list[Event]) -> None:
    """The words end with the line of the request log, which is in the JSON form as well."""
    key, own = next(iter(by_partition(events).items()))
    replay = VerifiedReplay(key, own, acquired_of(events))
    life = RecordLife(key, 0, replay=replay)
    for event in replay.events():
        life.apply(event)
    explanation = life.explanation()

    logged = [moment for moment in explanation.moments if moment.what is Cause.ACQUIRED]
    assert logged
    assert {moment.source for moment in logged} <= {event.source for event in own if event.kind == "fetch"}
    for moment in logged:
        assert moment.to_json()["source"] == moment.source
        assert any(line.endswith(f" ({moment.source})") for line in explanation.lines())


def test_an_overview_ends_where_the_log_ends(events: list[Event]) -> None:
    """The last SPSO is not below the one of the last write that the broker has sent."""
    acquired = acquired_of(events)
    for key, own in by_partition(events).items():
        replay = VerifiedReplay(key, own, acquired)
        life = PartitionLife(key, replay=replay)
        for event in replay.events():
            life.apply(event)
        overview = life.overview()
        written = max((event.request or {})["start_offset"] for event in own if event.kind == "write")

        assert (overview.differences, overview.events) == (0, len(own))
        assert overview.start_offset is not None
        assert written <= overview.start_offset


def test_the_command_takes_a_log_in_the_order_that_fits(tmp_path: Path, events: list[Event]) -> None:
    """A plain replay of the same history differs from what was observed; the explanation does not."""
    path = tmp_path / "history.jsonl"
    with create_history(path, Header()) as file:
        file.write(events)
    replayed = CliRunner().invoke(sharestate, ["history", "replay", "--json", str(path), str(tmp_path / "rows.jsonl")])
    explained = CliRunner().invoke(sharestate, ["log", "explain", "--json", str(path)])
    overviews = [json.loads(line) for line in explained.stdout.splitlines()]

    assert json.loads(replayed.stdout)["rows"]["difference"] > 0
    assert [overview["differences"] for overview in overviews] == [0, 0, 0]


def test_a_bug_that_has_shown_in_a_log_is_named() -> None:
    """Three fetches of the run were answered with an error, as an aborted log batch made Kafka throw."""
    run = RUN.parent / "k431-del"
    log = LogImport(
        RequestLog([run / "request.log.gz"]),
        TopicLogs(run / "segments"),
        broker=read_properties(run / "server.properties"),
        group_id="del-b",
    )
    events = list(log)
    failed = [event for event in events if "unknown_server_error" in (event.response or {}).values()]
    own = by_partition(events)[failed[0].key]
    replay = VerifiedReplay(failed[0].key, own, acquired_of(events))
    life = PartitionLife(failed[0].key, replay=replay)
    for event in replay.events():
        life.apply(event)
    (finding,) = life.overview().bug_findings

    assert (finding.reason, finding.facts["times"]) == (Reason.ACQUIRE_THREW, len(failed))
    assert finding.text.endswith("What they acquired stayed locked (B8).")
    assert "{" not in sentence(REASONS[Reason.ADVANCE_THREW].sentence, finding.facts, 0)


def test_the_log_grows_in_its_order_whatever_its_times_say(events: list[Event]) -> None:
    """A batch whose time is before that of the batch ahead of it comes after it all the same."""
    key, own = next(iter(by_partition(events).items()))
    appended = [event for event in own if event.kind == "log"]
    early_us = (appended[0].at_us or 0) - 1
    last = appended[-1]._replace(at_us=early_us, done_us=early_us, connection="another")
    replay = VerifiedReplay(key, [last if event.seq == last.seq else event for event in own], acquired_of(events))

    seqs = [event.seq for event in replay.events() if event.kind == "log"]

    assert seqs == [event.seq for event in appended]
