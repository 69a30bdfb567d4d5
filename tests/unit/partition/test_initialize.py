"""Loading: what the persister answers, and what the share partition makes of it."""

import pytest

from sharestate import (
    CoordinatorNotAvailableError,
    ErrorCode,
    ExternalError,
    GroupIdNotFoundError,
    InitializationError,
    Lifecycle,
    NotLeaderOrFollowerError,
    OffsetNotAvailableError,
    ResetOffsetRequiredError,
    ShareStateError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
)
from tests.support.scenes import KEY, Scene, state


def initializing() -> Scene:
    """Return a share partition that waits for its persisted state."""
    scene = Scene()
    scene.partition.initialize()
    return scene


# ---- the persister fails (rule 4.1)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.NOT_COORDINATOR, CoordinatorNotAvailableError),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, CoordinatorNotAvailableError),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, CoordinatorNotAvailableError),
        (ErrorCode.GROUP_ID_NOT_FOUND, GroupIdNotFoundError),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UnknownTopicOrPartitionError),
        (ErrorCode.FENCED_LEADER_EPOCH, NotLeaderOrFollowerError),
        (ErrorCode.FENCED_STATE_EPOCH, NotLeaderOrFollowerError),
        (ErrorCode.INVALID_REQUEST, UnknownServerError),
        (ErrorCode.UNKNOWN_SERVER_ERROR, UnknownServerError),
    ],
)
def test_waiters_get_the_persisters_error(code: ErrorCode, error: type[ShareStateError]) -> None:
    """Each error code of the persister fails the initialization with the exception of the table in rule 4.1."""
    partition = initializing().partition
    failure = partition.read_failed(code, "the persister's words").error

    assert type(failure) is error
    assert failure.message == "the persister's words"
    assert partition.lifecycle is Lifecycle.FAILED


@pytest.mark.parametrize("code", [ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_VERSION])
def test_texts_between_brokers_are_replaced(code: ErrorCode) -> None:
    """Of two error codes the persister's text is replaced (PR #20884)."""
    error = initializing().partition.read_failed(code, "secret").error

    assert isinstance(error, UnknownServerError)
    assert error.message == "Unable to complete operation due to server error."


def test_an_failurethat_is_no_code_is_handed_on() -> None:
    """An error that the caller met on the way to the persister, or to the log, is returned as it is."""
    error = ExternalError("no route", external_code=ErrorCode.NETWORK_EXCEPTION, external_exception="NetworkException")

    assert initializing().partition.read_failed(error).error is error


def test_a_log_that_does_not_know_the_offset_fails_the_initialization() -> None:
    """A reset strategy that finds no offset ends in FAILED (rule 4.2)."""
    partition = initializing().partition
    error = OffsetNotAvailableError("Offset for latest timestamp not found for topic partition: t-0")

    assert partition.read_failed(error).error is error
    assert partition.lifecycle is Lifecycle.FAILED


# ---- the start offset (rule 4.2)


def test_a_state_with_only_a_start_offset_is_taken_over() -> None:
    """A state without batches makes the SPSO and the SPEO its start, and the next fetch begins there."""
    scene = Scene().load(10)

    assert scene.partition.lifecycle is Lifecycle.ACTIVE
    assert scene.offsets == (10, 10)
    assert not scene.partition.find_next
    assert scene.partition.next_fetch_offset() == 10


def test_the_state_epoch_is_written_back() -> None:
    """Every write carries the epoch that was read and the leader's own."""
    scene = initializing()
    scene.partition.read_succeeded(state(0, "", epoch=42))
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "0-4:accept")
    write = next(effects.writes[0] for effects in scene.effects if effects.writes)

    assert scene.partition.state_epoch == 42
    assert (write.key, write.number, write.state_epoch, write.leader_epoch) == (KEY, 0, 42, 7)


def test_the_reset_offset_is_used_when_nothing_is_persisted() -> None:
    """A start offset of -1 begins where the caller found that the log ends (v22-12-init-latest)."""
    scene = initializing()
    effects = scene.partition.read_succeeded(state(-1, ""), reset_offset=77)

    assert effects.error is None
    assert scene.offsets == (77, 77)
    assert scene.partition.next_fetch_offset() == 77


def test_a_missing_reset_offset_is_asked_for() -> None:
    """Without it nothing changes, the read stays pending, and the same answer can be given again."""
    scene = initializing()

    with pytest.raises(ResetOffsetRequiredError, match="reset_offset"):
        scene.partition.read_succeeded(state(-1, ""))
    before = scene.partition.lifecycle
    scene.partition.read_succeeded(state(-1, ""), reset_offset=0)

    assert (before, scene.partition.lifecycle) == (Lifecycle.INITIALIZING, Lifecycle.ACTIVE)
    assert scene.offsets == (0, 0)


def test_the_reset_can_fail_after_it_was_asked_for() -> None:
    """A caller whose log has no answer gives the read up."""
    scene = initializing()
    with pytest.raises(ResetOffsetRequiredError):
        scene.partition.read_succeeded(state(-1, ""))

    scene.partition.read_failed(OffsetNotAvailableError())

    assert scene.partition.lifecycle is Lifecycle.FAILED


