"""Which batches of a topic's log are visible while its request log is read."""

from __future__ import annotations

from sharestate.broker_log.topic_logs import TopicLog
from tests.support.broker_logs import RUN

DIRECTORY = RUN.with_name("k431-del") / "segments" / "c2-0"

SECOND_US = 1_000_000


def markers() -> list[tuple[int, int]]:
    """Return the offsets of the log's transaction markers, with their producers."""
    batches = TopicLog(DIRECTORY).rest()
    return [(batch.first_offset, batch.producer_id or 0) for batch in batches if batch.control]


def test_a_marker_that_was_passed_is_not_looked_for_again() -> None:
    """What was appended after a marker may seem to come first, as times are not exact; the next marker stays hidden."""
    (marker, producer_id), (after, _) = markers()[:2]
    log = TopicLog(DIRECTORY)

    found = log.appended(marker + 1, SECOND_US)

    assert found[-1].first_offset == marker + 1 < after
    assert log.marked(producer_id, SECOND_US + 1_000) == []
    assert log.end_offset == found[-1].last_offset + 1


def test_a_marker_whose_request_is_not_logged_is_not_waited_for() -> None:
    """A broker that stops has not logged all of its requests: a later marker of the producer is another one."""
    (marker, producer_id), *others = markers()
    later = next(offset for offset, producer in others if producer == producer_id)
    log = TopicLog(DIRECTORY)
    log.appended(marker + 1, SECOND_US)

    found = log.marked(producer_id, 3 * SECOND_US)

    assert found[-1].first_offset == later
