"""What a follower of the state topic counts, and what it makes of records that were deleted before it has read them."""

from __future__ import annotations

import gc
import json
import tracemalloc
from base64 import b64decode
from pathlib import Path
from typing import Final

import pytest

from sharestate import RecordState, SharePartitionKey, StateBatch
from sharestate.coordinator import StateRecord, encode_record
from sharestate.coordinator.records import RecordType
from sharestate.monitor.following import BELOW_STORED, BEYOND_LOG, Follower, Happened, newly_stored
from sharestate.state_topic import StateTopic, StateTopicFile, TopicRecord, state_topic_files
from tests.support.watched_cluster import KEY, WatchedCluster, snapshot, update

DATA: Final = Path(__file__).parents[2] / "data"
DUMP: Final = DATA / "coordinator" / "state-4.3.1.jsonl"
SEGMENTS: Final = DATA / "segments"
OTHER: Final = SharePartitionKey(group_id="g", topic_id=KEY.topic_id, partition=1)


@pytest.fixture
def cluster() -> WatchedCluster:
    """A cluster whose state topic is empty."""
    return WatchedCluster()


def follow(cluster: WatchedCluster, follower: Follower | None = None) -> Follower:
    """Have a follower read all that there is."""
    follower = Follower() if follower is None else follower
    offsets = cluster.state_offsets()
    for logged in cluster.records(follower.wanted(offsets)):
        follower.add(logged)
    follower.caught_up(offsets)
    return follower


def happened(follower: Follower, key: SharePartitionKey = KEY) -> Happened:
    """Return what has happened to a share partition."""
    return follower.partitions[0].happened[key]


# ---- beside what a broker has written


def test_states_are_those_of_rebuild() -> None:
    """Of a dump of a broker and of segments, what is followed adds up to what `state rebuild` makes of them."""
    for files in ([StateTopicFile(DUMP)], state_topic_files(SEGMENTS)):
        follower, topic = Follower(), StateTopic()
        follower.wanted({number: range(10**6) for number in range(3)})
        topic.read(files)
        for file in files:
            for logged in file:
                follower.add(logged)

        assert [rebuilt for rebuilt, _ in follower.share_partitions()] == topic.share_partitions()


def test_totals_are_those_of_offset_by_offset() -> None:
    """Acknowledged and archived records of a broker's dump are as many offsets as any record has in that state."""
    follower = Follower()
    follower.wanted({number: range(10**6) for number in range(3)})
    stored: dict[tuple[SharePartitionKey, int], set[int]] = {}
    for logged in StateTopicFile(DUMP):
        follower.add(logged)
        record = logged.decode()
        for first, last, state, _ in () if record.value is None else record.value.state_batches:
            stored.setdefault((record.key, state), set()).update(range(first, last + 1))

    found = {rebuilt.key: each for rebuilt, each in follower.share_partitions()}
    assert len(found) == 4
    for key, each in found.items():
        assert each.acknowledged == len(stored.get((key, RecordState.ACKNOWLEDGED), ()))
        assert each.archived == len(stored.get((key, RecordState.ARCHIVED), ()))
    assert sum(each.acknowledged for each in found.values()) > 300


def test_a_record_that_is_read_again_counts_once() -> None:
    """Adding the dump twice, as after a restart without a checkpoint of its end, changes nothing."""
    follower, again = Follower(), Follower()
    for each in (follower, again):
        each.wanted({number: range(10**6) for number in range(3)})
    for times, each in ((1, follower), (2, again)):
        for _ in range(times):
            for logged in StateTopicFile(DUMP):
                each.add(logged)

    assert follower.share_partitions() == again.share_partitions()


# ---- what is counted


@pytest.mark.parametrize(
    ("batches", "start", "count"),
    [
        ([(0, 9, 2, 1)], 0, 10),
        ([(0, 9, 0, 1)], 0, 0),
        ([(0, 9, 4, 1)], 0, 0),
        ([(20, 29, 2, 1)], 0, 0),
        ([(18, 31, 2, 1)], 0, 4),
        ([(0, 9, 2, 1)], 5, 5),
        ([(0, 9, 2, 1)], 10, 0),
        ([(10, 45, 2, 1)], 0, 21),
    ],
    ids=["new", "not done", "other state", "known", "partly known", "partly passed", "passed", "over several"],
)
def test_records_that_become_done_are_counted_once(
    batches: list[tuple[int, int, int, int]], start: int, count: int
) -> None:
    """Those that were done before, and those below the SPSO, are not counted again."""
    known = (StateBatch(10, 14, 0, 1), StateBatch(20, 29, 2, 1), StateBatch(32, 36, 4, 1), StateBatch(37, 41, 0, 1))

    given = [StateBatch(*batch) for batch in batches]
    assert newly_stored(known, given, RecordState.ACKNOWLEDGED, start) == count


