"""The outcomes of writes: any number pending, answered in any order, each for the records that its write carries."""

from __future__ import annotations

from itertools import permutations
from typing import Final

import pytest
from attrs import evolve

from sharestate import (
    Cause,
    ErrorCode,
    InvalidRecordStateError,
    NotLeaderOrFollowerError,
    SharePartition,
    UnknownServerError,
    UnknownWriteError,
    WriteFailedError,
)
from sharestate.values.snapshot import RangeRow
from tests.support.scenes import Scene


def pending(*said: str) -> Scene:
    """Return a scene in which m1 has acquired 0-4, 5-9 and 10-14 and each of *said* waits for its answer."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9][10-14]", cut=5)
    scene.is_holding = True
    for one in said:
        scene.acknowledge("m1", one)
    return scene


# ---- success and failure


def test_a_success_confirms_and_advances() -> None:
    """Once written the records are done, the SPSO advances, and waiting fetches look again (rule 11)."""
    scene = pending("0-4:accept")
    effects = scene.succeed(0)

    assert (effects.wake, effects.error, effects.writes) == (True, None, ())
    assert scene.offsets == (5, 14)
    assert scene.partition.delivery_complete_count == 0


def test_a_success_that_moves_nothing_wakes_nobody() -> None:
    """Fetches are woken when the SPSO has advanced, and not otherwise (rule 11)."""
    scene = pending("5-9:accept", "10-14:release")

    assert not scene.succeed(0).wake
    assert not scene.succeed(1).wake
    assert scene.partition.next_fetch_offset() == 10


@pytest.mark.parametrize("spare", [RangeRow(5, 9), RangeRow(11, 11), RangeRow(11, 14)])
def test_a_success_confirms_what_has_waited_for_it(spare: RangeRow) -> None:
    """A write may name a range of which nothing waits for it, as a snapshot can say: those records stay as they are."""
    scene = pending("0-4:accept", "10-10:accept")
    snapshot = scene.partition.snapshot()
    first, second = snapshot.writes
    writes = (first._replace(ranges=(*first.ranges, spare)), second)
    before = scene.batches
    scene.partition = SharePartition.restore(evolve(snapshot, writes=writes))

    assert scene.succeed(0).wake
    assert scene.batches == before[1:]


def test_a_failure_rolls_the_change_back() -> None:
    """The owner has its records again, with their lock; the delivery count stays (rule 1.5)."""
    scene = pending("0-4:accept")
    effects = scene.fail(0, ErrorCode.FENCED_STATE_EPOCH)

    assert isinstance(effects.error, NotLeaderOrFollowerError)
    assert (effects.wake, effects.writes) == (False, ())
    assert scene.batches[0] == "[0-4] ACQUIRED/1/m1"
    assert scene.deadlines == [(0, 14, 10_000)]
    assert scene.partition.delivery_complete_count == 0
    scene.is_holding = False
    assert scene.acknowledge("m1", "0-4:accept") == ("W(0; 0-4 st2 dc1; cc 5)",)


def test_a_failure_advances_nothing() -> None:
    """An error moves the SPSO over nothing, even if something before it is done (rule 11)."""
    scene = pending("5-9:accept", "0-4:accept")
    scene.succeed(0)
    scene.fail(1, ErrorCode.NOT_COORDINATOR)

    assert scene.offsets == (0, 14)
    assert scene.batches == ["[0-4] ACQUIRED/1/m1", "[5-9] ACKNOWLEDGED/1/-", "[10-14] ACQUIRED/1/m1"]


@pytest.mark.parametrize("said", ["0-4:release", "0-14:1,1,3,2,0,1,1,1,1,1,2,2,2,2,2", "7:accept", "3-11:reject"])
def test_a_failure_leaves_every_record_as_it_was(said: str) -> None:
    """Whatever a request changes is undone, record by record, and nothing is offered for it."""
    scene = pending(said)
    scene.fail(0, ErrorCode.NOT_COORDINATOR)
    cells = {
        (run.state.name, run.delivery_count, run.member_id, run.has_pending_write)
        for batch in scene.partition.batches()
        for run in batch.runs
    }

    assert cells == {("ACQUIRED", 1, "m1", False)}
    assert scene.partition.delivery_complete_count == 0
    assert scene.partition.next_fetch_offset() == 15
    assert scene.deadlines == [(0, 14, 10_000)]


def test_the_error_has_the_persisters_message() -> None:
    """The member's error has the code and the message of the persister."""
    scene = pending("0-4:accept")
    error = scene.partition.write_failed(0, ErrorCode.GROUP_ID_NOT_FOUND, "no such group").error

    assert error is not None
    assert (error.code, error.message) == (ErrorCode.GROUP_ID_NOT_FOUND, "no such group")


