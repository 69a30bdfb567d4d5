"""
A reading: what is known of every share partition at one moment, from the state topic, the logs and the settings.

It is a value of its own, so that it can be shown while the next one is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from attrs import evolve

from sharestate.coordinator import StoredState
from sharestate.monitor.following import FollowedPartition, Follower, Happened, done_count
from sharestate.state_topic import RebuiltPartition
from sharestate.state_topic.rebuild import TERMINAL, terminal_count
from sharestate.values.config import ShareConfig
from sharestate.values.records import SharePartitionKey
from sharestate.values.requests import UNINITIALIZED_COUNT, UNINITIALIZED_START_OFFSET

NO_START_OFFSET: Final = "no_start_offset"
NO_COMPLETE_COUNT: Final = "no_complete_count"
NO_LOG_END: Final = "no_log_end"

LAG_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        NO_START_OFFSET: "the SPSO is not decided: no member has fetched since the group was made or reset",
        NO_COMPLETE_COUNT: "no delivery complete count is stored: a broker before 4.2 has written the state, "
        "or the count is wrong and stands at -1",
        NO_LOG_END: "where the log ends is not known: the topic is gone, has no leader, or is not shown to the monitor",
    }
)
"""Why the lag of a share partition is -1, the first that holds."""


class GroupSetting(NamedTuple):
    """
    What is known of a group's settings.

    Attributes:
        delivery_count_limit: ``share.delivery.count.limit``. [deliveries]
        max_record_locks: ``share.partition.max.record.locks``. [records]
        offset_reset: ``share.auto.offset.reset``; None if it is not known.
        is_assumed: Whether the cluster has not said the two limits, so that Kafka's defaults are assumed.
    """

    delivery_count_limit: int
    max_record_locks: int
    offset_reset: str | None
    is_assumed: bool


ASSUMED: Final = GroupSetting(ShareConfig().delivery_count_limit, ShareConfig().max_record_locks, None, is_assumed=True)
"""The settings of a group that the cluster says nothing of."""


def group_setting(configs: Mapping[str, str] | None) -> GroupSetting:
    """Return the settings of a group from what a cluster says of it; None for nothing."""
    configs = configs or {}
    limit, locks = (configs.get(f"share.{name}", "") for name in ("delivery.count.limit", "partition.max.record.locks"))
    reset = configs.get("share.auto.offset.reset")
    if not (limit.isdecimal() and locks.isdecimal()):
        return ASSUMED._replace(offset_reset=reset)
    return GroupSetting(int(limit), int(locks), reset, is_assumed=False)


class PartitionReading(NamedTuple):
    """
    What is known of a share partition; offsets and counts are those that are stored.

    Attributes:
        key: The share partition.
        topic: The name of its topic; ``id:`` and the id if the cluster has or shows no such topic.
        state_partition: The partition of the state topic.
        start_offset: The SPSO; -1 if there is none yet.
        moved_ms: The timestamp of the record in which it got there; None if that is not known. [ms since 1970]
        is_moved_at_least: Whether it may have been there before that.
        complete_count: Kafka's delivery complete count; -1 for none. [records]
        done_count: The records at or above the SPSO that are stored as done. [records]
        log: The offsets that the log has; None if they are not known.
        lag: As brokers count it; None if they cannot. [records]
        corrected_lag: The records that are to be delivered or finished; None if that is not known. [records]
        unfinished_offset: The first offset at or above the SPSO that is not stored as done; None without an SPSO, or
            if it is the log end.
        unfinished_delivery_count: How often it was delivered, as far as that is stored. [deliveries]
        near_limit_count: The records that were delivered and have one delivery left, or none. [records]
        in_flight_count: The offsets from the SPSO to the last one that is stored. [offsets]
        delivery_counts: How many records that are stored and not done were delivered how often.
        state_epoch: The epoch of the state.
        leader_epoch: The epoch of the last leader that has read it.
        needed_offset: The offset of its last snapshot in the state topic; None if that was deleted.
        happened: What has happened to it.
    """

    key: SharePartitionKey
    topic: str
    state_partition: int
    start_offset: int
    moved_ms: int | None
    is_moved_at_least: bool
    complete_count: int
    done_count: int
    log: range | None
    lag: int | None
    corrected_lag: int | None
    unfinished_offset: int | None
    unfinished_delivery_count: int
    near_limit_count: int
    in_flight_count: int
    delivery_counts: Mapping[int, int]
    state_epoch: int
    leader_epoch: int
    needed_offset: int | None
    happened: Happened

    def lag_reason(self) -> str | None:
        """Return why the lag is -1, one of LAG_REASONS; None if it is known."""
        if self.lag is not None:
            return None
        if self.start_offset == UNINITIALIZED_START_OFFSET:
            return NO_START_OFFSET
        return NO_COMPLETE_COUNT if self.complete_count == UNINITIALIZED_COUNT else NO_LOG_END


class StatePartitionReading(NamedTuple):
    """
    What is known of a partition of the state topic.

    Attributes:
        number: Its number.
        offsets: The offsets that it has.
        bytes_per_record: The mean size of the keys and values that were read. [bytes]
        redundant_count: The offsets that can be deleted. [offsets]
        blocked_by: The share partition whose last snapshot keeps what comes after it, and the name of its topic.
        blocked_count: How many more offsets could be deleted if that had a new snapshot. [offsets]
        missed_count: The offsets that brokers had deleted before they were read. [offsets]
        unreadable_count: The records that could not be read. [records]
    """

    number: int
    offsets: range
    bytes_per_record: float
    redundant_count: int
    blocked_by: tuple[SharePartitionKey, str] | None
    blocked_count: int
    missed_count: int
    unreadable_count: int


class Reading(NamedTuple):
    """
    What is known at one moment.

    Attributes:
        at_ms: When the log ends were asked for, which was after the state topic was read. [ms since 1970]
        share_partitions: Each share partition that has state, by group, topic id and partition.
        state_partitions: Each partition of the state topic.
        settings: The settings of each group that has share partitions.
        restarts: How often all of the topic or of a partition was read again.
    """

    at_ms: int
    share_partitions: tuple[PartitionReading, ...]
    state_partitions: tuple[StatePartitionReading, ...]
    settings: Mapping[str, GroupSetting]
    restarts: int


class ClusterReading(NamedTuple):
    """
    What a cluster says besides its state topic.

    Attributes:
        offsets: The offsets of each partition of the state topic.
        logs: The offsets that the logs of share partitions have, as far as they are known.
        names: The names of topics by id.
        configs: The settings of groups, as far as they are known.
    """

    offsets: Mapping[int, range]
    logs: Mapping[SharePartitionKey, range]
    names: Mapping[str, str]
    configs: Mapping[str, Mapping[str, str]]


def reading_of(follower: Follower, around: ClusterReading, at_ms: int) -> Reading:
    """
    Return what is known.

    Complexity:
        O(n) in the state batches of all share partitions.
    """
    followed = follower.share_partitions()
    settings = {
        group_id: group_setting(around.configs.get(group_id))
        for group_id in {each.key.group_id for each, _ in followed}
    }
    return Reading(
        at_ms,
        tuple(_of_share_partition(*each, settings[each[0].key.group_id], around) for each in followed),
        tuple(
            _of_state_partition(each, around)
            for number, each in sorted(follower.partitions.items())
            if number in around.offsets
        ),
        MappingProxyType(settings),
        follower.restarts,
    )


def _topic(key: SharePartitionKey, names: Mapping[str, str]) -> str:
    return names.get(key.topic_id, f"id:{key.topic_id}")


def _of_share_partition(
    rebuilt: RebuiltPartition, happened: Happened, setting: GroupSetting, around: ClusterReading
) -> PartitionReading:
    state, log = rebuilt.state, around.logs.get(rebuilt.key)
    unfinished = _first_unfinished(state)
    has_unfinished = unfinished is not None and (log is None or unfinished < log.stop)
    batches = state.state_batches
    counts: Counter[int] = Counter()
    for first, last, of_record, count in batches:
        if of_record not in TERMINAL:
            counts[count] += last - first + 1
    return PartitionReading(
        key=rebuilt.key,
        topic=_topic(rebuilt.key, around.names),
        state_partition=rebuilt.state_partition or 0,
        start_offset=state.start_offset,
        moved_ms=rebuilt.start_timestamp_ms,
        is_moved_at_least=rebuilt.is_since_before,
        complete_count=state.delivery_complete_count,
        done_count=terminal_count(state),
        log=log,
        lag=None if log is None else rebuilt.lag(log.stop),
        corrected_lag=_corrected_lag(rebuilt, happened.miscounted, log, setting.offset_reset),
        unfinished_offset=unfinished if has_unfinished else None,
        unfinished_delivery_count=_delivery_count(state, unfinished) if has_unfinished else 0,
        near_limit_count=rebuilt.count_near_limit(setting.delivery_count_limit),
        in_flight_count=rebuilt.in_flight_count,
        delivery_counts=MappingProxyType(counts),
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        needed_offset=state.snapshot_offset,
        happened=evolve(happened),
    )


def _first_unfinished(state: StoredState) -> int | None:
    """Return the first offset at or above the SPSO that is not stored as done; None without an SPSO."""
    if state.start_offset < 0:
        return None
    unfinished = state.start_offset
    for first, last, of_record, _ in state.state_batches:
        if first > unfinished or of_record not in TERMINAL:
            break
        unfinished = max(unfinished, last + 1)
    return unfinished


def _delivery_count(state: StoredState, offset: int | None) -> int:
    return next((count for first, last, _, count in state.state_batches if first <= (offset or 0) <= last), 0)


def _corrected_lag(
    rebuilt: RebuiltPartition, miscounted: str | None, log: range | None, offset_reset: str | None
) -> int | None:
    """
    Return the records that are to be delivered or finished; None if that is not known.

    Where Kafka's count is missing or proved wrong, the records that are stored as done are counted, as the next leader
    will do. Records that brokers have deleted are no longer to be delivered; what is counted as done and not stored is
    taken to be among these, so that the lag is too high rather than too low. Without an SPSO, the next leader begins
    where the group's ``share.auto.offset.reset`` says.
    """
    state = rebuilt.state
    if log is None:
        return None
    if state.start_offset < 0:
        return {"earliest": len(log), "latest": 0}.get(offset_reset or "")
    stored = terminal_count(state)
    is_counted = miscounted is None and state.delivery_complete_count != UNINITIALIZED_COUNT
    done = state.delivery_complete_count if is_counted else stored
    deleted = max(log.start - state.start_offset, 0)
    deleted_done = done_count(state.state_batches, state.start_offset, log.start - 1) + done - stored
    # an unclean election may have cut the log off below the SPSO: then nothing is left
    return max(log.stop - state.start_offset - done - max(deleted - deleted_done, 0), 0)


def _of_state_partition(followed: FollowedPartition, around: ClusterReading) -> StatePartitionReading:
    offsets = around.offsets[followed.number]
    pruning = followed.rebuilt.pruning()
    key = pruning.key
    return StatePartitionReading(
        followed.number,
        offsets,
        followed.read_bytes / followed.read_count if followed.read_count else 0.0,
        max((pruning.redundant_offset or 0) - offsets.start, 0),
        None if key is None else (key, _topic(key, around.names)),
        pruning.blocked_count,
        followed.missed_count,
        followed.unreadable_count,
    )
