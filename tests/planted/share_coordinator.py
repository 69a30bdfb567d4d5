"""
Changes to put into the library's share coordinator, to see that a search beside Kafka's notices each of them.

A change is a function that puts something wrong in the place of a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from attrs import evolve

from sharestate.coordinator import (
    CoordinatorShard,
    Outcome,
    ShareSnapshot,
    ShareUpdate,
    StateRecord,
    StoredState,
    combiner,
    placement,
    shard,
    stored_state,
)
from tests.planted.putting import Planted, adding_to, put

PLANTED: Final[dict[str, Planted]] = {}
"""The changes, by their names."""


def planted(kafka: str = "4.3.1") -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Add a change to those that are planted beside the release *kafka*."""
    return adding_to(PLANTED, kafka)


def _change_profile(**rules: bool) -> None:
    make = CoordinatorShard.__init__

    def made(self: CoordinatorShard, profile: Any, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - of any
        make(self, evolve(profile, **rules), *arguments, **options)

    put(CoordinatorShard, "__init__", made)


# ---- the combiner


@planted()
def the_later_of_equal_batches_ends_both() -> None:
    """Two batches of equal state and count are merged up to the end of the second, if the first reaches further too."""
    pair = combiner._combined_pair  # noqa: SLF001 - what is planted

    def combined(a: Any, b: Any) -> Iterator[Any]:  # noqa: ANN401 - ranked batches
        return iter([a._replace(last=b.last)]) if a.priority == b.priority else pair(a, b)

    put(combiner, "_combined_pair", combined)


@planted()
def the_larger_delivery_count_loses() -> None:
    """Where two batches name a record, the lower delivery count wins."""
    put(combiner._Ranked, "priority", property(lambda batch: (-batch.delivery_count, batch.state)))  # noqa: SLF001


@planted("4.4.0")
def neighbors_stay_apart() -> None:
    """The combiner of 4.4 merges no neighbors of equal state and count."""
    put(combiner, "_merged", list)


@planted()
def batches_below_the_start_are_kept() -> None:
    """The combiner keeps what is below the start offset."""
    kept = combiner._kept  # noqa: SLF001 - what is planted
    put(combiner, "_kept", lambda batches, _start_offset: kept(batches, -1))


# ---- fencing


@planted()
def the_known_leader_is_fenced() -> None:
    """A leader epoch that is equal to the highest one is fenced."""
    fenced = shard._fenced_by_leader_epoch  # noqa: SLF001 - what is planted
    put(shard, "_fenced_by_leader_epoch", lambda state, epoch: fenced(state, epoch - 1))


@planted()
def the_state_epoch_is_not_compared() -> None:
    """A state epoch fences nobody."""
    put(CoordinatorShard, "_fenced_by_state_epoch", lambda _shard, _state, _epoch: None)


@planted()
def an_initialization_forgets_leaders() -> None:
    """After an initialization the leaders before it are not fenced any more."""
    after = stored_state.after_snapshot

    def after_snapshot(state: StoredState | None, value: ShareSnapshot, *others: int) -> StoredState:
        return evolve(after(state, value, *others), highest_leader_epoch=value.leader_epoch)

    put(shard, "after_snapshot", after_snapshot)


@planted("4.2.2")
def readers_without_epoch_are_let_in() -> None:
    """A read with leader epoch -1 is not fenced by 4.2, as it is not by 4.3."""
    _change_profile(fences_readers_without_epoch=False)


@planted("4.4.0")
def negative_epochs_are_taken() -> None:
    """4.4 takes negative epochs, as 4.3 does."""
    _change_profile(refuses_negative_epochs=False)


# ---- what is stored


@planted("4.4.0")
def the_start_offset_moves_back() -> None:
    """A write lowers the start offset, as it does in 4.3."""
    _change_profile(lets_start_offset_move_back=True)


@planted("4.4.0")
def any_complete_count_is_stored() -> None:
    """Each write replaces the delivery complete count, as in 4.3."""
    _change_profile(takes_any_complete_count=True)


@planted()
def no_complete_count_is_zero() -> None:
    """A write without a delivery complete count stores 0."""
    after = stored_state.after_update

    def after_update(state: StoredState | None, value: ShareUpdate, combine: Any) -> StoredState:  # noqa: ANN401
        return after(state, evolve(value, delivery_complete_count=max(0, value.delivery_complete_count)), combine)

    put(shard, "after_update", after_update)


@planted()
def a_snapshot_comes_one_update_late() -> None:
    """The update after which a snapshot is due is written twice."""
    changed = CoordinatorShard._changed  # noqa: SLF001 - what is planted

    def late(self: CoordinatorShard, key: Any, state: StoredState, *others: Any) -> StateRecord:  # noqa: ANN401
        return changed(self, key, evolve(state, update_count=(state.update_count or 0) - 1), *others)

    put(CoordinatorShard, "_changed", late)


@planted()
def every_snapshot_resets_the_count() -> None:
    """A cold snapshot, or an initialization, begins a new run of updates."""
    after = stored_state.after_snapshot

    def after_snapshot(state: StoredState | None, value: ShareSnapshot, *others: int) -> StoredState:
        stored = after(state, value, *others)
        return stored if stored.update_count is None else evolve(stored, update_count=0)

    put(shard, "after_snapshot", after_snapshot)


# ---- the log


@planted()
def a_failed_append_takes_nothing_back() -> None:
    """What was replayed of records that could not be logged stays."""
    put(CoordinatorShard, "roll_back", CoordinatorShard.commit)


@planted()
def a_failed_append_keeps_its_offset() -> None:
    """The offset of the last snapshot is not taken back with the snapshot."""
    roll_back = CoordinatorShard.roll_back

    def forget(self: CoordinatorShard) -> None:
        self._last_snapshot_before = self._last_snapshot
        roll_back(self)

    put(CoordinatorShard, "roll_back", forget)


@planted()
def a_tombstone_ends_nothing() -> None:
    """A tombstone that is replayed leaves the share partition as it was."""
    replay = CoordinatorShard.replay

    def keep(self: CoordinatorShard, offset: int, record: StateRecord) -> None:
        if record.value is not None:
            replay(self, offset, record)

    put(CoordinatorShard, "replay", keep)


@planted()
def one_record_too_many_is_redundant() -> None:
    """The offset below which records are redundant is that of a snapshot's successor."""
    redundant = CoordinatorShard.redundant_offset

    def too_high(self: CoordinatorShard) -> int | None:
        offset = redundant(self)
        return offset and offset + 1

    put(CoordinatorShard, "redundant_offset", too_high)


@planted()
def what_is_not_cold_is_written_too() -> None:
    """The cold job writes every state that is older than now."""
    cold = CoordinatorShard.snapshot_cold

    def snapshot_cold(self: CoordinatorShard, *, now_ms: int) -> Outcome:
        config = self._config
        self._config = evolve(config, cold_snapshot_interval_ms=1)
        outcome = cold(self, now_ms=now_ms)
        self._config = config
        return outcome

    put(CoordinatorShard, "snapshot_cold", snapshot_cold)


@planted()
def the_cold_job_never_rests() -> None:
    """The cold job writes cold states again and again."""
    put(StoredState, "is_cold", property(lambda _: False))


# ---- placement


@planted()
def hashes_have_no_sign() -> None:
    """A share partition is placed by its hash as a number without a sign."""
    signed = placement.java_hash
    put(placement, "java_hash", lambda text: signed(text) & 0xFFFFFFFF)
