"""The log starts later now: what is offered below is archived, and what is held waits."""

import pytest

from sharestate import KAFKA_4_3, ErrorCode
from tests.support.scenes import Scene


@pytest.mark.parametrize("offset", [0, 4, 5])
def test_a_log_start_that_is_not_past_the_spso_is_ignored(offset: int) -> None:
    """The SPSO never follows the log start back (rule 13)."""
    scene = Scene().load(5, "[5-9 st0]")
    scene.partition.advance_log_start(offset)

    assert scene.offsets == (5, 9)
    assert scene.batches == ["[5-9] AVAILABLE/1/-"]


def test_with_nothing_cached_both_offsets_follow() -> None:
    """An empty share partition starts and ends where the log starts (v22-10-log-start-empty)."""
    scene = Scene().load()
    scene.partition.advance_log_start(20)

    assert scene.offsets == (20, 20)
    assert scene.partition.next_fetch_offset() == 20


def test_available_records_below_the_log_start_are_archived() -> None:
    """Whole batches are archived whole, and one across the new start is split (rule 13)."""
    scene = Scene().load(0, "[0-4 st0][5-9 st0]")
    scene.acquire("m1", 10, "[10-14]")
    scene.partition.advance_log_start(7)

    assert scene.batches == [
        "[0-4] ARCHIVED/1/-",
        "[5-9] split: 5-6 ARCHIVED/1/-, 7-9 AVAILABLE/1/-",
        "[10-14] ACQUIRED/1/m1",
    ]
    assert scene.offsets == (7, 14)
    assert scene.partition.next_fetch_offset() == 7


def test_acquired_records_below_the_log_start_stay_acquired() -> None:
    """Acquired records are not touched, and a batch across the new start stays whole (rule 13)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.partition.advance_log_start(5)

    assert scene.batches == ["[0-9] ACQUIRED/1/m1"]
    assert scene.offsets == (5, 9)
    assert scene.partition.lock_count() == 1


def test_the_end_follows_past_everything() -> None:
    """A log start behind all that is cached moves the SPEO too (rule 13)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.partition.advance_log_start(15)

    assert scene.offsets == (15, 15)
    assert scene.batches == ["[0-9] ACQUIRED/1/m1"]
    assert scene.partition.can_acquire()


def test_a_moved_log_start_writes_nothing() -> None:
    """The new SPSO reaches the persister with the next write of any kind (rule 13)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.partition.advance_log_start(3)

    assert not any(effects.writes for effects in scene.effects)
    assert scene.acknowledge("m1", "5-9:release") == ("W(3; 5-9 st0 dc1; cc 0)",)


def test_records_archived_by_the_log_start_do_not_count_as_complete() -> None:
    """The complete count is of records at or above the SPSO only (rule 20.4)."""
    scene = Scene().load(0, "[0-9 st0]")
    scene.partition.advance_log_start(5)

    assert scene.partition.delivery_complete_count == 0


def test_terminal_records_below_the_log_start_leave_the_count() -> None:
    """Terminal records that the log start passes leave the count (rule 20.4)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "2-7:accept")
    scene.partition.advance_log_start(5)

    assert scene.partition.delivery_complete_count == 3


def test_pending_terminal_records_below_the_log_start_leave_the_count() -> None:
    """Records that are terminal with their write in flight leave the count as well."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-9:accept")
    before = scene.partition.delivery_complete_count
    scene.partition.advance_log_start(5)

    assert (before, scene.partition.delivery_complete_count) == (10, 5)
    assert scene.succeed(0).wake
    assert scene.offsets == (10, 10)


def test_terminal_records_behind_a_batch_that_was_passed_leave_the_count() -> None:
    """A release in which the SPSO stays behind the log start keeps the batch below: it is not where counting ends."""
    scene = Scene(profile=KAFKA_4_3).load(0, "[0-4 st0][10-19 st0]")
    scene.partition.advance_log_start(7)
    scene.acquire("m1", 10, "[10-19]")
    scene.is_holding = True
    scene.acknowledge("m1", "10-12:accept")
    before = scene.partition.delivery_complete_count
    scene.partition.advance_log_start(12)

    assert (before, scene.partition.delivery_complete_count) == (3, 1)
    assert scene.batches[0] == "[0-4] ARCHIVED/1/-"


def test_a_release_on_its_way_is_archived() -> None:
    """Available records are archived even while their release is being written (v22-11-log-start-over-pending)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-9:release")
    scene.partition.advance_log_start(10)

    assert scene.batches == ["[0-9] ARCHIVED/1/-*t"]
    assert scene.partition.lock_count() == 0
    assert scene.offsets == (10, 10)


def test_an_acceptance_on_its_way_below_is_not_touched() -> None:
    """Records on their way to a terminal state follow their write, even below the SPSO (rule 13)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")
    scene.partition.advance_log_start(5)
    scene.fail(0, ErrorCode.NOT_COORDINATOR)

    assert scene.batches[0] == "[0-4] ACQUIRED/1/m1"


def test_the_spso_may_stand_in_a_natural_gap() -> None:
    """The SPSO may come to stand where nothing is cached."""
    scene = Scene().load(0, "[0-4 st0][10-14 st0]")
    scene.partition.advance_log_start(7)

    assert scene.offsets == (7, 14)
    assert scene.batches == ["[0-4] ARCHIVED/1/-", "[10-14] AVAILABLE/1/-"]


def test_a_log_start_may_move_from_gap_to_gap() -> None:
    """What a member holds below stays as it is, and is not counted (rule 13)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acquire("m2", 20, "[20-29]")
    scene.partition.advance_log_start(12)
    scene.partition.advance_log_start(15)

    assert scene.offsets == (15, 29)
    assert scene.batches == ["[0-9] ACQUIRED/1/m1", "[20-29] ACQUIRED/1/m2"]
    assert scene.partition.delivery_complete_count == 0


def test_the_next_fetch_looks_past_what_was_archived() -> None:
    """An archival sets ``find_next``, even of records that were not offered yet (rule 5)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:release")
    before = scene.partition.find_next
    scene.partition.advance_log_start(5)

    assert (before, scene.partition.find_next) == (False, True)
    assert scene.partition.next_fetch_offset() == 10


def test_where_nothing_is_archived_there_is_nothing_to_look_for() -> None:
    """A log start that passes only what is held leaves ``find_next`` alone."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.partition.advance_log_start(3)

    assert not scene.partition.find_next


def test_what_becomes_available_below_the_spso_is_found_after_the_log_start_moves_again() -> None:
    """An expiry in memory only makes it so (B15), and Kafka offers it for ever: nothing archives it there."""
    scene = Scene(profile=KAFKA_4_3).load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")
    scene.learn_log_start(5)
    scene.wait(10_001)
    scene.fail(0, ErrorCode.NOT_COORDINATOR)
    scene.learn_log_start(8)

    assert scene.batches[0] == "[0-4] split: 0-4 AVAILABLE/1/-"
    assert scene.partition.next_fetch_offset() == 0
    scene.partition.check()
