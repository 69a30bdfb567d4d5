"""Bugs planted in a persister in memory, which shares no code with the coordinator, each with what it does wrong."""

# ruff: noqa: ARG002, D102, D107 - a bug says in its class what its method does, and does not look at all that it is given

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from attrs import define, evolve, field

from sharestate import ErrorCode, StateBatch
from sharestate.persister import (
    DeleteStateParameters,
    InitializeStateParameters,
    Parameters,
    PartitionAllData,
    PartitionErrorData,
    PartitionStateBatchData,
    PartitionStateSummaryData,
    ReadStateParameters,
    ReadSummaryParameters,
    Result,
    TopicData,
    WriteStateParameters,
)

Key = tuple[str, str, int]
Records = dict[int, tuple[int, int]]

BUGS: Final[dict[str, type[Faulty]]] = {}


def planted(bug: type[Faulty]) -> type[Faulty]:
    """Add a bug to the table, under the name of its class."""
    BUGS["".join(f" {char.lower()}" if char.isupper() else char for char in bug.__name__).strip()] = bug
    return bug


@define
class StoredEntry:
    """What is stored of one share partition."""

    state_epoch: int
    start: int
    leader_epoch: int = 0
    complete: int = -1
    records: Records = field(factory=dict)


def copy_of(disk: dict[Key, StoredEntry]) -> dict[Key, StoredEntry]:
    """Return what is on a disk, which changes by itself."""
    return {key: evolve(entry, records=entry.records.copy()) for key, entry in disk.items()}


