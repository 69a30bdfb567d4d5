"""Rounds of reading a cluster: what a reading says, what is asked when, and restarts from a checkpoint."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from sharestate import SharePartitionKey
from sharestate.broker.groups import (
    ClusterTopic,
    GroupCoordinator,
    describe_offsets,
    described_offsets,
)
from sharestate.errors import ErrorCode, ExternalError, StateLogError, UnreadableFileError
from sharestate.monitor.checkpoint import Checkpoint
from sharestate.monitor.following import BEYOND_LOG
from sharestate.monitor.readings import (
    ASSUMED,
    NO_COMPLETE_COUNT,
    NO_LOG_END,
    NO_START_OFFSET,
    GroupSetting,
    PartitionReading,
    Reading,
    group_setting,
)
from sharestate.monitor.watch import Watch
from sharestate.persister import PartitionStateSummaryData, Result, TopicData
from tests.support.watched_cluster import KEY, ORDERS, WatchedCluster, snapshot, update

OTHER: Final = SharePartitionKey(group_id="g", topic_id=KEY.topic_id, partition=1)


class Watched:
    """A cluster, and a monitor of it that may be started again."""

    def __init__(self, path: Path | None = None) -> None:
        """Start without records."""
        self.cluster = WatchedCluster()
        self.said: list[str] = []
        self.now_ms = 1_000_000
        self._path = path
        self.start()

    def start(self) -> None:
        """Start the monitor, again or for the first time."""
        self.checkpoint = None if self._path is None else Checkpoint(self._path)
        self.watch = Watch(self.cluster, lambda: self.now_ms, self.checkpoint, say=self.said.append)

    def restart(self) -> None:
        """End the monitor, and start it again."""
        assert self.checkpoint is not None
        self.checkpoint.close()
        self.start()

    def one(self) -> PartitionReading:
        """Return what is known of the only share partition after a round."""
        (only,) = self.watch.round().share_partitions
        return only


@pytest.fixture
def watched() -> Watched:
    """A cluster that is watched without a checkpoint."""
    return Watched()


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Watched]:
    """A cluster that is watched with one."""
    watched = Watched(tmp_path / "checkpoint.sqlite")
    yield watched
    assert watched.checkpoint is not None
    watched.checkpoint.close()


# ---- the lag


def lag_of_kafka(start_offset: int, complete: int, end: int | None) -> int:
    """Return what a group coordinator answers to DescribeShareGroupOffsets."""
    coordinator = GroupCoordinator()
    coordinator.update_topics([ClusterTopic(topic_id=ORDERS, name="orders", partition_count=1)])
    asked = describe_offsets(coordinator, "g", {"orders": (0,)})
    summary = PartitionStateSummaryData(
        partition=0, state_epoch=1, leader_epoch=0, start_offset=start_offset, delivery_complete_count=complete
    )
    result = Result(topics=(TopicData(topic_id=ORDERS, partitions=(summary,)),))
    (row,) = described_offsets(asked, result, {} if end is None else {(ORDERS, 0): end})
    return row.lag


@pytest.mark.parametrize(
    ("start", "complete", "end", "reason"),
    [
        (10, 3, 100, None),
        (10, 95, 100, None),
        (10, -2, 100, None),
        (-1, -1, 100, NO_START_OFFSET),
        (10, -1, 100, NO_COMPLETE_COUNT),
        (10, 3, None, NO_LOG_END),
    ],
    ids=["known", "below zero", "F2", "no SPSO", "no count", "no log end"],
)
def test_the_lag_is_kafkas(watched: Watched, start: int, complete: int, end: int | None, reason: str | None) -> None:
    """It is what a group coordinator answers, or why that is -1."""
    watched.cluster.write(snapshot(start, delivery_complete_count=complete))
    if end is None:
        watched.cluster.ends.clear()
    else:
        watched.cluster.ends["orders", 0] = range(end)

    each = watched.one()

    assert (each.lag if each.lag is not None else -1) == lag_of_kafka(start, complete, end)
    assert each.lag_reason() == reason


@pytest.mark.parametrize(
    ("batches", "complete", "log", "corrected"),
    [
        ([(12, 13, 2, 1)], 2, range(100), 100 - 10 - 2),
        ([(12, 13, 2, 1)], 5, range(100), 100 - 10 - 5),  # three may be of aborted transactions
        ([(12, 13, 2, 1)], -1, range(100), 100 - 10 - 2),
        ([(12, 13, 2, 1)], 1, range(100), 100 - 10 - 2),  # proved wrong: two are stored
        ([(12, 13, 2, 1)], 95, range(100), 100 - 10 - 2),  # proved wrong: there are 90
        ([(12, 13, 2, 1)], 2, range(13, 100), 100 - 13 - 1),  # 10 to 12 are deleted
        ([(12, 13, 2, 1)], 5, range(13, 100), 100 - 10 - 5),  # 10 and 11 may be among what is counted
        ([], 0, range(200, 200), 0),
        ([(12, 13, 2, 1)], 2, range(5), 0),  # an unclean election has cut the log off below the SPSO
    ],
    ids=[
        *("right", "unstored", "missing", "too low", "too high"),
        *("deleted", "deleted and unstored", "all deleted", "cut off"),
    ],
)
def test_the_corrected_lag(
    watched: Watched, batches: list[tuple[int, int, int, int]], complete: int, log: range, corrected: int
) -> None:
    """It counts what is stored where Kafka's count cannot be right, and leaves out what is deleted."""
    watched.cluster.write(snapshot(10, *batches, delivery_complete_count=complete))
    watched.cluster.ends["orders", 0] = log

    assert watched.one().corrected_lag == corrected


