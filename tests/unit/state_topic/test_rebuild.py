"""The state that records add up to: what Kafka's own coordinator has after it has loaded them."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import evolve

from sharestate import SharePartitionKey, StateBatch
from sharestate.coordinator import (
    COORDINATOR_4_3,
    COORDINATOR_4_4,
    CoordinatorProfile,
    RecordType,
    ShareSnapshot,
    ShareUpdate,
    StateRecord,
    encode_record,
)
from sharestate.errors import MalformedInputError, UnreadableFileError
from sharestate.state_topic import Pruning, StateTopic, StateTopicFile, TopicRecord, state_topic_files
from sharestate.state_topic.rebuild import StatePartition, in_log_order, is_count_below_stored, is_count_beyond_log

DATA: Final = Path(__file__).parents[2] / "data"
PROFILES: Final = {"4.3.1": COORDINATOR_4_3, "4.4.0": COORDINATOR_4_4}
KAFKA: Final = [json.loads(line) for line in (DATA / "segments" / "rebuilt.jsonl").read_text().splitlines()]
"""What Kafka's own class has made of each partition of the topic in each dump."""

DUMPS: Final = {row["dump"]: row["kafka"] for row in KAFKA}
KEY: Final = SharePartitionKey(group_id="g", topic_id="AAECAwQFBgcICQoLDA0ODw", partition=0)
OTHER: Final = SharePartitionKey(group_id="h", topic_id="AAECAwQFBgcICQoLDA0ODw", partition=1)


def kafka_lines(dump: str) -> list[dict[str, Any]]:
    """Return the state of every share partition in *dump* as Kafka's class has it."""
    lines = [
        {
            "group_id": key["group"],
            "topic_id": key["topic"],
            "partition": key["partition"],
            "state_epoch": key["data"]["state_epoch"],
            "leader_epoch": key["data"]["leader_epoch"],
            "snapshot_epoch": key["data"]["snapshot_epoch"],
            "start_offset": key["data"]["start_offset"],
            "delivery_complete_count": key["data"]["complete"],
            "state_batches": key["data"]["batches"],
        }
        for row in KAFKA
        if row["dump"] == dump
        for key in row["keys"]
    ]
    return sorted(lines, key=lambda line: (line["group_id"], line["topic_id"], line["partition"]))


def rebuilt(*files: StateTopicFile, profile: CoordinatorProfile = COORDINATOR_4_3) -> StateTopic:
    """Return what *files* add up to."""
    topic = StateTopic(profile)
    topic.read(files)
    return topic


def logged(offset: int, record: StateRecord, timestamp_ms: int | None = None) -> TopicRecord:
    """Return *record* as it may stand in a dump."""
    return TopicRecord("dump.jsonl", offset + 1, None, 4, offset, timestamp_ms, *encode_record(record))


def snapshot(start_offset: int, *batches: StateBatch, epoch: int = 0) -> ShareSnapshot:
    """Return the value of a snapshot."""
    return ShareSnapshot(
        snapshot_epoch=epoch,
        state_epoch=1,
        leader_epoch=0,
        start_offset=start_offset,
        create_timestamp_ms=0,
        write_timestamp_ms=0,
        state_batches=batches,
    )


def update(start_offset: int, *batches: StateBatch) -> ShareUpdate:
    """Return the value of an update."""
    return ShareUpdate(snapshot_epoch=0, leader_epoch=0, start_offset=start_offset, state_batches=batches)


def topic_of(*records: StateRecord) -> StateTopic:
    """Return a topic of *records*, one a second."""
    topic = StateTopic()
    for offset, record in enumerate(records):
        topic.add(logged(offset, record, 1000 * offset))
    return topic


# ---- as Kafka has it


