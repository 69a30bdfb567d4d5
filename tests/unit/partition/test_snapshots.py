"""Snapshots: a share partition as one value, and back."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any, Final

import pytest
from attrs import evolve

from sharestate import (
    KAFKA_4_2,
    KAFKA_4_3,
    KIP_932,
    Cause,
    ErrorCode,
    PersistedState,
    Profile,
    Quirk,
    RecordState,
    SharePartition,
    Snapshot,
    SnapshotError,
    StateBatch,
)
from tests.support.scenes import KEY, Scene, fetched, shown

MOVES_BACK: Final = evolve(
    KAFKA_4_3,
    name="moves-back",
    quirks=frozenset({Quirk.START_MOVES_BACK, Quirk.WAITS_AT_WINDOW_END, Quirk.STALLS_IN_GAP_BELOW_START}),
)
releases = pytest.mark.parametrize("profile", [KAFKA_4_2, KAFKA_4_3, MOVES_BACK], ids=lambda profile: profile.name)


def busy() -> Scene:
    """Return a scene with everything in it: split batches, locks, an expired one, writes in flight, a gap window."""
    scene = Scene().load(0, "[0-4 st0][5-9 st0][20-24 st0 dc3]")
    scene.acquire("m1", 0, "[0-4][5-9]")
    scene.now_ms = 500
    scene.acknowledge("m1", "1:renew")
    scene.is_holding = True
    scene.acknowledge("m1", "5-9:release", "2-3:accept")
    scene.now_ms = 10_001
    while scene.expire() is not None:
        pass
    scene.partition.advance_log_start(1)
    return scene


def restored(scene: Scene) -> Scene:
    """Return a scene that goes on where *scene* stands, from its snapshot in JSON."""
    again = Scene()
    line = scene.partition.snapshot().to_json()
    again.partition = SharePartition.restore(Snapshot.from_json(line), profile=scene.partition.profile)
    again.now_ms, again.is_holding = scene.now_ms, scene.is_holding
    return again


@releases
def test_a_copy_goes_on_alike_and_apart(profile: Profile) -> None:
    """A copy has the same state, does the same from then on, and nothing that is done to it changes the original."""
    original = busy().partition
    original = SharePartition.restore(evolve(original.snapshot(), profile=profile))
    before = original.snapshot()

    copied = original.copy()

    copied.check()
    assert copied.snapshot() == before
    assert ended(copied) == ended(SharePartition.restore(before))
    assert original.snapshot() == before
    assert ended(original) == ended(SharePartition.restore(before))


def test_a_copy_shares_what_the_original_shares() -> None:
    """Records with one lock, whose writes are two, have the same state before both; whole batches have one, too."""
    scene = Scene().load(0)
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m1", 5, "[5-9]")
    scene.is_holding = True
    scene.acknowledge("m1", "1:accept")
    scene.acknowledge("m1", "2:accept")

    copied = scene.partition.copy()

    copied.check()
    before = scene.partition.snapshot()
    assert copied.snapshot() == before
    assert ended(copied) == ended(SharePartition.restore(before))
    assert scene.partition.snapshot() == before


def test_a_copy_keeps_added_attributes() -> None:
    """As ``copy.copy`` does."""
    labeled = Labeled(KEY)
    labeled.label = "mine"

    assert labeled.copy().label == "mine"


def test_a_copy_records_transitions_of_its_own() -> None:
    """It records if the original does, and neither has those of the other."""
    scene = Scene(record_transitions=True).load(0, "[0-4 st0]")

    copied = scene.partition.copy()

    offset = scene.partition.next_fetch_offset()
    (transition,) = copied.acquire("m1", fetched(offset, "[0-4]"), now_ms=0).transitions
    assert transition.cause is Cause.ACQUIRED
    assert scene.partition.release("m1", now_ms=0).transitions == ()


def ended(partition: SharePartition) -> list[object]:
    """Return what a share partition does as all its locks expire and all its writes fail, and what it is then."""
    done: list[object] = []
    while (effects := partition.expire_next(now_ms=100_000)) is not None:
        done.append(effects)
    done += [partition.write_failed(row.number, 1) for row in partition.snapshot().writes]
    return [*done, partition.release("m1", now_ms=100_000), partition.snapshot()]


def test_the_scene_is_busy() -> None:
    """The tests below are about a share partition in which much is going on."""
    assert busy().batches == [
        "[0-4] split: 0 ARCHIVED/2/-, 1 ACQUIRED/2/m1, 2-3 ACKNOWLEDGED/2/-*x, 4 AVAILABLE/2/-",
        "[5-9] AVAILABLE/2/-*x",
        "[20-24] AVAILABLE/3/-",
    ]


def test_a_restored_share_partition_looks_the_same() -> None:
    """Batches, offsets, locks and everything else that can be seen are as they were."""
    scene = busy()
    again = restored(scene)

    assert (again.batches, again.offsets, again.window) == (scene.batches, scene.offsets, scene.window)
    assert again.deadlines == scene.deadlines
    assert again.partition.lock_count() == scene.partition.lock_count()
    assert again.partition.snapshot() == scene.partition.snapshot()
    again.partition.check()


GOING_ON: list[tuple[str, Callable[[Scene], object]]] = [
    ("fail", lambda scene: scene.fail(0, ErrorCode.NOT_COORDINATOR)),
    ("succeed", lambda scene: scene.succeed(0)),
    ("release", lambda scene: scene.release("m1")),
    ("wait", lambda scene: scene.wait(10_000)),
    ("acquire", lambda scene: scene.acquire("m2", 1, "[0-4][5-9][10-14][15-24]")),
    ("log start", lambda scene: scene.partition.advance_log_start(7)),
    ("next fetch", lambda scene: scene.partition.next_fetch_offset()),
]


@pytest.mark.parametrize(("name", "go_on"), GOING_ON, ids=[name for name, _ in GOING_ON])
def test_a_restored_share_partition_goes_on_the_same(name: str, go_on: Callable[[Scene], object]) -> None:
    """Whatever is done next, both do the same, and end in equal snapshots."""
    scene = busy()
    again = restored(scene)

    assert repr(go_on(again)) == repr(go_on(scene)), name
    assert again.partition.snapshot() == scene.partition.snapshot()


def test_a_restored_share_partition_records_the_same_transitions() -> None:
    """Records that were locked apart and renewed together are one range to the original and to its twin."""
    scene = Scene(record_transitions=True).load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "0-4:renew")
    scene.acknowledge("m1", "0-9:renew")
    twin = SharePartition.restore(scene.partition.snapshot(), record_transitions=True)

    assert [[run[:2] for run in batch.runs] for batch in twin.batches()] == [[(0, 9)]]
    assert scene.batches == list(map(shown, twin.batches()))
    released = scene.partition.release("m1", now_ms=5)
    assert len(released.transitions) == 1
    assert released == twin.release("m1", now_ms=5)


def test_a_split_batch_may_begin_anywhere() -> None:
    """Records are restored at their offsets, wherever the batch begins."""
    scene = Scene().load(5)
    scene.acquire("m1", 5, "[5-9]")
    scene.acknowledge("m1", "6:release", "8:accept")
    again = restored(scene)

    assert again.batches == scene.batches
    assert again.wait(10_001) == scene.wait(10_001)


def test_locks_expire_in_the_old_order() -> None:
    """Locks keep their creation numbers, and new ones come after them."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.acknowledge("m1", "0-4:renew")
    again = restored(scene)
    again.acquire("m1", 10, "[10-14]")

    assert again.wait(10_001) == ("W(0; 5-9 st0 dc1; cc 0)", "W(0; 0-4 st0 dc1; cc 0)", "W(0; 10-14 st0 dc1; cc 0)")


