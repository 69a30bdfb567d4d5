"""
The contract of persisters as tests: inherit ``PersisterContract`` and implement ``make_persister``, and ``reopen`` too.

Each clause of ``sharestate.persister.Persister`` is a method, which raises AssertionError if it does not hold.
"""

from __future__ import annotations

from typing import Final

from sharestate.errors import ErrorCode, MalformedInputError
from sharestate.persister.requests import (
    DeleteStateParameters,
    InitializeStateParameters,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateData,
    ReadStateParameters,
    ReadSummaryParameters,
    TopicData,
    WriteStateParameters,
)
from sharestate.testing.persisters.calls import LEADER_EPOCH, NONE, STATE_EPOCH, PersisterCalls, Read
from sharestate.testing.persisters.clauses import expect, fail
from sharestate.values.records import RecordState
from sharestate.values.requests import StateBatch

ACKNOWLEDGED: Final = StateBatch(10, 14, 2, 1)
RELEASED: Final = StateBatch(15, 19, 0, 2)
MANY: Final = 1_100
"""The batches of the largest write: more than 1,000 and than 1,024. [batches]"""

MAX_INT32: Final = 2**31 - 1
MAX_INT16: Final = 2**15 - 1


class PersisterContract(PersisterCalls):
    """
    Tests that any ``Persister`` passes; pytest collects them in a subclass whose name begins with ``Test``.

    Topics and partitions that are used: partitions 0 and 1 of both topics, of both groups. None of them may be
    initialized in what ``make_persister`` returns.
    """

    # ---- the clauses: initialization, reads and deletions

    def test_a_read_finds_the_initialized_state(self) -> None:
        """A read finds the state epoch and the start offset of the initialization, and no batches."""
        expect(self.read(self.initialized()), Read(NONE, STATE_EPOCH, 10, ()), "the state that was read")

    def test_the_start_offset_is_optional(self) -> None:
        """A share partition that was initialized without a start offset has -1 until one is written."""
        persister = self.make_persister()
        expect(self.begin(persister, start_offset=-1), NONE, "an initialization without a start offset")
        expect(self.read(persister), Read(NONE, STATE_EPOCH, -1, ()), "the state that was read")
        self.write_all(persister, self.writing(RELEASED))
        expect(self.stored(persister), (-1, (RELEASED,)), "the state after a write without a start offset")
        self.write_all(persister, self.writing(start_offset=15))
        expect(self.stored(persister), (15, (RELEASED,)), "the state after a write with one")

    def test_requests_before_the_initialization_are_refused(self) -> None:
        """Reads and writes before the initialization are refused with INVALID_REQUEST."""
        persister = self.make_persister()
        expect(self.read(persister).error_code, ErrorCode.INVALID_REQUEST, "a read of nothing")
        code = self.written(persister, self.writing(ACKNOWLEDGED, start_offset=10))
        expect(code, ErrorCode.INVALID_REQUEST, "a write to nothing")

    def test_there_is_a_summary_before_the_initialization(self) -> None:
        """The summary before the initialization is a success: no start offset, both epochs 0."""
        expect(self.summary(self.make_persister()), (NONE, -1, 0, 0), "the summary of nothing")

    def test_a_summary_has_the_epochs(self) -> None:
        """A summary has the start offset, the epoch of the last leader that read, and the state epoch."""
        expect(self.summary(self.initialized()), (NONE, 10, LEADER_EPOCH, STATE_EPOCH), "the summary")

    def test_an_initialization_replaces_the_state(self) -> None:
        """Initializing again, with the same state epoch or a higher one, forgets all state batches."""
        persister = self.initialized()
        self.write_all(persister, self.writing(ACKNOWLEDGED))
        expect(self.begin(persister, STATE_EPOCH, 20), NONE, "an initialization with the same epoch")
        expect(self.read(persister), Read(NONE, STATE_EPOCH, 20, ()), "the state that was read")
        expect(self.begin(persister, STATE_EPOCH + 1, 30), NONE, "an initialization with a higher epoch")
        expect(self.read(persister), Read(NONE, STATE_EPOCH + 1, 30, ()), "the state that was read")

    def test_an_initialization_can_be_ensured(self) -> None:
        """``ensure_initialized`` begins what is not initialized, and finds what is as it was, a leader's epoch too."""
        persister = self.make_persister()
        expect(self.ensured(persister, 10), (NONE, 10, 0, STATE_EPOCH), "the summary of what was not initialized")
        expect(self.read(persister), Read(NONE, STATE_EPOCH, 10, ()), "the state that was read")
        self.write_all(persister, self.writing(ACKNOWLEDGED, RELEASED))
        expect(self.ensured(persister, 20), (NONE, 10, LEADER_EPOCH, STATE_EPOCH), "the summary of what was")
        expect(self.stored(persister), (10, (ACKNOWLEDGED, RELEASED)), "the state afterwards")

    def test_a_deletion_forgets(self) -> None:
        """A deletion leaves nothing, not even epochs, and may be repeated."""
        persister = self.initialized()
        expect([self.delete(persister), self.delete(persister)], [NONE, NONE], "two deletions")
        expect(self.read(persister).error_code, ErrorCode.INVALID_REQUEST, "a read after the deletion")
        expect(self.summary(persister), (NONE, -1, 0, 0), "the summary after the deletion")
        expect(self.begin(persister, STATE_EPOCH - 1), NONE, "an initialization with a lower epoch than before")
        expect(self.read(persister, LEADER_EPOCH - 1).error_code, NONE, "a read with a lower leader epoch than before")

    def test_each_partition_has_its_own_state(self) -> None:
        """Partitions that a request names together are all served; beginning or deleting one leaves the other."""
        persister = self.make_persister()
        states = [PartitionStateData(partition=index, start_offset=10 + index) for index in (0, 1)]
        entries = [PartitionIdLeaderEpochData(partition=index, leader_epoch=LEADER_EPOCH) for index in (0, 1)]
        place = self.group_id, self.topic_id
        initialized = self.answers(persister.initialize_state(InitializeStateParameters.of(*place, *states)), 0, 1)
        read = self.answers(persister.read_state(ReadStateParameters.of(*place, *entries)), 0, 1)
        summed = self.answers(persister.read_summary(ReadSummaryParameters.of(*place, *entries)), 0, 1)
        expect([answer.error_code for answer in initialized], [NONE, NONE], "two initializations")
        expect([answer.start_offset for answer in read], [10, 11], "two reads")
        expect([answer.start_offset for answer in summed], [10, 11], "two summaries")
        expect(self.begin(persister, start_offset=20), NONE, "an initialization of one of them")
        expect(self.delete(persister), NONE, "a deletion of one of them")
        kept = self.answers(persister.read_state(ReadStateParameters.of(*place, *entries)), 0, 1)
        expect([answer.error_code for answer in kept], [ErrorCode.INVALID_REQUEST, NONE], "two reads after that")
        self.answers(persister.delete_state(DeleteStateParameters.of(*place, *entries)), 0, 1)
        gone = self.answers(persister.read_state(ReadStateParameters.of(*place, *entries)), 0, 1)
        expect([answer.error_code for answer in gone], [ErrorCode.INVALID_REQUEST] * 2, "two reads of nothing")

    def test_a_summary_fences_nobody(self) -> None:
        """A summary with a higher leader epoch fences no leader: its writes still succeed."""
        persister = self.initialized()
        summary = self.summary(persister, LEADER_EPOCH + 1)
        expect(summary, (NONE, 10, LEADER_EPOCH, STATE_EPOCH), "the summary")
        self.write_all(persister, self.writing(ACKNOWLEDGED))
        expect(self.summary(persister), summary, "the summary afterwards")

    # ---- the clauses: what a write does

    def test_a_read_finds_the_written_batches(self) -> None:
        """A read finds every batch of a write, with states and delivery counts."""
        persister = self.initialized()
        self.write_all(persister, self.writing(ACKNOWLEDGED, RELEASED))
        expect(self.stored(persister), (10, (ACKNOWLEDGED, RELEASED)), "the stored state")

    def test_every_state_is_stored(self) -> None:
        """A read finds the states in which records can be left: available, acknowledged, archiving and archived."""
        persister = self.initialized()
        states = (RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVING, RecordState.ARCHIVED)
        batches = [StateBatch(offset, offset, state, 1) for offset, state in enumerate(states, start=10)]
        self.write_all(persister, self.writing(*batches))
        expect(self.stored(persister), (10, tuple(batches)), "the stored state")

    def test_a_write_may_have_many_batches(self) -> None:
        """A read finds each of more than a thousand batches, with delivery counts from 1 to 10."""
        persister = self.initialized()
        batches = [StateBatch(offset, offset, 2 * (offset % 3), 1 + offset % 10) for offset in range(10, 10 + MANY)]
        self.write_all(persister, self.writing(*batches))
        expect(self.stored(persister), (10, tuple(batches)), "the stored state")

    def test_numbers_are_stored_whole(self) -> None:
        """Offsets have 64 bits, epochs and delivery complete counts 32, and delivery counts 16."""
        persister = self.make_persister()
        offset = 2**62 + 1
        expect(self.begin(persister, MAX_INT32, 2**32 + 10), NONE, "an initialization with the highest epoch")
        expect(self.read(persister, MAX_INT32), Read(NONE, MAX_INT32, 2**32 + 10, ()), "the initialized state")
        batch = StateBatch(offset, offset + 1, 2, MAX_INT16)
        epochs = {"leader_epoch": MAX_INT32, "state_epoch": MAX_INT32}
        self.write_all(
            persister, self.writing(batch, start_offset=2**61 + 1, delivery_complete_count=MAX_INT32, **epochs)
        )
        read = self.read(persister, MAX_INT32)
        expect(read, Read(NONE, MAX_INT32, 2**61 + 1, (batch,)), "the state that was read")
        expect(self.summary(persister), (NONE, 2**61 + 1, MAX_INT32, MAX_INT32), "the summary")
        expect(self.complete_count(persister), MAX_INT32, "the delivery complete count")

    def test_no_start_offset_keeps_the_stored_one(self) -> None:
        """A start offset of -1 leaves the stored one as it is; any other replaces it, by the rules a lower one too."""
        persister = self.initialized()
        self.write_all(persister, self.writing(start_offset=12), self.writing(RELEASED))
        expect(self.stored(persister), (12, (RELEASED,)), "the stored state")
        self.write_all(persister, self.writing(start_offset=11))
        expected = 11 if self.rules.lets_start_offset_move_back else 12
        expect(self.stored(persister)[0], expected, "the start offset after a lower one was written")

    def test_batches_below_the_start_are_dropped(self) -> None:
        """Batches below the start offset are dropped, and cut where it lies inside of them."""
        persister = self.initialized()
        self.write_all(persister, self.writing(ACKNOWLEDGED, RELEASED), self.writing(start_offset=17))
        expected = 17, (RELEASED._replace(first_offset=17),)
        expect(self.stored(persister), expected, "the stored state")
        self.write_all(persister, self.writing(ACKNOWLEDGED))
        expect(self.stored(persister), expected, "the stored state after records below the start were written")

    def test_the_higher_count_and_state_win(self) -> None:
        """Of two states of a record the one with the higher delivery count wins, then the higher state number."""
        persister = self.initialized()
        first = StateBatch(10, 19, 0, 2)
        lower_count, higher_state, higher_count = (
            StateBatch(10, 11, 2, 1),
            StateBatch(12, 13, 2, 2),
            StateBatch(14, 15, 0, 3),
        )
        self.write_all(persister, self.writing(first), self.writing(lower_count, higher_state, higher_count))
        expected = (StateBatch(10, 11, 0, 2), higher_state, higher_count, StateBatch(16, 19, 0, 2))
        expect(self.stored(persister), (10, expected), "the stored state")

    def test_a_summary_has_the_complete_count(self) -> None:
        """A summary has the delivery complete count that came with the last start offset."""
        persister = self.initialized()
        self.write_all(persister, self.writing(ACKNOWLEDGED, start_offset=10, delivery_complete_count=5))
        expect(self.complete_count(persister), 5, "the delivery complete count")
        self.write_all(persister, self.writing(start_offset=12, delivery_complete_count=3))
        expect(self.complete_count(persister), 3, "the delivery complete count after a higher start offset")

    def test_a_complete_count_follows_the_rules(self) -> None:
        """By the rules every count is stored, or one replaces a lower one, and none comes with a lower start offset."""
        persister = self.initialized()
        found = []
        for start_offset, count in ((12, 5), (12, 2), (12, 7), (11, 9), (-1, 8), (13, 1)):
            self.write_all(persister, self.writing(start_offset=start_offset, delivery_complete_count=count))
            found.append(self.complete_count(persister))
        expected = [5, 2, 7, 9, 8, 1] if self.rules.takes_any_complete_count else [5, 5, 7, 7, 7, 1]
        expect(found, expected, "the delivery complete counts, one after the other")

    def test_writes_take_effect_in_order(self) -> None:
        """Of two writes that were sent one after the other the second one takes effect last."""
        persister = self.initialized()
        offsets = (14, 12) if self.rules.lets_start_offset_move_back else (12, 14)
        futures = [persister.write_state(self.writing(start_offset=offset)) for offset in offsets]
        expect([self.answer(future).error_code for future in reversed(futures)], [NONE, NONE], "two writes")
        expect(self.stored(persister)[0], offsets[-1], "the start offset")

    def test_a_write_may_be_repeated(self) -> None:
        """The same write again leads to the same state."""
        persister = self.initialized()
        request = self.writing(ACKNOWLEDGED, RELEASED, start_offset=10)
        self.write_all(persister, request)
        once = self.stored(persister)
        self.write_all(persister, request)
        expect(self.stored(persister), once, "the stored state after the same write again")

    def test_an_earlier_write_may_be_repeated(self) -> None:
        """A write that comes again after later ones changes nothing, unless by the rules start offsets move back."""
        persister = self.initialized()
        first = self.writing(ACKNOWLEDGED, start_offset=10)
        self.write_all(persister, first, self.writing(RELEASED, start_offset=15), first)
        expected = (10, (ACKNOWLEDGED, RELEASED)) if self.rules.lets_start_offset_move_back else (15, (RELEASED,))
        expect(self.stored(persister), expected, "the stored state after the first write came again")

    # ---- the clauses: what outlasts the persister

    def test_the_state_outlasts_the_persister(self) -> None:
        """One that opens what a persister has stored finds the last confirmed state, with its summary."""
        persister = self.initialized()
        self.write_all(persister, self.writing(ACKNOWLEDGED, RELEASED, start_offset=12, delivery_complete_count=3))
        persister = self.reopen(persister)
        expected = Read(NONE, STATE_EPOCH, 12, (ACKNOWLEDGED._replace(first_offset=12), RELEASED))
        expect(self.read(persister), expected, "the state that was read after reopening")
        expect(self.summary(persister), (NONE, 12, LEADER_EPOCH, STATE_EPOCH), "the summary after reopening")
        expect(self.complete_count(persister), 3, "the delivery complete count after reopening")
        self.write_all(persister, self.writing(start_offset=15))
        expect(self.stored(persister), (15, (RELEASED,)), "the stored state after another write")

    def test_epochs_outlast_the_persister(self) -> None:
        """Who is fenced stays fenced when the persister is opened again."""
        persister = self.reopen(self.initialized())
        late = self.writing(ACKNOWLEDGED, leader_epoch=LEADER_EPOCH - 1)
        expect(self.written(persister, late), ErrorCode.FENCED_LEADER_EPOCH, "a write with a lower leader epoch")
        read = self.read(persister, LEADER_EPOCH - 1)
        expect(read.error_code, ErrorCode.FENCED_LEADER_EPOCH, "a read with a lower leader epoch")
        late = self.writing(ACKNOWLEDGED, state_epoch=STATE_EPOCH - 1)
        expect(self.written(persister, late), ErrorCode.FENCED_STATE_EPOCH, "a write with a lower state epoch")

    def test_a_deletion_outlasts_the_persister(self) -> None:
        """What was deleted is not there when the persister is opened again."""
        persister = self.initialized()
        expect(self.delete(persister), NONE, "a deletion")
        read = self.read(self.reopen(persister))
        expect(read.error_code, ErrorCode.INVALID_REQUEST, "a read of what was deleted")

    # ---- the clauses: epochs

    def test_a_lower_leader_epoch_is_fenced(self) -> None:
        """Once a leader has read, reads and writes with a lower leader epoch are refused, whatever the state epoch."""
        persister = self.initialized()
        late = self.writing(ACKNOWLEDGED, leader_epoch=LEADER_EPOCH - 1)
        expect(self.written(persister, late), ErrorCode.FENCED_LEADER_EPOCH, "a write with a lower leader epoch")
        read = self.read(persister, LEADER_EPOCH - 1)
        expect(read.error_code, ErrorCode.FENCED_LEADER_EPOCH, "a read with a lower leader epoch")
        both = self.writing(ACKNOWLEDGED, leader_epoch=LEADER_EPOCH - 1, state_epoch=STATE_EPOCH - 1)
        expect(self.written(persister, both), ErrorCode.FENCED_LEADER_EPOCH, "a write with both epochs lower")

    def test_a_lower_state_epoch_is_fenced(self) -> None:
        """Writes and initializations with a state epoch lower than one before are refused."""
        persister = self.initialized()
        late = self.writing(ACKNOWLEDGED, state_epoch=STATE_EPOCH - 1)
        expect(self.written(persister, late), ErrorCode.FENCED_STATE_EPOCH, "a write with a lower state epoch")
        expect(
            self.begin(persister, STATE_EPOCH - 1), ErrorCode.FENCED_STATE_EPOCH, "an initialization with a lower one"
        )

    def test_a_new_leader_fences_earlier_leaders(self) -> None:
        """Each read with a higher leader epoch fences earlier leaders, and an initialization unfences none."""
        persister = self.initialized()
        expect(self.read(persister, LEADER_EPOCH + 1).error_code, NONE, "a read by a new leader")
        late = self.writing(ACKNOWLEDGED)
        expect(self.written(persister, late), ErrorCode.FENCED_LEADER_EPOCH, "a write by the leader before")
        expect(self.begin(persister), NONE, "an initialization")
        expect(self.written(persister, late), ErrorCode.FENCED_LEADER_EPOCH, "a write by the old leader after that")

    def test_a_refusal_changes_nothing(self) -> None:
        """A refused request leaves the state as it was."""
        persister = self.initialized()
        self.written(persister, self.writing(ACKNOWLEDGED, start_offset=12, leader_epoch=LEADER_EPOCH - 1))
        self.written(persister, self.writing(ACKNOWLEDGED, start_offset=12, state_epoch=STATE_EPOCH - 1))
        self.begin(persister, STATE_EPOCH - 1, 12)
        expect(self.read(persister), Read(NONE, STATE_EPOCH, 10, ()), "the state that was read")

    def test_only_reads_raise_the_leader_epoch(self) -> None:
        """A write with higher epochs is taken, and writes with the old epochs still succeed."""
        persister = self.initialized()
        ahead = self.writing(ACKNOWLEDGED, leader_epoch=LEADER_EPOCH + 1, state_epoch=STATE_EPOCH + 1)
        self.write_all(persister, ahead, self.writing(RELEASED))
        expect(self.read(persister), Read(NONE, STATE_EPOCH, 10, (ACKNOWLEDGED, RELEASED)), "the state that was read")

    def test_epochs_of_minus_one_follow_the_rules(self) -> None:
        """Writes and initializations with epochs of -1 are taken, or by the rules invalid; they unfence nobody."""
        persister = self.initialized()
        expected = ErrorCode.INVALID_REQUEST if self.rules.refuses_negative_epochs else NONE
        without = self.writing(ACKNOWLEDGED, leader_epoch=-1, state_epoch=-1)
        expect(self.written(persister, without), expected, "a write without epochs")
        expect(self.begin(persister, -1), expected, "an initialization without an epoch")
        late = self.writing(ACKNOWLEDGED, state_epoch=STATE_EPOCH - 1)
        expect(
            self.written(persister, late), ErrorCode.FENCED_STATE_EPOCH, "a write with an epoch lower than one before"
        )

    def test_a_read_without_an_epoch_follows_the_rules(self) -> None:
        """A read with leader epoch -1 succeeds, or by the rules is fenced or invalid; it fences nobody."""
        persister = self.initialized()
        code = self.read(persister, -1).error_code
        if self.rules.refuses_negative_epochs:
            expect(code, ErrorCode.INVALID_REQUEST, "a read without an epoch")
        else:
            fenced = self.rules.fences_readers_without_epoch
            expect(code, ErrorCode.FENCED_LEADER_EPOCH if fenced else NONE, "a read without an epoch")
        expect(self.summary(persister), (NONE, 10, LEADER_EPOCH, STATE_EPOCH), "the summary afterwards")
        self.write_all(persister, self.writing(ACKNOWLEDGED))

    # ---- the clauses: answers

    def test_each_partition_has_its_own_answer(self) -> None:
        """An error for one share partition does not touch another, of the same topic or another one."""
        persister = self.initialized()
        second, first = [
            PartitionStateBatchData(
                partition=partition, leader_epoch=LEADER_EPOCH, state_epoch=STATE_EPOCH, state_batches=(RELEASED,)
            )
            for partition in (1, 0)
        ]
        request = WriteStateParameters(
            group_id=self.group_id,
            topics=(
                TopicData(topic_id=self.other_topic_id, partitions=(first,)),
                TopicData(topic_id=self.topic_id, partitions=(second, first)),
            ),
        )
        result = self.wait(persister.write_state(request))
        places = [(self.other_topic_id, 0), (self.topic_id, 1), (self.topic_id, 0)]
        answers = [result.find(*place) for place in places]
        codes = [None if answer is None else answer.error_code for answer in answers]
        expect(codes, [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST, NONE], f"the answers for {places}")
        expect(self.stored(persister), (10, (RELEASED,)), "the stored state of the partition that was not refused")

    def test_groups_have_their_own_state(self) -> None:
        """The same partition of another group has a state of its own, however alike the groups' names are."""
        persister = self.initialized()
        entry = PartitionIdLeaderEpochData(partition=0, leader_epoch=LEADER_EPOCH)
        group_id = self.group_id
        for other in (self.other_group_id, group_id.upper(), group_id[:-1], f"{group_id}2", f"{group_id}é"):
            request = ReadStateParameters.of(other, self.topic_id, entry)
            code = self.answer(persister.read_state(request)).error_code
            expect(code, ErrorCode.INVALID_REQUEST, f"a read by the group {other}")

    def test_a_malformed_request_is_refused(self) -> None:
        """A malformed request fails with MalformedInputError, at once or in the future, and changes nothing."""
        persister = self.initialized()
        error: object = None
        try:
            error = persister.write_state(None).exception(timeout=self.timeout_s)  # type: ignore[arg-type] # that is the point
        except MalformedInputError as refusal:
            error = refusal
        if not isinstance(error, MalformedInputError):
            fail(f"a request of nothing ended with {error!r}")
        expect(self.stored(persister), (10, ()), "the stored state")