@pytest.mark.parametrize("dump", DUMPS)
def test_every_share_partition_has_the_state_that_kafka_loads(dump: str) -> None:
    """Dumps of brokers of two releases: snapshots, updates, tombstones."""
    topic = rebuilt(StateTopicFile(DATA / dump), profile=PROFILES[DUMPS[dump]])

    assert [each.to_json() for each in topic.share_partitions()] == kafka_lines(dump)
    for row in KAFKA:
        if row["dump"] == dump:
            partition = topic.partitions[row["state_partition"]]
            assert partition.shard.least_needed_offset() == row["redundant"]
            assert partition.pruning().redundant_offset == (row["redundant"] or None)


def test_segments_add_up_to_the_same() -> None:
    """Whichever files the records are in, and in whatever order these are named."""
    files = state_topic_files(DATA / "segments")

    topic = rebuilt(*reversed(files))

    assert [each.to_json() for each in topic.share_partitions()] == kafka_lines("segments/state.jsonl")


def test_lines_may_come_in_any_order(tmp_path: Path) -> None:
    """Records are folded in the order of their offsets, from however many files."""
    dump = DATA / "coordinator" / "state-4.3.1.jsonl"
    lines = dump.read_text().splitlines(keepends=True)
    lines = lines[1::2] + lines[::-2]
    (tmp_path / "a").write_text("".join(lines[:50]))
    (tmp_path / "b").write_text("".join(lines[50:]))

    topic = rebuilt(StateTopicFile(tmp_path / "a"), StateTopicFile(tmp_path / "b"))

    assert [each.to_json() for each in topic.share_partitions()] == kafka_lines("coordinator/state-4.3.1.jsonl")


def test_lines_without_offsets_are_folded_as_they_come(tmp_path: Path) -> None:
    """A dump of keys and values is enough, if it is in order."""
    rows = map(json.loads, (DATA / "coordinator" / "state-4.3.1.jsonl").read_text().splitlines())
    (tmp_path / "dump").write_text(
        "".join(json.dumps({name: row[name] for name in ("key", "value")}) + "\n" for row in rows)
    )

    topic = rebuilt(StateTopicFile(tmp_path / "dump"))

    assert [each.to_json() for each in topic.share_partitions()] == kafka_lines("coordinator/state-4.3.1.jsonl")
    assert (list(topic.partitions), topic.partitions[None].last_offset) == ([None], 106)


def test_some_lines_may_say_their_partition_and_others_not(tmp_path: Path) -> None:
    """Those that do not say it are of one of their own."""
    row = json.loads((DATA / "coordinator" / "state-4.3.1.jsonl").read_text().splitlines()[0])
    rows = [row, {name: each for name, each in row.items() if name != "statePartition"}]
    (tmp_path / "dump").write_text("".join(json.dumps(each) + "\n" for each in rows))

    topic = rebuilt(StateTopicFile(tmp_path / "dump"))

    assert set(topic.partitions) == {row["statePartition"], None}


def test_segments_of_one_partition_are_folded_in_order(tmp_path: Path) -> None:
    """Single segments are read by the offsets with which they begin, whatever they are called."""
    source = DATA / "segments" / "__share_group_state-1" / "00000000000000000000.log"
    data = source.read_bytes()
    (file,) = state_topic_files(source)
    cut = sorted({each.byte_offset for each in file if each.byte_offset})[100]
    (tmp_path / "z.log").write_bytes(data[:cut])
    (tmp_path / "a.log").write_bytes(data[cut:])

    topic = rebuilt(StateTopicFile(tmp_path / "a.log"), StateTopicFile(tmp_path / "z.log"))

    assert [each.to_json() for each in topic.share_partitions()] == [
        each.to_json() for each in rebuilt(file).share_partitions()
    ]


# ---- what an operator asks


def test_the_records_of_each_kind_are_counted() -> None:
    """23 snapshots, 79 updates and 5 tombstones, as its makers say; bytes are those of keys and values."""
    rows = [json.loads(line) for line in (DATA / "coordinator" / "state-4.3.1.jsonl").read_text().splitlines()]
    topic = rebuilt(StateTopicFile(DATA / "coordinator" / "state-4.3.1.jsonl"))

    counts = sum((partition.counts for partition in topic.partitions.values()), start=type(topic.bytes_by_group)())

    assert counts == {"snapshot": 23, "update": 79, "tombstone": 5}
    for group_id, size in topic.bytes_by_group.items():
        mine = [row for row in rows if row["decoded"]["groupId"] == group_id]
        assert size == sum(len(b64decode(row["key"])) + len(b64decode(row["value"] or "")) for row in mine)
    assert set(topic.bytes_by_group) == {row["decoded"]["groupId"] for row in rows}