@releases
def test_a_count_below_zero_is_restored(profile: Profile) -> None:
    """After the SPSO has moved back, Kafka takes terminal records off the delivery complete count twice (B9b)."""
    scene = Scene(profile=profile).load(42, "[49-50 st2 dc5][55-60 st0 dc5]")
    scene.acquire("m1", 42, "[43-49]")
    counts = []
    for step in (
        lambda: scene.partition.advance_log_start(54),
        lambda: scene.wait(10_001),
        lambda: scene.partition.advance_log_start(54),
    ):
        step()
        counts.append(scene.partition.delivery_complete_count)
        assert restored(scene).partition.snapshot() == scene.partition.snapshot()

    assert counts == [0, 0, -2]


def test_a_read_that_was_pending_still_is() -> None:
    """A share partition that waits for its state can be restored and loaded."""
    scene = Scene()
    scene.partition.initialize()
    again = restored(scene)

    assert again.partition.lifecycle is scene.partition.lifecycle
    again.partition.read_failed(ErrorCode.NOT_COORDINATOR)


def test_equal_share_partitions_have_equal_snapshots() -> None:
    """The same commands lead to the same value, in JSON to the letter."""
    one, other = busy().partition.snapshot(), busy().partition.snapshot()

    assert one == other
    assert hash(one) == hash(other)
    assert one.to_json() == other.to_json()


