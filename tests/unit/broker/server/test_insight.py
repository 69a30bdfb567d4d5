"""What a broker tells of its share partitions and their records, and what tests expect of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import pytest
from click.testing import CliRunner

from sharestate import KAFKA_4_2
from sharestate.broker import StandingClock, TestBroker
from sharestate.broker.node import (
    CreatableTopic,
    CreateTopicsRequest,
    DeletedRecords,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    LogRecord,
    PartitionOfRequest,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
    ShareBroker,
    ShareFetchRequest,
)
from sharestate.broker.server.clocks import SystemClock
from sharestate.broker.server.recording import Recording
from sharestate.cli.commands import sharestate
from sharestate.errors import HistoryError, MalformedInputError
from sharestate.history import ReplaySettings, open_history, replay_events
from sharestate.leader.observed import Observation
from tests.support.wire_members import ACCEPT, GROUP, REJECT, RELEASE, TOPIC, WireMember, filled

TraceFunction: TypeAlias = Callable[[FrameType, str, object], "TraceFunction"]

GAP = 0
LOCK_MS = 30_000


def standing() -> TestBroker:
    """Return a broker whose time stands at 0."""
    return TestBroker(clock=StandingClock(now_ms=0))


# ---- what share partitions hold


def test_share_partitions_say_what_they_hold() -> None:
    """Ranges with state, delivery count and member, between the SPSO and the log end."""
    with standing() as broker, WireMember(broker, filled(broker, 5)) as member:
        assert member.fetch(max_records=3) == [(0, 2, 1)]
        assert member.acknowledge((0, 0, ACCEPT), (1, 1, RELEASE)) == 0

        (held,) = broker.share_partitions()
        assert held[:-1] == (GROUP, TOPIC, 0, "active", 1, 2, 5, 4)
        assert [(run.first_offset, run.state.name, run.member_id) for run in held.in_flight] == [
            (1, "AVAILABLE", ""),
            (2, "ACQUIRED", member.member_id),
        ]
        assert held.lines == [
            "g, orders-0: active, SPSO 1, SPEO 2, the log ends at 5, lag 4",
            "  1 AVAILABLE, delivery count 1",
            f"  2 ACQUIRED by {member.member_id}, delivery count 1",
        ]


def test_share_partitions_are_those_of_a_group_if_one_is_named() -> None:
    """Another group has its own."""
    with standing() as broker:
        topic_id = filled(broker, 1)
        filled(broker, 0, group_id="h")
        with WireMember(broker, topic_id) as member, WireMember(broker, topic_id, "h") as other:
            assert (member.fetch(), other.fetch()) == ([(0, 0, 1)], [(0, 0, 1)])

            assert [held.group_id for held in broker.share_partitions()] == ["g", "h"]
            assert [held.group_id for held in broker.share_partitions("h")] == ["h"]


def test_a_notebook_shows_a_table_in_which_names_are_text() -> None:
    """A group may call itself what it likes; nothing of it becomes HTML."""
    group_id = "<script>alert(1)</script>"
    with standing() as broker, WireMember(broker, filled(broker, 1, group_id=group_id), group_id) as member:
        member.fetch()
        html = broker._repr_html_()

    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td><td>orders-0</td><td>active</td><td>0</td>" in html
    assert "<script>" not in html


# ---- lives, and the history


def test_the_life_of_a_record_is_told_with_the_times_of_the_broker() -> None:
    """Acquired at 0, expired a millisecond after its lock, acquired again, accepted."""
    with standing() as broker, WireMember(broker, filled(broker, 1)) as member:
        member.fetch()
        broker.advance(ms=LOCK_MS + 1)
        member.fetch()
        member.acknowledge((0, 0, ACCEPT))

        explanation = broker.explain(TOPIC, 0, 0)
        assert [(str(moment.what), moment.at_us) for moment in explanation.moments] == [
            ("acquired", 0),
            ("lock expired", 30_001_000),
            ("confirmed", 30_001_000),
            ("acquired", 30_001_000),
            ("accepted", 30_001_000),
            ("confirmed", 30_001_000),
            ("passed", 30_001_000),
        ]
        assert explanation.lived.all_deliveries == 2
        assert str(explanation) == "\n".join(explanation.lines())


def test_a_record_that_several_groups_have_has_a_life_for_each() -> None:
    """Which one is meant has to be said, and the error says which there are."""
    with standing() as broker, WireMember(broker, filled(broker, 1)) as member:
        with WireMember(broker, filled(broker, 0, group_id="h"), group_id="h") as other:
            member.fetch()
            other.fetch()

        with pytest.raises(MalformedInputError, match="g, h"):
            broker.explain(TOPIC, 0, 0)
        assert broker.explain(TOPIC, 0, 0, group_id="h").key[0] == "h"


def test_a_record_that_nobody_has_fetched_has_no_life() -> None:
    """No group has opened the share partition."""
    with standing() as broker, pytest.raises(MalformedInputError, match="no group"):
        broker.explain(TOPIC, 0, 0)


def test_the_history_replays_without_a_difference(tmp_path: Path) -> None:
    """Written into a file, it names its topics, and `history explain` reads it; it is there when the broker is not."""
    file = tmp_path / "history.jsonl"
    with standing() as broker, WireMember(broker, filled(broker, 3)) as member:
        member.fetch()
        broker.advance(ms=LOCK_MS + 1)
        member.acknowledge((0, 2, ACCEPT))
        member.fetch()
        member.acknowledge((0, 0, ACCEPT), (1, 1, REJECT))
        broker.fail_over(TOPIC, 0)
        broker.restart()
    history = broker.history()
    history.write(file)

    with open_history(file) as reader:
        rows = list(replay_events(reader, ReplaySettings(outputs={"difference", "acquisition"})))
    assert [row.values[:2] for row in rows] == [(0, 2), (0, 2)]
    assert set(history.header.topics.values()) == {TOPIC}
    assert len(history) == len(list(history))
    shown = CliRunner().invoke(sharestate, ["history", "explain", str(file)])
    assert shown.stdout.startswith("Partition 0 of topic orders, group g\n")


def test_a_history_file_is_written_as_it_happens(tmp_path: Path) -> None:
    """It has the same events, and the names of topics once the broker is closed."""
    file = tmp_path / "history.jsonl.gz"
    with TestBroker(history_file=file) as broker, WireMember(broker, filled(broker, 1)) as member:
        member.fetch()
        expected = broker.history()

    with open_history(file) as reader:
        assert list(reader)[: len(expected)] == list(expected)
        assert reader.header.topics == expected.header.topics


def test_what_is_too_much_to_keep_is_not_told_in_part() -> None:
    """A recording that is full keeps writing its file, and says that it is full to whoever asks."""
    seen: list[int] = []
    recording = Recording(KAFKA_4_2, lambda _: None, observer=lambda each: seen.append(len(each)), max_bytes=20_000)
    observations: list[tuple[Observation, ...]] = []
    with TestBroker(observer=observations.append) as broker, WireMember(broker, filled(broker, 9)) as member:
        for _ in range(9):
            member.fetch(max_records=1)
    for each in observations:
        recording(each)

    assert len(seen) == len(observations)
    with pytest.raises(HistoryError, match="more has happened than is kept in memory"):
        recording.history()


def test_many_records_one_by_one_cost_no_more_each() -> None:
    """A fetch names all that it has read of a long log; neither it nor what is asked in the end goes through that."""
    few, many = (work_of(fetches=count, partitions=1) for count in (30, 120))

    assert all(of_many < 4.4 * of_few for of_few, of_many in zip(few, many, strict=True)), (few, many)


def test_many_partitions_cost_no_more_each() -> None:
    """What is asked in the end looks at each event once, for its own share partition."""
    (_, *few), (_, *many) = (work_of(fetches=1, partitions=count) for count in (20, 160))

    assert all(of_many < 8.8 * of_few for of_few, of_many in zip(few, many, strict=True)), (few, many)


def work_of(*, fetches: int, partitions: int) -> list[int]:
    """Return how many lines fetches of as many records run, of one of each partition, and each question about them."""
    request = CreateTopicsRequest(topics=[CreatableTopic(name=TOPIC, partition_count=partitions)])
    places = range(partitions)
    with standing() as broker:
        broker.run(lambda node: node.call(request, now_ms=0))
        (topic_id,) = {filled(broker, fetches, partition=place) for place in places}

        def fetch_all(node: ShareBroker) -> None:
            for epoch in range(fetches):
                fetch = ShareFetchRequest(
                    group_id=GROUP,
                    member_id="m",
                    share_session_epoch=epoch,
                    partitions=[] if epoch else [PartitionOfRequest(topic_id, place) for place in places],
                    max_records=partitions,
                    batch_size=1,
                )
                node.call(fetch, now_ms=0)

        lines = [broker.run(lambda node: lines_run(lambda: fetch_all(node)))]
    questions = (
        lambda: broker.expect_delivered_once(GROUP, TOPIC),
        lambda: broker.explain(TOPIC, 0, fetches // 2),
        broker.not_done,
    )
    return lines + [lines_run(question) for question in questions]


def lines_run(function: Callable[[], object]) -> int:
    """Return how many lines *function* runs, in this thread."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> TraceFunction:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