def test_the_oldest_last_snapshot_blocks_pruning() -> None:
    """All before it can go; what only it keeps is up to the next share partition's last snapshot."""
    topic = topic_of(
        StateRecord(OTHER, snapshot(0)),
        StateRecord(KEY, snapshot(0)),
        StateRecord(OTHER, update(5)),
        StateRecord(OTHER, snapshot(9, epoch=1)),
        StateRecord(KEY, update(7)),
    )

    assert topic.partitions[4].pruning() == Pruning(1, KEY, 2)


def test_a_single_share_partition_blocks_all_that_follows() -> None:
    """With a new snapshot, at the end, everything before could go; a tombstone blocks nothing."""
    topic = topic_of(StateRecord(OTHER, None), StateRecord(KEY, snapshot(0)), StateRecord(KEY, update(5)))
    assert topic.partitions[4].pruning() == Pruning(1, KEY, 2)
    topic = topic_of(StateRecord(KEY, update(5)), StateRecord(KEY, snapshot(0)), StateRecord(KEY, update(5)))
    assert topic.partitions[4].pruning() == Pruning(1, KEY, 2)
    topic = topic_of(StateRecord(KEY, snapshot(0)), StateRecord(KEY, None))
    assert topic.partitions[4].pruning() == Pruning(1, None, 0)
    assert topic_of(StateRecord(KEY, snapshot(0))).partitions[4].pruning() == Pruning(None, KEY, 1)
    assert topic_of(StateRecord(KEY, update(5))).partitions[4].pruning() == Pruning(None, None, 0)


def test_an_spso_is_stuck_if_changes_leave_it_with_terminal_records_behind() -> None:
    """The time is that of the record that moved it; without terminal records it is only waiting."""
    waiting = StateBatch(10, 10, 0, 4)
    done = StateBatch(11, 19, 2, 1)
    topic = topic_of(
        StateRecord(KEY, snapshot(0)),
        StateRecord(KEY, update(10, waiting)),
        StateRecord(KEY, update(10, done)),
        StateRecord(KEY, update(-1, StateBatch(20, 20, 4, 1))),
    )

    (each,) = topic.share_partitions()

    assert (each.start_timestamp_ms, each.change_count, each.terminal_count, each.state_partition) == (1000, 2, 10, 4)
    assert (each.is_stuck(2), each.is_stuck(3)) == (True, False)
    (idle,) = topic_of(*(StateRecord(KEY, update(10, waiting)) for _ in range(5))).share_partitions()
    assert (idle.change_count, idle.is_stuck(1)) == (4, False)
    one = StateRecord(KEY, update(10, StateBatch(11, 11, 2, 1)))
    (behind,) = topic_of(one, one).share_partitions()
    assert (behind.terminal_count, behind.is_stuck(1)) == (1, True)


def test_a_share_partition_begins_with_a_snapshot_of_epoch_0() -> None:
    """So a coordinator initializes it (ShareCoordinatorShard.initializeState); of others, older records are gone."""
    begun = topic_of(StateRecord(KEY, snapshot(5)), StateRecord(KEY, update(5)))
    pruned = topic_of(StateRecord(KEY, snapshot(5, epoch=1)), StateRecord(OTHER, update(5)))
    moved = topic_of(StateRecord(KEY, snapshot(5, epoch=1)), StateRecord(KEY, update(6)))

    assert [each.is_since_before for each in begun.share_partitions()] == [False]
    assert [each.is_since_before for each in pruned.share_partitions()] == [True, True]
    assert [each.is_since_before for each in moved.share_partitions()] == [False]


