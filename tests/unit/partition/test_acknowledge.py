"""Acknowledgements: what is taken, what is refused, and what a refusal leaves behind."""

import pytest

from sharestate import (
    AcknowledgementBatch,
    ErrorCode,
    InvalidRecordStateError,
    InvalidRequestError,
    ShareStateError,
)
from tests.support.scenes import Scene

NOT_FOUND = "Batch record not found. The request batch offsets are not found in the cache."
PAST_FIRST = "Batch record not found. The first offset in request is past acquired records."
PAST_LAST = "Batch record not found. The last offset in request is past acquired records."
BATCH_NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."
BATCH_OF_ANOTHER = "Member is not the owner of batch record"
OFFSET_NOT_ACQUIRED = "The offset cannot be acknowledged. The offset is not acquired."
OFFSET_OF_ANOTHER = "Member is not the owner of offset"


def refusal(scene: Scene, member: str, *said: str) -> ShareStateError:
    """Return the error with which an acknowledgement is refused."""
    with pytest.raises((InvalidRecordStateError, InvalidRequestError)) as refused:
        scene.acknowledge(member, *said)
    scene.partition.check()
    return refused.value


# ---- what is taken (rule 8.3)


def test_a_batch_is_accepted() -> None:
    """The write carries the old SPSO; once it succeeds the SPSO advances and the cache is empty (v22-01-accept)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")

    assert scene.acknowledge("m1", "0-4:accept") == ("W(0; 0-4 st2 dc1; cc 5)",)
    assert (scene.offsets, scene.batches) == ((5, 5), [])
    assert scene.partition.next_fetch_offset() == 5
    assert scene.partition.delivery_complete_count == 0


def test_an_entry_may_begin_below_the_start_where_nothing_is_cached() -> None:
    """The batch at the SPSO is found then, and the records below it are passed over (rule 8.1)."""
    scene = Scene().load(5)
    scene.acquire("m1", 5, "[5-9]")

    assert scene.acknowledge("m1", "3-9:accept") == ("W(5; 5-9 st2 dc1; cc 5)",)


def test_two_records_may_have_two_types() -> None:
    """A batch of two records is split for two types."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-1]")

    assert scene.acknowledge("m1", "0-1:accept,release") == ("W(0; 0 st2 dc1, 1 st0 dc1; cc 1)",)
    assert scene.batches == ["[0-1] split: 0 ACKNOWLEDGED/1/-, 1 AVAILABLE/1/-"]


@pytest.mark.parametrize(
    ("kind", "write", "next_fetch"),
    [
        pytest.param(0, "W(0; 0-4 st4 dc1; cc 5)", 5, id="gap"),
        pytest.param(1, "W(0; 0-4 st2 dc1; cc 5)", 5, id="accept"),
        pytest.param(2, "W(0; 0-4 st0 dc1; cc 0)", 0, id="release"),
        pytest.param(3, "W(0; 0-4 st4 dc1; cc 5)", 5, id="reject"),
    ],
)
def test_each_type_is_written_as_the_state_it_leads_to(kind: int, write: str, next_fetch: int) -> None:
    """GAP and REJECT archive, ACCEPT acknowledges, RELEASE offers again (rule 8)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")

    assert scene.acknowledge("m1", f"0-4:{kind}") == (write,)
    assert scene.partition.next_fetch_offset() == next_fetch


def test_a_release_at_the_limit_archives() -> None:
    """A record that was delivered as often as allowed is not offered again (rule 8.3)."""
    scene = Scene(limit=2).load(0, "[0-4 st0]")
    scene.acquire("m1", 0, "[0-4]")

    assert scene.acknowledge("m1", "0-4:release") == ("W(0; 0-4 st4 dc2; cc 5)",)
    assert scene.offsets == (5, 5)


def test_a_type_for_each_offset_splits_the_batch() -> None:
    """With one type for each offset each record is written by itself, and the batch stays split (rule 8.3)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")

    assert scene.acknowledge("m1", "0-4:1,0,1,3,2") == (
        "W(0; 0 st2 dc1, 1 st4 dc1, 2 st2 dc1, 3 st4 dc1, 4 st0 dc1; cc 4)",
    )
    assert scene.offsets == (4, 4)
    assert scene.batches == [
        "[0-4] split: 0 ACKNOWLEDGED/1/-, 1 ARCHIVED/1/-, 2 ACKNOWLEDGED/1/-, 3 ARCHIVED/1/-, 4 AVAILABLE/1/-",
    ]


