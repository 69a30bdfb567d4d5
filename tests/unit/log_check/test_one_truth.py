"""Runs of brokers from log to rows: import, check and replay count what the brokers answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharestate.broker_log import LogImport, RequestLog, TopicLogs, read_all_properties
from sharestate.history import OUTPUTS, Header, Order, ReplaySettings, create_history, replay_events
from sharestate.log_check import check
from tests.support.broker_answers import answers_of, brokers_of
from tests.support.one_truth import expect_one_truth


@pytest.mark.parametrize(("run", "explained"), [("k431-seq", 6), ("k440-dlq", 1), ("k431-three", 5)])
def test_a_replay_counts_what_the_check_counts_and_the_broker_answered(
    run: str, explained: int, tmp_path: Path
) -> None:
    """Deliveries, expiries, writes, dead letters and final states are the same, however they are counted."""
    brokers = brokers_of(run)
    properties, _ = read_all_properties([broker / "server.properties" for broker in brokers])
    logs = TopicLogs(broker / "segments" for broker in brokers)
    events = LogImport(RequestLog([broker / "request.log.gz" for broker in brokers]), logs, broker=properties)
    history = tmp_path / "history.jsonl"
    with create_history(history, Header(order=Order.ARRIVAL)) as file:
        file.write(events)

    checked = list(check(history))

    settings = ReplaySettings(outputs=frozenset(OUTPUTS))
    rows = [row.to_json() for each in checked for row in replay_events(each.events(), settings)]
    reports = [json.loads(json.dumps(each.report.to_json())) for each in checked]
    assert expect_one_truth(rows, reports, answers_of(run)) == explained
