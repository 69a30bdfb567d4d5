"""What the state topic alone says of a record, beside what a broker has written to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sharestate import RecordState, SharePartitionKey
from sharestate.cli.commands import sharestate
from sharestate.coordinator import ShareSnapshot, StateRecord, StoredState, encode_record
from sharestate.errors import MalformedInputError
from sharestate.explain import Outlook, StoredHappening, StoredLife, StoredReason, Unsaid, explain_stored, stored_lives
from sharestate.explain.sentences import STORED_REASONS, UNSAID
from sharestate.explain.stored import STORED_SENTENCES
from sharestate.state_topic import RebuiltPartition, StateTopic, StateTopicFile, TopicRecord
from sharestate.values.requests import StateBatch

DUMP = Path(__file__).parents[2] / "data" / "coordinator" / "state-4.3.1.jsonl"
KEY = SharePartitionKey(group_id="g", topic_id="AAAAAAAAAAEAAAAAAAAAAQ", partition=0)
MIXED = "g-mixed"


def written() -> Iterator[dict[str, Any]]:
    """Yield what the broker's own tool has printed of each record of the mixed group."""
    for line in DUMP.read_text().splitlines():
        decoded = json.loads(line)["decoded"]
        if decoded["groupId"] == MIXED and decoded["value"] is not None:
            yield decoded["value"]


def expected_states(offset: int) -> list[tuple[int, int]]:
    """Return the states and delivery counts of a record that the broker has written, one after the other."""
    found = [
        (batch["deliveryState"], batch["deliveryCount"])
        for value in written()
        for batch in value["stateBatches"]
        if batch["firstOffset"] <= offset <= batch["lastOffset"]
    ]
    return [state for state, _ in groupby(found)]


@pytest.mark.parametrize("offset", [0, 7, 100, 235, 240, 300, 333])
def test_a_life_is_what_the_broker_has_written(offset: int) -> None:
    """Each state and delivery count that the topic has of a record is a moment, in order, until the SPSO passes it."""
    topic = StateTopic()
    lives = stored_lives(topic, StateTopicFile(DUMP), offset, lambda key: key.group_id == MIXED)
    ((key, life),) = lives.items()
    (rebuilt,) = (each for each in topic.share_partitions() if each.key == key)
    explained = explain_stored(rebuilt, life, offset)
    stored = [
        (RecordState[moment.facts["state"]].value, moment.facts["delivery_count"])
        for moment in explained.moments
        if moment.what is StoredHappening.STORED
    ]
    last_start = [value["startOffset"] for value in written() if value["startOffset"] != -1][-1]

    assert stored == expected_states(offset)
    assert (explained.findings[0].reason is StoredReason.PASSED) == (offset < last_start)


# ---- each reason


def rebuilt_of(start: int, *batches: tuple[int, int, int, int]) -> RebuiltPartition:
    """Return a share partition with a stored state."""
    state = StoredState(
        state_epoch=1,
        start_offset=start,
        highest_state_epoch=1,
        delivery_complete_count=0,
        state_batches=tuple(StateBatch(*batch) for batch in batches),
    )
    return RebuiltPartition(KEY, state, 0, 1_000, 3)


STORED = rebuilt_of(10, (10, 14, 2, 1), (15, 19, 4, 5), (20, 24, 0, 4), (30, 34, 3, 1), (35, 39, 0, 1))
CASES = {
    StoredReason.NEVER_STARTED: (rebuilt_of(-1), 0, Outlook.UNKNOWN),
    StoredReason.PASSED: (STORED, 9, Outlook.NEVER),
    StoredReason.ACKNOWLEDGED: (STORED, 12, Outlook.NEVER),
    StoredReason.ARCHIVED: (STORED, 15, Outlook.NEVER),
    StoredReason.LAST_DELIVERY: (STORED, 24, Outlook.NOW),
    StoredReason.BETWEEN: (STORED, 25, Outlook.NOW),
    StoredReason.ARCHIVING: (STORED, 30, Outlook.NEVER),
    StoredReason.AVAILABLE: (STORED, 39, Outlook.NOW),
    StoredReason.BEYOND: (STORED, 40, Outlook.NOW),
    StoredReason.NOT_APPENDED: (STORED, 50, Outlook.LATER),
    StoredReason.UNREADABLE: (rebuilt_of(0, (0, 4, 1, 1)), 0, Outlook.STALLED),
}


@pytest.mark.parametrize("reason", StoredReason)
def test_each_reason_has_its_verdict_and_sentence(reason: StoredReason) -> None:
    """What is stored decides: terminal records never come again, all others come to a leader that reads it."""
    rebuilt, offset, verdict = CASES[reason]
    explained = explain_stored(rebuilt, None, offset, log_end_offset=50)

    assert (explained.verdict, reason in {finding.reason for finding in explained.findings}) == (verdict, True)
    assert all("{" not in finding.text for finding in explained.findings)