def test_a_reset_offset_is_not_used_when_a_start_is_persisted() -> None:
    """A persisted start wins over the reset offset."""
    scene = initializing()
    scene.partition.read_succeeded(state(10, ""), reset_offset=77)

    assert scene.offsets == (10, 10)


# ---- the batches (rules 4.3 and 24.2)


@pytest.mark.parametrize(
    ("batches", "reason"),
    [
        pytest.param("[5-9 st0]", "begins at or before 9", id="below the start"),
        pytest.param("[5-14 st0]", "begins at or before 9", id="across the start"),
        pytest.param("[10-14 st0][10-14 st0]", "begins at or before 14", id="repeated"),
        pytest.param("[10-14 st0][14-19 st0]", "begins at or before 14", id="overlapping"),
        pytest.param("[20-24 st0][10-14 st0]", "begins at or before 24", id="out of order"),
        pytest.param("[10-9 st0]", "is reversed", id="reversed"),
        pytest.param("[10-14 st1]", "state 1", id="acquired"),
        pytest.param("[10-14 st3]", "state 3", id="archiving"),
        pytest.param("[10-14 st5]", "state 5", id="unknown"),
        pytest.param("[10-14 st-1]", "state -1", id="negative"),
        pytest.param("[10-14 st2][15-19 st1]", "state 1", id="acquired behind a good one"),
    ],
)
def test_a_state_that_no_coordinator_stores_fails_the_initialization(batches: str, reason: str) -> None:
    """It ends in FAILED with a typed error, and otherwise leaves the share partition as it was (rule 24.2, orphans)."""
    scene = initializing()
    error = scene.partition.read_succeeded(state(10, batches)).error

    assert isinstance(error, InitializationError)
    assert error.message == f"Failed to initialize the share partition {KEY}"
    assert error.reason is not None
    assert reason in error.reason
    assert scene.partition.lifecycle is Lifecycle.FAILED
    assert (scene.offsets, scene.batches, scene.partition.state_epoch) == ((0, 0), [], 0)
    assert (scene.partition.delivery_complete_count, scene.partition.find_next) == (0, False)


def test_a_batch_may_begin_where_the_one_before_ends() -> None:
    """Batches that touch neither overlap nor leave a gap."""
    scene = Scene().load(10, "[10-14 st0][15-19 st0]")

    assert scene.batches == ["[10-14] AVAILABLE/1/-", "[15-19] AVAILABLE/1/-"]
    assert scene.offsets == (10, 19)
    assert scene.window is None
    assert scene.partition.find_next


def test_records_that_were_read_have_no_owner() -> None:
    """What was read has no owner and no lock, and keeps its count."""
    scene = Scene().load(10, "[10-14 st0 dc3]")

    assert scene.batches == ["[10-14] AVAILABLE/3/-"]
    assert scene.partition.lock_count() == 0


def test_terminal_records_that_were_read_count_as_complete() -> None:
    """Terminal records behind the SPSO are counted as they are read (rule 20.4)."""
    scene = Scene().load(10, "[10-14 st0][15-19 st2][20-22 st4]")

    assert scene.partition.delivery_complete_count == 8


def test_terminal_batches_at_the_start_are_passed_at_once() -> None:
    """The SPSO advances over what is done already; with nothing left ``find_next`` stays set (rule 4.4)."""
    scene = Scene().load(10, "[10-14 st2][15-19 st4]")

    assert (scene.offsets, scene.batches) == ((20, 20), [])
    assert scene.partition.delivery_complete_count == 0
    assert scene.partition.find_next


def test_a_leader_takes_up_what_the_one_before_persisted() -> None:
    """A leader change makes the SPSO again from the terminal batches, since the persisted one lags (rule 15)."""
    old = Scene().load()
    old.acquire("m1", 0, "[0-4][5-9]", cut=5)
    assert old.acknowledge("m1", "0-4:accept") == ("W(0; 0-4 st2 dc1; cc 5)",)

    new = Scene().load(0, "[0-4 st2]")

    assert (old.offsets, new.offsets) == ((5, 9), (5, 5))


# ---- gaps between the batches (rule 4.4)


def test_a_gap_before_the_first_batch() -> None:
    """The window opens at the first offset that no batch holds, and nothing advances over it (rule 4.4)."""
    scene = Scene().load(10, "[15-19 st2][20-24 st0][30-34 st4]")

    assert scene.offsets == (10, 34)
    assert scene.window == (10, 34)
    assert scene.partition.next_fetch_offset() == 10


def test_a_gap_behind_done_batches() -> None:
    """The SPSO stops at the gap, whatever lies behind it (rule 4.4)."""
    scene = Scene().load(10, "[10-14 st2][20-24 st2]")

    assert scene.offsets == (15, 24)
    assert scene.window == (15, 24)
    assert scene.batches == ["[20-24] ACKNOWLEDGED/1/-"]


def test_the_first_of_two_gaps_opens_the_window() -> None:
    """Only the first gap is remembered; later ones lie inside the window."""
    scene = Scene().load(10, "[10-14 st0][20-24 st0][30-34 st0]")

    assert scene.window == (15, 34)
