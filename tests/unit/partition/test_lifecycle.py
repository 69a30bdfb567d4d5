"""The life of a share partition: what it takes in each state."""

from collections.abc import Callable

import pytest

from sharestate import (
    AlreadyInitializedError,
    ErrorCode,
    InitializationError,
    LeaderNotAvailableError,
    Lifecycle,
    NoReadPendingError,
    ShareStateError,
)
from tests.support.scenes import KEY, LEADER_EPOCH, Scene, state


def empty() -> Scene:
    """Return a share partition that was only made."""
    return Scene()


def initializing() -> Scene:
    """Return one that waits for its persisted state."""
    scene = Scene()
    scene.partition.initialize()
    return scene


def active() -> Scene:
    """Return one that was loaded."""
    return Scene().load()


def failed() -> Scene:
    """Return one that could not be loaded."""
    scene = initializing()
    scene.partition.read_failed(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return scene


def fenced() -> Scene:
    """Return one that was loaded and fenced."""
    scene = active()
    scene.partition.fence()
    return scene


LIVES = {
    Lifecycle.EMPTY: empty,
    Lifecycle.INITIALIZING: initializing,
    Lifecycle.ACTIVE: active,
    Lifecycle.FAILED: failed,
    Lifecycle.FENCED: fenced,
}

each_life = pytest.mark.parametrize(("lifecycle", "begin"), LIVES.items(), ids=[life.name for life in LIVES])


@each_life
def test_a_share_partition_has_a_lifecycle_state(lifecycle: Lifecycle, begin: Callable[[], Scene]) -> None:
    """A share partition is EMPTY, then INITIALIZING, then ACTIVE or FAILED, and FENCED when it was fenced."""
    assert begin().partition.lifecycle is lifecycle


def test_initialize_asks_for_the_persisted_state() -> None:
    """The read that is to be sent carries the key and the leader epoch."""
    read = empty().partition.initialize()

    assert (read.key, read.leader_epoch) == (KEY, LEADER_EPOCH)


@pytest.mark.parametrize(
    ("begin", "error", "message"),
    [
        (initializing, LeaderNotAvailableError, f"Share partition is already initializing {KEY}"),
        (active, AlreadyInitializedError, f"Share partition is already active {KEY}"),
        (failed, InitializationError, f"Share partition failed to load {KEY}"),
        (fenced, LeaderNotAvailableError, f"Share partition is fenced {KEY}"),
    ],
)
def test_only_an_empty_share_partition_is_initialized(
    begin: Callable[[], Scene], error: type[ShareStateError], message: str
) -> None:
    """``initialize`` is for EMPTY ones; any other says why not, in Kafka's words, and stays as it was."""
    partition = begin().partition
    lifecycle = partition.lifecycle

    with pytest.raises(error) as refusal:
        partition.initialize()

    assert refusal.value.message == message
    assert partition.lifecycle is lifecycle


@each_life
def test_only_an_active_one_lets_records_be_acquired(lifecycle: Lifecycle, begin: Callable[[], Scene]) -> None:
    """A fetch acquires nothing unless the share partition is ACTIVE."""
    scene = begin()
    acquired = scene.acquire("m1", 0, "[0-4]")

    assert acquired == (((0, 4, 1),) if lifecycle is Lifecycle.ACTIVE else ())
    assert scene.offsets == ((0, 4) if lifecycle is Lifecycle.ACTIVE else (0, 0))


@each_life
def test_any_can_be_fenced(lifecycle: Lifecycle, begin: Callable[[], Scene]) -> None:
    """Fencing works in every state, and for good."""
    scene = begin()
    scene.partition.fence()

    assert scene.partition.lifecycle is Lifecycle.FENCED, lifecycle
    with pytest.raises(LeaderNotAvailableError, match="is fenced"):
        scene.partition.initialize()


@pytest.mark.parametrize("begin", [empty, active, failed, fenced])
def test_an_answer_that_nobody_waits_for_is_refused(begin: Callable[[], Scene]) -> None:
    """The outcome of a read is taken only while a read is pending."""
    partition = begin().partition
    lifecycle = partition.lifecycle

    with pytest.raises(NoReadPendingError, match="no read of the persisted state"):
        partition.read_succeeded(state(5, ""))
    with pytest.raises(NoReadPendingError, match="no read of the persisted state"):
        partition.read_failed(ErrorCode.NOT_COORDINATOR)

    assert (partition.lifecycle, partition.start_offset) == (lifecycle, 0)


def test_a_state_that_arrives_after_fencing_is_ignored() -> None:
    """A share partition that was fenced while its state was read stays FENCED and empty (rule 24.2, B14)."""
    scene = initializing()
    scene.partition.fence()
    error = scene.partition.read_succeeded(state(10, "[10-14 st0]")).error

    assert isinstance(error, LeaderNotAvailableError)
    assert error.message == f"Share partition is fenced {KEY}"
    assert scene.partition.lifecycle is Lifecycle.FENCED
    assert (scene.offsets, scene.batches) == ((0, 0), [])


def test_a_failure_that_arrives_after_fencing_is_ignored() -> None:
    """A read that fails after fencing leaves the share partition FENCED, not FAILED (rule 24.2, B14)."""
    scene = initializing()
    scene.partition.fence()
    error = scene.partition.read_failed(ErrorCode.GROUP_ID_NOT_FOUND).error

    assert isinstance(error, LeaderNotAvailableError)
    assert scene.partition.lifecycle is Lifecycle.FENCED


def test_an_answer_after_fencing_is_taken_once() -> None:
    """The answer that came too late was the answer: a second one is refused."""
    scene = initializing()
    scene.partition.fence()
    scene.partition.read_succeeded(state(0, ""))

    with pytest.raises(NoReadPendingError):
        scene.partition.read_succeeded(state(0, ""))


def test_a_fenced_one_takes_acknowledgements() -> None:
    """After fencing an acknowledgement still writes and moves the SPSO, with the old epochs (v22-16-fence)."""
    scene = active()
    scene.acquire("m1", 0, "[0-4]")
    scene.partition.fence()

    assert scene.acknowledge("m1", "0-4:accept") == ("W(0; 0-4 st2 dc1; cc 5)",)
    assert scene.offsets == (5, 5)
    assert scene.partition.lifecycle is Lifecycle.FENCED


def test_a_fenced_one_releases() -> None:
    """After fencing a closed session still releases its records."""
    scene = active()
    scene.acquire("m1", 0, "[0-4]")
    scene.partition.fence()

    assert scene.release("m1") == ("W(0; 0-4 st0 dc1; cc 0)",)
    assert scene.partition.next_fetch_offset() == 0


def test_a_fenced_one_lets_locks_expire() -> None:
    """After fencing acquisition locks still expire, and what they change is written."""
    scene = active()
    scene.acquire("m1", 0, "[0-4]")
    scene.partition.fence()

    assert scene.wait(10_001) == ("W(0; 0-4 st0 dc1; cc 0)",)


def test_a_fenced_one_follows_the_log_start() -> None:
    """After fencing the SPSO still follows the start of the log."""
    scene = active()
    scene.partition.fence()
    scene.partition.advance_log_start(9)

    assert scene.offsets == (9, 9)


def test_a_fenced_one_takes_outcomes() -> None:
    """After fencing the answer to a write that was in flight is still taken."""
    scene = active()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")
    scene.partition.fence()

    assert scene.succeed(0).wake
    assert scene.offsets == (5, 5)


def test_commands_before_the_load_change_nothing() -> None:
    """Before it is loaded there is nothing to release, to expire or to acknowledge."""
    scene = empty()

    assert scene.release("m1") == ()
    assert scene.expire() is None
    assert scene.partition.next_deadline_ms() is None
    assert scene.partition.next_fetch_offset() == 0
