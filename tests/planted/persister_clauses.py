"""Persisters with one bug each, and the clauses of the contract that each of them breaks."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Final

from attrs import evolve

from sharestate import ErrorCode, InMemoryPersister, RecordState, SharePartitionKey
from sharestate.coordinator import CoordinatorProfile
from sharestate.persister import (
    DeleteStateParameters,
    InitializeStateParameters,
    Parameters,
    PartitionAllData,
    PartitionErrorData,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateSummaryData,
    ReadStateParameters,
    ReadSummaryParameters,
    Result,
    StoredState,
    TopicData,
    WriteStateParameters,
)
from tests.planted.persister_epochs import (
    CallsFencedReadsInvalid,
    ForgetsStateEpochs,
    FreesOldLeaders,
    InitializesEachTime,
    KnowsTheFirstLeaderOnly,
    RemembersTheDeleted,
    SummariesFence,
)

MAX_EPOCH: Final = 2**31 - 1


def answered(result: Result[Any]) -> Future[Result[Any]]:
    """Return a future that is done."""
    future: Future[Result[Any]] = Future()
    future.set_result(result)
    return future


def is_write(request: object) -> bool:
    """Return whether *request* is one: the contract tries others too."""
    return isinstance(request, WriteStateParameters)


WRITTEN: Result[Any] = Result(topics=(TopicData(topic_id="none", partitions=(PartitionErrorData(partition=0),)),))
"""The answer to a write that nobody has sent."""


class Rewriting(InMemoryPersister):
    """A persister that changes each entry of a write before it carries it out."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return what is carried out instead of *entry*."""
        raise NotImplementedError

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Carry out something else."""
        if not is_write(request):
            return super().write_state(request)
        return super().write_state(evolve(request, topics=tuple(map(self.rewritten, request.topics))))

    def rewritten(self, topic: TopicData[PartitionStateBatchData]) -> TopicData[PartitionStateBatchData]:
        """Return *topic* with every entry changed."""
        return TopicData(topic_id=topic.topic_id, partitions=tuple(map(self.rewrite, topic.partitions)))


class IgnoresLeaderEpochs(Rewriting):
    """A write is never fenced by its leader epoch."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* with a leader epoch that is never fenced."""
        return evolve(entry, leader_epoch=MAX_EPOCH)


class IgnoresStateEpochs(Rewriting):
    """A write is never fenced by its state epoch."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* with a state epoch that is never fenced."""
        return evolve(entry, state_epoch=MAX_EPOCH)


class TakesMinusOneForAnOffset(Rewriting):
    """A start offset of -1 is not taken for "unchanged"."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* from offset 0 on if it has no start offset."""
        return evolve(entry, start_offset=max(0, entry.start_offset))


class DropsTheSecondBatch(Rewriting):
    """Only the first state batch of a write is stored."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* with one batch."""
        return evolve(entry, state_batches=entry.state_batches[:1])


class LosesDeliveryCounts(Rewriting):
    """Every record is stored as delivered once."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* with delivery counts of 1."""
        return evolve(entry, state_batches=[batch._replace(delivery_count=1) for batch in entry.state_batches])


class LosesTheArchived(Rewriting):
    """Records that were archived are not stored."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* without them."""
        kept = [batch for batch in entry.state_batches if batch.delivery_state != RecordState.ARCHIVED]
        return evolve(entry, state_batches=kept)


class KnowsNoArchivingRecords(Rewriting):
    """Records on their way to the dead-letter queue, a state that Kafka 4.4 has added, are stored as archived."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* with ARCHIVED for ARCHIVING."""
        return evolve(
            entry,
            state_batches=[
                batch._replace(delivery_state=RecordState.ARCHIVED)
                if batch.delivery_state == RecordState.ARCHIVING
                else batch
                for batch in entry.state_batches
            ],
        )


class KeepsThreeBatches(Rewriting):
    """Only the first three state batches of a write are stored."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* with three batches at most."""
        return evolve(entry, state_batches=entry.state_batches[:3])


class CountsToThree(Rewriting):
    """Delivery counts above three are stored as three."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* with delivery counts of 3 at most."""
        batches = [batch._replace(delivery_count=min(3, batch.delivery_count)) for batch in entry.state_batches]
        return evolve(entry, state_batches=batches)


class HasBytesForCounts(Rewriting):
    """Of a delivery count the lowest seven bits are stored."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* with delivery counts below 128."""
        batches = [batch._replace(delivery_count=batch.delivery_count & 0x7F) for batch in entry.state_batches]
        return evolve(entry, state_batches=batches)