class HurriedClock(SystemClock):
    """The time, which goes on whenever somebody asks for it."""

    asked = 0

    def now_ms(self) -> int:
        """Return a later time than the last one."""
        self.asked += 1
        return super().now_ms() + self.asked


def test_an_observer_may_look_at_the_node_meanwhile() -> None:
    """It is called in the middle of a command: what is due by now happens after that."""
    names: list[str | None] = []
    with TestBroker(
        clock=HurriedClock(),
        observer=lambda _: names.append(broker.run(lambda node: node.topics.name_of(topic_id))),
    ) as broker:
        topic_id = filled(broker, 1)
        with WireMember(broker, topic_id) as member:
            assert member.fetch() == [(0, 0, 1)]

    assert set(names) == {"orders"}


# ---- expectations


def lines_of(error: pytest.ExceptionInfo[AssertionError], count: int) -> list[str]:
    """Return the first lines of a failure."""
    return str(error.value).splitlines()[:count]


def test_each_record_was_delivered_once() -> None:
    """It holds once all are, and no more when one comes again."""
    with standing() as broker, WireMember(broker, filled(broker, 3)) as member:
        with pytest.raises(AssertionError) as nothing:
            broker.expect_delivered_once(GROUP, TOPIC)
        member.fetch(max_records=2)
        with pytest.raises(AssertionError) as two:
            broker.expect_delivered_once(GROUP)
        member.fetch()
        broker.expect_delivered_once(GROUP)
        broker.advance(ms=LOCK_MS + 1)
        broker.expect_delivered_once(GROUP)
        assert member.fetch(max_records=2) == [(0, 1, 2)]
        with pytest.raises(AssertionError) as again:
            broker.expect_delivered_once(GROUP)

    assert lines_of(nothing, 3) == [
        "3 records not delivered exactly once",
        "  orders-0:",
        "    0-2: never delivered",
    ]
    assert lines_of(two, 3) == ["1 record not delivered exactly once", "  orders-0:", "    2: never delivered"]
    assert lines_of(again, 1) == ["2 records not delivered exactly once"]
    assert "Record 0 of orders-0:" in str(again.value)
    assert "acquired it: delivery 2 of 5" in str(again.value)


