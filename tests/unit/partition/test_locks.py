"""Acquisition locks: how many there are, how long they last, and in which order they expire (rule 24.5)."""

from sharestate import ErrorCode
from tests.support.scenes import Scene


def test_a_whole_batch_has_one_lock() -> None:
    """A batch that was acquired as a whole has one lock, from the time of the acquisition on."""
    scene = Scene().load()
    scene.now_ms = 250
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)

    assert scene.partition.lock_count() == 2
    assert scene.deadlines == [(0, 9, 10_250)]


def test_a_split_batch_has_one_lock_for_each_record() -> None:
    """Splitting keeps the deadline and multiplies the locks (rule 1.7)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.now_ms = 3_000
    scene.acknowledge("m1", "1-2:accept")

    assert scene.partition.lock_count() == 3
    assert scene.deadlines == [(0, 0, 10_000), (3, 4, 10_000)]


def test_a_lock_is_gone_when_its_records_are_done() -> None:
    """A successful write cancels the locks of its records."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:release")
    held = scene.partition.lock_count()
    scene.succeed(0)

    assert (held, scene.partition.lock_count()) == (1, 0)
    assert scene.partition.next_deadline_ms() is None


def test_the_next_deadline_is_the_first_instant_at_which_a_lock_expires() -> None:
    """It is one millisecond past the earliest deadline, and ``expire_next`` acts then (rule 24.5)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.now_ms = 5
    scene.acquire("m1", 5, "[5-9]")
    due = scene.partition.next_deadline_ms()
    assert due == 10_001

    scene.now_ms = due - 1
    assert scene.expire() is None
    scene.now_ms = due
    assert scene.expire() is not None
    assert scene.partition.next_deadline_ms() == 10_006


def test_locks_expire_one_at_a_time() -> None:
    """Each call handles one lock, and the last one says that there are no more."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9][10-14]", cut=5)
    scene.now_ms = 10_001

    assert scene.expire() == ("W(0; 0-4 st0 dc1; cc 0)",)
    assert scene.expire() == ("W(0; 5-9 st0 dc1; cc 0)",)
    assert scene.expire() == ("W(0; 10-14 st0 dc1; cc 0)",)
    assert scene.expire() is None


def test_the_earliest_deadline_comes_first() -> None:
    """A lock that was made later but expires earlier comes first, whatever the offsets."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.partition.configure(Scene(lock_ms=1_000).partition.config)
    scene.acquire("m1", 5, "[5-9]")

    assert scene.wait(20_000) == ("W(0; 5-9 st0 dc1; cc 0)", "W(0; 0-4 st0 dc1; cc 0)")


def test_of_equal_deadlines_the_older_lock_comes_first() -> None:
    """Locks with one deadline expire in the order in which they were made."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.acknowledge("m1", "0-4:renew")

    assert scene.wait(10_001) == ("W(0; 5-9 st0 dc1; cc 0)", "W(0; 0-4 st0 dc1; cc 0)")


def test_a_split_makes_new_locks() -> None:
    """The locks of a batch that was split come after those that were made before the split (rule 24.5)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-2][3-5]", cut=3)
    scene.acknowledge("m1", "1:accept")

    assert scene.wait(10_001) == (
        "W(0; 3-5 st0 dc1; cc 1)",
        "W(0; 0 st0 dc1; cc 1)",
        "W(0; 2 st0 dc1; cc 1)",
    )


def test_the_locks_of_one_split_expire_in_the_order_of_the_offsets() -> None:
    """A split makes one lock for each offset, the lowest first."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-3]")
    scene.acknowledge("m1", "3:renew")

    assert scene.wait(10_001) == (
        "W(0; 0 st0 dc1; cc 0)",
        "W(0; 1 st0 dc1; cc 0)",
        "W(0; 2 st0 dc1; cc 0)",
        "W(0; 3 st0 dc1; cc 0)",
    )


def test_renewed_records_come_after_what_was_acquired_meanwhile() -> None:
    """A renewal makes a new lock; of equal deadlines it is the younger one."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-2]")
    scene.now_ms = 100
    scene.acquire("m2", 3, "[3-5]")
    scene.acknowledge("m1", "1:renew")

    assert scene.wait(20_000) == (
        "W(0; 0 st0 dc1; cc 0)",
        "W(0; 2 st0 dc1; cc 0)",
        "W(0; 3-5 st0 dc1; cc 0)",
        "W(0; 1 st0 dc1; cc 0)",
    )


def test_the_locks_of_one_request_are_made_in_its_order() -> None:
    """Renewals of one request expire in the order in which it names them."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-1][2-3]", cut=2)
    scene.now_ms = 100
    scene.acknowledge("m1", "2-3:renew", "0-1:renew")

    assert scene.wait(20_000) == ("W(0; 2-3 st0 dc1; cc 0)", "W(0; 0-1 st0 dc1; cc 0)")