def test_equal_types_for_each_offset_split_the_batch_too() -> None:
    """It is the list that splits, not what is in it (rule 8.1, step 6.3)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-2]")

    assert scene.acknowledge("m1", "0-2:release,release,release") == ("W(0; 0 st0 dc1, 1 st0 dc1, 2 st0 dc1; cc 0)",)
    assert scene.batches == ["[0-2] split: 0-2 AVAILABLE/1/-"]


def test_what_a_member_without_an_id_has_cannot_be_acknowledged() -> None:
    """Kafka takes an owner without an id for none (rule 8.1, step 6.2), whose batch is not acquired."""
    scene = Scene().load()
    scene.acquire("", 0, "[0-4]")

    assert refusal(scene, "", "0-4:accept").message == BATCH_NOT_ACQUIRED


def test_a_part_of_a_batch_splits_it() -> None:
    """An acknowledgement of some records changes these, one by one."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")

    assert scene.acknowledge("m1", "1-2:accept") == ("W(0; 1 st2 dc1, 2 st2 dc1; cc 2)",)
    assert scene.batches == ["[0-4] split: 0 ACQUIRED/1/m1, 1-2 ACKNOWLEDGED/1/-, 3-4 ACQUIRED/1/m1"]


def test_one_write_carries_the_whole_request() -> None:
    """However many entries and batches a request has, there is one write, in the order of the request (rule 15)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9][10-14]", cut=5)

    assert scene.acknowledge("m1", "5-14:accept", "0-4:release") == (
        "W(0; 5-9 st2 dc1, 10-14 st2 dc1, 0-4 st0 dc1; cc 10)",
    )


def test_gaps_between_batches_are_passed_over() -> None:
    """Offsets that no batch holds, inside the range, do no harm (rule 8.3)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m1", 5, "[8-9]")

    assert scene.acknowledge("m1", "0-9:accept") == ("W(0; 0-4 st2 dc1, 8-9 st2 dc1; cc 7)",)
    assert scene.offsets == (10, 10)


def test_types_behind_a_gap_are_those_of_their_offsets() -> None:
    """The list of types counts the offsets of the range, cached or not."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-1]")
    scene.acquire("m1", 2, "[4-5]")

    assert scene.acknowledge("m1", "0-5:1,2,0,0,3,2") == ("W(0; 0 st2 dc1, 1 st0 dc1, 4 st4 dc1, 5 st0 dc1; cc 2)",)


def test_types_over_two_batches_are_those_of_their_offsets() -> None:
    """The list of types goes on from one batch to the next."""
    scene = Scene().load(5)
    scene.acquire("m1", 5, "[5-6][7-8]", cut=2)

    assert scene.acknowledge("m1", "5-8:release,accept,reject,release") == (
        "W(5; 5 st0 dc1, 6 st2 dc1, 7 st4 dc1, 8 st0 dc1; cc 2)",
    )


def test_more_types_than_offsets_do_no_harm() -> None:
    """A list that is too long is used as far as it is needed."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-1]")

    assert scene.acknowledge("m1", "0-1:accept,release,reject") == ("W(0; 0 st2 dc1, 1 st0 dc1; cc 1)",)


def test_an_empty_request_is_taken() -> None:
    """A request of nothing is done at once, without a write."""
    assert Scene().load().acknowledge("m1") == ()


# ---- below the SPSO (rule 8.1, steps 2 and 6)


def test_a_range_below_the_start_is_skipped() -> None:
    """A range wholly below the SPSO is taken without a write (v22-20-below-start)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.partition.advance_log_start(5)

    assert scene.acknowledge("m1", "0-4:accept") == ()
    assert scene.batches == ["[0-9] ACQUIRED/1/m1"]


def test_a_range_across_the_start_is_taken_from_there() -> None:
    """Of a batch across the SPSO the part above is written record by record (rule 8.3)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.partition.advance_log_start(4)

    assert scene.acknowledge("m1", "0-9:accept") == (
        "W(4; 4 st2 dc1, 5 st2 dc1, 6 st2 dc1, 7 st2 dc1, 8 st2 dc1, 9 st2 dc1; cc 6)",
    )
    assert scene.batches == ["[0-9] split: 0-3 ACQUIRED/1/m1, 4-9 ACKNOWLEDGED/1/-"]