def test_a_record_that_nobody_can_get_any_more_is_lost() -> None:
    """Given up at the limit, or deleted before it was delivered: lost; accepted, rejected or waiting: not."""
    with standing() as broker:
        topic_id = filled(broker, 5)
        with WireMember(broker, topic_id) as member:
            member.fetch(max_records=3)
            member.acknowledge((0, 0, ACCEPT), (1, 1, REJECT))
            broker.expect_no_record_lost(GROUP)
            for _ in range(4):
                broker.advance(ms=LOCK_MS + 1)
                member.fetch(max_records=1)
            broker.expect_no_record_lost(GROUP)
            broker.advance(ms=LOCK_MS + 1)
            with pytest.raises(AssertionError) as lost:
                broker.expect_no_record_lost(GROUP)
            deleted = DeleteRecordsRequest(partitions=[DeletedRecords(TOPIC, 0, 5)])
            broker.run(lambda node: node.call(deleted, now_ms=broker.now_ms))
            member.fetch()
            with pytest.raises(AssertionError) as gone:
                broker.expect_no_record_lost(GROUP)

    assert lines_of(gone, 4)[::3] == ["3 records lost", "    3-4: deleted from the log before it was delivered"]
    assert lines_of(lost, 3)[0] == "1 record lost"
    assert lines_of(lost, 3)[2].startswith("    2: ARCHIVED at the limit after 5 deliveries")


def test_what_was_delivered_stays_so_when_the_leader_is_gone() -> None:
    """The last member leaves, so nobody leads the share partition: its records were delivered, and are not done."""
    with standing() as broker:
        with WireMember(broker, filled(broker, 3)) as member:
            member.fetch(max_records=2)
        while broker.share_partitions():
            time.sleep(0.001)
        with pytest.raises(AssertionError) as error:
            broker.expect_all_done(GROUP)

    first = [line.split(";")[0] for line in lines_of(error, 4)]
    assert first[0] == "3 records not done with"
    assert first[2].startswith("    0-1: 1 delivery since")
    assert first[3] == "    2: never delivered"


