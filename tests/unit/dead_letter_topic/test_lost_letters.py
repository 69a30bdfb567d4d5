"""Lost letters, and letters without an archived record: by real state topics, and why it may not be known."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import pytest

from sharestate import SharePartitionKey, StateBatch
from sharestate.coordinator import ShareSnapshot, ShareUpdate, StateRecord, encode_record
from sharestate.coordinator.records import RecordType
from sharestate.dead_letter_topic import (
    ArchivedRecords,
    LetterAnalysis,
    LetterCheck,
    LetterFiles,
    Pattern,
    QueueGroups,
    QueueReading,
    RecordRange,
    ShareKey,
    StateGiven,
    analyze_letters,
    letter_files,
    read_contents,
)
from sharestate.state_topic import StateTopic, TopicRecord, state_topic_files
from sharestate.state_topic.rebuild import in_log_order
from tests.support.dead_letter_topics import (
    BEGIN_MS,
    BROKER,
    LOST,
    MINUTE,
    OUTAGE,
    RECORDED,
    SECOND,
    STATE,
    Planted,
    contents_of,
    stored,
)

TOPIC_ID: Final = "dGhlIHRvcGljJ3MgaWQhIQ"
KEY: Final = SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=0)
NAMES: Final = {TOPIC_ID: "t"}
AFTER: Final = QueueReading(is_after_state=True)

MOVED, ORDERS, THREE, RESUME, BIG, ZIP = (
    "5fStP2ANTqCswuq0nwV_Bg",
    *("PYtH_lhPRMK9oVo1bMxcGQ", "kOnT3VMqSlWVLTXg3CyvQg", "3EM7DmasRHO_QRIlLsstzQ", "Q1wxCkmoScGmGNVdxpVQtg"),
    "hBGJfLMZSBOCtWVdwc7Fbg",
)
BROKERS_NAMES: Final = {MOVED: "moved", ORDERS: "orders", THREE: "three", RESUME: "resume", BIG: "big", ZIP: "zip"}


def archived_of(records: Sequence[TopicRecord]) -> ArchivedRecords:
    """Return what records of the state topic say."""
    archived = ArchivedRecords(StateTopic())
    archived.read(records)
    return archived


def at_broker(queue: str, *group_ids: str, but: Collection[str] = ()) -> LetterAnalysis:
    """
    Return what a queue of the broker of 4.4.0 says, which was copied when all was over.

    *group_ids* have this queue, too, and all others but *but* have another one.
    """
    archived = archived_of(list(in_log_order(state_topic_files(STATE))))
    contents = read_contents(LetterFiles(letter_files(queue, BROKER)))
    others = archived.group_ids() - set(group_ids) - set(but)
    groups = QueueGroups(group_ids=group_ids, other_group_ids=others)
    state = StateGiven(archived=archived, names=BROKERS_NAMES)
    return analyze_letters(queue, contents, groups=groups, state=state, reading=AFTER)


def ranges(found: Sequence[Any]) -> list[tuple[str, int, int]]:
    """Return group and offsets of ranges of records."""
    records: list[RecordRange] = [each if isinstance(each, RecordRange) else each.records for each in found]
    return [(each.key.group_id, each.first_offset, each.last_offset) for each in records]


# ---- a broker's


@pytest.mark.parametrize(
    ("queue", "letters"), [("dlq.orders", 3), ("dlq.copy", 6), ("dlq.two", 5), ("dlq.resume", 4), ("dlq.small", 6)]
)
def test_all_that_a_broker_archived_has_a_letter(queue: str, letters: int) -> None:
    """Of queues that nothing was wrong with; the offset without a record has one, too."""
    analysis = at_broker(queue)
    (check,) = analysis.checks

    assert (check.handed, check.found, check.lost, check.unarchived) == (letters, letters, 0, 0)
    assert (analysis.doubts, analysis.exit_code) == ([], 0)


def test_what_a_broker_refused_is_lost() -> None:
    """A group whose topic has no prefix (R36), and one whose topic is not one for dead letters (R34)."""
    analysis = at_broker("dlq.orders", "g3-plain", "g3-prefix")
    (check,) = analysis.checks

    assert ranges(check.lost_ranges) == [("g3-plain", 0, 5), ("g3-prefix", 0, 5)]
    assert (check.found, check.lost, analysis.lost, analysis.exit_code) == (3, 12, 12, 1)


def test_letters_that_were_too_large_are_lost() -> None:
    """Of a topic that takes less than the headers (R49); which partition of it they belong to, others say."""
    (check,) = at_broker("dlq.small", "g-tiny").checks

    assert ranges(check.lost_ranges) == [("g-tiny", 0, 5)]


def test_groups_with_another_queue_are_not_looked_at() -> None:
    """They are named, and that is no reason for a doubt."""
    analysis = at_broker("dlq.two")
    (check,) = analysis.checks

    assert {"g4", "g5", "g6"}.isdisjoint(check.other_groups)
    assert check.other_groups["g3-plain"] == 6
    assert (check.lost, check.unknown_groups, analysis.exit_code) == (0, {}, 0)


def test_groups_without_a_letter_are_not_checked_where_nobody_knows_whose_queue_it_is() -> None:
    """What they handed over may be lost: the broker refused all six records of this one (R36)."""
    analysis = at_broker("dlq.orders", but=["g3-plain"])
    (check,) = analysis.checks

    assert (check.unknown_groups, check.lost, analysis.exit_code) == ({"g3-plain": 6}, 0, 2)
    assert analysis.doubts == [
        (
            "state topic: 6 records of groups without a letter here: whether this is their queue is not known"
            " (--group, --other-group)"
        ),
    ]


def test_what_a_broker_has_not_finished_is_under_way() -> None:
    """By the state that was stored last; what was archived at once needs no letter."""
    (check,) = at_broker("dlq.orders", "gc").checks

    assert ranges(check.under_way_ranges) == [("gc", 112, 115)]
    assert (check.under_way, check.lost, check.direct) == (4, 0, 2)


def test_a_topic_without_a_name_is_not_checked() -> None:
    """The state topic has ids only, and letters have names."""
    archived = archived_of(list(in_log_order(state_topic_files(STATE))))
    contents = read_contents(LetterFiles(letter_files("dlq.orders", BROKER)))
    groups, state = QueueGroups(other_group_ids=archived.group_ids()), StateGiven(archived=archived)
    analysis = analyze_letters("dlq.orders", contents, groups=groups, state=state, reading=AFTER)

    assert analysis.exit_code == 2
    assert analysis.doubts == [
        "state topic: 3 records of a topic whose name is not known (--topic-id)",
        (
            "state topic: 3 letters: the state topic has nothing of their share partition, or the id of the topic is "
            "not known (--topic-id)"
        ),
    ]


def test_the_recorded_queue_has_lost_what_the_broker_refused() -> None:
    """And the records that came singly are poison, because the state topic has those around them."""
    archived = archived_of(list(in_log_order(state_topic_files(RECORDED / "data"))))
    (topic_id,) = {key.topic_id for key in archived.stored}
    contents = read_contents(LetterFiles(letter_files("dlq.sorters", RECORDED / "kcat.jsonl.gz")))
    groups, state = QueueGroups(group_ids=["strays"]), StateGiven(archived=archived, names={topic_id: "parcels"})
    analysis = analyze_letters("dlq.sorters", contents, interval_ms=400, groups=groups, state=state, reading=AFTER)
    (check,) = analysis.checks

    assert sorted(ranges(check.lost_ranges)) == [("sorters", LOST[0], LOST[-1]), ("strays", 0, 0)]
    assert analysis.patterns.by_pattern() == {Pattern.POISON: 12, Pattern.OUTAGE: len(OUTAGE), Pattern.UNDECIDED: 0}


# ---- by hand


def snapshot(
    *batches: tuple[int, int, int, int], epoch: int = 0, start: int = 0, key: SharePartitionKey = KEY
) -> StateRecord:
    """Return a snapshot."""
    value = ShareSnapshot(
        snapshot_epoch=epoch,
        state_epoch=1,
        leader_epoch=1,
        start_offset=start,
        create_timestamp_ms=0,
        write_timestamp_ms=0,
        state_batches=tuple(StateBatch(*batch) for batch in batches),
    )
    return StateRecord(key, value)


def update(*batches: tuple[int, int, int, int], start: int = -1) -> StateRecord:
    """Return an update."""
    batches_ = tuple(StateBatch(*batch) for batch in batches)
    return StateRecord(KEY, ShareUpdate(snapshot_epoch=0, leader_epoch=-1, start_offset=start, state_batches=batches_))


def checked(
    planted: Sequence[Planted],
    records: Sequence[tuple[int | None, StateRecord]],
    reading: QueueReading = AFTER,
    spans: dict[int, range] | None = None,
) -> LetterCheck:
    """Return what comes out of comparing letters with records of the state topic, each with its time."""
    logged = [stored(*encode_record(record), place, at_ms) for place, (at_ms, record) in enumerate(records)]
    state = StateGiven(archived=archived_of(logged), names=NAMES)
    analysis = analyze_letters("q", contents_of(planted, spans), state=state, reading=reading)
    return analysis.checks[0]


def handed(first: int, last: int, at_ms: int = MINUTE, start: int = 0) -> list[tuple[int | None, StateRecord]]:
    """Return the records of what went to the queue, and was answered 10 ms later."""
    return [
        (at_ms, update((first, last, 3, 5), start=start)),
        (at_ms + 10, update((first, last, 4, 5), start=start)),
    ]


BEGIN: Final[list[tuple[int | None, StateRecord]]] = [(0, snapshot())]
LATE: Final = Planted(0, 10 * MINUTE)


def test_what_has_no_letter_is_lost() -> None:
    """A part of a range, too."""
    check = checked([Planted(5, MINUTE), Planted(8, MINUTE)], [*BEGIN, *handed(5, 9)])

    assert ranges(check.lost_ranges) == [("g", 6, 7), ("g", 9, 9)]
    assert (check.handed, check.found, check.lost) == (5, 2, 3)


def test_what_is_archiving_is_under_way() -> None:
    """It is no loss, as long as the queue has not answered."""
    check = checked([Planted(5, MINUTE)], [*BEGIN, (MINUTE, update((5, 9, 3, 5)))])

    assert ranges(check.under_way_ranges) == [("g", 6, 9)]
    assert (check.lost, check.under_way) == (0, 4)


def test_what_was_archived_at_once_needs_no_letter() -> None:
    """Gaps, the log start, and what a group without a queue gives up."""
    check = checked([LATE], [*BEGIN, *handed(0, 0), (MINUTE, update((5, 9, 4, 1))), (MINUTE, update((5, 9, 4, 1)))])

    assert (check.direct, check.lost) == (5, 0)


def test_snapshots_say_it_again() -> None:
    """What is ARCHIVING in several records was handed over once."""
    again: list[tuple[int | None, StateRecord]] = [(2 * MINUTE, snapshot((5, 9, 3, 5), epoch=1))]
    check = checked([LATE], [*BEGIN, (MINUTE, update((5, 9, 3, 5))), *again, *handed(5, 9, 3 * MINUTE)])
    (lost,) = check.lost_ranges

    assert (check.lost, lost.at_ms, lost.answered_ms) == (5, BEGIN_MS + MINUTE, BEGIN_MS + 3 * MINUTE + 10)


def test_a_group_that_was_made_again_is_not_blamed_for_old_letters() -> None:
    """Its state begins after them."""
    check = checked([Planted(7, MINUTE)], [(5 * MINUTE, snapshot()), (20 * MINUTE, update(start=1))])

    assert (check.unarchived, sum(check.not_checked.values())) == (0, 1)


def test_what_may_have_been_deleted_from_the_queue_is_not_lost() -> None:
    """What was handed over before the first letter that is left; five seconds are left to clocks."""
    cut = {0: range(100, 101)}
    before = checked([Planted(0, MINUTE)], [*BEGIN, *handed(0, 0, 0), *handed(5, 9, MINUTE + 5 * SECOND)], spans=cut)
    after = checked([Planted(0, MINUTE)], [*BEGIN, *handed(0, 0, 0), *handed(5, 9, MINUTE + 5 * SECOND + 1)], spans=cut)

    assert (before.lost, dict(before.not_checked)) == (
        0,
        {"records without a letter: the beginning of the queue was deleted, and they may have been there": 5},
    )
    assert (after.lost, not after.not_checked) == (5, True)


def test_what_may_have_been_compacted_away_is_not_lost() -> None:
    """Offsets are missing."""
    check = checked([Planted(0, MINUTE)], [*BEGIN, *handed(0, 0), *handed(5, 9)], spans={0: range(2)})

    assert check.lost == 0
    assert list(check.not_checked) == [
        "records without a letter: offsets are missing in the queue: it was compacted, or its files are not all there"
    ]


def test_what_came_after_the_files_were_copied_is_not_lost() -> None:
    """A letter that came later than the answer shows that the file is not older."""
    records = [*BEGIN, *handed(0, 0), *handed(5, 9, 2 * MINUTE)]
    older = checked([Planted(0, MINUTE)], records, QueueReading())
    newer = checked([Planted(0, MINUTE), Planted(0, 3 * MINUTE)], records, QueueReading())

    assert (older.lost, newer.lost) == (0, 5)
    assert next(iter(older.not_checked)) == (
        "records without a letter: the files of the queue may be older than that (--queue-copied-last)"
    )


def test_the_queue_of_another_partition_is_not_this_one() -> None:
    """Letters of source partition 1 are elsewhere if the queue has two, of which one was read."""
    other = SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=1)
    records = [(0, snapshot(key=other)), (MINUTE, snapshot((5, 9, 4, 5), epoch=1, key=other))]
    handed_over = [(0, snapshot()), (SECOND, snapshot((5, 9, 3, 5), key=other)), *records[1:]]
    letters = [Planted(0, 10 * MINUTE)]
    unknown = checked(letters, [*handed_over, *handed(0, 0)])
    unread = checked(letters, [*handed_over, *handed(0, 0)], QueueReading(is_after_state=True, partition_count=2))
    known = checked(letters, [*handed_over, *handed(0, 0)], QueueReading(is_after_state=True, partition_count=1))

    assert "which partition of the queue" in next(iter(unknown.not_checked))
    assert "was not read" in next(iter(unread.not_checked))
    assert (unknown.lost, unread.lost, known.lost) == (0, 0, 5)


def test_a_letter_of_a_record_that_was_never_archived_is_found() -> None:
    """Whatever has written it."""
    records = [*BEGIN, *handed(0, 0), (20 * MINUTE, update(start=1))]
    check = checked([Planted(0, MINUTE), Planted(7, 2 * MINUTE), Planted(8, 2 * MINUTE)], records)

    assert (check.unarchived, ranges(check.unarchived_ranges)) == (2, [("g", 7, 8)])


def test_a_letter_that_is_newer_than_the_state_is_not_judged() -> None:
    """By where the queue ended before the state topic was read, or by times if that is not known."""
    records = [*BEGIN, *handed(0, 0), (3 * MINUTE, update(start=1))]
    letters = [Planted(0, MINUTE), Planted(7, 3 * MINUTE)]
    live = checked(letters, records, QueueReading(is_after_state=True, ends_before_state={0: 1}, partition_count=1))
    older = checked(letters, records)

    assert (live.later, live.unarchived, not live.not_checked) == (1, 0, True)
    assert dict(older.not_checked) == {"letters: the files of the state topic may be older than they are": 1}


def test_a_letter_that_is_older_than_what_is_left_of_the_state_is_not_judged() -> None:
    """A topic of which brokers have deleted the beginning: it begins with another snapshot than the first one."""
    records = [(MINUTE, snapshot((20, 24, 4, 5), epoch=3, start=20)), (9 * MINUTE, update(start=25))]
    check = checked([Planted(7, MINUTE), Planted(8, 3 * MINUTE), Planted(20, 2 * MINUTE)], records)

    assert ranges(check.unarchived_ranges) == [("g", 8, 8)]
    assert check.not_checked == {
        "letters: they are older than what the state topic still has of their share partition": 1,
        "archived records: the oldest record that is left of their share partition has them as ARCHIVED": 5,
    }


def test_a_tombstone_does_not_make_letters_wrong() -> None:
    """What was archived before the state was deleted stays so."""
    gone = StateRecord(KEY, None, RecordType.SHARE_SNAPSHOT)
    check = checked([LATE], [*BEGIN, *handed(0, 0), (MINUTE, gone), (20 * MINUTE, snapshot())])

    assert (check.found, check.lost, check.unarchived) == (1, 0, 0)


def test_letters_may_name_the_topic_by_its_id() -> None:
    """Brokers do where they do not know its name."""
    letters = [Planted(0, MINUTE, topic=TOPIC_ID), Planted(1, MINUTE)]
    check = checked(letters, [*BEGIN, *handed(0, 1), (20 * MINUTE, update(start=2))])

    assert (check.found, check.lost, check.unarchived) == (2, 0, 0)


def test_records_around_one_are_finished_if_the_start_offset_has_passed_them() -> None:
    """Or if they were accepted behind it."""
    records = [(0, snapshot(start=10)), (MINUTE, update((30, 39, 2, 1), start=20)), *handed(15, 15, start=20)]
    logged = [stored(*encode_record(record), place, at_ms) for place, (at_ms, record) in enumerate(records)]
    state = StateGiven(archived=archived_of(logged), names=NAMES)
    for offset, least in ((15, 9), (10, 5), (35, 9), (50, 0)):
        analysis = analyze_letters("q", contents_of([Planted(offset)]), state=state, reading=AFTER)
        (finding,) = analysis.patterns.findings
        assert (offset, finding.facts["finished"]) == (offset, least)
        assert finding.ranges == (RecordRange(ShareKey("g", "t", 0), offset, offset),)