def test_an_error_that_is_no_code_is_handed_on() -> None:
    """A persister that throws, or answers nonsense, fails the write with what the caller makes of it."""
    scene = pending("0-4:accept")
    error = WriteFailedError("Failed to write the share group state for share partition <key>")

    assert scene.partition.write_failed(0, error).error is error
    assert scene.batches[0] == "[0-4] ACQUIRED/1/m1"


def test_a_code_that_nobody_knows_is_an_unknown_error() -> None:
    """A number that is no error code of Kafka's becomes UNKNOWN_SERVER_ERROR."""
    assert isinstance(pending("0-4:accept").partition.write_failed(0, 9_999).error, UnknownServerError)


# ---- many writes


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_writes_are_answered_in_any_order(order: tuple[int, ...]) -> None:
    """Three writes that succeed end in the same state, whichever comes first."""
    scene = pending("0-4:accept", "5-9:release", "10-14:reject")
    for number in order:
        scene.succeed(number)

    assert scene.offsets == (5, 14)
    assert scene.batches == ["[5-9] AVAILABLE/1/-", "[10-14] ARCHIVED/1/-"]
    assert scene.partition.delivery_complete_count == 5
    assert scene.partition.next_fetch_offset() == 5


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("failing", range(3))
def test_one_failure_among_successes_rolls_back_its_own_change(order: tuple[int, ...], failing: int) -> None:
    """Writes of different batches do not touch each other."""
    scene = pending("0-4:accept", "5-9:accept", "10-14:accept")
    for number in order:
        if number == failing:
            scene.fail(number, ErrorCode.NOT_COORDINATOR)
        else:
            scene.succeed(number)
    owned = [batch for batch in scene.batches if "ACQUIRED" in batch]

    assert owned == [f"[{5 * failing}-{5 * failing + 4}] ACQUIRED/1/m1"]
    assert scene.partition.delivery_complete_count == {0: 10, 1: 5, 2: 0}[failing]


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_writes_of_one_split_batch_are_answered_in_any_order(order: tuple[int, ...]) -> None:
    """Records of one batch in four writes follow each their own."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.is_holding = True
    for said in ("0-1:accept", "8-9:release", "3-4:accept", "6:reject"):
        scene.acknowledge("m1", said)
    for number in order:
        if number % 2:
            scene.fail(number, ErrorCode.NOT_COORDINATOR)
        else:
            scene.succeed(number)

    assert scene.batches == [
        "[0-9] split: 0-1 ACKNOWLEDGED/1/-, 2 ACQUIRED/1/m1, 3-4 ACKNOWLEDGED/1/-, 5-9 ACQUIRED/1/m1",
    ]
    assert scene.offsets == (2, 9)
    assert scene.partition.delivery_complete_count == 2


def test_a_member_may_go_on_while_writes_are_in_flight() -> None:
    """What is refused meanwhile, and what comes next, is judged by what shows (v22-09-two-pending)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-1:accept")
    with pytest.raises(InvalidRecordStateError, match="The offset is not acquired"):
        scene.acknowledge("m1", "1-2:accept")
    assert scene.acknowledge("m1", "3-4:release") == ("W(0; 3 st0 dc1, 4 st0 dc1; cc 2)",)

    scene.succeed(1)
    assert scene.partition.next_fetch_offset() == 3
    scene.fail(0, ErrorCode.NOT_COORDINATOR)
    assert scene.batches == ["[0-4] split: 0-2 ACQUIRED/1/m1, 3-4 AVAILABLE/1/-"]
    assert scene.partition.delivery_complete_count == 0
    assert scene.partition.next_fetch_offset() == 3


def test_a_record_may_go_through_many_writes() -> None:
    """Released, acquired and accepted: each write of a record has its own outcome."""
    scene = pending("0-4:release")
    scene.succeed(0)
    scene.acquire("m2", 0, "[0-4]")
    scene.acknowledge("m2", "0-4:accept")

    assert scene.batches[0] == "[0-4] ACKNOWLEDGED/2/-*"
    scene.fail(1, ErrorCode.NOT_COORDINATOR)
    assert scene.batches[0] == "[0-4] ACQUIRED/2/m2"


