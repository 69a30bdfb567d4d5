"""A topic is its id at the time of a request, never its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharestate.history import Event
from tests.support.broker_logs import RUN
from tests.support.logged_requests import BEGIN_US, OTHER, TOPIC, GivenRequests, unknown
from tests.support.segments import keep_batches

# The first batches of the run's log begin there.
SOURCE = RUN / "segments" / "s1-0"
STARTS = (0, 30, 31, 33)


@pytest.fixture
def segments(tmp_path: Path) -> Path:
    """A broker's log directory with the first batches of a topic t, whose id is OTHER."""
    keep_batches(SOURCE, tmp_path / "t-0", lambda batch: batch.first_offset in STARTS)
    (tmp_path / "t-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER}")
    return tmp_path


def appended(events: list[Event], topic_id: str) -> list[int]:
    """Return the first offsets of the batches that a topic's share partition got, in order."""
    logs = [event for event in events if event.kind == "log" and event.topic_id == topic_id]
    return [batch.first_offset for event in logs for batch in (event.request or {})["batches"]]


def test_what_was_produced_to_the_older_topic_is_not_in_the_later_one(segments: Path) -> None:
    """A directory is of the later topic of a name: what the older one got says nothing of it."""
    log = GivenRequests()
    log.create("t", TOPIC)
    log.fetch(topic_id=TOPIC)
    log.produce("t", 33)
    log.delete("t", TOPIC)
    log.create("t", OTHER)
    log.fetch(topic_id=OTHER, epoch=1)
    log.produce("t", 0)

    events = log.imported(segments)

    assert appended(events, OTHER) == [0]
    assert appended(events, TOPIC) == []
    assert unknown(events) == {
        TOPIC: ["the topic was deleted while the log ran (10.0.0.1:9092.log:4), and its segments with it"]
    }


def test_a_topic_that_was_made_while_the_log_ran_begins_empty(segments: Path) -> None:
    """What a name that only the directory knew has got before was not this topic's."""
    log = GivenRequests()
    log.produce("t", 33)
    log.create("t", OTHER)
    log.fetch(topic_id=OTHER)
    log.produce("t", 30)

    assert appended(log.imported(segments), OTHER) == [0, 30]


def test_an_answer_that_names_another_topic_undoes_what_the_directory_said(segments: Path) -> None:
    """If the name means another id than the directory's, the directory is of a topic that comes later."""
    log = GivenRequests()
    log.produce("t", 33)
    log.metadata({TOPIC: "t"})
    log.produce("t", 700)
    log.fetch(topic_id=TOPIC)
    log.metadata({OTHER: "t"})
    log.metadata({TOPIC: "t"})  # an answer of a broker that does not know it yet
    log.fetch(topic_id=OTHER, epoch=1)
    log.produce("t", 0)

    events = log.imported(segments)

    assert appended(events, OTHER) == [0]
    (reason,) = unknown(events)[TOPIC]
    assert reason == (
        "the topic was made again under its name (10.0.0.1:9092.log:5): the directory t-0 is of the later one"
    )


def test_producers_that_send_ids_need_no_name(segments: Path) -> None:
    """From version 13 on a Produce has the topic's id."""
    log = GivenRequests()
    log.fetch(topic_id=OTHER)
    log.produce("", 31, topic_id=OTHER)

    assert appended(log.imported(segments), OTHER) == [0, 30, 31]


def test_a_directory_that_is_missing_is_named(segments: Path) -> None:
    """The reason names the directory, or the id if no request has said the topic's name."""
    log = GivenRequests()
    log.fetch(topic_id=TOPIC)
    assert unknown(log.imported(segments))[TOPIC] == [
        f"there is no directory of the topic with the id {TOPIC}, whose name is not known"
    ]
    log.metadata({TOPIC: "u"})
    assert unknown(log.imported(segments))[TOPIC] == ["there is no directory u-0 among the segments"]
    assert unknown(log.imported()) == {}  # the header says that there are no segments at all


def test_what_is_appended_while_a_member_fetches_for_the_first_time_may_be_later(segments: Path) -> None:
    """A request that is under way as the share partition begins may append at any time until it ends."""
    log = GivenRequests()
    log.create("t", OTHER)
    log.produce("t", 0)
    log.produce("t", 30, waits_us=100_000)
    log.fetch(topic_id=OTHER)
    log.produce("t", 31, waits_us=100_000)

    events = [event for event in log.imported(segments) if event.kind == "log"]

    offsets = [[batch.first_offset for batch in (event.request or {})["batches"]] for event in events]
    assert offsets == [[0], [30], [31]]
    fetched_us = BEGIN_US + 40_000
    assert [event.at_us for event in events] == [fetched_us, fetched_us, BEGIN_US + 50_100]
    assert [event.done_us for event in events] == [None, BEGIN_US + 130_500, BEGIN_US + 150_500]