def test_there_is_a_sentence_for_everything() -> None:
    """Each reason, happening and thing that is not said has one."""
    assert set(STORED_REASONS) == set(StoredReason)
    assert set(STORED_SENTENCES) == set(StoredHappening)
    assert set(UNSAID) == set(Unsaid)


def test_the_log_end_is_unsaid_only_where_no_cluster_says_it() -> None:
    """With it there is a lag, which is that of brokers: log end less SPSO less complete records."""
    without, known = explain_stored(STORED), explain_stored(STORED, log_end_offset=50)

    assert set(without.unsaid) - set(known.unsaid) == {Unsaid.LOG}
    assert (known.to_json()["lag"], "lag" in without.to_json()) == (40, False)
    assert without.near_limit == (StateBatch(20, 24, 0, 4),)


def test_each_happening_is_part_of_a_life() -> None:
    """A start, a state, nothing again, the SPSO that passes and moves back, and the end of the share partition."""
    life = StoredLife(5)
    states = [
        rebuilt_of(0).state,
        rebuilt_of(0, (4, 6, 0, 1)).state,
        rebuilt_of(0).state,
        rebuilt_of(6).state,
        rebuilt_of(5).state,
        None,
    ]
    begin = ShareSnapshot(
        snapshot_epoch=0, state_epoch=1, leader_epoch=0, start_offset=0, create_timestamp_ms=0, write_timestamp_ms=0
    )
    for number, state in enumerate(states):
        key, value = encode_record(StateRecord(KEY, None if number else begin))
        life.apply(TopicRecord("f", None, None, 0, number, number * 1000, key, value), state)

    assert [moment.what for moment in life.moments] == [
        StoredHappening.STARTED,
        StoredHappening.STORED,
        StoredHappening.NOT_STORED,
        StoredHappening.PASSED,
        StoredHappening.MOVED_BACK,
        StoredHappening.DELETED,
    ]
    assert [moment.at_us for moment in life.moments] == [number * 10**6 for number in range(6)]
    assert life.moments[1].text == "It is AVAILABLE, delivery count 1."


def test_an_offset_is_checked() -> None:
    """One below 0 is none."""
    with pytest.raises(MalformedInputError):
        StoredLife(-1)


# ---- the command


def explain(*arguments: str | int | Path) -> Result:
    """Run the command with *arguments*."""
    return CliRunner().invoke(sharestate, ["state", "explain", *map(str, arguments)])


def test_the_command_explains_a_record() -> None:
    """The text has what was stored when, where the record stands, and what the topic does not say."""
    result = explain(DUMP, "--group", MIXED, "--offset", 240)

    assert result.exit_code == 0
    assert result.output.startswith("Partition 0 of topic wzyYPh0PQVqFbykf_TiG5g, group g-mixed\n")
    assert "Record 240, as it was stored:\n2026-11-21T11:4" in result.output
    assert "The state topic does not say:\n  who holds records" in result.output


def test_the_command_prints_json_lines() -> None:
    """Without options a line for each share partition, of the record at its SPSO."""
    documents = [json.loads(line) for line in explain(DUMP, "--json").stdout.splitlines()]

    assert [each["group_id"] for each in documents] == [
        *("g-limit", "g-mixed", "g-txn-read_committed", "g-txn-read_uncommitted")
    ]
    assert all(each["offset"] == each["start_offset"] and each["reasons"] for each in documents)


def test_the_command_says_what_is_not_stored() -> None:
    """A group that the topic does not have ends it with code 2, and what there is is listed."""
    result = explain(DUMP, "--group", "other", "--offset", 1)

    assert result.exit_code == 2
    assert (
        "no such share partition is stored; there are: --group g-limit --topic rzZk_O1JTcubjyn6K_LKlA" in result.output
    )


def pruned(path: Path) -> Path:
    """Write the dump as brokers leave it that have deleted what the snapshot at 34 has made redundant."""
    rows = map(json.loads, DUMP.read_text().splitlines())
    left = [row for row in rows if row["statePartition"] != 1 or row["offset"] >= 34]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in left))
    return path


def test_what_is_older_than_the_topic_has_no_false_date(tmp_path: Path) -> None:
    """Where brokers have deleted older records, the SPSO was there before the oldest one that is left."""
    whole = explain(DUMP, "--group", "g-limit", "--offset", 3).output
    left = explain(pruned(tmp_path / "pruned.jsonl"), "--group", "g-limit", "--offset", 3).output

    assert "The state begins: state epoch 2, SPSO -1." in whole
    assert (
        "The SPSO has been there since 2026-11-21T11:53:27.387Z; 0 records of the topic since then have left" in whole
    )
    assert "What is left begins here: state epoch 2, SPSO 3." in left
    assert (
        "The SPSO has been there since before 2026-11-21T11:53:27.387Z; 0 records of the topic since then have left it "
        "there, and older records were deleted."
    ) in left