def test_the_start_may_stand_on_the_last_offset_of_a_batch() -> None:
    """A batch of which only the last record is left is split for that one."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.partition.advance_log_start(9)

    assert scene.acknowledge("m1", "0-9:accept") == ("W(9; 9 st2 dc1; cc 1)",)


def test_a_range_across_the_start_may_cover_several_batches() -> None:
    """All of those from the SPSO on are acknowledged (rule 8.1, steps 3 to 5)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9][10-14]", cut=5)
    scene.acknowledge("m1", "0-4:accept")

    assert scene.acknowledge("m1", "0-14:accept") == ("W(5; 5-9 st2 dc1, 10-14 st2 dc1; cc 10)",)
    assert scene.offsets == (15, 15)


def test_types_across_the_start_are_those_of_their_offsets() -> None:
    """The list of types begins at the first offset of the range, not at the SPSO."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-3]")
    scene.partition.advance_log_start(2)

    assert scene.acknowledge("m1", "0-3:accept,accept,release,reject") == ("W(2; 2 st0 dc1, 3 st4 dc1; cc 1)",)


def test_batches_below_the_start_are_not_judged() -> None:
    """Of a range across the SPSO the batches wholly below it may be anybody's."""
    scene = Scene().load()
    scene.acquire("m2", 0, "[0-4]")
    scene.acquire("m1", 5, "[5-9]")
    scene.partition.advance_log_start(5)

    assert scene.acknowledge("m1", "0-9:accept") == ("W(5; 5-9 st2 dc1; cc 5)",)


def test_a_range_may_begin_before_all_that_is_cached() -> None:
    """A range that begins below the SPSO is held against the batch in which the SPSO stands (rule 8.1, step 3)."""
    scene = Scene().load(10, "[10-14 st0]")
    scene.acquire("m1", 10, "[10-14]")
    scene.partition.advance_log_start(12)

    assert scene.acknowledge("m1", "8-14:accept") == ("W(12; 12 st2 dc2, 13 st2 dc2, 14 st2 dc2; cc 3)",)


# ---- refusals (rule 8.1)


def test_unknown_types_are_refused_even_below_the_start() -> None:
    """The types are judged before the range is looked at (v22-20-below-start)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.partition.advance_log_start(5)

    assert refusal(scene, "m1", "0-1:7").message == "Invalid acknowledge type: [7]"
    assert refusal(scene, "m1", "0-1:1,7").message == "Invalid acknowledge type: [1, 7]"
    assert refusal(scene, "m1", "0-1:-1").code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        pytest.param("0-4:accept", InvalidRecordStateError, NOT_FOUND, id="before all that is cached"),
        pytest.param("17-18:accept", InvalidRequestError, PAST_FIRST, id="in a gap"),
        pytest.param("30-34:accept", InvalidRequestError, PAST_FIRST, id="behind all that is cached"),
        pytest.param("12-17:accept", InvalidRequestError, PAST_LAST, id="ending in a gap"),
        pytest.param("20-30:accept", InvalidRequestError, PAST_LAST, id="ending behind all that is cached"),
    ],
)
def test_a_range_that_was_not_acquired_is_refused(said: str, error: type[ShareStateError], message: str) -> None:
    """A range has to begin and end in what was acquired (rule 8.1, steps 3 to 5)."""
    scene = Scene().load(0, "[10-14 st0][20-24 st0]")

    refused = refusal(scene, "m1", said)

    assert (type(refused), refused.message) == (error, message)


def test_a_range_before_all_that_is_cached_is_refused() -> None:
    """At or above the SPSO a range needs a batch that begins at or before it (rule 8.1, step 3)."""
    scene = Scene().load(10, "[15-19 st0]")

    assert refusal(scene, "m1", "10-16:accept").message == NOT_FOUND


@pytest.mark.parametrize(
    ("said", "message"),
    [("0-4:accept", BATCH_OF_ANOTHER), ("0-2:accept", BATCH_OF_ANOTHER), ("5-9:accept", BATCH_NOT_ACQUIRED)],
)
def test_a_whole_batch_is_refused_as_one(said: str, message: str) -> None:
    """A whole batch is judged as such, whatever part of it is meant, and is not split for it (rule 18, row 14)."""
    scene = Scene().load(0, "[5-9 st0]")
    scene.acquire("m2", 0, "[0-4]")

    refused = refusal(scene, "m1", said)

    assert isinstance(refused, InvalidRecordStateError)
    assert refused.message == message
    assert refused.owner == ("m2" if message == BATCH_OF_ANOTHER else None)
    assert scene.batches == ["[0-4] ACQUIRED/1/m2", "[5-9] AVAILABLE/1/-"]


def test_a_record_of_a_split_batch_is_refused_by_itself() -> None:
    """In a split batch each record is judged, and the first one that is refused is named (rule 18, row 15)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "3-5:release,release,accept")
    scene.acquire("m2", 3, "[3-4]")

    of_another = refusal(scene, "m1", "0-9:accept")
    not_acquired = refusal(scene, "m1", "5-9:accept")
    single = refusal(scene, "m1", "4:accept")

    assert (of_another.message, not_acquired.message) == (OFFSET_OF_ANOTHER, OFFSET_NOT_ACQUIRED)
    assert isinstance(of_another, InvalidRecordStateError)
    assert (of_another.first_offset, of_another.last_offset, of_another.owner) == (3, 3, "m2")
    assert isinstance(not_acquired, InvalidRecordStateError)
    assert (not_acquired.first_offset, not_acquired.owner) == (5, None)
    assert single.message == OFFSET_OF_ANOTHER