def test_a_life_is_counted(cluster: WatchedCluster) -> None:
    """Records of each kind, leaders, initializations, and what the SPSO passes without a word."""
    cluster.write(snapshot(-1))
    cluster.write(update(0, (0, 4, 2, 1), (5, 5, 4, 1), (6, 9, 0, 1), complete=6))
    cluster.write(update(6, (8, 9, 2, 2), complete=2))
    cluster.write(update(20, complete=0, leader_epoch=3))
    cluster.write(snapshot(20, (20, 21, 2, 1), epoch=1, leader_epoch=3))
    cluster.write(snapshot(50, epoch=2, state_epoch=2))

    each = happened(follow(cluster))

    assert (each.snapshot_count, each.update_count, each.leader_changes, each.initializations) == (3, 3, 1, 2)
    assert (each.acknowledged, each.archived) == (5 + 2 + 2, 1)
    assert each.passed == 12, "of 6 to 19, 8 and 9 were done"
    assert each.first_seen_ms == 0


def test_a_tombstone_ends_it(cluster: WatchedCluster) -> None:
    """What comes afterwards is another life."""
    cluster.write(snapshot(0, (0, 4, 2, 1)))
    cluster.write(None)
    follower = follow(cluster)
    assert follower.share_partitions() == []

    cluster.write(snapshot(0))
    assert happened(follow(cluster, follower)).acknowledged == 0


def test_what_cannot_be_read_is_passed_over(cluster: WatchedCluster) -> None:
    """It is counted, and what comes after it is read."""
    cluster.logs[0] += [(b"\0\0", b""), (b"", None)]
    cluster.write(snapshot(7))

    follower = follow(cluster)

    assert follower.partitions[0].unreadable_count == 2
    assert [rebuilt.state.start_offset for rebuilt, _ in follower.share_partitions()] == [7]


# ---- wrong counts


def test_a_count_below_what_is_stored_is_wrong(cluster: WatchedCluster) -> None:
    """Until a leader reads the state, and counts again."""
    cluster.write(snapshot(0))
    cluster.write(update(0, (1, 4, 2, 1), complete=2))
    follower = follow(cluster)
    assert happened(follower).miscounted == BELOW_STORED

    cluster.write(update(0, (6, 6, 2, 1), complete=9))
    assert happened(follow(cluster, follower)).miscounted == BELOW_STORED
    cluster.write(update(0, complete=5, leader_epoch=1))
    assert happened(follow(cluster, follower)).miscounted is None


def test_a_count_beyond_the_log_is_wrong(cluster: WatchedCluster) -> None:
    """One that is higher than what is stored may be right: of aborted transactions nothing is stored."""
    cluster.write(snapshot(0, (1, 4, 2, 1), delivery_complete_count=9))
    follower = follow(cluster)

    follower.take_logs({KEY: range(9)})
    assert happened(follower).miscounted is None
    follower.take_logs({KEY: range(8)})
    assert happened(follower).miscounted == BEYOND_LOG
    follower.take_logs({KEY: range(100)})
    assert happened(follower).miscounted == BEYOND_LOG


@pytest.mark.parametrize("log", [None, range(5, 5)], ids=["not known", "shorter than the SPSO"])
def test_a_log_proves_nothing_that_is_not_there(cluster: WatchedCluster, log: range | None) -> None:
    """Without a log end, and with one below the SPSO, nothing is said."""
    cluster.write(snapshot(7, delivery_complete_count=3))
    follower = follow(cluster)

    follower.take_logs({} if log is None else {KEY: log})

    assert happened(follower).miscounted is None


# ---- logs that change