def test_a_partition_says_from_where_to_where_it_was_read() -> None:
    """The offsets of the first record and of the last, and none before there is one."""
    topic = StateTopic()
    for offset in (7, 8, 12):
        topic.add(logged(offset, StateRecord(KEY, snapshot(5))))
    empty = StatePartition(4, COORDINATOR_4_3)

    assert (topic.partitions[4].first_offset, topic.partitions[4].last_offset) == (7, 12)
    assert (empty.first_offset, empty.last_offset) == (None, None)


def test_a_partition_goes_on_from_what_another_one_had() -> None:
    """What comes then adds up to the same as if all had been read, but for the counts of records."""
    records = [
        StateRecord(KEY, snapshot(0)),
        StateRecord(OTHER, snapshot(3)),
        StateRecord(KEY, update(5, StateBatch(7, 9, 2, 1))),
        StateRecord(KEY, update(5, StateBatch(12, 12, 4, 1))),
    ]
    before, whole = topic_of(*records[:3]).partitions[4], topic_of(*records).partitions[4]
    after = StatePartition(4, COORDINATOR_4_3)
    after.resume(
        before.shard.states,
        before.starts,
        last_snapshot=before.shard.last_snapshot,
        last_offset=before.last_offset,
    )

    assert (after.first_offset, after.last_offset) == (2, 2)
    with pytest.raises(UnreadableFileError, match="offset 2 follows offset 2"):
        after.add(logged(2, records[2]))

    after.add(logged(3, records[3], 3000))

    assert [*after.share_partitions()] == [*whole.share_partitions()]
    assert after.pruning() == whole.pruning() == Pruning(None, KEY, 1)
    assert (after.last_offset, after.counts) == (3, {"update": 1})
    with pytest.raises(UnreadableFileError, match="offset 3 follows offset 3"):
        after.add(logged(3, records[3]))


def test_records_near_the_limit_are_those_with_one_delivery_left() -> None:
    """Terminal records will not be delivered again, whatever their count."""
    (each,) = topic_of(
        StateRecord(KEY, snapshot(0, StateBatch(0, 3, 0, 3), StateBatch(4, 8, 0, 4), StateBatch(9, 9, 2, 4)))
    ).share_partitions()

    assert [each.count_near_limit(limit) for limit in (4, 5, 6)] == [9, 5, 0]


@pytest.mark.parametrize(
    ("start_offset", "complete", "lag"), [(40, 7, 53), (0, 0, 100), (-1, 0, None), (40, -1, None), (40, -2, 62)]
)
def test_the_lag_is_unknown_without_a_start_or_a_count(start_offset: int, complete: int, lag: int | None) -> None:
    """Otherwise it is what the log has from the SPSO on, but for the records that are done (KIP-1226)."""
    value = evolve(snapshot(start_offset), delivery_complete_count=complete)
    (each,) = topic_of(StateRecord(KEY, value)).share_partitions()

    assert each.lag(100) == lag


def test_records_in_flight_reach_to_the_last_one_that_is_stored() -> None:
    """From the SPSO on, whatever is stored in between; there are none without an SPSO, or behind what is stored."""

    def count(start_offset: int, *batches: StateBatch) -> int:
        (each,) = topic_of(StateRecord(KEY, snapshot(start_offset, *batches))).share_partitions()
        return each.in_flight_count

    stored = [StateBatch(7, 9, 2, 1), StateBatch(11, 12, 0, 1), StateBatch(20, 24, 2, 1)]
    assert [count(5, *stored[:size]) for size in range(4)] == [0, 5, 8, 20]
    assert (count(0, StateBatch(0, 0, 2, 1)), count(-1, *stored)) == (1, 0)
    assert (count(-1), count(30, *stored)) == (0, 0)