def test_markers_of_transactions_are_no_records() -> None:
    """A member gets the marker with the record before it, and reports it as missing: nothing is lost by that."""
    with standing() as broker:
        topic_id = filled(broker, 0)
        broker.run(lambda node: commit_one(node, topic_id))
        with WireMember(broker, topic_id) as member:
            broker.run(lambda node: commit_one(node, topic_id))
            assert member.fetch() == [(0, 3, 1)]
            member.acknowledge((0, 0, ACCEPT))
            with pytest.raises(AssertionError) as left:
                broker.expect_all_done(GROUP)
            member.acknowledge((1, 1, GAP), (2, 2, ACCEPT), (3, 3, GAP))

        broker.expect_all_done(GROUP)
        broker.expect_no_record_lost(GROUP)
    assert lines_of(left, 3)[0] == "1 record not done with"
    assert lines_of(left, 3)[2].startswith("    2: 1 delivery")


def commit_one(node: ShareBroker, topic_id: str) -> None:
    """Produce a record in a transaction, and commit that: the marker comes behind it."""
    request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
    begun: Any = node.call(request, now_ms=0)
    producer = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
    batch = ProducedBatch(records=[LogRecord(b"k", b"v")], base_sequence=0, is_transactional=True, **producer)
    produce = ProduceRequest(partitions=[ProducedPartition(topic_id, 0, batch)], transactional_id="t")
    node.call(produce, now_ms=0)
    node.call(EndTxnRequest(transactional_id="t", committed=True, **producer), now_ms=0)


def test_a_group_is_done_with_what_it_has_accepted_or_given_up() -> None:
    """What is held, or was never delivered, is left."""
    with standing() as broker, WireMember(broker, filled(broker, 3)) as member:
        member.fetch(max_records=2)
        with pytest.raises(AssertionError) as held:
            broker.expect_all_done(GROUP)
        assert lines_of(held, 1) == ["3 records not done with"]
        assert broker.not_done()[0].startswith("Group g: 3 records not done with")
        member.acknowledge((0, 0, ACCEPT), (1, 1, REJECT))
        member.fetch()
        member.acknowledge((2, 2, ACCEPT))

        broker.expect_all_done(GROUP)
        assert broker.not_done() == []


def test_an_expectation_waits_as_long_as_it_is_told() -> None:
    """It holds as soon as the records are there, and fails when the time is over."""
    with TestBroker() as broker, WireMember(broker, filled(broker, 1)) as member:
        with pytest.raises(AssertionError):
            broker.expect_delivered_once(GROUP, TOPIC, timeout_s=0.05)
        member.begin_fetch()
        broker.expect_delivered_once(GROUP, TOPIC, timeout_s=10)


def test_a_failure_lists_as_much_as_can_be_read() -> None:
    """Ten ranges of a share partition, and the lives of two records."""
    with standing() as broker, WireMember(broker, filled(broker, 40)) as member:
        member.fetch()
        member.acknowledge(*((offset, offset, RELEASE if offset % 2 else ACCEPT) for offset in range(40)))
        with pytest.raises(AssertionError) as error:
            broker.expect_all_done(GROUP)

    message = str(error.value)
    assert message.startswith("20 records not done with\n")
    assert "    and 10 ranges more\n" in message
    assert message.count("Record ") == 2


def test_expectations_are_about_topics_and_groups_that_there_are() -> None:
    """Of a topic that was never made, and a group that never fetched, nothing can be expected."""
    with standing() as broker:
        with pytest.raises(MalformedInputError) as topic:
            broker.expect_all_done(GROUP, "nothing")
        with pytest.raises(MalformedInputError) as group:
            broker.expect_all_done("nobody")

    assert (topic.value.field, group.value.field) == ("topic", "group_id")


def test_a_topic_that_was_made_again_begins_a_new_life() -> None:
    """Its records are those of the new topic; of one that is deleted nothing is expected."""
    with standing() as broker:
        with WireMember(broker, filled(broker, 2)) as member:
            member.fetch()
        broker.run(lambda node: node.call(DeleteTopicsRequest(names=[TOPIC]), now_ms=0))
        assert broker.share_partitions() == ()
        with WireMember(broker, filled(broker, 1)) as member:
            member.fetch()

            assert broker.explain(TOPIC, 0, 0).lived.all_deliveries == 1
            broker.expect_delivered_once(GROUP, TOPIC)
            with pytest.raises(AssertionError, match="1 record not done with"):
                broker.expect_all_done(GROUP)