def test_records_delivered_again_have_younger_locks() -> None:
    """Records of one split batch that were acquired at different times expire in that order."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-3]")
    scene.acknowledge("m1", "0:release")
    scene.now_ms = 500
    scene.acquire("m2", 0, "[0-3]")

    assert scene.wait(20_000) == (
        "W(0; 1 st0 dc1; cc 0)",
        "W(0; 2 st0 dc1; cc 0)",
        "W(0; 3 st0 dc1; cc 0)",
        "W(0; 0 st0 dc2; cc 0)",
    )


def test_the_start_may_move_between_two_locks() -> None:
    """What one expired lock has archived is passed before the next one is handled (v22-15-init-at-limit)."""
    scene = Scene(limit=1).load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.now_ms = 10_001

    assert scene.expire() == ("W(0; 0-4 st4 dc1; cc 5)",)
    assert scene.offsets == (5, 9)
    assert scene.expire() == ("W(5; 5-9 st4 dc1; cc 5)",)
    assert scene.offsets == (10, 10)


def test_with_the_answers_held_the_start_stays_between_two_locks() -> None:
    """Without an answer the SPSO stays, and the complete count goes on (rule 24.5)."""
    scene = Scene(limit=1).load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.is_holding = True

    assert scene.wait(10_001) == ("W(0; 0-4 st4 dc1; cc 5)", "W(0; 5-9 st4 dc1; cc 10)")
    assert scene.offsets == (0, 9)


def test_the_log_start_may_move_between_two_locks() -> None:
    """A lock that expires after the log start has passed its records archives them."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.now_ms = 10_001

    assert scene.expire() == ("W(0; 0-4 st0 dc1; cc 0)",)
    scene.partition.advance_log_start(10)
    assert scene.expire() == ("W(10; 5-9 st4 dc1; cc 0)",)


def test_records_may_be_acquired_between_two_locks() -> None:
    """What one expired lock has offered can be acquired before the next one is handled."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.now_ms = 10_001
    scene.expire()

    assert scene.acquire("m2", 0, "[0-4]") == ((0, 4, 2),)
    assert scene.expire() == ("W(0; 5-9 st0 dc1; cc 0)",)
    assert scene.expire() is None
    assert scene.deadlines == [(0, 4, 20_001)]


def test_a_batch_may_be_split_between_two_of_its_records() -> None:
    """Of a split batch the records that were acquired while others expired keep their new locks."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-2]")
    scene.acknowledge("m1", "2:renew")
    scene.now_ms = 10_001

    assert scene.expire() == ("W(0; 0 st0 dc1; cc 0)",)
    assert scene.acquire("m2", 0, "[0-0]") == ((0, 0, 2),)
    assert scene.expire() == ("W(0; 1 st0 dc1; cc 0)",)
    assert scene.expire() == ("W(0; 2 st0 dc1; cc 0)",)
    assert scene.expire() is None


def test_a_session_may_be_closed_between_two_locks() -> None:
    """The lock of a released record does not expire any more."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.now_ms = 10_001
    scene.expire()

    assert scene.release("m1") == ("W(0; 5-9 st0 dc1; cc 0)",)
    assert scene.expire() is None


def test_a_failed_write_lets_the_locks_go_on() -> None:
    """Records that are rolled back keep the locks that they had, in the old order."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-2][3-5]", cut=3)
    scene.failure = ErrorCode.NOT_COORDINATOR
    scene.acknowledge("m1", "0-2:accept")
    scene.failure = None

    assert scene.wait(10_001) == ("W(0; 0-2 st0 dc1; cc 0)", "W(0; 3-5 st0 dc1; cc 0)")


def test_many_locks_that_hold_nothing_are_forgotten() -> None:
    """Renewing over and over leaves one lock, which expires once, at the last deadline."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    for now_ms in range(1, 300):
        scene.now_ms = now_ms
        scene.acknowledge("m1", "0-4:renew")

    assert scene.partition.lock_count() == 2
    assert scene.wait(9_702) == ("W(0; 5-9 st0 dc1; cc 0)",)
    assert scene.partition.next_deadline_ms() == 10_300
    assert scene.wait(299) == ("W(0; 0-4 st0 dc1; cc 0)",)