@pytest.mark.parametrize(
    ("offset_reset", "corrected"), [("earliest", 60), ("latest", 0), ("by_duration:PT1H", None), (None, None)]
)
def test_without_an_spso_the_group_says_what_will_be(
    watched: Watched, offset_reset: str | None, corrected: int | None
) -> None:
    """A group that no member has fetched for yet begins where share.auto.offset.reset says."""
    watched.cluster.write(snapshot(-1))
    watched.cluster.ends["orders", 0] = range(40, 100)
    if offset_reset is not None:
        watched.cluster.configs["g"] = {"share.auto.offset.reset": offset_reset}

    each = watched.one()

    assert (each.lag, each.corrected_lag) == (None, corrected)


def test_a_wrong_count_is_remembered(kept: Watched) -> None:
    """When nothing shows any more that it is wrong, after a restart too, until a leader counts again."""
    kept.cluster.write(snapshot(90, (91, 92, 2, 1), delivery_complete_count=20))
    assert kept.one().happened.miscounted == BEYOND_LOG
    kept.restart()
    kept.cluster.ends["orders", 0] = range(1000)
    kept.cluster.write(update(90, (93, 93, 2, 1), complete=21))
    each = kept.one()
    assert (each.lag, each.corrected_lag, each.happened.miscounted) == (889, 907, BEYOND_LOG)

    kept.cluster.write(update(90, complete=3, leader_epoch=1))
    each = kept.one()
    assert (each.lag, each.corrected_lag, each.happened.miscounted) == (907, 907, None)


# ---- what else a reading says


def test_what_is_in_flight(watched: Watched) -> None:
    """The first record that is not done, how often it came, what is near the limit, and delivery counts."""
    watched.cluster.write(snapshot(10, (10, 12, 2, 1), (13, 13, 4, 3), (14, 15, 0, 4), (18, 18, 0, 1), (19, 20, 2, 1)))

    each = watched.one()

    assert (each.unfinished_offset, each.unfinished_delivery_count) == (14, 4)
    assert (each.done_count, each.near_limit_count, each.in_flight_count) == (6, 2, 11)
    assert dict(each.delivery_counts) == {4: 2, 1: 1}