def test_a_wide_request_with_records_far_apart() -> None:
    """Entries of one request that lie far apart in one batch are all rolled back by its failure."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-199]")
    scene.is_holding = True
    scene.acknowledge("m1", "150:accept", "0-1:accept", "100:release", "3:reject")

    assert scene.batches[0].count("*") == 4
    scene.fail(0, ErrorCode.NOT_COORDINATOR)
    assert scene.batches == ["[0-199] split: 0-199 ACQUIRED/1/m1"]
    assert scene.partition.delivery_complete_count == 0


@pytest.mark.parametrize("succeeds", [True, False])
def test_records_between_those_of_a_request_are_left_alone(succeeds: bool) -> None:  # noqa: FBT001 - both outcomes
    """Records of another write, or of none, between two entries of one request are not touched by its outcome."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0:release", "3:release")
    scene.acknowledge("m1", "1:release")
    if succeeds:
        scene.succeed(0)
    else:
        scene.fail(0, ErrorCode.NOT_COORDINATOR)
    own = "AVAILABLE/1/-" if succeeds else "ACQUIRED/1/m1"

    shown = [f"{offset} {own}" for offset in (0, 3)]
    assert scene.batches[0].startswith(f"[0-4] split: {shown[0]}, 1 AVAILABLE/1/-*, 2")
    assert scene.partition.lock_count() == (3 if succeeds else 5)


# ---- archived meanwhile (rules 1.4 and 11)


@pytest.mark.parametrize("succeeds", [True, False])
def test_records_archived_while_pending_stay_archived(succeeds: bool) -> None:  # noqa: FBT001 - both outcomes
    """Once the log start has passed a release on its way, neither outcome matters (v22-11-log-start-over-pending)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-9:release")
    scene.partition.advance_log_start(10)
    assert scene.batches == ["[0-9] ARCHIVED/1/-*t"]
    assert scene.partition.delivery_complete_count == 0

    if succeeds:
        scene.succeed(0)
        assert (scene.offsets, scene.batches) == ((10, 10), [])
    else:
        scene.fail(0, ErrorCode.NOT_COORDINATOR)
        assert (scene.offsets, scene.batches) == ((10, 10), ["[0-9] ARCHIVED/1/-"])
    assert scene.partition.next_fetch_offset() == 10


def test_a_failure_below_the_start_takes_nothing_from_the_count() -> None:
    """Records that the log start has passed meanwhile do not count any more when they are rolled back (rule 20.4)."""
    scene = pending("0-9:accept")
    scene.partition.advance_log_start(7)
    assert scene.partition.delivery_complete_count == 3

    scene.fail(0, ErrorCode.NOT_COORDINATOR)
    assert scene.partition.delivery_complete_count == 0
    assert scene.batches[0] == "[0-4] ACQUIRED/1/m1"


# ---- splitting a batch whose write is in flight (rule 24.2, B4)


def cut_while_releasing() -> Scene:
    """Return a scene in which a release of 0-9 waits for its answer and the log start has cut through it."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-9:release")
    scene.partition.advance_log_start(5)
    return scene


def test_a_split_batch_keeps_its_write() -> None:
    """Every record waits for the outcome; those archived meanwhile do not care for it."""
    scene = cut_while_releasing()

    assert scene.batches == ["[0-9] split: 0-4 ARCHIVED/1/-*t, 5-9 AVAILABLE/1/-*"]
    assert scene.acquire("m2", 5, "[5-9]") == ()
    assert scene.deadlines == [(5, 9, 10_000)]


def test_a_split_batch_whose_write_succeeds_is_offered() -> None:
    """After the success the rest can be acquired, and has no lock."""
    scene = cut_while_releasing()
    scene.succeed(0)

    assert scene.partition.lock_count() == 0
    assert scene.partition.next_fetch_offset() == 5
    assert scene.acquire("m2", 5, "[5-9]") == ((5, 9, 2),)


def test_a_split_batch_whose_write_fails_goes_back() -> None:
    """After the failure the rest is its owner's again, record by record, with the old deadline."""
    scene = cut_while_releasing()
    scene.fail(0, ErrorCode.NOT_COORDINATOR)

    assert scene.batches == ["[0-9] split: 0-4 ARCHIVED/1/-, 5-9 ACQUIRED/1/m1"]
    assert scene.deadlines == [(5, 9, 10_000)]
    assert scene.partition.lock_count() == 5


