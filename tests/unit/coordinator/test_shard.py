"""A shard of the share coordinator: its epochs, records and roll-backs, release by release."""

from __future__ import annotations

import pytest

from sharestate import ErrorCode, MalformedInputError, RecordFormatError, SharePartitionKey, StateBatch
from sharestate.coordinator import (
    COORDINATOR_4_2,
    COORDINATOR_4_3,
    COORDINATOR_4_4,
    COORDINATOR_PROFILES,
    COORDINATOR_TRUNK,
    CoordinatorConfig,
    CoordinatorProfile,
    Outcome,
    RecordType,
    ShareSnapshot,
    ShareUpdate,
    StateRecord,
    StoredState,
)
from sharestate.coordinator.shard import malformed_key
from tests.support.logged_shard import KEY, OTHER, TOPIC_ID, Coordinator, led

ALL = list(COORDINATOR_PROFILES.values())

every_release = pytest.mark.parametrize("profile", ALL, ids=lambda profile: profile.name)


def code(outcome: Outcome) -> str:
    """Return the name of an error code."""
    return outcome.error_code.name


# ---- refusals


@pytest.mark.parametrize(
    ("topic_id", "partition", "message"),
    [(None, -1, "The topic id cannot be null."), (TOPIC_ID, -1, "The partition id cannot be a negative number.")],
)
def test_what_names_no_share_partition_is_refused(topic_id: str | None, partition: int, message: str) -> None:
    """A request without a topic id, or for a negative partition, is an invalid one."""
    assert malformed_key(topic_id, partition) == Outcome(ErrorCode.INVALID_REQUEST, message)
    assert malformed_key(TOPIC_ID, 0) is None


@every_release
def test_requests_before_the_initialization_are_refused(profile: CoordinatorProfile) -> None:
    """Reads and writes are, in Kafka's words; a summary finds nothing, and a deletion writes nothing."""
    coordinator = Coordinator(profile)

    assert coordinator.read(0)[:2] == (
        ErrorCode.INVALID_REQUEST,
        "Read operation on uninitialized share partition not allowed.",
    )
    assert coordinator.write()[:2] == (
        ErrorCode.INVALID_REQUEST,
        "Write operation on uninitialized share partition not allowed.",
    )
    assert coordinator.shard.summarize(KEY) == Outcome()
    assert coordinator.shard.delete(KEY) == Outcome()


@every_release
def test_a_partition_that_does_not_exist_is_refused(profile: CoordinatorProfile) -> None:
    """Every request for a topic partition that the metadata lack is refused, after the epochs were looked at."""
    coordinator = led(profile)
    coordinator.shard.has_partition = lambda _: False
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.", (), None)

    assert coordinator.begin() == unknown
    assert coordinator.read(6) == unknown
    assert coordinator.write() == unknown
    assert coordinator.shard.delete(KEY) == unknown
    assert coordinator.shard.summarize(KEY) == unknown
    assert code(coordinator.write(leader=4)) == "FENCED_LEADER_EPOCH"


@every_release
def test_older_epochs_are_fenced(profile: CoordinatorProfile) -> None:
    """The leader epoch is looked at before the state epoch; equal and higher ones are taken."""
    coordinator = led(profile)

    assert code(coordinator.read(4)) == "FENCED_LEADER_EPOCH"
    assert code(coordinator.write(leader=4, state=0)) == "FENCED_LEADER_EPOCH"
    assert code(coordinator.write(state=0)) == "FENCED_STATE_EPOCH"
    assert code(coordinator.begin(state_epoch=0)) == "FENCED_STATE_EPOCH"
    assert [code(coordinator.write(leader=6, state=2)), code(coordinator.begin())] == ["NONE", "NONE"]