class CutsOffsets(Rewriting):
    """Of the offsets of state batches the lowest 32 bits are stored."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* with offsets below 2**32."""
        batches = [
            batch._replace(first_offset=batch.first_offset % 2**32, last_offset=batch.last_offset % 2**32)
            for batch in entry.state_batches
        ]
        return evolve(entry, state_batches=batches)


class CutsStartOffsets(Rewriting):
    """Of a start offset the lowest 32 bits are stored."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* with a start offset below 2**32, or none."""
        return evolve(entry, start_offset=entry.start_offset % 2**32 if entry.start_offset >= 0 else -1)


class RaisesCompleteCounts(Rewriting):
    """The delivery complete count is never replaced by a lower one."""

    highest = -1

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* with the highest count so far."""
        self.highest = max(self.highest, entry.delivery_complete_count)
        return evolve(entry, delivery_complete_count=self.highest)


class CountsRepetitions(Rewriting):
    """A write that comes again raises the delivery counts."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* with delivery counts that grow with the requests so far."""
        seen = sum(
            entry in topic.partitions
            for request in self.requests
            if isinstance(request, WriteStateParameters)
            for topic in request.topics
        )
        return evolve(
            entry,
            state_batches=[
                batch._replace(delivery_count=batch.delivery_count + seen)
                if batch.delivery_state == RecordState.AVAILABLE
                else batch
                for batch in entry.state_batches
            ],
        )


class OnlyEverMovesForward(Rewriting):
    """A start offset below the last one is ignored."""

    highest = -1

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* with the highest start offset so far, if it has one."""
        self.highest = max(self.highest, entry.start_offset)
        return entry if entry.start_offset < 0 else evolve(entry, start_offset=self.highest)


class AnswersTheWrongPartition(InMemoryPersister):
    """The answer to a write names the partition after the one that was written."""

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Answer for others."""
        future = super().write_state(request)
        if future.exception() is not None:
            return future
        return answered(
            Result(
                topics=tuple(
                    TopicData(
                        topic_id=topic.topic_id,
                        partitions=tuple(evolve(entry, partition=entry.partition + 1) for entry in topic.partitions),
                    )
                    for topic in future.result().topics
                )
            )
        )


class WritesInReverse(InMemoryPersister):
    """Writes are confirmed at once, kept, and carried out at the next read, the last one first."""

    def __init__(self, *, profile: CoordinatorProfile) -> None:
        """Make one that keeps nothing yet."""
        super().__init__(profile=profile)
        self.kept: list[WriteStateParameters] = []

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Confirm, if it will be possible."""
        if not is_write(request):
            return super().write_state(request)
        before = dict(self._shard.states)
        future = super().write_state(request)
        self._shard.states = before
        self.kept.append(request)
        return future

    def read_state(self, request: ReadStateParameters, /) -> Future[Result[PartitionAllData]]:
        """Do what was put off."""
        while self.kept:
            super().write_state(self.kept.pop()).result()
        return super().read_state(request)


class CarriesOutWhatItRefuses(InMemoryPersister):
    """A write that is fenced is answered so, and carried out all the same."""

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Refuse, and do it."""
        future = super().write_state(request)
        if is_write(request):
            topics = tuple(
                TopicData(
                    topic_id=topic.topic_id,
                    partitions=tuple(
                        evolve(entry, leader_epoch=MAX_EPOCH, state_epoch=MAX_EPOCH) for entry in topic.partitions
                    ),
                )
                for topic in request.topics
            )
            super().write_state(evolve(request, topics=topics)).result()
        return future


class FailsAsOne(InMemoryPersister):
    """What one partition is refused, all of the request are."""

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Answer the first error code for all."""
        future = super().write_state(request)
        if future.exception() is not None:
            return future
        codes = [entry.error_code for topic in future.result().topics for entry in topic.partitions]
        return answered(request.failed(next((code for code in codes if code), 0)))


class ForgetsTheGroup(InMemoryPersister):
    """All groups share one state."""

    def _take(self, request: Parameters[Any, Any]) -> Future[Result[Any]]:
        return super()._take(evolve(request, group_id="everyone"))


class IgnoresTheCase(InMemoryPersister):
    """Groups share a state if their names differ in case only, as text does in many databases."""

    def _take(self, request: Parameters[Any, Any]) -> Future[Result[Any]]:
        return super()._take(evolve(request, group_id=request.group_id.lower()))


class KeepsAThousandBatches(Rewriting):
    """Only the first 1,000 state batches of a write are stored."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* with 1,000 batches at most."""
        return evolve(entry, state_batches=entry.state_batches[:1000])