def test_the_locks_of_a_split_batch_have_not_expired() -> None:
    """The split gives new locks, so each record's expires even after the batch's has expired (rule 24.2, B4)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-3]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-3:release")
    scene.wait(10_001)
    assert scene.batches == ["[0-3] AVAILABLE/1/-*x"]

    scene.partition.advance_log_start(2)
    assert scene.batches == ["[0-3] split: 0-1 ARCHIVED/1/-*t, 2-3 AVAILABLE/1/-*"]
    assert scene.partition.next_deadline_ms() == 10_001
    assert scene.expire() == ()
    scene.fail(0, ErrorCode.NOT_COORDINATOR)
    assert scene.batches == ["[0-3] split: 0-1 ARCHIVED/1/-, 2 AVAILABLE/1/-, 3 ACQUIRED/1/m1"]
    assert scene.expire() == ("W(2; 3 st0 dc1; cc 0)",)


# ---- outcomes of nothing


@pytest.mark.parametrize("number", [-1, 1, 99])
def test_an_outcome_of_a_write_that_was_never_issued_is_refused(number: int) -> None:
    """Numbers that were not given out are unknown, and nothing changes."""
    scene = pending("0-4:accept")
    before = (scene.batches, scene.offsets, scene.partition.delivery_complete_count)

    with pytest.raises(UnknownWriteError, match=f"write {number} was never issued") as unknown:
        scene.succeed(number)
    with pytest.raises(UnknownWriteError):
        scene.fail(number, ErrorCode.NOT_COORDINATOR)

    assert unknown.value.number == number
    assert (scene.batches, scene.offsets, scene.partition.delivery_complete_count) == before


@pytest.mark.parametrize("succeeds", [True, False])
def test_a_write_has_one_outcome(succeeds: bool) -> None:  # noqa: FBT001 - both outcomes
    """A second outcome of the same write is refused, whatever it is, and nothing changes."""
    scene = pending("0-4:accept")
    if succeeds:
        scene.succeed(0)
    else:
        scene.fail(0, ErrorCode.NOT_COORDINATOR)
    before = scene.batches

    with pytest.raises(UnknownWriteError):
        scene.succeed(0)
    with pytest.raises(UnknownWriteError):
        scene.fail(0, ErrorCode.NOT_COORDINATOR)
    assert scene.batches == before


def test_a_write_of_an_expired_lock_has_one_outcome() -> None:
    """The same holds for a write whose outcome decides nothing."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.wait(10_001)

    with pytest.raises(UnknownWriteError):
        scene.succeed(0)


# ---- the ranges that wait for the outcome

ENTRIES: Final = ("100-101:accept", "130-131:accept", "60-61:accept", "90-91:accept", "115-116:accept")
"""Entries in no order: the third to the fifth are near each other, and together reach past the first."""

ACKNOWLEDGED: Final = [60, 61, 90, 91, 100, 101, 115, 116, 130, 131]


def pending_entries(*, record_transitions: bool = False) -> Scene:
    """Return a share partition whose member has acknowledged ENTRIES of a batch; the write is pending."""
    scene = Scene(record_transitions=record_transitions).load()
    scene.acquire("m1", 0, "[0-199]", cut=200)
    scene.is_holding = True
    scene.acknowledge("m1", *ENTRIES)
    return scene


def offsets(scene: Scene, text: str) -> list[int]:
    """Return the offsets of the records that are shown as *text*."""
    (shown,) = scene.batches
    runs = (run.split(" ", 1) for run in shown.partition("split: ")[2].split(", "))
    spans = [span.partition("-")[::2] for span, record in runs if record == text]
    return [offset for first, last in spans for offset in range(int(first), int(last or first) + 1)]


def test_each_record_is_committed_once_however_the_entries_stand() -> None:
    """All records of the write are durable after its success, and no other record has changed."""
    scene = pending_entries()
    assert offsets(scene, "ACKNOWLEDGED/1/-*") == ACKNOWLEDGED

    scene.succeed(0)

    assert offsets(scene, "ACKNOWLEDGED/1/-") == ACKNOWLEDGED
    assert len(offsets(scene, "ACQUIRED/1/m1")) == 200 - len(ACKNOWLEDGED)


def test_each_record_is_rolled_back_once_however_the_entries_stand() -> None:
    """All records of the write are held again after its failure, with the lock that they had."""
    scene = pending_entries()

    scene.fail(0, ErrorCode.NOT_COORDINATOR)

    assert scene.batches == ["[0-199] split: 0-199 ACQUIRED/1/m1"]
    assert scene.partition.delivery_complete_count == 0


@pytest.mark.parametrize("succeeds", [True, False])
def test_each_transition_is_recorded_once_however_the_entries_stand(succeeds: bool) -> None:  # noqa: FBT001 - both
    """The transitions of the request and of its outcome name each record once."""
    scene = pending_entries(record_transitions=True)
    issued = scene.effects[-1].transitions

    ended = (scene.succeed(0) if succeeds else scene.fail(0, ErrorCode.NOT_COORDINATOR)).transitions

    for transitions in (issued, [each for each in ended if each.cause is not Cause.PASSED]):
        named = [offset for each in transitions for offset in range(each.first_offset, each.last_offset + 1)]
        assert sorted(named) == ACKNOWLEDGED