def test_a_second_acknowledgement_is_refused() -> None:
    """While the first one is being written its records are nobody's (rule 8.1)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept", "6:accept")

    assert refusal(scene, "m1", "0-4:accept").message == BATCH_NOT_ACQUIRED
    assert refusal(scene, "m1", "5-6:accept").message == OFFSET_NOT_ACQUIRED


def test_the_batch_before_a_gap_is_judged_too() -> None:
    """A range that begins in a gap is held against the batch before it: it may be another's (rule 8.3)."""
    scene = Scene().load()
    scene.acquire("m2", 0, "[0-4]")
    scene.acquire("m1", 5, "[8-9]")

    assert refusal(scene, "m1", "5-9:accept").message == BATCH_OF_ANOTHER


def test_the_batch_before_a_gap_is_split_for_nothing() -> None:
    """If the member owns it, it is split though none of its records is meant (rule 8.3)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m1", 5, "[8-9]")

    assert scene.acknowledge("m1", "5-9:accept") == ("W(0; 8-9 st2 dc1; cc 2)",)
    assert scene.batches == ["[0-4] split: 0-4 ACQUIRED/1/m1", "[8-9] ACKNOWLEDGED/1/-"]


def test_the_first_error_of_a_request_decides() -> None:
    """Entries are judged in order, each for its types first (rule 8.1)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")

    assert refusal(scene, "m1", "0-9:accept", "0-4:7").message == PAST_LAST
    assert refusal(scene, "m1", "0-4:7", "0-9:accept").message == "Invalid acknowledge type: [7]"


def test_a_range_without_an_in_flight_batch_is_refused() -> None:
    """A range across the SPSO with nothing cached above it is refused, without a crash (rule 24.2, B5)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "0-4:accept")

    assert refusal(scene, "m1", "3-7:accept").message == NOT_FOUND
    assert isinstance(refusal(scene, "m1", "3-7:accept"), InvalidRecordStateError)


def test_a_range_across_the_start_and_a_gap_behind_it_is_refused() -> None:
    """The same if something is cached further on: as for a range that begins at the SPSO, no batch holds its start."""
    scene = Scene().load(10, "[20-24 st0]")

    assert refusal(scene, "m1", "5-24:accept").message == NOT_FOUND
    assert refusal(scene, "m1", "10-24:accept").message == NOT_FOUND


# ---- what a refusal leaves behind (rule 24.3)


def test_a_refusal_withdraws_what_came_before_it() -> None:
    """The records of earlier entries are rolled back, with their locks (rule 8.3)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    before = scene.deadlines

    assert refusal(scene, "m1", "0-4:accept", "5-12:accept").message == PAST_LAST
    assert scene.batches == ["[0-4] ACQUIRED/1/m1", "[5-9] ACQUIRED/1/m1"]
    assert scene.deadlines == before
    assert scene.partition.delivery_complete_count == 0
    assert scene.acknowledge("m1", "0-4:accept") == ("W(0; 0-4 st2 dc1; cc 5)",)