class TakesAnything(InMemoryPersister):
    """What is no request is answered as if it had asked for nothing."""

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Answer something."""
        return super().write_state(request) if is_write(request) else answered(WRITTEN)


class KeepsWhatWasDeleted(InMemoryPersister):
    """A deletion succeeds and does nothing."""

    def _apply(self, request: Parameters[Any, Any]) -> Result[Any]:
        before = dict(self._shard.states)
        result = super()._apply(request)
        if type(request).__name__.startswith("Delete"):
            self._shard.states = before
        return result


class StartsAtZero(InMemoryPersister):
    """A start that was left open is taken for 0."""

    def initialize_state(self, request: InitializeStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Fill in the start offset."""
        topics = tuple(
            TopicData(
                topic_id=topic.topic_id,
                partitions=tuple(evolve(entry, start_offset=max(0, entry.start_offset)) for entry in topic.partitions),
            )
            for topic in request.topics
        )
        return super().initialize_state(evolve(request, topics=topics))


class LosesTheStateEpoch(InMemoryPersister):
    """Every state is read with epoch 0."""

    def read_state(self, request: ReadStateParameters, /) -> Future[Result[PartitionAllData]]:
        """Read without the epoch."""
        topics = tuple(
            TopicData(
                topic_id=topic.topic_id,
                partitions=tuple(evolve(entry, state_epoch=0) for entry in topic.partitions),
            )
            for topic in super().read_state(request).result().topics
        )
        return answered(Result(topics=topics))


class ReadsInReverse(InMemoryPersister):
    """The last state batch is read first."""

    def read_state(self, request: ReadStateParameters, /) -> Future[Result[PartitionAllData]]:
        """Read backwards."""
        topics = tuple(
            TopicData(
                topic_id=topic.topic_id,
                partitions=tuple(evolve(entry, state_batches=entry.state_batches[::-1]) for entry in topic.partitions),
            )
            for topic in super().read_state(request).result().topics
        )
        return answered(Result(topics=topics))


class HasNoSummaries(InMemoryPersister):
    """A summary is refused."""

    def read_summary(self, request: ReadSummaryParameters, /) -> Future[Result[PartitionStateSummaryData]]:
        """Refuse."""
        return answered(request.failed(ErrorCode.INVALID_REQUEST))


class RemembersWriters(Rewriting):
    """The leader epoch of a write is remembered as that of a read would be."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Read in the name of the writer first."""
        reader = PartitionIdLeaderEpochData(partition=entry.partition, leader_epoch=entry.leader_epoch)
        for key in list(self._shard.states):
            self.read_state(ReadStateParameters.of(key.group_id, key.topic_id, reader)).result()
        return entry


class DeletesTheTopic(InMemoryPersister):
    """A deletion forgets every partition of its topic."""

    def _apply(self, request: Parameters[Any, Any]) -> Result[Any]:
        result = super()._apply(request)
        if isinstance(request, DeleteStateParameters):
            topics = {topic.topic_id for topic in request.topics}
            self._shard.states = {key: state for key, state in self._shard.states.items() if key.topic_id not in topics}
        return result


class LosesCompleteCounts(Rewriting):
    """The delivery complete count of a write is not stored."""

    def rewrite(self, entry: PartitionStateBatchData) -> PartitionStateBatchData:
        """Return *entry* without it."""
        return evolve(entry, delivery_complete_count=-1)


class ForgetsWhenClosed(InMemoryPersister):
    """Nothing is there when it is opened again."""

    def reopened(self) -> InMemoryPersister:
        """Return one that stores nothing."""
        return InMemoryPersister()


class ForgetsLeadersWhenClosed(InMemoryPersister):
    """Nobody is fenced when it is opened again."""

    def reopened(self) -> InMemoryPersister:
        """Return itself without leader epochs."""
        self._shard.states = {key: evolve(state, highest_leader_epoch=0) for key, state in self._shard.states.items()}
        return self


class RevivesTheDeletedWhenClosed(InMemoryPersister):
    """A deletion is not stored: what was deleted is there again when it is opened again."""

    def __init__(self, *, profile: CoordinatorProfile) -> None:
        """Make one that has deleted nothing."""
        super().__init__(profile=profile)
        self.deleted: dict[SharePartitionKey, StoredState] = {}

    def _apply(self, request: Parameters[Any, Any]) -> Result[Any]:
        before = dict(self._shard.states)
        result = super()._apply(request)
        self.deleted |= {key: state for key, state in before.items() if key not in self._shard.states}
        return result

    def reopened(self) -> InMemoryPersister:
        """Return itself with all that was deleted."""
        self._shard.states |= self.deleted
        return self