def test_what_is_all_done_has_no_oldest_record(watched: Watched) -> None:
    """The SPSO that is stored may be that of before the last change."""
    watched.cluster.write(snapshot(10, (10, 99, 2, 1)))

    each = watched.one()

    assert (each.start_offset, each.unfinished_offset, each.lag) == (10, None, 0)


def test_since_when_the_spso_stands(watched: Watched) -> None:
    """By the timestamp of the record; at least since then if that is the oldest that is left."""
    watched.cluster.write(snapshot(4, epoch=3))
    each = watched.one()
    assert (each.moved_ms, each.is_moved_at_least) == (0, True)

    watched.cluster.write(update(4, (5, 5, 2, 1), complete=1))
    watched.cluster.write(update(6, complete=0))
    each = watched.one()
    assert (each.moved_ms, each.is_moved_at_least) == (2000, False)


def test_topics_have_names(watched: Watched) -> None:
    """One that the cluster does not show has its id, which is told from a name by its colon."""
    watched.cluster.write(snapshot(0))
    gone = SharePartitionKey(group_id="g", topic_id="d0B3kAkfQz6usV6daJGpXA", partition=0)
    watched.cluster.write(snapshot(0), gone)

    assert [each.topic for each in watched.watch.round().share_partitions] == ["orders", "id:d0B3kAkfQz6usV6daJGpXA"]


def test_what_keeps_the_state_topic_from_being_pruned(watched: Watched) -> None:
    """The share partition with the oldest snapshot, and how much can be deleted with and without it."""
    watched.cluster.write(snapshot(0))
    watched.cluster.write(snapshot(0), OTHER)
    for epoch in range(1, 4):
        watched.cluster.write(snapshot(0, epoch=epoch))

    of_topic = watched.watch.round().state_partitions[0]

    assert of_topic.offsets == range(5)
    assert (of_topic.redundant_count, of_topic.blocked_by, of_topic.blocked_count) == (1, (OTHER, "orders"), 3)
    assert len(of_topic.offsets) * of_topic.bytes_per_record == sum(
        len(key) + len(value or b"") for key, value in watched.cluster.logs[0]
    )


@pytest.mark.parametrize(
    ("configs", "setting"),
    [
        (None, ASSUMED),
        ({}, ASSUMED),
        ({"share.auto.offset.reset": "earliest"}, ASSUMED._replace(offset_reset="earliest")),
        (
            {"share.delivery.count.limit": "3", "share.partition.max.record.locks": "100"},
            GroupSetting(3, 100, None, is_assumed=False),
        ),
    ],
    ids=["refused", "none", "4.2", "4.3"],
)
def test_what_the_cluster_does_not_tell_is_assumed(configs: dict[str, str] | None, setting: GroupSetting) -> None:
    """Kafka's defaults are, and it is said that they are."""
    assert (ASSUMED.delivery_count_limit, ASSUMED.max_record_locks, ASSUMED.is_assumed) == (5, 2000, True)
    assert group_setting(configs) == setting


# ---- what is asked when


def test_logs_are_asked_after_the_state(watched: Watched) -> None:
    """So that the lag is too high rather than too low; names and settings are asked once in a minute."""
    watched.cluster.write(snapshot(0))
    watched.watch.round()
    assert watched.cluster.asked == ["names", "state offsets", "records", "configs", "log offsets"]

    watched.cluster.asked.clear()
    watched.now_ms += 59_999
    watched.watch.round()
    assert watched.cluster.asked == ["state offsets", "records", "log offsets"]

    watched.cluster.asked.clear()
    watched.now_ms += 1
    watched.watch.round()
    assert watched.cluster.asked == ["names", "state offsets", "records", "configs", "log offsets"]