def test_the_same_range_twice_is_refused() -> None:
    """A request that says something of a record twice is refused as a whole (rule 8.3)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")

    assert refusal(scene, "m1", "0-4:accept", "0-4:accept").message == BATCH_NOT_ACQUIRED
    assert scene.batches == ["[0-4] ACQUIRED/1/m1"]


def test_a_batch_stays_split_after_a_refusal() -> None:
    """Nothing of the records changes, but a batch that was split on the way stays so (rule 24.3)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")

    assert refusal(scene, "m1", "0-1:accept,reject", "0:release").message == OFFSET_NOT_ACQUIRED
    assert scene.batches == ["[0-4] split: 0-4 ACQUIRED/1/m1"]
    assert scene.partition.lock_count() == 5
    assert scene.deadlines == [(0, 4, 10_000)]
    assert scene.acknowledge("m1", "0-4:accept") == (
        "W(0; 0 st2 dc1, 1 st2 dc1, 2 st2 dc1, 3 st2 dc1, 4 st2 dc1; cc 5)",
    )


def test_a_refused_record_leaves_those_before_it_alone() -> None:
    """A refusal inside a batch withdraws the records before it too."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "3:release")

    assert refusal(scene, "m1", "0-4:accept").message == OFFSET_NOT_ACQUIRED
    assert scene.batches == ["[0-4] split: 0-2 ACQUIRED/1/m1, 3 AVAILABLE/1/-, 4 ACQUIRED/1/m1"]


def test_a_release_that_is_withdrawn_is_not_offered() -> None:
    """A refused release does not make the next fetch look for it."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    refusal(scene, "m1", "0-4:release", "0-4:release")

    assert not scene.partition.find_next
    assert scene.partition.next_fetch_offset() == 5


def test_a_refusal_writes_nothing() -> None:
    """The number that a refused request would have had goes to the next write."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    refusal(scene, "m1", "0-4:accept", "5:accept")
    scene.acknowledge("m1", "0-4:accept")

    assert [write.number for effects in scene.effects for write in effects.writes] == [0]


# ---- malformed requests (rule 24.2)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (AcknowledgementBatch(7, 6, (1,)), "The range is reversed: 7-6"),
        (AcknowledgementBatch(5, 9, ()), "0 acknowledge types for the 5 offsets 5-9"),
        (AcknowledgementBatch(5, 9, (1, 1)), "2 acknowledge types for the 5 offsets 5-9"),
        (AcknowledgementBatch(5, 9, (7, 7)), "2 acknowledge types for the 5 offsets 5-9"),
        (AcknowledgementBatch(5, 9, (1, 1, 1, 1)), "4 acknowledge types for the 5 offsets 5-9"),
        (
            AcknowledgementBatch(-(2**63), -(2**63) + 1, ()),
            f"0 acknowledge types for the 2 offsets {-(2**63)}-{-(2**63) + 1}",
        ),
    ],
)
def test_a_malformed_request_changes_nothing_at_all(batch: AcknowledgementBatch, message: str) -> None:
    """It is refused before its first entry is looked at: no batch is split, no lock renewed (rule 24.3)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.now_ms = 500
    renewal = AcknowledgementBatch(1, 2, (4,))

    with pytest.raises(InvalidRequestError, match=message) as refused:
        scene.partition.acknowledge("m1", [renewal, batch], now_ms=500)

    assert (refused.value.first_offset, refused.value.last_offset) == batch[:2]
    assert scene.batches == ["[0-4] ACQUIRED/1/m1", "[5-9] ACQUIRED/1/m1"]
    assert scene.deadlines == [(0, 9, 10_000)]


def test_a_malformed_range_is_refused_even_below_the_start() -> None:
    """A reversed range is malformed wherever it lies."""
    scene = Scene().load(100)

    with pytest.raises(InvalidRequestError, match="reversed"):
        scene.partition.acknowledge("m1", [AcknowledgementBatch(7, 6, (1,))], now_ms=0)


def test_types_for_records_that_were_delivered_differently_often() -> None:
    """Each record goes its own way from where it was."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-5]")
    scene.acknowledge("m1", "0-2:release")
    scene.acquire("m1", 0, "[0-5]", most=3)

    assert scene.acknowledge("m1", "0-5:1,3,2,1,3,2") == (
        "W(0; 0 st2 dc2, 1 st4 dc2, 2 st0 dc2, 3 st2 dc1, 4 st4 dc1, 5 st0 dc1; cc 4)",
    )


def test_a_type_for_one_record_of_a_batch_is_not_lost() -> None:
    """Though the same entry renews a record of another batch."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-1][2-4]", cut=2)

    assert scene.acknowledge("m1", "1-4:accept,renew,accept,accept") == ("W(0; 1 st2 dc1, 3 st2 dc1, 4 st2 dc1; cc 3)",)