def test_another_command_makes_another_snapshot() -> None:
    """Whatever differs shows: here, that the clock has moved."""
    one, other = busy(), busy()
    other.partition.expire_next(now_ms=10_002)

    assert one.partition.snapshot() != other.partition.snapshot()


ways_to_copy = pytest.mark.parametrize(
    "copied",
    [lambda partition: pickle.loads(pickle.dumps(partition)), copy.copy, copy.deepcopy],  # noqa: S301 - made here
    ids=["pickle", "copy", "deepcopy"],
)


@ways_to_copy
def test_a_share_partition_can_be_copied(copied: Callable[[SharePartition], SharePartition]) -> None:
    """A copy goes its own way."""
    scene = busy()
    before = scene.partition.snapshot()
    again = copied(scene.partition)
    assert again.snapshot() == before

    again.advance_log_start(100)
    assert scene.partition.snapshot() == before != again.snapshot()


class Labeled(SharePartition):
    """A share partition of somebody who keeps a label with each."""

    label = ""


@ways_to_copy
def test_a_copy_is_of_the_same_kind(copied: Callable[[SharePartition], SharePartition]) -> None:
    """A copy records the same transitions as the original, and is of its class, with its added attributes."""
    recording = Scene(record_transitions=True).load().partition
    silent = Labeled(KEY)
    silent.label = "mine"

    assert copied(recording).advance_log_start(5) == recording.advance_log_start(5)
    again = copied(recording).acquire("m1", fetched(5, "[5-9]"), now_ms=0)
    assert [transition[:3] for transition in again.transitions] == [(5, 9, Cause.ACQUIRED)]
    copy_of_silent = copied(silent)
    assert isinstance(copy_of_silent, Labeled)
    assert copy_of_silent.label == "mine"
    assert copy_of_silent.snapshot() == silent.snapshot()


@ways_to_copy
def test_a_copy_is_not_bounded(copied: Callable[[SharePartition], SharePartition]) -> None:
    """The bounds of snapshots out of anywhere are none of what the process has already."""
    original = SharePartition(KEY, split_limit=2**40)
    original.initialize()
    original.read_succeeded(PersistedState(start_offset=0))
    original.acquire("m1", fetched(0, "[0-1073741823]"), now_ms=0, max_records=2**30)

    assert copied(original).snapshot() == original.snapshot()


# ---- what is refused


def test_another_profile_is_refused() -> None:
    """The rules are part of the state: restoring under others is an error."""
    snapshot = Scene(profile=KAFKA_4_2).load().partition.snapshot()

    with pytest.raises(SnapshotError, match=r"taken under kafka-4\.2, which is not the kafka-4\.3") as refused:
        SharePartition.restore(snapshot, profile=KAFKA_4_3)
    assert refused.value.field == "profile"