def test_new_topics_and_groups_are_asked_for(watched: Watched) -> None:
    """At once, and no others again."""
    watched.watch.round()
    watched.cluster.names["d0B3kAkfQz6usV6daJGpXA"] = "parcels"
    key = SharePartitionKey(group_id="h", topic_id="d0B3kAkfQz6usV6daJGpXA", partition=0)
    watched.cluster.configs["h"] = {"share.delivery.count.limit": "2", "share.partition.max.record.locks": "100"}
    watched.cluster.write(snapshot(0), key)

    reading = watched.watch.round()

    assert [each.topic for each in reading.share_partitions] == ["parcels"]
    assert reading.settings["h"].delivery_count_limit == 2


def test_a_round_that_fails_is_gone_on_with(watched: Watched) -> None:
    """What was read is read once."""
    watched.cluster.write(snapshot(0, (0, 4, 2, 1)))
    watched.watch.round()
    watched.cluster.write(update(0, (5, 9, 2, 1), complete=10))
    message = "cluster: nothing has come for 30 s"
    watched.cluster.error = ExternalError(message, ErrorCode.REQUEST_TIMED_OUT)
    with pytest.raises(ExternalError):
        watched.watch.round()
    watched.cluster.error = None

    assert watched.one().happened.acknowledged == 10


# ---- logs that change


def test_what_was_missed_is_said(kept: Watched) -> None:
    """After a restart, records are gone that were not read: the state is right, and it is said what is not."""
    kept.cluster.write(snapshot(0, (0, 4, 2, 1)))
    kept.watch.round()
    kept.cluster.write(update(0, (5, 9, 2, 1), complete=10))
    kept.cluster.write(snapshot(10, (10, 10, 2, 1), epoch=1))
    kept.cluster.starts[0] = 2
    kept.restart()

    each = kept.one()

    assert (each.start_offset, each.done_count, each.happened.acknowledged) == (10, 1, 6)
    assert kept.said == [
        "brokers have deleted 1 records of the state topic before they were read: counters lack what those said"
    ]
    assert kept.watch.round().state_partitions[0].missed_count == 1


def test_a_topic_that_was_made_again_is_said(kept: Watched) -> None:
    """And nothing of the one before is shown, though the new one is as long."""
    kept.cluster.write(snapshot(0, (0, 4, 2, 1)))
    kept.cluster.write(snapshot(0), OTHER, 1)
    kept.watch.round()
    kept.cluster.topic_id = "d0B3kAkfQz6usV6daJGpXA"
    kept.cluster.logs = {0: [], 1: []}
    kept.cluster.write(snapshot(50))
    kept.restart()

    reading = kept.watch.round()

    assert [(each.start_offset, each.happened.acknowledged) for each in reading.share_partitions] == [(50, 0)]
    assert (reading.restarts, len(kept.said)) == (1, 1)
    assert kept.said[0].startswith("the state topic was made again")
    kept.restart()
    assert kept.watch.round().share_partitions == reading.share_partitions


def test_a_log_that_was_cut_off_is_said(kept: Watched) -> None:
    """It is read anew, and the checkpoint has nothing of what is gone."""
    kept.cluster.write(snapshot(0))
    kept.cluster.write(snapshot(0), OTHER)
    kept.watch.round()
    del kept.cluster.logs[0][1]
    kept.restart()
    reading = kept.watch.round()
    assert [each.key for each in reading.share_partitions] == [KEY]
    assert kept.said == ["the log of a partition of the state topic ends before what was read of it; it is read again"]

    kept.restart()
    assert kept.watch.round().share_partitions == reading.share_partitions


# ---- checkpoints


def some_life(cluster: WatchedCluster) -> None:
    """Write what leaves nothing at its default."""
    cluster.write(snapshot(-1))
    cluster.write(update(0, (0, 4, 2, 1), (5, 5, 4, 1), (6, 9, 0, 1), complete=6, leader_epoch=2))
    cluster.write(update(20, complete=0, leader_epoch=3))
    cluster.write(snapshot(20, (20, 21, 2, 1), (22, 22, 0, 3), epoch=1, leader_epoch=3))
    cluster.write(snapshot(7), OTHER, 1)