@pytest.mark.parametrize(
    ("start_offset", "complete", "log_end_offset", "is_beyond"),
    [
        (10, 5, 15, False),
        (10, 5, 14, True),
        (10, 5, 10, True),
        (10, 5, 9, False),
        (0, 5, 4, True),
        (-1, 5, 0, False),
        (10, -1, 10, False),
    ],
)
def test_a_count_beyond_the_log_is_higher_than_what_the_log_has(
    start_offset: int,
    complete: int,
    log_end_offset: int,
    is_beyond: bool,  # noqa: FBT001 - a parameter
) -> None:
    """From the SPSO to the end; a log that ends below the SPSO has lost records, and nothing follows from it."""
    value = evolve(snapshot(start_offset), delivery_complete_count=complete)
    (each,) = topic_of(StateRecord(KEY, value)).share_partitions()

    assert is_count_beyond_log(each.state, log_end_offset) == is_beyond


@pytest.mark.parametrize(("complete", "is_below"), [(-1, False), (0, True), (6, True), (7, False), (8, False)])
def test_a_count_below_what_is_stored_leaves_out_terminal_records(
    complete: int,
    is_below: bool,  # noqa: FBT001 - a parameter
) -> None:
    """Those that are acknowledged or archived; -1 is no count (KIP-1226)."""
    batches = [StateBatch(0, 3, 2, 1), StateBatch(4, 4, 0, 1), StateBatch(5, 7, 4, 5)]
    value = evolve(snapshot(0, *batches), delivery_complete_count=complete)
    (each,) = topic_of(StateRecord(KEY, value)).share_partitions()

    assert is_count_below_stored(each.state) == is_below


def test_the_last_timestamp_is_the_greatest() -> None:
    """Of a partition and of all of them; clocks of brokers differ, so times may go back, and files may say none."""
    assert StateTopic().last_timestamp_ms is None
    topic = StateTopic()
    for offset, timestamp_ms in enumerate([None, 7_000, 9_000, 8_000, None]):
        topic.add(logged(offset, StateRecord(KEY, snapshot(5)), timestamp_ms))
    assert (topic.partitions[4].last_timestamp_ms, topic.last_timestamp_ms) == (9_000, 9_000)
    topic.add(logged(0, StateRecord(OTHER, snapshot(5)), 9_500)._replace(state_partition=5))
    topic.add(logged(0, StateRecord(OTHER, snapshot(5)))._replace(state_partition=6))

    assert topic.last_timestamp_ms == 9_500
    early = topic_of(StateRecord(KEY, snapshot(5)))
    assert (early.partitions[4].last_timestamp_ms, early.last_timestamp_ms) == (0, 0)


def test_share_partitions_that_have_ended_unseen_are_dropped() -> None:
    """Those whose tombstones brokers have deleted; of the others nothing changes, and they block pruning alone."""
    topic = topic_of(StateRecord(KEY, snapshot(0)), StateRecord(OTHER, snapshot(3)), StateRecord(OTHER, update(4)))
    partition = topic.partitions[4]
    (_, kept) = partition.share_partitions()
    assert partition.pruning() == Pruning(None, KEY, 1)

    partition.drop({KEY})

    assert [*partition.share_partitions()] == [kept]
    assert (set(partition.starts), partition.pruning().key) == ({OTHER}, OTHER)


def test_a_share_partition_that_ends_is_gone() -> None:
    """A tombstone ends it; initialized again, it starts anew."""
    records = [StateRecord(KEY, snapshot(5)), StateRecord(KEY, update(9)), StateRecord(KEY, None)]

    assert topic_of(*records).share_partitions() == []
    (each,) = topic_of(*records, StateRecord(KEY, snapshot(9))).share_partitions()
    assert (each.start_timestamp_ms, each.change_count) == (3000, 0)


def test_lines_without_a_partition_come_first(tmp_path: Path) -> None:
    """They are of one partition, which is not mixed with those that have numbers."""
    row = json.loads((DATA / "coordinator" / "state-4.3.1.jsonl").read_text().splitlines()[0])
    places = [(0, 1), (None, 7), (0, 2), (None, 8)]
    lines = [json.dumps(row | {"statePartition": number, "offset": offset}) for number, offset in places]
    (tmp_path / "lines").write_text("\n".join(lines))

    ordered = [(each.state_partition, each.offset) for each in in_log_order([StateTopicFile(tmp_path / "lines")])]

    assert ordered == [(None, 7), (None, 8), (0, 1), (0, 2)]


