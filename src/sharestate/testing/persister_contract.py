"""
What every persister has to keep to, as tests: inherit ``PersisterContract``, and say how yours is made.

Each clause of ``sharestate.persister.Persister`` is a method; what is wrong is said in the AssertionError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sharestate.error_codes import ErrorCode
from sharestate.errors import MalformedInputError
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
from sharestate.testing.persister_calls import LEADER_EPOCH, NONE, STATE_EPOCH, PersisterCalls, Read, expect, fail
from sharestate.values.requests import StateBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

ACKNOWLEDGED: Final = StateBatch(10, 14, 2, 1)
RELEASED: Final = StateBatch(15, 19, 0, 2)


class PersisterContract(PersisterCalls):
    """
    Tests that any ``Persister`` passes; pytest collects them in a subclass whose name begins with ``Test``.

    Topics and partitions that are used: partitions 0 and 1 of both topics, of both groups. None of them may be
    initialised in what ``make_persister`` returns.
    """

    # ---- the clauses: initialisation, reads and deletions

    def test_what_was_initialized_is_read(self) -> None:
        """A read finds the state epoch and the start offset of the initialisation, and no batches."""
        expect(self.read(self.begun()), Read(NONE, STATE_EPOCH, 10, ()), "what was read")

    def test_a_start_may_be_left_open(self) -> None:
        """A share partition that was initialised without a start offset is read with -1."""
        persister = self.make_persister()
        expect(self.begin(persister, start_offset=-1), NONE, "an initialisation without a start offset")
        expect(self.read(persister), Read(NONE, STATE_EPOCH, -1, ()), "what was read")

    def test_the_uninitialized_is_refused(self) -> None:
        """Reads and writes of what was never initialised are refused with INVALID_REQUEST."""
        persister = self.make_persister()
        expect(self.read(persister).error_code, ErrorCode.INVALID_REQUEST, "a read of nothing")
        code = self.written(persister, self.writing(ACKNOWLEDGED, start_offset=10))
        expect(code, ErrorCode.INVALID_REQUEST, "a write to nothing")

    def test_the_uninitialized_has_a_summary(self) -> None:
        """The summary of what was never initialised is a success: no start offset, both epochs 0."""
        expect(self.summary(self.make_persister()), (NONE, -1, 0, 0), "the summary of nothing")

    def test_a_summary_tells_the_epochs(self) -> None:
        """A summary tells the start offset, the epoch of the last leader that read, and the state epoch."""
        expect(self.summary(self.begun()), (NONE, 10, LEADER_EPOCH, STATE_EPOCH), "the summary")

    def test_an_initialization_begins_anew(self) -> None:
        """Initialising again, with the same state epoch or a higher one, forgets what was in flight."""
        persister = self.begun()
        self.write_all(persister, self.writing(ACKNOWLEDGED))
        expect(self.begin(persister, STATE_EPOCH, 20), NONE, "an initialisation with the same epoch")
        expect(self.read(persister), Read(NONE, STATE_EPOCH, 20, ()), "what was read")
        expect(self.begin(persister, STATE_EPOCH + 1, 30), NONE, "an initialisation with a higher epoch")
        expect(self.read(persister), Read(NONE, STATE_EPOCH + 1, 30, ()), "what was read")

    def test_a_deletion_forgets(self) -> None:
        """What was deleted is as if it had never been, and may be deleted again."""
        persister = self.begun()
        expect([self.delete(persister), self.delete(persister)], [NONE, NONE], "two deletions")
        expect(self.read(persister).error_code, ErrorCode.INVALID_REQUEST, "a read of what was deleted")
        expect(self.summary(persister), (NONE, -1, 0, 0), "the summary of what was deleted")
        expect(self.begin(persister, STATE_EPOCH - 1), NONE, "an initialisation with a lower epoch than before")
        expect(self.read(persister, LEADER_EPOCH - 1).error_code, NONE, "a read with a lower leader epoch than before")

    def test_each_partition_has_its_own_state(self) -> None:
        """Partitions that a request names together are all served; beginning or deleting one leaves the other."""
        persister = self.make_persister()
        states = [PartitionStateData(partition=index, start_offset=10 + index) for index in (0, 1)]
        entries = [PartitionIdLeaderEpochData(partition=index, leader_epoch=LEADER_EPOCH) for index in (0, 1)]
        place = self.group_id, self.topic_id
        begun = self.answers(persister.initialize_state(InitializeStateParameters.of(*place, *states)), 0, 1)
        read = self.answers(persister.read_state(ReadStateParameters.of(*place, *entries)), 0, 1)
        summed = self.answers(persister.read_summary(ReadSummaryParameters.of(*place, *entries)), 0, 1)
        expect([answer.error_code for answer in begun], [NONE, NONE], "two initialisations")
        expect([answer.start_offset for answer in read], [10, 11], "two reads")
        expect([answer.start_offset for answer in summed], [10, 11], "two summaries")
        expect(self.begin(persister, start_offset=20), NONE, "an initialisation of one of them")
        expect(self.delete(persister), NONE, "a deletion of one of them")
        kept = self.answers(persister.read_state(ReadStateParameters.of(*place, *entries)), 0, 1)
        expect([answer.error_code for answer in kept], [ErrorCode.INVALID_REQUEST, NONE], "two reads after that")
        self.answers(persister.delete_state(DeleteStateParameters.of(*place, *entries)), 0, 1)
        gone = self.answers(persister.read_state(ReadStateParameters.of(*place, *entries)), 0, 1)
        expect([answer.error_code for answer in gone], [ErrorCode.INVALID_REQUEST] * 2, "two reads of nothing")

    def test_a_summary_fences_nobody(self) -> None:
        """A summary that is asked for with a higher leader epoch is not a leader's: the one that has read writes on."""
        persister = self.begun()
        summary = self.summary(persister, LEADER_EPOCH + 1)
        expect(summary, (NONE, 10, LEADER_EPOCH, STATE_EPOCH), "the summary")
        self.write_all(persister, self.writing(ACKNOWLEDGED))
        expect(self.summary(persister), summary, "the summary afterwards")

    # ---- the clauses: what a write does

    def test_what_was_written_is_read(self) -> None:
        """A read finds every batch of a write, with states and delivery counts."""
        persister = self.begun()
        self.write_all(persister, self.writing(ACKNOWLEDGED, RELEASED))
        expect(self.stored(persister), (10, (ACKNOWLEDGED, RELEASED)), "what is stored")

    def test_no_start_offset_keeps_the_stored_one(self) -> None:
        """A start offset of -1 leaves the stored one as it is; any other replaces it, a lower one too."""
        persister = self.begun()
        self.write_all(persister, self.writing(start_offset=12), self.writing(RELEASED))
        expect(self.stored(persister), (12, (RELEASED,)), "what is stored")
        self.write_all(persister, self.writing(start_offset=11))
        expect(self.stored(persister)[0], 11, "the start offset after a lower one was written")

    def test_what_lies_below_the_start_is_dropped(self) -> None:
        """Batches below the start offset are dropped, and cut where it lies inside of them."""
        persister = self.begun()
        self.write_all(persister, self.writing(ACKNOWLEDGED, RELEASED), self.writing(start_offset=17))
        expect(self.stored(persister), (17, (RELEASED._replace(first_offset=17),)), "what is stored")

    def test_the_higher_count_and_state_win(self) -> None:
        """Of what is said twice of a record the higher delivery count wins, then the higher number of the state."""
        persister = self.begun()
        first = StateBatch(10, 19, 0, 2)
        lower_count, higher_state, higher_count = (
            StateBatch(10, 11, 2, 1),
            StateBatch(12, 13, 2, 2),
            StateBatch(14, 15, 0, 3),
        )
        self.write_all(persister, self.writing(first), self.writing(lower_count, higher_state, higher_count))
        expected = (StateBatch(10, 11, 0, 2), higher_state, higher_count, StateBatch(16, 19, 0, 2))
        expect(self.stored(persister), (10, expected), "what is stored")

    def test_how_many_are_complete_is_told(self) -> None:
        """A summary tells the delivery complete count that came with the last start offset."""
        persister = self.begun()
        self.write_all(persister, self.writing(ACKNOWLEDGED, start_offset=10, delivery_complete_count=5))
        self.write_all(persister, self.writing(start_offset=12, delivery_complete_count=3))
        expect(self.complete_count(persister), 3, "the delivery complete count")

    def test_writes_take_effect_in_order(self) -> None:
        """Of two writes that were sent one after the other the second one takes effect last."""
        persister = self.begun()
        futures = [persister.write_state(self.writing(start_offset=offset)) for offset in (14, 12)]
        expect([self.answer(future).error_code for future in reversed(futures)], [NONE, NONE], "two writes")
        expect(self.stored(persister)[0], 12, "the start offset")

    def test_a_write_may_be_repeated(self) -> None:
        """The same write again leads to the same state."""
        persister = self.begun()
        request = self.writing(ACKNOWLEDGED, RELEASED, start_offset=10)
        self.write_all(persister, request)
        once = self.stored(persister)
        self.write_all(persister, request)
        expect(self.stored(persister), once, "what is stored after the same write again")

    # ---- the clauses: epochs

    def test_a_lower_leader_epoch_is_fenced(self) -> None:
        """Once a leader has read, reads and writes with a lower leader epoch are refused, whatever the state epoch."""
        persister = self.begun()
        late = self.writing(ACKNOWLEDGED, leader_epoch=LEADER_EPOCH - 1)
        expect(self.written(persister, late), ErrorCode.FENCED_LEADER_EPOCH, "a write with a lower leader epoch")
        read = self.read(persister, LEADER_EPOCH - 1)
        expect(read.error_code, ErrorCode.FENCED_LEADER_EPOCH, "a read with a lower leader epoch")
        both = self.writing(ACKNOWLEDGED, leader_epoch=LEADER_EPOCH - 1, state_epoch=STATE_EPOCH - 1)
        expect(self.written(persister, both), ErrorCode.FENCED_LEADER_EPOCH, "a write with both epochs lower")

    def test_a_lower_state_epoch_is_fenced(self) -> None:
        """Writes and initialisations with a state epoch lower than one before are refused."""
        persister = self.begun()
        late = self.writing(ACKNOWLEDGED, state_epoch=STATE_EPOCH - 1)
        expect(self.written(persister, late), ErrorCode.FENCED_STATE_EPOCH, "a write with a lower state epoch")
        expect(
            self.begin(persister, STATE_EPOCH - 1), ErrorCode.FENCED_STATE_EPOCH, "an initialisation with a lower one"
        )

    def test_a_new_leader_fences_those_before(self) -> None:
        """Each read with a higher leader epoch fences the leaders before, and an initialisation frees none of them."""
        persister = self.begun()
        expect(self.read(persister, LEADER_EPOCH + 1).error_code, NONE, "a read by a new leader")
        late = self.writing(ACKNOWLEDGED)
        expect(self.written(persister, late), ErrorCode.FENCED_LEADER_EPOCH, "a write by the leader before")
        expect(self.begin(persister), NONE, "an initialisation")
        expect(self.written(persister, late), ErrorCode.FENCED_LEADER_EPOCH, "a write by the old leader after that")

    def test_a_refusal_changes_nothing(self) -> None:
        """What is refused leaves the state as it was."""
        persister = self.begun()
        self.written(persister, self.writing(ACKNOWLEDGED, start_offset=12, leader_epoch=LEADER_EPOCH - 1))
        self.written(persister, self.writing(ACKNOWLEDGED, start_offset=12, state_epoch=STATE_EPOCH - 1))
        self.begin(persister, STATE_EPOCH - 1, 12)
        expect(self.read(persister), Read(NONE, STATE_EPOCH, 10, ()), "what was read")

    def test_only_reads_raise_the_leader_epoch(self) -> None:
        """A write with higher epochs is taken, and those who write with the old ones go on."""
        persister = self.begun()
        ahead = self.writing(ACKNOWLEDGED, leader_epoch=LEADER_EPOCH + 1, state_epoch=STATE_EPOCH + 1)
        self.write_all(persister, ahead, self.writing(RELEASED))
        expect(self.read(persister), Read(NONE, STATE_EPOCH, 10, (ACKNOWLEDGED, RELEASED)), "what was read")

    def test_no_epoch_is_never_fenced(self) -> None:
        """A write with -1 for both epochs is taken, and an initialisation with -1 too; neither unfences anybody."""
        persister = self.begun()
        self.write_all(persister, self.writing(ACKNOWLEDGED, leader_epoch=-1, state_epoch=-1))
        expect(self.begin(persister, -1), NONE, "an initialisation without an epoch")
        late = self.writing(ACKNOWLEDGED, state_epoch=STATE_EPOCH - 1)
        expect(
            self.written(persister, late), ErrorCode.FENCED_STATE_EPOCH, "a write with an epoch lower than one before"
        )

    # ---- the clauses: answers

    def test_each_partition_has_its_own_answer(self) -> None:
        """What one share partition is refused does not touch another, of the same topic or another one."""
        persister = self.begun()
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
        expect(self.stored(persister), (10, (RELEASED,)), "what is stored of the partition that was not refused")

    def test_groups_have_their_own_state(self) -> None:
        """The same partition of another group has a state of its own."""
        persister = self.begun()
        entry = PartitionIdLeaderEpochData(partition=0, leader_epoch=LEADER_EPOCH)
        request = ReadStateParameters.of(self.other_group_id, self.topic_id, entry)
        code = self.answer(persister.read_state(request)).error_code
        expect(code, ErrorCode.INVALID_REQUEST, "a read by another group")

    def test_the_malformed_is_refused(self) -> None:
        """What is no request fails with MalformedInputError, at once or in the future, and nothing is carried out."""
        persister = self.begun()
        error: object = None
        try:
            error = persister.write_state(None).exception(timeout=self.timeout_s)  # type: ignore[arg-type] # that is the point
        except MalformedInputError as refusal:
            error = refusal
        if not isinstance(error, MalformedInputError):
            fail(f"a request of nothing ended with {error!r}")
        expect(self.stored(persister), (10, ()), "what is stored")


def clauses(contract: PersisterContract) -> Sequence[str]:
    """Return the names of the tests that *contract* consists of."""
    return [name for name in dir(contract) if name.startswith("test_")]


def broken_clauses(contract: PersisterContract) -> dict[str, str]:
    """Return what a persister breaks, without pytest: the names of the tests that fail, and what they say."""
    broken = {}
    for name in clauses(contract):
        try:
            getattr(contract, name)()
        except AssertionError as error:
            broken[name] = str(error)
        except Exception as error:  # noqa: BLE001 - whatever the persister raises, or TimeoutError if it says nothing
            broken[name] = repr(error)
    return broken
