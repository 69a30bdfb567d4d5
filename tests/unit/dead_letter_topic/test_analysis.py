"""What a dead-letter topic says, put together: counts, times, duplicates, bounds, and the lives of records."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharestate.dead_letter_topic import (
    LetterAnalysis,
    LetterFiles,
    LetterLives,
    QueueContents,
    RecordRange,
    ShareKey,
    analyze_letters,
    contents,
    letter_files,
    read_contents,
)
from sharestate.explain import Survey
from tests.support.dead_letter_topics import (
    BAD,
    BEGIN_MS,
    LOST,
    MINUTE,
    OUTAGE,
    RECORDED,
    REJECTED,
    SECOND,
    SINGLE,
    Planted,
    contents_of,
)

SORTERS = ShareKey("sorters", "parcels", 0)


def recorded(path: Path = RECORDED / "data") -> LetterAnalysis:
    """Return what the recorded queue says, with the history of its group."""
    found = read_contents(LetterFiles(letter_files("dlq.sorters", path)))

    def lives(queue: QueueContents) -> LetterLives:
        return LetterLives(Survey(RECORDED / "history.jsonl.gz"), queue.share_partitions)

    return analyze_letters("dlq.sorters", found, interval_ms=400, lives=lives)


def test_counts_are_those_of_what_was_done() -> None:
    """By cause, group, topic, delivery count, text, and the client that had them last."""
    said = recorded().to_json()
    rejected, released = len(BAD) + len(SINGLE), len(OUTAGE)

    assert said["by"] == {
        "cause": {"delivery_count_exceeded": released, "client_reject": rejected},
        "group": {"sorters": rejected + released},
        "topic": {"parcels": rejected + released},
        "delivery count": {"2": released, "1": rejected},
        "message": {"Offset delivery count exceeded the threshold.": released, REJECTED: rejected},
        "client": {"rdkafka": rejected + released},
    }
    assert said["share_partitions"] == [
        {**SORTERS._asdict(), "letters": 72, "duplicates": 0, "first_offset": BAD[0], "last_offset": OUTAGE[-1]}
    ]


def test_a_history_has_the_lives_of_records() -> None:
    """What ended their deliveries, and that they were handed to the queue; in the words of `explain`."""
    analysis = recorded()
    assert analysis.lives is not None
    (life,) = analysis.lives.of(RecordRange(SORTERS, OUTAGE[3], OUTAGE[5]))
    (single,) = analysis.lives.of(RecordRange(SORTERS, SINGLE[0] - 2, SINGLE[0] + 2))

    assert life.sentence.startswith("163-165: ARCHIVED at the limit after 2 deliveries, each released by rdkafka (")
    assert single.sentence.startswith("33: ARCHIVED, rejected by rdkafka (")
    assert single.sentence.endswith(", handed to the dead-letter queue")
    assert list(analysis.lives.of(RecordRange(SORTERS, 0, 6))) == []


def test_a_history_finds_lost_letters_without_the_state_topic() -> None:
    """Those that came after the last letter are only known if the queue is not older; here it may be."""
    (check,) = recorded().checks

    assert (check.handed, check.found, check.lost) == (75, 72, 0)
    assert list(check.not_checked.values()) == [len(LOST), 1]
    assert check.unknown_groups == {"strays": 1}


def test_duplicates_are_marked() -> None:
    """The same record of the same group; other groups have letters of their own."""
    letters = [
        Planted(5),
        Planted(5),
        Planted(6),
        Planted(6),
        Planted(7),
        Planted(5, group="h"),
        Planted(9),
        Planted(9),
    ]
    analysis = analyze_letters("q", contents_of([*letters, Planted(9)]))

    assert [(each.key.group_id, each.offsets, count) for each, count in analysis.repeated()] == [
        ("g", "5-6", 2),
        ("g", "9", 3),
    ]
    assert (analysis.records, analysis.duplicates) == (5, 4)


def test_times_are_counted_by_minutes_or_longer_parts() -> None:
    """A day has minutes, what takes longer has longer parts."""
    short = analyze_letters("q", contents_of([Planted(1), Planted(2, 59 * SECOND), Planted(3, None)]))
    long = analyze_letters("q", contents_of([Planted(1), Planted(2, 40 * 24 * 60 * MINUTE)]))

    width, parts = short.over_time()
    assert (width, sum(part.letters for part in parts)) == (MINUTE, 2)
    assert parts[0].begin_ms == BEGIN_MS - BEGIN_MS % MINUTE
    assert long.over_time()[0] == 60 * MINUTE
    assert len(long.over_time()[1]) == 2


def test_what_is_too_much_is_counted_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Letters beyond the bound, and share partitions; then nothing is called lost, and the exit code is 2."""
    monkeypatch.setattr(contents, "MOST_LETTERS", 3)
    letters = analyze_letters("q", contents_of([Planted(offset) for offset in range(5)]))
    monkeypatch.setattr(contents, "MOST_LETTERS", 100)
    monkeypatch.setattr(contents, "MOST_SHARE_PARTITIONS", 2)
    partitions = analyze_letters("q", contents_of([Planted(1, partition=number) for number in range(5)]))

    for analysis, unread in ((letters, 2), (partitions, 3)):
        assert (analysis.contents.unread, analysis.exit_code) == (unread, 2)
        assert analysis.doubts == [f"{unread} letters were counted only: there are too many"]
        assert analysis.to_json()["kinds"]["letter"] == 5


def test_a_topic_without_letters_says_so() -> None:
    """Nothing is checked, and nothing is wrong."""
    said = analyze_letters("q", contents_of([])).to_json()

    assert (said["records"], said["findings"], said["over_time"]["parts"]) == (0, [], [])