@pytest.mark.parametrize(
    ("field", "value", "where"),
    [
        ("sharestate_snapshot", 6, "sharestate_snapshot"),
        ("lifecycle", "ASLEEP", "lifecycle"),
        ("start_offset", "0", "start_offset"),
        ("start_offset", 2**63, "start_offset"),
        ("find_next", 1, "find_next"),
        ("locks", [[0]], "locks[0]"),
        ("cells", [[5, 1, "", None, None, None, False]], "cells[0][0]"),
        ("next_dead_letter", -1, "next_dead_letter"),
        ("dead_letters", [[0, [0, 4, 1, "no_reason"]]], "dead_letters[0][1][3]"),
        ("dead_letters", [[0, [0, 4, 1, "client_reject"]]], "dead_letters[0][0]"),
        ("cells", [], "batches[0][3]"),
        ("batches", [[0, 4, False, [[2, 0]]]], "batches[0][3]"),
        ("batches", [[0, 4, True, [[0, 0]]]], "batches[0][3][0][0]"),
        ("locks", [], "cells[0][3]"),
        ("next_lock", 0, "cells[0][3]"),
        ("writes", [], "cells[2][4]"),
        ("writes", [[0, 5, [[90, 99]], [], False]], "writes[0][2]"),
        ("writes", [[0, 5, [[5, 9]], [], True]], "writes[0][4]"),
        ("writes", [[0, 5, [[5, 9]], [[5, 9, 1, "client_reject"]], False]], "batches"),
        ("end_offset", 3, "batches"),
        ("gap_window", [1], "gap_window"),
        ("key", {"group_id": "g", "topic_id": "t", "partition": -1}, "key.partition"),
        ("nonsense", 1, "nonsense"),
    ],
)
def test_a_snapshot_that_makes_no_sense_is_refused(field: str, value: object, where: str) -> None:
    """What is wrong is named by its path, and nothing is made."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.is_holding = True
    scene.acknowledge("m1", "5-9:accept")
    spoiled: dict[str, Any] = {**json.loads(scene.partition.snapshot().to_json()), field: value}

    with pytest.raises(SnapshotError) as refused:
        SharePartition.restore(Snapshot.from_json(json.dumps(spoiled)))
    assert refused.value.field == where


def test_settings_that_make_no_sense_are_refused() -> None:
    """What the settings themselves refuse is named by the path of the whole."""
    spoiled = json.loads(Scene().partition.snapshot().to_json())
    spoiled["config"]["auto_offset_reset"] = {"strategy": "latest", "duration_us": 5}

    with pytest.raises(SnapshotError, match="a duration goes with by_duration") as refused:
        Snapshot.from_json(json.dumps(spoiled))
    assert refused.value.field == "config.auto_offset_reset"


def test_a_share_partition_may_begin_to_tell_when_it_is_restored() -> None:
    """Whether transitions are recorded is no part of the state; the time that they carry is."""
    snapshot = busy().partition.snapshot()
    partition = SharePartition.restore(snapshot, record_transitions=True)
    transitions = partition.advance_log_start(5).transitions

    assert [(transition.first_offset, transition.at_ms) for transition in transitions] == [(4, 10_001)]


@pytest.mark.parametrize("profile", [KIP_932, KAFKA_4_3], ids=lambda profile: profile.name)
def test_the_kips_policy_and_its_memory_go_together(profile: Profile) -> None:
    """A snapshot has a memory under the KIP's write policy, and none under that of brokers."""
    snapshot = Scene(profile=profile).partition.snapshot()
    other = Scene(profile=KIP_932 if profile == KAFKA_4_3 else KAFKA_4_3).partition.snapshot()

    with pytest.raises(SnapshotError, match="goes with the KIP's write policy") as refused:
        SharePartition.restore(evolve(snapshot, kip_memory=other.kip_memory), profile=profile)
    assert refused.value.field == "kip_memory"


def test_the_memory_of_the_kips_policy_goes_with_the_writes() -> None:
    """Of each pending write the policy remembers something, and of no other."""
    scene = Scene(profile=KIP_932).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-1:accept")
    snapshot = scene.partition.snapshot()
    memory = snapshot.kip_memory
    assert memory is not None

    with pytest.raises(SnapshotError, match="not the writes that were not answered") as refused:
        SharePartition.restore(evolve(snapshot, kip_memory=memory._replace(pending=())), profile=KIP_932)
    assert refused.value.field == "kip_memory[2]"


def remembering() -> Snapshot:
    """
    Return a snapshot under the KIP's write policy with two pending writes.

    Its batches end at 9, and nothing is durable. Write 0 carries the change of 0-1, write 1 the expiry of 2-9.
    """
    scene = Scene(profile=KIP_932).load()
    scene.acquire("m1", 0, "[0-9]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-1:accept")
    scene.wait(10_001)
    return scene.partition.snapshot()