@pytest.mark.parametrize(
    ("profile", "text"),
    [
        (
            COORDINATOR_4_2,
            "The share coordinator rejected the request because the share-group state epoch did not match.",
        ),
        (
            COORDINATOR_4_3,
            "The share coordinator rejected the request because the share-group state epoch did not match.",
        ),
        (COORDINATOR_4_4, "The coordinator rejected the request because the state epoch did not match."),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_each_release_has_its_words_for_a_state_epoch(profile: CoordinatorProfile, text: str) -> None:
    """The text of FENCED_STATE_EPOCH was changed in 4.4."""
    assert led(profile).write(state=0).error_message == text


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (COORDINATOR_4_2, ["FENCED_LEADER_EPOCH", "NONE", "NONE", "NONE"]),
        (COORDINATOR_4_3, ["NONE", "NONE", "NONE", "NONE"]),
        (COORDINATOR_4_4, ["INVALID_REQUEST"] * 4),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_no_epoch_is_judged_release_by_release(profile: CoordinatorProfile, expected: list[str]) -> None:
    """-1 is no epoch to 4.2, but for readers, and to 4.3; 4.4 refuses what is negative."""
    coordinator = led(profile)
    outcomes = [
        coordinator.read(-1),
        coordinator.write(leader=-1),
        coordinator.write(state=-1),
        coordinator.begin(state_epoch=-1),
    ]

    assert list(map(code, outcomes)) == expected
    assert coordinator.state.highest_leader_epoch == 5


def test_a_negative_epoch_has_a_text() -> None:
    """4.4 says which epoch is negative, the leader's first, whether the share partition is initialized or not."""
    coordinator = Coordinator(COORDINATOR_4_4)

    assert coordinator.read(-2).error_message == "The leader epoch cannot be a negative number."
    assert coordinator.write(leader=-1, state=-1).error_message == "The leader epoch cannot be a negative number."
    assert coordinator.write(state=-1).error_message == "The state epoch cannot be a negative number."


@every_release
@pytest.mark.parametrize("rows", [[(9, 4, 0, 1)], [(4, 9, 4, 1), (5, 2, 2, 2)]])
def test_a_reversed_batch_is_refused(profile: CoordinatorProfile, rows: list[tuple[int, int, int, int]]) -> None:
    """Nothing changes; Kafka's combiners loop for ever or throw if such a batch meets another one."""
    coordinator = led(profile)
    before = coordinator.state

    assert code(coordinator.write(*rows)) == "INVALID_REQUEST"
    assert coordinator.state is before


# ---- what is written


@every_release
def test_an_initialization_starts_anew(profile: CoordinatorProfile) -> None:
    """It writes a snapshot without batches, of leader epoch 0; the old leaders stay fenced all the same."""
    coordinator = led(profile)
    coordinator.write((10, 19, 0, 1))
    coordinator.now_ms = 2000
    (record,) = coordinator.begin(state_epoch=3, start_offset=-1).records

    assert record == StateRecord(
        KEY,
        ShareSnapshot(
            snapshot_epoch=1,
            state_epoch=3,
            leader_epoch=0,
            start_offset=-1,
            create_timestamp_ms=2000,
            write_timestamp_ms=2000,
        ),
    )
    assert (coordinator.state.leader_epoch, coordinator.state.highest_leader_epoch) == (0, 5)
    assert code(coordinator.write(leader=4, state=3)) == "FENCED_LEADER_EPOCH"


def test_trunk_ignores_an_initialization_that_changes_nothing() -> None:
    """An equal one writes nothing, another start offset does (ShareCoordinatorShardTest, commit 1df8219b3b66)."""
    coordinator = Coordinator(COORDINATOR_TRUNK)
    written = [len(coordinator.begin(state_epoch=5, start_offset=start).records) for start in (10, 10, 20)]

    assert written == [1, 0, 1]


def test_trunk_still_forgets_what_was_written_after_an_initialization() -> None:
    """Once a leader has moved the start offset, the initialization that comes again is not equal any more (C2)."""
    coordinator = led(COORDINATOR_TRUNK)
    coordinator.write((52, 56, 2, 1), start=50)

    assert len(coordinator.begin(start_offset=10).records) == 1
    assert (coordinator.state.start_offset, coordinator.state.state_batches) == (10, ())


@pytest.mark.parametrize(("start_offset", "complete"), [(-1, -1), (0, 0), (100, 0)])
def test_the_complete_count_starts_with_the_offset(start_offset: int, complete: int) -> None:
    """The delivery complete count is 0 once there is a start offset, and -1 before."""
    coordinator = Coordinator()
    coordinator.begin(start_offset=start_offset)

    assert coordinator.state.delivery_complete_count == complete


@every_release
def test_only_reads_raise_the_leader_epoch(profile: CoordinatorProfile) -> None:
    """A read with a new epoch writes it, with nothing else; one with the same epoch writes nothing."""
    coordinator = led(profile)
    coordinator.write((10, 19, 0, 1), start=12, complete=3, leader=9)
    outcome = coordinator.read(7)

    assert outcome.records == (
        StateRecord(KEY, ShareUpdate(snapshot_epoch=0, leader_epoch=7, start_offset=12, delivery_complete_count=3)),
    )
    assert outcome.state is not None
    assert (outcome.state.leader_epoch, outcome.state.state_batches) == (5, (StateBatch(12, 19, 0, 1),))
    assert coordinator.read(7).records == ()
    assert (coordinator.state.leader_epoch, coordinator.state.highest_leader_epoch) == (7, 7)


@pytest.mark.parametrize(
    ("updates", "kinds"),
    [(0, "S S S S S S S"), (1, "S u S u S u S"), (2, "S u u S u u S")],
)
def test_a_snapshot_comes_after_so_many_updates(updates: int, kinds: str) -> None:
    """Each run of updates has the length that is configured, the first one too."""
    coordinator = Coordinator(updates_per_snapshot=updates)
    records = list(coordinator.begin().records)
    for offset in range(10, 16):
        records += coordinator.write((offset, offset, 2, 1)).records
    written = ["S" if record.record_type is RecordType.SHARE_SNAPSHOT else "u" for record in records]

    assert " ".join(written) == kinds


def test_a_snapshot_has_everything() -> None:
    """It has the batches of all writes, and the start offset and time of the last one."""
    coordinator = led(updates_per_snapshot=2)
    coordinator.write((10, 19, 0, 1))
    coordinator.now_ms = 3000
    (record,) = coordinator.write((15, 19, 2, 1), complete=5).records

    assert record.value == ShareSnapshot(
        snapshot_epoch=1,
        state_epoch=1,
        leader_epoch=5,
        start_offset=10,
        create_timestamp_ms=3000,
        write_timestamp_ms=3000,
        state_batches=(StateBatch(10, 14, 0, 1), StateBatch(15, 19, 2, 1)),
        delivery_complete_count=5,
    )
    assert (coordinator.state.update_count, coordinator.state.snapshot_offset) == (0, 3)


def test_an_update_has_its_own_batches_combined() -> None:
    """They are combined among themselves and cut at their own start offset."""
    (record,) = led().write((10, 19, 0, 1), (15, 17, 2, 1), start=12).records

    assert isinstance(record.value, ShareUpdate)
    assert record.value.state_batches == (
        StateBatch(12, 14, 0, 1),
        StateBatch(15, 17, 2, 1),
        StateBatch(18, 19, 0, 1),
    )


@pytest.mark.parametrize("updates", [0, 500])
@pytest.mark.parametrize(
    ("profile", "writes", "stored"),
    [
        (COORDINATOR_4_3, [(20, 4), (15, 7)], (15, 7)),
        (COORDINATOR_4_3, [(20, 4), (20, 2)], (20, 2)),
        (COORDINATOR_4_3, [(20, 4), (-1, -1)], (20, -1)),
        (COORDINATOR_4_4, [(20, 4), (15, 7)], (20, 4)),
        (COORDINATOR_4_4, [(20, 4), (20, 2)], (20, 4)),
        (COORDINATOR_4_4, [(20, 4), (20, 9)], (20, 9)),
        (COORDINATOR_4_4, [(20, 4), (25, 1)], (25, 1)),
        (COORDINATOR_4_4, [(20, 4), (-1, 7)], (20, 4)),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_late_write_is_judged_release_by_release(
    profile: CoordinatorProfile, writes: list[tuple[int, int]], stored: tuple[int, int], updates: int
) -> None:
    """
    Up to 4.3 the last write wins, with its start offset and complete count.

    From 4.4 on the start offset never moves back, and the count belongs to the highest one.
    """
    coordinator = led(profile, updates_per_snapshot=updates)
    for start, complete in writes:
        coordinator.write(start=start, complete=complete)

    assert (coordinator.state.start_offset, coordinator.state.delivery_complete_count) == stored


def test_a_late_write_is_cut_at_the_stored_offset() -> None:
    """The update of 4.4 carries the stored start offset, and only batches from there on."""
    coordinator = led(COORDINATOR_4_4)
    coordinator.write(start=20)
    (record,) = coordinator.write((10, 29, 2, 1), start=10).records

    assert isinstance(record.value, ShareUpdate)
    assert (record.value.start_offset, record.value.state_batches) == (20, (StateBatch(20, 29, 2, 1),))


def test_an_unknown_start_offset_stays_unknown() -> None:
    """Before any start offset is known an update carries -1, and drops no batch."""
    coordinator = Coordinator(COORDINATOR_4_4)
    coordinator.begin(start_offset=-1)
    (record,) = coordinator.write((10, 29, 2, 1)).records

    assert isinstance(record.value, ShareUpdate)
    assert record.value.start_offset == -1
    assert coordinator.state.state_batches == (StateBatch(10, 29, 2, 1),)


@every_release
def test_a_deletion_leaves_nothing(profile: CoordinatorProfile) -> None:
    """It writes a tombstone, after which the epochs start anew; a second one writes nothing."""
    coordinator = led(profile)

    assert coordinator.log(coordinator.shard.delete(KEY)).records == (StateRecord(KEY, None),)
    assert coordinator.shard.states == {}
    assert coordinator.log(coordinator.shard.delete(KEY)) == Outcome()
    assert [code(coordinator.begin(state_epoch=0)), code(coordinator.read(0))] == ["NONE", "NONE"]


def test_the_state_of_deleted_topics_is_deleted() -> None:
    """A tombstone is written for each share partition of the topics, although they exist no more."""
    coordinator = led()
    coordinator.begin(OTHER)
    coordinator.shard.has_partition = lambda _: False

    assert coordinator.log(coordinator.shard.delete_topics({TOPIC_ID})).records == (StateRecord(KEY, None),)
    assert list(coordinator.shard.states) == [OTHER]


# ---- replay


def test_an_update_without_its_snapshot_is_all_that_is_known() -> None:
    """After a deletion of redundant records a log may begin with updates; no state epoch fences anybody then."""
    coordinator = Coordinator()
    update = ShareUpdate(
        snapshot_epoch=3, leader_epoch=2, start_offset=110, state_batches=(StateBatch(110, 112, 0, 1),)
    )
    coordinator.log(Outcome(records=(StateRecord(KEY, update),)))

    assert coordinator.state == StoredState(
        state_epoch=0,
        start_offset=110,
        highest_state_epoch=None,
        leader_epoch=2,
        highest_leader_epoch=2,
        state_batches=(StateBatch(110, 112, 0, 1),),
        snapshot_epoch=3,
        update_count=1,
    )
    assert [code(coordinator.write(state=-7)), coordinator.shard.redundant_offset()] == ["NONE", None]
    assert code(coordinator.begin(state_epoch=4)) == "NONE"
    assert (coordinator.state.highest_state_epoch, coordinator.state.update_count) == (4, 2)


def test_an_update_without_an_epoch_or_offset_keeps_those_known() -> None:
    """-1 in an update stands for what is known; an older leader epoch lowers no maximum."""
    coordinator = led()
    for leader_epoch in (-1, 3):
        update = ShareUpdate(snapshot_epoch=9, leader_epoch=leader_epoch, start_offset=-1)
        coordinator.log(Outcome(records=(StateRecord(KEY, update),)))
        assert coordinator.state.leader_epoch == (5 if leader_epoch < 0 else leader_epoch)

    assert (coordinator.state.start_offset, coordinator.state.highest_leader_epoch) == (10, 5)
    assert coordinator.state.snapshot_epoch == 0


def test_a_tombstone_of_an_update_is_refused() -> None:
    """No coordinator writes one, and Kafka's fails on it."""
    with pytest.raises(RecordFormatError, match=r"^value, byte 0: a tombstone of an update"):
        Coordinator().shard.replay(0, StateRecord(KEY, None, RecordType.SHARE_UPDATE))


def test_a_reversed_batch_in_the_log_is_refused() -> None:
    """Kafka's combiners of 4.2 and 4.3 would never come to an end."""
    update = ShareUpdate(snapshot_epoch=0, leader_epoch=5, start_offset=-1, state_batches=(StateBatch(9, 4, 0, 1),))

    with pytest.raises(MalformedInputError, match="reversed: 9-4"):
        led().shard.replay(2, StateRecord(KEY, update))


# ---- appends that fail


def test_a_failed_append_is_rolled_back() -> None:
    """What was replayed since the last commit is gone: changes, new share partitions and deletions."""
    coordinator = led()
    coordinator.begin(OTHER)
    shard = coordinator.shard
    before = dict(shard.states), shard.redundant_offset()
    third = SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=1)
    records = [
        *shard.write(
            KEY, state_epoch=1, leader_epoch=5, start_offset=12, state_batches=(StateBatch(12, 13, 2, 1),), now_ms=0
        ).records,
        *shard.delete(KEY).records,
        *shard.delete(OTHER).records,
        *shard.initialize(third, state_epoch=0, start_offset=0, now_ms=0).records,
    ]
    for offset, record in enumerate(records, start=3):
        shard.replay(offset, record)
    assert (list(shard.states), shard.redundant_offset()) == ([third], 6)

    shard.roll_back()

    assert (shard.states, shard.redundant_offset()) == before
    shard.roll_back()
    assert (shard.states, shard.redundant_offset()) == before


def test_the_offset_of_what_could_not_be_logged_is_forgotten() -> None:
    """With nothing stored, it is the last tombstone that was logged from which on records are needed."""
    coordinator = Coordinator()
    coordinator.begin()
    coordinator.log(coordinator.shard.delete(KEY))
    outcome = coordinator.shard.initialize(KEY, state_epoch=1, start_offset=0, now_ms=0)
    coordinator.shard.replay(2, outcome.records[0])
    assert coordinator.shard.redundant_offset() == 2

    coordinator.shard.roll_back()

    assert coordinator.shard.redundant_offset() == 1


# ---- settings


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"updates_per_snapshot": 501}, "updates_per_snapshot"),
        ({"updates_per_snapshot": -1}, "updates_per_snapshot"),
        ({"cold_snapshot_interval_ms": 0}, "cold_snapshot_interval_ms"),
        ({"prune_interval_ms": 0}, "prune_interval_ms"),
    ],
)
def test_settings_have_kafkas_bounds(settings: dict[str, int], field: str) -> None:
    """A number that a broker would not start with is refused."""
    with pytest.raises(MalformedInputError) as refused:
        CoordinatorConfig(**settings)

    assert refused.value.field == field


