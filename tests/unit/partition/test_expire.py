"""Acquisition locks that expire."""

import pytest

from sharestate import ErrorCode
from tests.support.scenes import Scene


def test_a_lock_expires_after_its_deadline() -> None:
    """At the deadline the member still holds its records; one millisecond later they are offered (v22-02-timeout)."""
    scene = Scene(limit=2).load()
    scene.acquire("m1", 0, "[0-4]")

    assert scene.wait(10_000) == ()
    assert scene.wait(1) == ("W(0; 0-4 st0 dc1; cc 0)",)
    assert scene.batches == ["[0-4] AVAILABLE/1/-"]
    assert scene.partition.next_fetch_offset() == 0


def test_the_last_delivery_that_expires_archives() -> None:
    """Records that were delivered as often as allowed are not offered again (v22-02-timeout)."""
    scene = Scene(limit=2).load(0, "[0-4 st0]")
    scene.acquire("m1", 0, "[0-4]")

    assert scene.wait(10_001) == ("W(0; 0-4 st4 dc2; cc 5)",)
    assert scene.offsets == (5, 5)


def test_waiting_fetches_are_woken_at_once() -> None:
    """An expired lock wakes them as its write is issued; that write's answer does not (rule 10)."""
    scene = Scene(limit=1).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.wait(10_001)
    expired, answered = scene.effects[-2:]

    assert (expired.wake, len(expired.writes)) == (True, 1)
    assert (answered.wake, answered.error) == (False, None)
    assert scene.offsets == (5, 5)


def test_the_change_of_an_expiry_is_final() -> None:
    """If the write fails the records are offered all the same, or archived and passed (v22-06-timeout-write-fails)."""
    scene = Scene(limit=2).load()
    scene.failure = ErrorCode.COORDINATOR_NOT_AVAILABLE
    scene.acquire("m1", 0, "[0-4]")

    assert scene.wait(10_001) == ("W(0; 0-4 st0 dc1; cc 0)",)
    assert scene.batches == ["[0-4] AVAILABLE/1/-"]
    scene.acquire("m2", 0, "[0-4]")
    assert scene.wait(10_001) == ("W(0; 0-4 st4 dc2; cc 5)",)
    assert scene.offsets == (5, 5)


def test_the_start_waits_for_the_answer() -> None:
    """While the write is in flight the records are archived already, but the SPSO stays (rule 10)."""
    scene = Scene(limit=1).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.wait(10_001)

    assert (scene.offsets, scene.batches) == ((0, 4), ["[0-4] ARCHIVED/1/-"])
    scene.succeed(0)
    assert (scene.offsets, scene.batches) == ((5, 5), [])


def test_records_below_the_start_are_archived() -> None:
    """A batch that the log has lost is archived when its lock expires (rule 13)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.partition.advance_log_start(5)

    assert scene.wait(10_001) == ("W(5; 0-4 st4 dc1; cc 0)", "W(5; 5-9 st0 dc1; cc 0)")


def test_a_batch_across_the_start_is_split() -> None:
    """Its records are handled together, in one write, but each by itself (rule 10)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-3]")
    scene.partition.advance_log_start(2)

    assert scene.wait(10_001) == ("W(2; 0 st4 dc1, 1 st4 dc1, 2 st0 dc1, 3 st0 dc1; cc 0)",)
    assert scene.batches == ["[0-3] split: 0-1 ARCHIVED/1/-, 2-3 AVAILABLE/1/-"]
    assert scene.partition.lock_count() == 0


def test_a_batch_across_the_start_at_its_limit_is_done() -> None:
    """Records above the SPSO that were delivered as often as allowed count as complete, those below do not."""
    scene = Scene(limit=1).load()
    scene.acquire("m1", 0, "[0-3]")
    scene.partition.advance_log_start(2)

    assert scene.wait(10_001) == ("W(2; 0 st4 dc1, 1 st4 dc1, 2 st4 dc1, 3 st4 dc1; cc 2)",)
    assert scene.offsets == (4, 4)