def test_deleted_records_are_missed(cluster: WatchedCluster) -> None:
    """What has a snapshot among those that are left goes on, and what has none has ended in those that are gone."""
    cluster.write(snapshot(0, (0, 4, 2, 1)))
    cluster.write(snapshot(0), OTHER)
    follower = follow(cluster)
    cluster.write(update(0, (5, 9, 2, 1), complete=10))
    cluster.write(None, OTHER)
    cluster.write(snapshot(10, (10, 12, 2, 1), epoch=1))
    cluster.starts[0] = 4

    follow(cluster, follower)

    assert (follower.partitions[0].missed_count, follower.restarts) == (2, 0)
    assert [(each.key, each.state.start_offset) for each, _ in follower.share_partitions()] == [(KEY, 10)]
    assert happened(follower).acknowledged == 5 + 3
    assert happened(follower).passed == 0, "5 to 9 may have been stored as done in what is gone"


def test_an_update_does_not_prove_that_it_lives(cluster: WatchedCluster) -> None:
    """Only a snapshot does: an update may be one that a later tombstone has followed, among those that are gone."""
    cluster.write(snapshot(0))
    follower = follow(cluster)
    cluster.logs[0] += [cluster.logs[0][0]] * 2
    cluster.write(update(3, complete=0))
    cluster.starts[0] = 3
    follow(cluster, follower)

    assert follower.share_partitions() == []


def test_a_log_that_ends_earlier_is_another_one(cluster: WatchedCluster) -> None:
    """It is read from its beginning, and what was known of it is gone."""
    cluster.write(snapshot(0, (0, 4, 2, 1)))
    cluster.write(update(5, complete=0))
    cluster.write(snapshot(3), OTHER, 1)
    follower = follow(cluster)
    cluster.logs[0] = cluster.logs[0][:1]

    follow(cluster, follower)

    assert follower.restarts == 1
    assert happened(follower).acknowledged == 5
    assert [each.state.start_offset for each, _ in follower.share_partitions()] == [0, 3]


def test_a_topic_that_was_made_again_begins_anew() -> None:
    """Nothing of the one before is kept, and the ids are said; an id that is not shown changes nothing."""
    follower = Follower()
    assert follower.follow("one") is None
    assert follower.follow(None) is None
    follower.wanted({0: range(5)})

    said = follower.follow("two")

    assert said == "the state topic was made again: its id was one, and is two; all begins again"
    assert (follower.partitions, follower.topic_id, follower.restarts) == ({}, "two", 1)


def test_each_record_is_read_once(cluster: WatchedCluster) -> None:
    """A follower wants what has come since, and nothing if nothing has."""
    cluster.write(snapshot(0))
    follower = follow(cluster)
    assert follower.wanted(cluster.state_offsets()) == {}

    cluster.write(update(1, complete=0))
    assert follower.wanted(cluster.state_offsets()) == {0: range(1, 2)}


@pytest.mark.usefixtures("quick_collections")
def test_nothing_is_kept_of_a_record(cluster: WatchedCluster) -> None:
    """After ten times as many records of a share partition, what is kept takes no more."""
    cluster.write(snapshot(0))
    follower = follow(cluster)
    follower.wanted({0: range(10_000)})
    kept = []
    tracemalloc.start()
    for offsets in (range(1, 100), range(100, 1_000)):
        for offset in offsets:
            value = update(offset, (offset + 1, offset + 1, 2, 1), complete=1)
            key, encoded = encode_record(StateRecord(KEY, value, RecordType.SHARE_UPDATE))
            follower.add(TopicRecord("cluster", None, None, 0, offset, 0, key, encoded))
        gc.collect()
        kept.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()

    assert happened(follower).update_count == 999
    assert kept[1] - kept[0] < 5_000, "five bytes for a record would be more"


def test_sizes_are_those_of_keys_and_values() -> None:
    """As they were read, tombstones with keys alone."""
    follower = Follower()
    follower.wanted({number: range(10**6) for number in range(3)})
    for logged in StateTopicFile(DUMP):
        follower.add(logged)

    rows = [json.loads(line) for line in DUMP.read_text().splitlines()]
    sizes = [len(b64decode(row["key"])) + len(b64decode(row["value"] or "")) for row in rows]
    followed = follower.partitions.values()
    assert sum(each.read_count for each in followed) == len(rows)
    assert sum(each.read_bytes for each in followed) == sum(sizes)