def restored_with(snapshot: Snapshot, **memory: Any) -> str | None:  # noqa: ANN401 - fields of KipMemoryRow
    """Return the field for which *snapshot* is refused with another *memory*, None if it is restored."""
    assert snapshot.kip_memory is not None
    try:
        SharePartition.restore(evolve(snapshot, kip_memory=snapshot.kip_memory._replace(**memory)))
    except SnapshotError as error:
        return error.field
    return None


@pytest.mark.parametrize(
    ("stored_start", "durable_end", "field"),
    [
        (0, 0, None),
        (0, 10, None),
        (10, 10, None),
        (10, 0, None),
        (0, 11, "kip_memory[1]"),
        (11, 0, "kip_memory[0]"),
    ],
)
def test_nothing_is_persisted_beyond_the_last_batch(stored_start: int, durable_end: int, field: str | None) -> None:
    """Both are at most one past the last cached record; a write with a start offset may have failed, or be applied."""
    assert restored_with(remembering(), stored_start=stored_start, durable_end=durable_end) == field


@pytest.mark.parametrize(
    ("start_offset", "end_offset", "field"),
    [
        (-1, -1, None),
        (-1, 10, None),
        (10, 10, None),
        (-1, 11, "kip_memory[2][0][2]"),
        (5, 4, "kip_memory[2][0][2]"),
    ],
)
def test_a_pending_write_ends_between_its_start_and_the_last_batch(
    start_offset: int, end_offset: int, field: str | None
) -> None:
    """The end of each pending write is at most one past the last cached record, and never below its start offset."""
    snapshot = remembering()
    assert snapshot.kip_memory is not None
    first, second = snapshot.kip_memory.pending

    changed = first._replace(start_offset=start_offset, end_offset=end_offset)

    assert restored_with(snapshot, pending=(changed, second)) == field


def test_only_an_expiry_remembers_expired_records() -> None:
    """The write of a change that may be rolled back names no expired locks."""
    snapshot = remembering()
    assert snapshot.kip_memory is not None
    first, second = snapshot.kip_memory.pending
    assert (first.expired, second.expired) == ((), (StateBatch(2, 9, 1, 1),))

    assert restored_with(snapshot, pending=(first._replace(expired=second.expired), second)) == "kip_memory[2][0][3]"


@pytest.mark.parametrize(
    ("expired", "field"),
    [
        ([(0, 0, 1, 1), (1, 4, 1, 2)], None),
        ([(2, 9, 1, -(2**15) + 1)], None),
        ([(2, 9, 1, -(2**15))], "kip_memory[2][1][3][0]"),
        ([(2, 9, 0, 1)], "kip_memory[2][1][3][0]"),
        ([(2, 9, 2, 1)], "kip_memory[2][1][3][0]"),
        ([(5, 4, 1, 1)], "kip_memory[2][1][3][0]"),
        ([(2, 4, 1, 1), (4, 9, 1, 2)], "kip_memory[2][1][3][1]"),
        ([(5, 9, 1, 1), (2, 4, 1, 1)], "kip_memory[2][1][3][1]"),
    ],
)
def test_expired_records_were_acquired_and_ascend(expired: list[tuple[int, int, int, int]], field: str | None) -> None:
    """Each range was ACQUIRED, with at least one delivery more than can be read, and begins after the one before."""
    snapshot = remembering()
    assert snapshot.kip_memory is not None
    first, second = snapshot.kip_memory.pending
    rows = tuple(StateBatch(low, high, RecordState(state), count) for low, high, state, count in expired)

    assert restored_with(snapshot, pending=(first, second._replace(expired=rows))) == field


def test_a_cell_goes_back_to_one_before_it() -> None:
    """A row that refers to itself would never end; it is refused."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")
    spoiled = json.loads(scene.partition.snapshot().to_json())
    spoiled["cells"] = [[*row[:5], None if row[5] is None else 1, row[6]] for row in spoiled["cells"]]

    with pytest.raises(SnapshotError, match="cell 1 does not stand before cell 1") as refused:
        SharePartition.restore(Snapshot.from_json(json.dumps(spoiled)))
    assert refused.value.field == "cells[1][5]"


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "nonsense", '{"sharestate_snapshot": 1}'])
def test_a_text_that_is_not_a_snapshot_is_refused(text: str) -> None:
    """Any text that is not a snapshot's JSON is refused with a typed error."""
    with pytest.raises(SnapshotError):
        Snapshot.from_json(text)
