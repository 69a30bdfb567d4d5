"""Kafka's bugs on its brokers: scenes lead there, and what is kept of request logs is what the page shows."""

from __future__ import annotations

import json

import pytest

from tests.broker.bug_excerpts import EXCERPTS, WIDTH, play, shortened
from tests.broker.bug_scenes import ACTS
from tests.broker.kafka_broker import KafkaBroker
from tests.kafka_bugs.junit import bugs_of

LINE = (
    '2026-11-28T20:41:42.816123 Completed request:{"requestHeader":{"requestApiKeyName":"WRITE_SHARE_GROUP_STATE"},'
    '"request":{"groupId":"g","topics":[{"topicId":"x","partitions":[{"partition":0,"startOffset":3,"stateBatches":['
    '{"firstOffset":3,"lastOffset":4,"deliveryState":2,"deliveryCount":1},'
    '{"firstOffset":5,"lastOffset":5,"deliveryState":2,"deliveryCount":1},'
    '{"firstOffset":6,"lastOffset":6,"deliveryState":4,"deliveryCount":1}]}]}]},'
    '"response":{"results":[{"partitions":[{"partition":0,"errorCode":%d}]}]},"totalTimeMs":1.0}'
)


@pytest.mark.broker
@pytest.mark.parametrize("bug", ["F4", "F7", "F8", "C2"])
def test_a_broker_shows_the_bug(broker: KafkaBroker, bug: str) -> None:
    """The scene finds what it expects, and its log has the requests."""
    lines = play(bug, broker)

    assert lines[0].startswith("# ")
    assert any("READ_SHARE_GROUP_STATE" in line for line in lines)


def test_lines_are_shortened() -> None:
    """The group's only: ranges that follow each other are one, errors are said, and what comes again is counted."""
    lines = shortened([LINE % 0, LINE % 0, LINE.replace('"g"', '"other"') % 0, LINE % 124, "no request"], "g")

    said = "WRITE_SHARE_GROUP_STATE startOffset=3 stateBatches=[3-5 deliveryState=2 deliveryCount=1 in 2 batches, 6-6 "
    assert " ".join(line.strip() for line in lines) == (
        f"20:41:42.816 {said}deliveryState=4 deliveryCount=1] -> errorCode=0 (1 more like it) "
        f"20:41:42.816 {said}deliveryState=4 deliveryCount=1] -> errorCode=124"
    )
    assert max(map(len, lines)) <= WIDTH


def test_each_bug_that_is_reported_has_an_excerpt() -> None:
    """Of the latest release that shows it, made by its scene."""
    rows = json.loads(EXCERPTS.read_text())["rows"]

    assert {bug["id"] for bug in bugs_of()} == set(ACTS)
    assert {row["id"]: row["kafka"] for row in rows} == {bug: act.kafka for bug, act in ACTS.items()}