class Faulty:
    """A correct one; what is on its disk outlasts it."""

    def __init__(self, disk: dict[Key, StoredEntry]) -> None:
        """Begin with what is on a disk."""
        self.disk = disk
        self.entries = copy_of(disk)

    # ---- requests

    def initialize_state(self, request: InitializeStateParameters, /) -> Future[Result[PartitionErrorData]]:
        return self.each(request, self.initialize)

    def read_state(self, request: ReadStateParameters, /) -> Future[Result[PartitionAllData]]:
        return self.each(request, self.read)

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        return self.each(request, self.write)

    def delete_state(self, request: DeleteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        return self.each(request, self.delete)

    def read_summary(self, request: ReadSummaryParameters, /) -> Future[Result[PartitionStateSummaryData]]:
        return self.each(request, self.summary)

    def each(self, request: Parameters[Any, Any], answer: Callable[[Key, Any], Any]) -> Future[Any]:
        topics = []
        for topic in request.topics:
            answers = [answer((request.group_id, topic.topic_id, entry.partition), entry) for entry in topic.partitions]
            topics.append(TopicData(topic_id=topic.topic_id, partitions=tuple(answers)))
        self.save()
        future: Future[Any] = Future()
        future.set_result(Result(topics=tuple(topics)))
        return future

    def save(self) -> None:
        self.disk.clear()
        self.disk.update(copy_of(self.entries))

    # ---- one share partition

    def initialize(self, key: Key, asked: Any) -> PartitionErrorData:  # noqa: ANN401 - an entry of the request
        before = self.entries.get(key)
        if before and asked.state_epoch < before.state_epoch:
            return PartitionErrorData(partition=key[2], error_code=ErrorCode.FENCED_STATE_EPOCH)
        self.entries[key] = self.begun(StoredEntry(asked.state_epoch, asked.start_offset), before)
        return PartitionErrorData(partition=key[2])

    def begun(self, entry: StoredEntry, before: StoredEntry | None) -> StoredEntry:
        entry.leader_epoch = before.leader_epoch if before else 0
        return entry

    def read(self, key: Key, asked: Any) -> PartitionAllData:  # noqa: ANN401 - an entry of the request
        entry = self.entries.get(key)
        if entry is None:
            return PartitionAllData(partition=key[2], error_code=ErrorCode.INVALID_REQUEST)
        if asked.leader_epoch < entry.leader_epoch:
            return PartitionAllData(partition=key[2], error_code=ErrorCode.FENCED_LEADER_EPOCH)
        entry.leader_epoch = asked.leader_epoch
        batches = tuple(StateBatch(offset, offset, *state) for offset, state in sorted(entry.records.items()))
        return PartitionAllData(
            partition=key[2], state_epoch=entry.state_epoch, start_offset=entry.start, state_batches=batches
        )

    def write(self, key: Key, asked: PartitionStateBatchData) -> PartitionErrorData:
        entry = self.entries.get(key)
        code = ErrorCode.NONE
        if entry is None:
            code = ErrorCode.INVALID_REQUEST
        elif asked.leader_epoch < entry.leader_epoch:
            code = ErrorCode.FENCED_LEADER_EPOCH
        elif asked.state_epoch < entry.state_epoch:
            code = ErrorCode.FENCED_STATE_EPOCH
        else:
            self.change(entry, asked)
        return PartitionErrorData(partition=key[2], error_code=code)

    def change(self, entry: StoredEntry, asked: PartitionStateBatchData) -> None:
        if asked.start_offset > entry.start:
            entry.complete = asked.delivery_complete_count
        elif asked.start_offset == entry.start:
            entry.complete = max(entry.complete, asked.delivery_complete_count)
        entry.start = self.start(entry.start, asked.start_offset)
        for batch in asked.state_batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                state = int(batch.delivery_state), batch.delivery_count
                if offset not in entry.records or self.wins(state, entry.records[offset]):
                    entry.records[offset] = state
        entry.records = {offset: state for offset, state in entry.records.items() if offset >= entry.start}

    def start(self, old: int, new: int) -> int:
        return max(old, new)

    def wins(self, new: tuple[int, int], old: tuple[int, int]) -> bool:
        return (new[1], new[0]) > (old[1], old[0])

    def delete(self, key: Key, asked: Any) -> PartitionErrorData:  # noqa: ANN401 - an entry of the request
        self.entries.pop(key, None)
        return PartitionErrorData(partition=key[2])

    def summary(self, key: Key, asked: Any) -> PartitionStateSummaryData:  # noqa: ANN401 - an entry of the request
        entry = self.entries.get(key, StoredEntry(0, -1))
        return PartitionStateSummaryData(
            partition=key[2],
            state_epoch=entry.state_epoch,
            leader_epoch=entry.leader_epoch,
            start_offset=entry.start,
            delivery_complete_count=entry.complete,
        )


@planted
class StartMovesBack(Faulty):
    """A lower start offset replaces a higher one."""

    def start(self, old: int, new: int) -> int:
        return old if new < 0 else new


@planted
class TerminalIsFinal(Faulty):
    """A terminal record stays so, though a higher delivery count is written."""

    def wins(self, new: tuple[int, int], old: tuple[int, int]) -> bool:
        return old[0] not in {2, 4} and super().wins(new, old)


@planted
class TerminalWins(Faulty):
    """A terminal state wins over a higher delivery count."""

    def wins(self, new: tuple[int, int], old: tuple[int, int]) -> bool:
        return new[0] in {2, 4} or super().wins(new, old)


@planted
class OnlyCountsCompared(Faulty):
    """Of two states with the same delivery count the later one wins."""

    def wins(self, new: tuple[int, int], old: tuple[int, int]) -> bool:
        return new[1] >= old[1]


@planted
class CompleteCountKept(Faulty):
    """Initializing again keeps the delivery complete count."""

    def begun(self, entry: StoredEntry, before: StoredEntry | None) -> StoredEntry:
        entry.complete = before.complete if before else -1
        return super().begun(entry, before)


@planted
class HigherStartKept(Faulty):
    """Initializing again keeps a start offset that is higher."""

    def begun(self, entry: StoredEntry, before: StoredEntry | None) -> StoredEntry:
        entry.start = max(entry.start, before.start if before else -1)
        return super().begun(entry, before)


@planted
class OnlyOneReopened(Faulty):
    """When it is opened again only the first share partition is there."""

    def __init__(self, disk: dict[Key, StoredEntry]) -> None:
        super().__init__(dict([*disk.items()][:1]))


@planted
class CountsInBytes(Faulty):
    """When it is opened again delivery counts have eight bits."""

    def __init__(self, disk: dict[Key, StoredEntry]) -> None:
        super().__init__(disk)
        for entry in self.entries.values():
            entry.records = {offset: (state, count % 256) for offset, (state, count) in entry.records.items()}


@planted
class AcknowledgedMergedWithArchived(Faulty):
    """An archived record after an acknowledged one with the same delivery count is stored as acknowledged."""

    def change(self, entry: StoredEntry, asked: PartitionStateBatchData) -> None:
        super().change(entry, asked)
        for offset, (state, count) in sorted(entry.records.items()):
            if state == 4 and entry.records.get(offset - 1) == (2, count):
                entry.records[offset] = 2, count


@planted
class HoleFilled(Faulty):
    """A hole of one offset between equal records is filled with them."""

    def change(self, entry: StoredEntry, asked: PartitionStateBatchData) -> None:
        super().change(entry, asked)
        for offset, state in sorted(entry.records.items()):
            if offset + 1 not in entry.records and entry.records.get(offset + 2) == state:
                entry.records[offset + 1] = state


@planted
class WritesSavedByReads(Faulty):
    """What is written is on the disk only after the next read."""

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        before = copy_of(self.disk)
        future = super().write_state(request)
        self.disk.clear()
        self.disk.update(before)
        return future


@planted
class FencedStartTaken(Faulty):
    """A write that is fenced still moves the start offset."""

    def write(self, key: Key, asked: PartitionStateBatchData) -> PartitionErrorData:
        answer = super().write(key, asked)
        if answer.error_code == ErrorCode.FENCED_LEADER_EPOCH:
            self.entries[key].start = self.start(self.entries[key].start, asked.start_offset)
        return answer


@planted
class CutAfterTen(Faulty):
    """Of a write with more than ten batches the first ten are stored."""

    def change(self, entry: StoredEntry, asked: PartitionStateBatchData) -> None:
        super().change(entry, evolve(asked, state_batches=tuple(asked.state_batches)[:10]))


@planted
class RefusalEndsRequest(Faulty):
    """Once one share partition is refused, the writes to those after it are not carried out, and confirmed."""

    def each(self, request: Parameters[Any, Any], answer: Callable[[Key, Any], Any]) -> Future[Any]:
        is_refused = False

        def until_refused(key: Key, asked: Any) -> Any:  # noqa: ANN401 - an entry of the request, and its answer
            nonlocal is_refused
            if is_refused and isinstance(asked, PartitionStateBatchData):
                return PartitionErrorData(partition=key[2])
            answered = answer(key, asked)
            is_refused = is_refused or answered.error_code != ErrorCode.NONE
            return answered

        return super().each(request, until_refused)


@planted
class EpochZeroNeverFenced(Faulty):
    """A write with leader epoch 0 is taken for one without an epoch, and never fenced."""

    def write(self, key: Key, asked: PartitionStateBatchData) -> PartitionErrorData:
        entry = self.entries.get(key)
        if entry is not None and asked.leader_epoch == 0:
            asked = evolve(asked, leader_epoch=entry.leader_epoch)
        return super().write(key, asked)


@planted
class StartZeroIgnored(Faulty):
    """A start offset of 0 is taken for none."""

    def start(self, old: int, new: int) -> int:
        return super().start(old, new) if new else old


@planted
class PartitionsInBytes(Faulty):
    """Partitions are told apart by the last eight bits of their numbers."""

    def each(self, request: Parameters[Any, Any], answer: Callable[[Key, Any], Any]) -> Future[Any]:
        return super().each(
            request,
            lambda key, asked: evolve(answer((*key[:2], key[2] % 256), asked), partition=key[2]),
        )


@planted
class BelowStartDroppedEverywhere(Faulty):
    """What lies below the new start offset of one share partition is dropped from all."""

    def change(self, entry: StoredEntry, asked: PartitionStateBatchData) -> None:
        super().change(entry, asked)
        for other in self.entries.values():
            other.records = {offset: state for offset, state in other.records.items() if offset >= asked.start_offset}


@planted
class SameStartKeepsRecords(Faulty):
    """Initializing again with the same start offset keeps the records."""

    def begun(self, entry: StoredEntry, before: StoredEntry | None) -> StoredEntry:
        if before and before.start == entry.start:
            entry.records = before.records
        return super().begun(entry, before)


@planted
class DeletionOfOneGroupHitsAll(Faulty):
    """Deleting a share partition deletes the records of the same partition in all groups."""

    def delete(self, key: Key, asked: Any) -> PartitionErrorData:  # noqa: ANN401 - an entry of the request
        for other, entry in self.entries.items():
            if other[1:] == key[1:]:
                entry.records = {}
        return super().delete(key, asked)


@planted
class ArchivedLostInEighthRequest(Faulty):
    """Every eighth request that is a write leaves out what is archived."""

    def __init__(self, disk: dict[Key, StoredEntry]) -> None:
        super().__init__(disk)
        self.writes = 0

    def change(self, entry: StoredEntry, asked: PartitionStateBatchData) -> None:
        super().change(entry, asked)
        self.writes += 1
        if self.writes % 8 == 0:
            entry.records = {offset: state for offset, state in entry.records.items() if state[0] != 4}


@planted
class AcknowledgedWinsOverArchived(Faulty):
    """Of two states with the same delivery count ACKNOWLEDGED wins over ARCHIVED."""

    def wins(self, new: tuple[int, int], old: tuple[int, int]) -> bool:
        if new[1] == old[1] and {new[0], old[0]} == {2, 4}:
            return new[0] == 2
        return super().wins(new, old)


@planted
class CountZeroNotRead(Faulty):
    """A read leaves out what is available and was never delivered."""

    def read(self, key: Key, asked: Any) -> PartitionAllData:  # noqa: ANN401 - an entry of the request
        answer = super().read(key, asked)
        return evolve(answer, state_batches=tuple(batch for batch in answer.state_batches if any(batch[2:])))