# ---- what is refused


def test_an_offset_that_does_not_ascend_is_refused(tmp_path: Path) -> None:
    """A record that comes twice would be folded twice."""
    line = (DATA / "coordinator" / "state-4.3.1.jsonl").read_text().splitlines()[0]
    (tmp_path / "twice").write_text(f"{line}\n{line}\n")

    with pytest.raises(UnreadableFileError, match="twice:2: offset: offset 0 follows offset 0"):
        rebuilt(StateTopicFile(tmp_path / "twice"))


def test_offsets_are_in_all_lines_or_in_none(tmp_path: Path) -> None:
    """Otherwise there is no order."""
    row = json.loads((DATA / "coordinator" / "state-4.3.1.jsonl").read_text().splitlines()[0])
    bare = {name: row[name] for name in ("key", "value")}
    (tmp_path / "mixed").write_text(f"{json.dumps(row)}\n{json.dumps(bare)}\n")

    with pytest.raises(UnreadableFileError, match="mixed:2: offset: missing, although other lines have it"):
        rebuilt(StateTopicFile(tmp_path / "mixed"))


def test_an_unknown_type_is_skipped_and_counted() -> None:
    """As a coordinator does it that loads; an unknown version is refused, as there."""
    topic = topic_of(StateRecord(KEY, snapshot(5)))
    key, value = encode_record(StateRecord(KEY, update(9)))

    topic.add(TopicRecord("f", 2, None, 4, 1, None, b"\x00\x07" + key[2:], value))

    assert topic.partitions[4].counts == {"snapshot": 1, "unknown": 1}
    assert topic.partitions[4].last_offset == 1
    with pytest.raises(UnreadableFileError, match="f:3: value: byte 0: Found an unknown version 9"):
        topic.add(TopicRecord("f", 3, None, 4, 2, None, key, b"\x00\x09"))


def test_what_cannot_be_replayed_is_refused() -> None:
    """The tombstone of an update, and a reversed batch where Kafka would hang; the place is said."""
    topic = topic_of(StateRecord(KEY, snapshot(0, StateBatch(0, 9, 0, 1))))

    with pytest.raises(UnreadableFileError, match=r"dump\.jsonl:2: value: a tombstone of an update"):
        topic.add(logged(1, StateRecord(KEY, None, tombstone_type=RecordType.SHARE_UPDATE)))
    with pytest.raises(UnreadableFileError, match=r"dump\.jsonl:2: value: the state batch is reversed: 9-4") as refusal:
        topic.add(logged(1, StateRecord(KEY, update(0, StateBatch(9, 4, 2, 1)))))
    assert isinstance(refusal.value.__cause__, MalformedInputError)


def test_records_that_are_added_to_more_batches_than_brokers_store_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An update of 130 bytes takes as long as all that it is added to; with 2,000 records in flight it goes on."""
    monkeypatch.setattr("sharestate.state_topic.rebuild._MOST_BATCHES", 3_000)

    def add(count: int) -> int:
        batches = [StateBatch(2 * at, 2 * at, 2 * (at % 2), 1) for at in range(count)]
        topic = StateTopic()
        topic.add(logged(0, StateRecord(KEY, snapshot(0, *batches))))
        for offset in range(1, 10):
            topic.add(logged(offset, StateRecord(KEY, update(0, StateBatch(0, 0, 2, 1 + offset)))))
        return len(topic.share_partitions())

    assert add(2_000) == 1
    # 4,000 are 1,952 more than each record may be added to: the second one leaves less than nothing.
    with pytest.raises(
        UnreadableFileError, match=r"dump\.jsonl:3: value: the records before it were added to too many"
    ):
        add(4_000)