class FencesWhomHasNoEpoch(InMemoryPersister):
    """A read without an epoch is fenced, as by Kafka 4.2."""

    def read_state(self, request: ReadStateParameters, /) -> Future[Result[PartitionAllData]]:
        """Refuse what has none."""
        epochs = [entry.leader_epoch for topic in request.topics for entry in topic.partitions]
        is_refused = -1 in epochs
        return answered(request.failed(ErrorCode.FENCED_LEADER_EPOCH)) if is_refused else super().read_state(request)


class Raises(InMemoryPersister):
    """What is refused is raised."""

    def _apply(self, request: Parameters[Any, Any]) -> Result[Any]:
        result = super()._apply(request)
        if any(entry.error_code for topic in result.topics for entry in topic.partitions):
            message = "refused"
            raise OSError(message)
        return result


BREAKS: dict[type[InMemoryPersister], str] = {
    AnswersTheWrongPartition: "test_requests_before_the_initialization_are_refused",
    CallsFencedReadsInvalid: "test_an_initialization_can_be_ensured",
    CarriesOutWhatItRefuses: "test_a_refusal_changes_nothing",
    CountsRepetitions: "test_a_write_may_be_repeated",
    CountsToThree: "test_a_write_may_have_many_batches",
    CutsOffsets: "test_numbers_are_stored_whole",
    CutsStartOffsets: "test_numbers_are_stored_whole",
    DeletesTheTopic: "test_each_partition_has_its_own_state",
    DropsTheSecondBatch: "test_a_read_finds_the_written_batches",
    FailsAsOne: "test_each_partition_has_its_own_answer",
    FencesWhomHasNoEpoch: "test_a_read_without_an_epoch_follows_the_rules",
    ForgetsLeadersWhenClosed: "test_epochs_outlast_the_persister",
    ForgetsStateEpochs: "test_epochs_of_minus_one_follow_the_rules",
    ForgetsTheGroup: "test_groups_have_their_own_state",
    ForgetsWhenClosed: "test_the_state_outlasts_the_persister",
    FreesOldLeaders: "test_a_new_leader_fences_earlier_leaders",
    HasBytesForCounts: "test_numbers_are_stored_whole",
    HasNoSummaries: "test_there_is_a_summary_before_the_initialization",
    IgnoresLeaderEpochs: "test_a_lower_leader_epoch_is_fenced",
    IgnoresTheCase: "test_groups_have_their_own_state",
    IgnoresStateEpochs: "test_a_lower_state_epoch_is_fenced",
    InitializesEachTime: "test_an_initialization_can_be_ensured",
    KeepsAThousandBatches: "test_a_write_may_have_many_batches",
    KeepsThreeBatches: "test_a_write_may_have_many_batches",
    KeepsWhatWasDeleted: "test_a_deletion_forgets",
    KnowsNoArchivingRecords: "test_every_state_is_stored",
    KnowsTheFirstLeaderOnly: "test_a_new_leader_fences_earlier_leaders",
    LosesCompleteCounts: "test_a_summary_has_the_complete_count",
    LosesDeliveryCounts: "test_the_higher_count_and_state_win",
    LosesTheArchived: "test_every_state_is_stored",
    LosesTheStateEpoch: "test_a_read_finds_the_initialized_state",
    OnlyEverMovesForward: "test_no_start_offset_keeps_the_stored_one",
    Raises: "test_requests_before_the_initialization_are_refused",
    RaisesCompleteCounts: "test_a_complete_count_follows_the_rules",
    ReadsInReverse: "test_a_read_finds_the_written_batches",
    RemembersTheDeleted: "test_a_deletion_forgets",
    RemembersWriters: "test_only_reads_raise_the_leader_epoch",
    RevivesTheDeletedWhenClosed: "test_a_deletion_outlasts_the_persister",
    StartsAtZero: "test_the_start_offset_is_optional",
    SummariesFence: "test_a_summary_fences_nobody",
    TakesAnything: "test_a_malformed_request_is_refused",
    TakesMinusOneForAnOffset: "test_the_start_offset_is_optional",
    WritesInReverse: "test_writes_take_effect_in_order",
}
"""The clause that each of them breaks; some break more."""

UNSEEN: Final[dict[str, set[type[InMemoryPersister]]]] = {
    "kafka-4.2": {FencesWhomHasNoEpoch},
    "kafka-4.3": set(),
    "kafka-4.4": {ForgetsStateEpochs, OnlyEverMovesForward, WritesInReverse},
}
"""The bugs that do not break their clause by the rules of a release, most of them because they are its rules."""
