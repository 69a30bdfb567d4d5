"""
What a persister has to store, record by record: plain ``if`` and ``elif``, slow, and no code of the coordinator.

A share partition is a ``Place``: group, topic and partition. States are their numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from attrs import define, field, frozen

from sharestate.error_codes import ErrorCode

Place = tuple[str, str, int]
"""The group, the topic and the partition."""

Batch = tuple[int, int, int, int]
"""First offset, last offset, state and delivery count."""

NONE_YET: Final = -1


@frozen
class PersisterRules:
    """
    Where releases of Kafka differ.

    Attributes:
        moves_back: Whether a lower start offset replaces a higher one, as before Kafka 4.4.
        takes_any_count: Whether every delivery complete count is stored, as before Kafka 4.4.
    """

    moves_back: bool = False
    takes_any_count: bool = False


@define
class StoredPartition:
    """
    The state of one share partition.

    Attributes:
        state_epoch: The epoch of its initialization.
        start_offset: The SPSO; -1 if there is none yet.
        leader_epoch: The highest epoch of a leader that has read it.
        is_read: Whether that was after the last initialization.
        complete_count: The delivery complete count; None if it was not written yet.
        records: State and delivery count by offset.
    """

    state_epoch: int
    start_offset: int
    leader_epoch: int = 0
    is_read: bool = False
    complete_count: int | None = None
    records: dict[int, tuple[int, int]] = field(factory=dict)


@define
class PersisterModel:
    """All that is stored."""

    rules: PersisterRules = PersisterRules()
    stored: dict[Place, StoredPartition] = field(factory=dict)

    def initialize(self, place: Place, state_epoch: int, start_offset: int) -> int:
        """Begin a state, or begin it again; return the error code."""
        before = self.stored.get(place)
        if before is None:
            self.stored[place] = StoredPartition(state_epoch, start_offset)
        elif state_epoch < before.state_epoch:
            return ErrorCode.FENCED_STATE_EPOCH
        else:
            self.stored[place] = StoredPartition(state_epoch, start_offset, before.leader_epoch)
        return ErrorCode.NONE

    def read(self, place: Place, leader_epoch: int) -> int:
        """Read as a leader; return the error code."""
        state = self.stored.get(place)
        if state is None:
            return ErrorCode.INVALID_REQUEST
        if leader_epoch < state.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        state.is_read = state.is_read or leader_epoch > state.leader_epoch
        state.leader_epoch = leader_epoch
        return ErrorCode.NONE

    def write(
        self,
        place: Place,
        epochs: tuple[int, int],
        start_offset: int,
        complete_count: int,
        batches: Iterable[Batch],
    ) -> int:
        """Write with the leader's and the state's epoch; return the error code."""
        state = self.stored.get(place)
        leader_epoch, state_epoch = epochs
        if state is None:
            return ErrorCode.INVALID_REQUEST
        if leader_epoch < state.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if state_epoch < state.state_epoch:
            return ErrorCode.FENCED_STATE_EPOCH
        self._take_count(state, start_offset, complete_count)
        if start_offset > state.start_offset or (self.rules.moves_back and start_offset != NONE_YET):
            state.start_offset = start_offset
        for first, last, number, count in batches:
            for offset in range(first, last + 1):
                self._combine(state.records, offset, number, count)
        for offset in [offset for offset in state.records if offset < state.start_offset]:
            del state.records[offset]
        return ErrorCode.NONE

    def delete(self, place: Place) -> int:
        """Delete; return the error code."""
        self.stored.pop(place, None)
        return ErrorCode.NONE

    def _take_count(self, state: StoredPartition, start_offset: int, complete_count: int) -> None:
        stored = NONE_YET if state.complete_count is None else state.complete_count
        is_higher = start_offset == state.start_offset and complete_count > stored
        if self.rules.takes_any_count or start_offset > state.start_offset or is_higher:
            state.complete_count = complete_count

    @staticmethod
    def _combine(records: dict[int, tuple[int, int]], offset: int, number: int, count: int) -> None:
        if offset not in records:
            records[offset] = number, count
        else:
            old_number, old_count = records[offset]
            if count > old_count or (count == old_count and number > old_number):
                records[offset] = number, count


def as_ranges(records: Mapping[int, tuple[int, int]]) -> list[Batch]:
    """
    Return records in as few ranges as possible.

    >>> as_ranges({3: (0, 1), 4: (0, 1), 5: (2, 1)})
    [(3, 4, 0, 1), (5, 5, 2, 1)]
    """
    found: list[Batch] = []
    for offset, (number, count) in sorted(records.items()):
        if found and found[-1][1:] == (offset - 1, number, count):
            found[-1] = found[-1][0], offset, number, count
        else:
            found.append((offset, offset, number, count))
    return found