def test_a_combiner_must_be_callable() -> None:
    """A profile without a combiner is refused."""
    with pytest.raises(MalformedInputError, match="combine"):
        CoordinatorProfile(name="mine", combine=None)  # type: ignore[arg-type] # that is the point


def test_a_write_whose_batches_nearly_all_overlap_is_refused() -> None:
    """Combining a thousand that all end in each other would take minutes; brokers send none that overlap."""
    coordinator = led()
    before = coordinator.state

    outcome = coordinator.write(*((10, 1_010 + each, 0, 30_000 - each) for each in range(1_000)))

    assert outcome.error_code is ErrorCode.INVALID_REQUEST
    assert outcome.records == ()
    assert coordinator.state == before


def test_a_shard_goes_on_from_what_another_one_had() -> None:
    """With its states and its last snapshot it writes what the other one would have written."""
    first, second = led(updates_per_snapshot=2), Coordinator(updates_per_snapshot=2)
    first.write((10, 19, 0, 1))
    second.shard.resume(first.shard.states, first.shard.last_snapshot)

    assert second.shard.last_snapshot == 0
    assert second.write((15, 19, 2, 1)).records == first.write((15, 19, 2, 1)).records


def test_what_a_shard_has_taken_over_is_final() -> None:
    """Records after that may fail to be logged, those before it have not."""
    first, second = led(), Coordinator()
    second.shard.resume(first.shard.states, first.shard.last_snapshot)
    (tombstone,) = second.shard.delete(KEY).records
    second.shard.replay(9, tombstone)
    assert (dict(second.shard.states), second.shard.last_snapshot) == ({}, 9)

    second.shard.roll_back()

    assert (second.shard.states, second.shard.last_snapshot) == (first.shard.states, first.shard.last_snapshot)
