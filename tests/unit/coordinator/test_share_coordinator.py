"""A share coordinator over its log: all of a transaction or nothing, alone or beside others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import pytest

from sharestate import (
    ErrorCode,
    InvalidConfigurationError,
    MalformedInputError,
    SharePartitionKey,
    StateBatch,
    StateLogError,
)
from sharestate.coordinator import (
    CoordinatorConfig,
    CoordinatorShard,
    LoggedRecord,
    LogOffsets,
    MemoryLog,
    Outcome,
    ShareCoordinator,
    ShareUpdate,
    StateRecord,
    decode_record,
    encode_record,
)

TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
KEY = SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=0)
OTHER = SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=1)
CONFIG = CoordinatorConfig(updates_per_snapshot=2, cold_snapshot_interval_ms=100)


def begin(shard: CoordinatorShard, key: SharePartitionKey = KEY, now_ms: int = 1000) -> Outcome:
    """Initialize a share partition."""
    return shard.initialize(key, state_epoch=1, start_offset=0, now_ms=now_ms)


def write(shard: CoordinatorShard, start_offset: int, key: SharePartitionKey = KEY) -> Outcome:
    """Write a start offset and the batch before it."""
    batch = StateBatch(start_offset, start_offset + 9, 2, 1)
    return shard.write(
        key, state_epoch=1, leader_epoch=0, start_offset=start_offset, state_batches=(batch,), now_ms=1000
    )


def starts(coordinator: ShareCoordinator) -> dict[int, int]:
    """Return the start offset of each partition."""
    return {key.partition: state.start_offset for key, state in coordinator.states.items()}


def test_each_operation_finds_what_those_before_it_have_changed() -> None:
    """A request with several entries is one transaction, in which they come one after the other."""
    log = MemoryLog()
    coordinator = ShareCoordinator(log, config=CONFIG)
    outcomes = coordinator.run(begin, partial(write, start_offset=5), lambda shard: shard.summarize(KEY))

    assert [outcome.error_code for outcome in outcomes] == [ErrorCode.NONE] * 3
    assert outcomes[2].state is not None
    assert outcomes[2].state.start_offset == 5
    assert log.offsets() == LogOffsets(0, 2)


def test_a_successor_finds_everything() -> None:
    """A coordinator that loads a log has the states of the one that has written it."""
    log = MemoryLog()
    coordinator = ShareCoordinator(log, config=CONFIG)
    coordinator.run(begin, partial(begin, key=OTHER))
    for offset in (10, 20, 30, 40):
        coordinator.run(partial(write, start_offset=offset))
    coordinator.run(lambda shard: shard.delete(OTHER))

    assert dict(ShareCoordinator(log, config=CONFIG).states) == dict(coordinator.states)


def test_two_coordinators_keep_up_with_each_other() -> None:
    """What one has logged the other one finds before it does anything."""
    log = MemoryLog()
    first, second = ShareCoordinator(log, config=CONFIG), ShareCoordinator(log, config=CONFIG)
    first.run(begin)
    second.run(partial(write, start_offset=7))
    first.run(lambda shard: shard.read(KEY, leader_epoch=3, now_ms=0))
    (late,) = second.run(partial(write, start_offset=9))

    assert late.error_code is ErrorCode.FENCED_LEADER_EPOCH
    assert starts(first) == starts(second) == {0: 7}


def test_who_has_missed_pruned_records_loads_anew() -> None:
    """A deletion that happened among them is not overlooked."""
    log = MemoryLog()
    first, second = ShareCoordinator(log, config=CONFIG), ShareCoordinator(log, config=CONFIG)
    first.run(begin, partial(begin, key=OTHER))
    assert starts(second) == {0: 0, 1: 0}
    first.run(lambda shard: shard.delete(OTHER))
    first.run(begin)
    first.run(begin)
    assert first.prune(now_ms=1000) == 4

    assert starts(second) == {0: 0}
    assert dict(second.states) == dict(ShareCoordinator(log, config=CONFIG).states)


def test_a_log_that_was_replaced_by_an_older_one_is_loaded_anew() -> None:
    """A log that ends before what was read of it is another one."""
    log = MemoryLog()
    coordinator = ShareCoordinator(log, config=CONFIG)
    coordinator.run(begin, partial(write, start_offset=5))
    log._records = log._records[:1]  # noqa: SLF001 - as a file that was restored

    assert starts(coordinator) == {0: 0}


class CountingLog(MemoryLog):
    """A log that counts the records that are read from it."""

    count = 0

    def read(self, offset: int) -> Sequence[LoggedRecord]:
        """Return the records from *offset* on."""
        records = super().read(offset)
        self.count += len(records)
        return records


def test_each_record_is_read_once_by_who_has_not_written_it() -> None:
    """A transaction costs what is done in it, however long the log is."""
    log = CountingLog()
    one, other = ShareCoordinator(log), ShareCoordinator(log)
    for number in range(6):
        one.run(partial(begin, now_ms=number), partial(begin, key=OTHER))
    assert log.count == 0
    assert starts(other) == starts(one) == {0: 0, 1: 0}
    assert log.count == 12

    other.run(partial(write, start_offset=5))
    assert starts(other) == starts(one) == {0: 5, 1: 0}
    assert log.count == 12 + 1


def test_snapshots_come_after_as_many_updates_whoever_has_written_them() -> None:
    """Each update counts once (ShareCoordinatorShard.shouldGenerateSnapshot)."""
    log = MemoryLog()
    coordinators = [ShareCoordinator(log, config=CONFIG), ShareCoordinator(log, config=CONFIG)]
    coordinators[0].run(begin)
    for offset in range(8):
        coordinators[offset // 2 % 2].run(partial(write, start_offset=offset))

    kinds = [decode_record(key, value).record_type for _, key, value in log.read(0)]
    assert "".join("Su"[kind] for kind in kinds) == "SuuSuuSuu"


def test_what_is_cold_stays_when_all_before_it_is_pruned() -> None:
    """After however many transactions: the records that are left are those that were written last."""
    log = MemoryLog()
    coordinator = ShareCoordinator(log, config=CONFIG)
    coordinator.run(begin, partial(begin, key=OTHER))
    coordinator.run(partial(write, start_offset=5))
    coordinator.run(partial(write, start_offset=6, key=OTHER))

    assert coordinator.prune(now_ms=2000) == 4

    assert log.offsets() == LogOffsets(4, 6)
    assert starts(ShareCoordinator(log, config=CONFIG)) == starts(coordinator) == {0: 5, 1: 6}


def test_where_nothing_can_be_pruned_nothing_is_written() -> None:
    """Neither what is fenced, which the log still has."""
    log = MemoryLog()
    coordinator = ShareCoordinator(log, config=CONFIG)
    coordinator.run(begin, begin, partial(begin, key=OTHER))
    assert coordinator.prune(now_ms=1000) == 1
    coordinator.run(lambda shard: shard.read(OTHER, leader_epoch=5, now_ms=0), partial(begin, key=OTHER))
    before = log.offsets()

    assert coordinator.prune(now_ms=1000) == 0
    assert log.offsets() == before


def test_pruning_writes_old_states_again() -> None:
    """What is cold is written as a snapshot, so that the records before it can go; the states stay."""
    log = MemoryLog()
    coordinator = ShareCoordinator(log, config=CONFIG)
    coordinator.run(begin, partial(begin, key=OTHER, now_ms=2000))
    coordinator.run(partial(write, start_offset=5), partial(write, start_offset=6))
    assert coordinator.prune(now_ms=1000) == 0
    assert log.offsets() == LogOffsets(0, 4)

    assert coordinator.prune(now_ms=1100) == 1
    assert log.offsets() == LogOffsets(1, 5)
    assert starts(ShareCoordinator(log, config=CONFIG)) == starts(coordinator) == {0: 6, 1: 0}


def test_old_leaders_stay_fenced_when_records_are_gone() -> None:
    """An initialization has stored leader epoch 0; what fences the leaders before it is written again."""
    log = MemoryLog()
    coordinator = ShareCoordinator(log, config=CONFIG)
    coordinator.run(begin, lambda shard: shard.read(KEY, leader_epoch=5, now_ms=0), begin)
    assert coordinator.states[KEY].leader_epoch == 0
    assert coordinator.prune(now_ms=1000) == 2
    successor = ShareCoordinator(log, config=CONFIG)
    (late,) = successor.run(lambda shard: shard.read(KEY, leader_epoch=4, now_ms=0))

    assert late.error_code is ErrorCode.FENCED_LEADER_EPOCH
    assert log.offsets() == LogOffsets(2, 4)
    assert coordinator.prune(now_ms=1000) == 0
    assert log.offsets() == LogOffsets(2, 4)


def test_a_successor_writes_nothing_where_all_was_pruned() -> None:
    """It knows of nothing that can go before it has loaded the log; then that is where the log begins."""
    log = MemoryLog()
    coordinator = ShareCoordinator(log, config=CONFIG)
    coordinator.run(begin, lambda shard: shard.read(KEY, leader_epoch=5, now_ms=0), begin)
    coordinator.prune(now_ms=1000)

    assert ShareCoordinator(log, config=CONFIG).prune(now_ms=1000) == 0
    assert log.offsets() == LogOffsets(2, 4)


def test_an_empty_log_is_not_pruned() -> None:
    """There is nothing to delete."""
    assert ShareCoordinator(MemoryLog()).prune(now_ms=0) == 0


class FailingLog(MemoryLog):
    """A log whose transactions fail when it is told so."""

    appending = ending = False

    def append(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Append records, and perhaps fail."""
        super().append(records)
        if self.appending:
            message = "no space"
            raise StateLogError(message)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Return the context of a transaction, of which nobody may know how it has ended."""
        with super().transaction():
            yield
        if self.ending:
            message = "no answer"
            raise StateLogError(message)


def test_what_cannot_be_logged_has_not_happened() -> None:
    """The shard is rolled back with the log, and goes on where it was."""
    log = FailingLog()
    coordinator = ShareCoordinator(log, config=CONFIG)
    coordinator.run(begin)
    log.appending = True
    with pytest.raises(StateLogError, match="no space"):
        coordinator.run(partial(write, start_offset=5), partial(begin, key=OTHER))
    log.appending = False

    assert (starts(coordinator), log.offsets()) == ({0: 0}, LogOffsets(0, 1))
    coordinator.run(partial(write, start_offset=6))
    assert starts(coordinator) == starts(ShareCoordinator(log, config=CONFIG)) == {0: 6}


def test_what_others_have_logged_stays_known() -> None:
    """Also if what is tried after that fails: only that has not happened."""
    log = FailingLog()
    one, other = ShareCoordinator(log, config=CONFIG), ShareCoordinator(log, config=CONFIG)
    one.run(begin, partial(write, start_offset=5))
    log.appending = True
    with pytest.raises(StateLogError, match="no space"):
        other.run(partial(begin, key=OTHER))
    log.appending = False

    assert starts(other) == starts(one) == {0: 5}


def test_what_may_have_been_logged_is_looked_up() -> None:
    """If the end of a transaction fails, the next one finds out whether its records are there."""
    log = FailingLog()
    coordinator = ShareCoordinator(log, config=CONFIG)
    coordinator.run(begin)
    log.ending = True
    with pytest.raises(StateLogError, match="no answer"):
        coordinator.run(partial(write, start_offset=5))
    log.ending = False

    assert starts(coordinator) == {0: 5}
    assert log.offsets() == LogOffsets(0, 2)


def test_what_cannot_be_written_down_is_refused_as_a_whole() -> None:
    """A topic id that is none has no bytes; nothing of the transaction happens."""
    log = MemoryLog()
    coordinator = ShareCoordinator(log)
    nameless = SharePartitionKey(group_id="g", topic_id="t", partition=0)

    with pytest.raises(MalformedInputError, match="topic_id"):
        coordinator.run(begin, partial(begin, key=nameless))

    assert (dict(coordinator.states), log.offsets()) == ({}, LogOffsets(0, 0))


def test_records_of_unknown_types_are_skipped() -> None:
    """A later release may have written them for something else."""
    log = MemoryLog()
    log.append([(b"\0\7?", b"?")])
    coordinator = ShareCoordinator(log)
    coordinator.run(begin)

    assert starts(coordinator) == {0: 0}
    assert decode_record(*next(iter(log.read(1)))[1:]).key == KEY


REVERSED = encode_record(
    StateRecord(
        KEY, ShareUpdate(snapshot_epoch=0, leader_epoch=0, start_offset=0, state_batches=(StateBatch(9, 4, 0, 1),))
    )
)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ((b"\0\0", b""), "the record with offset 1 cannot be read: key, byte 2: the length of the group id takes"),
        (REVERSED, "the record with offset 1 cannot be read: state_batches: the state batch is reversed: 9-4"),
    ],
)
def test_a_record_that_cannot_be_read_stops_the_coordinator(record: tuple[bytes, bytes], message: str) -> None:
    """Nothing is done on top of a state that is not known; the error says where the record is."""
    log = MemoryLog()
    coordinator = ShareCoordinator(log)
    coordinator.run(begin)
    log.append([record])

    for attempt in (lambda: coordinator.run(begin), lambda: ShareCoordinator(log)):
        with pytest.raises(StateLogError) as refused:
            attempt()
        assert str(refused.value).startswith(message)
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.offsets() == LogOffsets(0, 2)


@pytest.mark.parametrize("release", ["4.2", "4.3", "4.4"])
def test_the_settings_of_a_share_coordinator_are_read_from_kafkas(release: str) -> None:
    """By the names of ShareCoordinatorConfig; a value that brokers refuse is refused with its name."""
    settings = {
        "share.coordinator.snapshot.update.records.per.snapshot": "100",
        "share.coordinator.cold.partition.snapshot.interval.ms": "200",
        "share.coordinator.state.topic.prune.interval.ms": "300",
    }

    config = CoordinatorConfig.from_kafka(settings, release=release)

    assert config == CoordinatorConfig(updates_per_snapshot=100, cold_snapshot_interval_ms=200, prune_interval_ms=300)
    assert CoordinatorConfig.from_kafka({}, release=release) == CoordinatorConfig()
    with pytest.raises(InvalidConfigurationError) as caught:
        CoordinatorConfig.from_kafka({"share.coordinator.state.topic.prune.interval.ms": "0"}, release=release)
    assert caught.value.key == "share.coordinator.state.topic.prune.interval.ms"