def test_a_split_batch_expires_record_by_record() -> None:
    """Each record of a split batch has a lock, and a write, of its own (rule 18, row 3)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-3]")
    scene.acknowledge("m1", "1:accept")

    assert scene.wait(10_001) == (
        "W(0; 0 st0 dc1; cc 1)",
        "W(0; 2 st0 dc1; cc 1)",
        "W(0; 3 st0 dc1; cc 1)",
    )


def test_there_may_be_nothing_to_do() -> None:
    """Without an expired lock ``expire_next`` says so."""
    scene = Scene().load()
    assert scene.expire() is None

    scene.acquire("m1", 0, "[0-4]")
    assert scene.expire() is None


# ---- while a write is in flight (rules 10 and 24.5)


def test_a_lock_that_expires_during_a_write_does_nothing() -> None:
    """The records follow their write; nothing is written, nobody is woken (rule 10)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")

    assert scene.wait(10_001) == ()
    expired = scene.effects[-1]
    assert (expired.wake, expired.writes) == (False, ())
    assert scene.batches == ["[0-4] ACKNOWLEDGED/1/-*x"]
    assert scene.partition.next_deadline_ms() is None


def test_a_write_that_succeeds_after_the_lock_expired_counts() -> None:
    """An acknowledgement in time stays good (rule 10)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")
    scene.wait(10_001)

    assert scene.succeed(0).wake
    assert scene.offsets == (5, 5)


def test_a_release_that_succeeds_after_the_lock_expired_is_offered() -> None:
    """A release in time makes its records available (v22-05-expiry-in-flight-then-ok)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:release")
    scene.wait(10_001)
    scene.succeed(0)

    assert scene.batches == ["[0-4] AVAILABLE/1/-"]
    assert scene.partition.find_next
    assert scene.partition.next_fetch_offset() == 0


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_a_write_that_fails_after_the_lock_expired_leaves_no_owner(kind: int) -> None:
    """The records are offered again, since nobody holds them any more (v22-03-expiry-in-flight)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", f"0-4:{kind}")
    scene.wait(10_001)
    effects = scene.fail(0, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    assert effects.error is not None
    assert (effects.error.code, effects.wake) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, False)
    assert scene.batches == ["[0-4] AVAILABLE/1/-"]
    assert scene.partition.delivery_complete_count == 0
    assert scene.partition.next_fetch_offset() == 0


def test_whether_the_lock_has_expired_decides_and_not_the_clock() -> None:
    """A lock past its deadline that nobody has handled yet is kept by a write that fails (rule 24.5)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")
    scene.now_ms = 20_000
    scene.partition.release("m9", now_ms=20_000)
    scene.fail(0, ErrorCode.NOT_COORDINATOR)

    assert scene.batches == ["[0-4] ACQUIRED/1/m1"]
    assert scene.partition.next_deadline_ms() == 10_001
    assert scene.expire() == ("W(0; 0-4 st0 dc1; cc 0)",)


def test_an_expired_lock_is_shown_until_its_write_is_answered() -> None:
    """A cell with a write in flight keeps its lock, expired or not, and shows its deadline (rule 24.5)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")
    before = scene.deadlines
    scene.wait(10_001)

    assert before == scene.deadlines == [(0, 4, 10_000)]
    assert scene.partition.lock_count() == 0


def test_records_of_a_split_batch_expire_during_a_write_one_by_one() -> None:
    """Only the records in flight remember that their lock has expired; the others are offered."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-3]")
    scene.is_holding = True
    scene.acknowledge("m1", "1-2:accept")

    assert scene.wait(10_001) == ("W(0; 0 st0 dc1; cc 2)", "W(0; 3 st0 dc1; cc 2)")
    assert scene.batches == ["[0-3] split: 0 AVAILABLE/1/-, 1-2 ACKNOWLEDGED/1/-*x, 3 AVAILABLE/1/-"]
    scene.fail(0, ErrorCode.NOT_COORDINATOR)
    assert scene.batches == ["[0-3] split: 0-3 AVAILABLE/1/-"]