def without_time(reading: Reading) -> Reading:
    """Return a reading that can be compared."""
    return reading._replace(at_ms=0)


def test_a_restart_changes_nothing(kept: Watched) -> None:
    """After it, a reading is what it was, and what it would be had there been none; nothing is read twice."""
    some_life(kept.cluster)
    before = kept.watch.round()
    kept.restart()
    kept.cluster.asked.clear()
    assert without_time(kept.watch.round()) == without_time(before)

    kept.cluster.write(update(23, complete=0))
    kept.cluster.write(None, OTHER, 1)
    kept.restart()
    after = kept.watch.round()
    fresh = Watch(kept.cluster, lambda: 0, say=kept.said.append)
    assert without_time(after) == without_time(fresh.round())
    kept.restart()
    assert without_time(kept.watch.round()) == without_time(after)
    assert kept.said == []


def test_a_kill_before_the_end_of_a_round_counts_nothing_twice(kept: Watched) -> None:
    """What was read and not saved is read again, from where the checkpoint is."""
    some_life(kept.cluster)
    kept.watch.round()
    kept.cluster.write(update(23, (24, 30, 2, 1), complete=7))
    kept.cluster.write(update(23, (31, 40, 4, 1), complete=17))
    records = kept.cluster.records

    def cut_off(offsets: Any) -> Any:  # noqa: ANN401 - as the cluster's
        yield next(iter(records(offsets)))
        message = "killed"
        raise UnreadableFileError(message, "cluster")

    kept.cluster.records = cut_off  # type: ignore[method-assign]
    with pytest.raises(UnreadableFileError):
        kept.watch.round()
    kept.cluster.records = records  # type: ignore[method-assign]
    kept.restart()

    fresh = Watch(kept.cluster, lambda: 0, say=kept.said.append)
    assert without_time(kept.watch.round()) == without_time(fresh.round())


def changed(path: Path, *statements: str) -> None:
    """Change a checkpoint by hand."""
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(statement)
    db.close()


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("PRAGMA user_version = 2", "its version is 2, and only 1 is known"),
        ("PRAGMA application_id = 7", "it is a database of something else"),
        ("CREATE TABLE more (it)", "it has not the tables of its version"),
        ("CREATE VIEW more AS SELECT 1", "it has not the tables of its version"),
        ("DROP TABLE topic", "it has not the tables of its version"),
        ("UPDATE share_partitions SET document = '{}'", "state: missing"),
        (
            "UPDATE share_partitions SET document = replace(document, '\"leader_epoch\":', '\"leader_epoch\":1.')",
            "leader_epoch",
        ),
        ("UPDATE share_partitions SET group_id = x'ff'", "group_id"),
        ("UPDATE state_partitions SET document = replace(document, '\"position\":', '\"position\":-')", "position"),
        ("UPDATE topic SET document = '['", "not JSON"),
        ('UPDATE topic SET document = \'{"topic_id":null,"restarts":0,"more":1}\'', "more"),
        ("UPDATE topic SET document = x'ff'", ""),
    ],
)
def test_a_checkpoint_that_is_none_is_refused(kept: Watched, tmp_path: Path, statement: str, problem: str) -> None:
    """With the file's name, and what is wrong."""
    some_life(kept.cluster)
    kept.watch.round()
    changed(tmp_path / "checkpoint.sqlite", statement)

    with pytest.raises(StateLogError) as caught:
        kept.restart()

    assert str(caught.value).startswith(f"the checkpoint '{tmp_path / 'checkpoint.sqlite'}': ")
    assert problem in str(caught.value)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    """Also one that is no database, or cannot be opened; none is changed."""
    (tmp_path / "text").write_text("no database" * 100)
    changed(tmp_path / "other", "CREATE TABLE t (x)")

    for name in ("text", "other", "none/at/all"):
        with pytest.raises(StateLogError):
            Checkpoint(tmp_path / name)
    assert (tmp_path / "text").read_text() == "no database" * 100
