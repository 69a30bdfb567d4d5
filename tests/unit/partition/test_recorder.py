"""The transitions that a share partition records, if it was asked to."""

from collections.abc import Iterable

import pytest

from sharestate import ErrorCode, InvalidRequestError, PersistedState, SharePartition, StateBatch, Transition
from sharestate.partition.batches import Batch
from sharestate.partition.cells import Cell, unowned
from sharestate.partition.recorder import TransitionRecorder
from sharestate.values.effects import Cause
from sharestate.values.records import RecordState
from tests.support.scenes import KEY, Scene

AVAILABLE, AGAIN, ARCHIVED = (
    unowned(RecordState.AVAILABLE, 0),
    unowned(RecordState.AVAILABLE, 1),
    unowned(RecordState.ARCHIVED, 1),
)


def recording(*, limit: int = 5) -> Scene:
    """Return an active share partition that records its transitions."""
    return Scene(record_transitions=True, limit=limit).load()


def lines(transitions: Iterable[Transition]) -> list[str]:
    """Write down transitions: range, cause, what the records are now, and the write that carries them."""
    return [
        f"{first}-{last} {cause.value}: {state.name}/{count}/{member or '-'}{'*' * is_pending}"
        + ("" if write is None else f" W{write}")
        for first, last, cause, state, count, member, _, is_pending, _, write in transitions
    ]


def recorded(scene: Scene, commands: int = 1) -> list[str]:
    """Return the transitions of the last commands and outcomes."""
    return [line for effects in scene.effects[-commands:] for line in lines(effects.transitions)]


def test_transitions_are_recorded_only_if_asked_for() -> None:
    """Without ``record_transitions`` the effects say nothing of records."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "0-4:accept")

    assert not any(effects.transitions for effects in scene.effects)


def test_the_read_state_is_recorded() -> None:
    """Loading records each persisted batch, and which of them the SPSO has passed at once."""
    partition = SharePartition(KEY, record_transitions=True)
    partition.initialize()
    batches = [StateBatch(10, 14, 2, 1), StateBatch(15, 19, 0, 3)]
    effects = partition.read_succeeded(PersistedState(start_offset=10, state_batches=batches))

    assert lines(effects.transitions) == [
        "10-14 read: ACKNOWLEDGED/1/-",
        "15-19 read: AVAILABLE/3/-",
        "10-14 passed: ACKNOWLEDGED/1/-",
    ]


def test_a_delivery_is_recorded() -> None:
    """An acquisition records the range, the member and the count, with the deadline and the time."""
    scene = recording()
    scene.now_ms = 500
    scene.acquire("m1", 0, "[0-4]")
    (transition,) = scene.effects[-1].transitions

    assert lines((transition,)) == ["0-4 acquired: ACQUIRED/1/m1"]
    assert (transition.lock_deadline_ms, transition.at_ms, transition.write) == (10_500, 500, None)


def test_the_rest_of_a_strict_limit_is_recorded() -> None:
    """Records that were cached without being delivered are recorded as such."""
    scene = recording()
    scene.acquire("m1", 0, "[0-4]", most=3, strict=True)

    assert recorded(scene) == ["0-2 acquired: ACQUIRED/1/m1", "3-4 cached: AVAILABLE/0/-"]


def test_a_delivery_around_records_of_others_is_recorded() -> None:
    """All runs of a split batch that are acquired together, and nothing of what lies between them."""
    scene = recording()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "0-1:release", "8-9:release")
    scene.acquire("m2", 0, "[0-9]")

    assert recorded(scene) == ["0-1 acquired: ACQUIRED/2/m2", "8-9 acquired: ACQUIRED/2/m2"]


def test_an_acknowledgement_is_recorded_twice() -> None:
    """Once as it begins, with the write that carries it, and once with that write's outcome."""
    scene = recording()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.acknowledge("m1", "5-9:1,2,3,0,4")

    assert recorded(scene, 2) == [
        "9-9 renewed: ACQUIRED/1/m1",
        "5-5 accepted: ACKNOWLEDGED/1/-* W0",
        "6-6 released: AVAILABLE/1/-* W0",
        "7-7 rejected: ARCHIVED/1/-* W0",
        "8-8 gap: ARCHIVED/1/-* W0",
        "5-5 confirmed: ACKNOWLEDGED/1/- W0",
        "6-6 confirmed: AVAILABLE/1/- W0",
        "7-8 confirmed: ARCHIVED/1/- W0",
    ]


def test_removed_batches_are_recorded() -> None:
    """A batch that the SPSO has passed is recorded a last time."""
    scene = recording()
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "0-4:accept")

    assert recorded(scene) == ["0-4 confirmed: ACKNOWLEDGED/1/- W0", "0-4 passed: ACKNOWLEDGED/1/-"]


def test_a_failed_write_is_recorded() -> None:
    """Records that are rolled back are recorded with the write that has failed."""
    scene = recording()
    scene.acquire("m1", 0, "[0-4]")
    scene.failure = ErrorCode.NOT_COORDINATOR
    scene.acknowledge("m1", "0-4:accept")

    assert recorded(scene) == ["0-4 rolled back: ACQUIRED/1/m1 W0"]


def test_neighbors_with_the_same_visible_state_are_recorded_as_one() -> None:
    """Neighbors that were locked one after the other and then renewed together are one range from then on."""
    scene = recording()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "0-4:renew")
    scene.is_holding = True

    scene.acknowledge("m1", "0-9:renew")
    assert recorded(scene) == ["0-9 renewed: ACQUIRED/1/m1"]
    scene.acknowledge("m1", "0-9:release")
    assert recorded(scene) == ["0-9 released: AVAILABLE/1/-* W0"]
    scene.fail(0, ErrorCode.NOT_COORDINATOR)
    assert recorded(scene) == ["0-9 rolled back: ACQUIRED/1/m1 W0"]


def test_batches_are_recorded_apart() -> None:
    """A transition is about records of one batch, whatever its neighbor is like."""
    scene = recording()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.is_holding = True

    scene.acknowledge("m1", "0-9:release")
    assert recorded(scene) == ["0-4 released: AVAILABLE/1/-* W0", "5-9 released: AVAILABLE/1/-* W0"]


def test_an_expired_lock_is_recorded() -> None:
    """An expiry records the new state of the records, and its write."""
    scene = recording()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.wait(10_001)

    assert recorded(scene) == ["0-4 lock expired: AVAILABLE/1/- W0"]


def test_the_limit_is_recorded_as_the_cause() -> None:
    """Records that would have been offered again are recorded as archived at the limit."""
    expired = recording(limit=1)
    expired.acquire("m1", 0, "[0-4]")
    expired.is_holding = True
    expired.wait(10_001)
    released = recording(limit=1)
    released.acquire("m1", 0, "[0-4]")
    released.is_holding = True
    released.release("m1")

    assert recorded(expired) == ["0-4 archived at the limit: ARCHIVED/1/- W0"]
    assert recorded(released) == ["0-4 archived at the limit: ARCHIVED/1/-* W0"]


def test_a_closed_session_is_recorded() -> None:
    """A release records that the member has left."""
    scene = recording()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.release("m1")

    assert recorded(scene) == ["0-4 session closed: AVAILABLE/1/-* W0"]


def test_a_lock_that_expires_during_a_write_is_recorded() -> None:
    """It changes no state yet, but it will decide if the write fails."""
    scene = recording()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")
    scene.wait(10_001)

    assert recorded(scene) == ["0-4 lock expired: ACKNOWLEDGED/1/-* W0"]


def test_records_lost_by_the_log_are_recorded() -> None:
    """Records below the log start, compacted away or aborted are recorded with their cause."""
    scene = Scene(record_transitions=True).load(0, "[0-4 st0][5-9 st0]")
    below = lines(scene.partition.advance_log_start(2).transitions)
    scene.acquire("m1", 2, "[10-14 p1][15 p1 ABORT]", aborted=[(1, 10)])

    assert below == ["0-1 below the log start: ARCHIVED/1/-"]
    assert recorded(scene) == [
        "2-4 compacted away: ARCHIVED/1/-",
        "5-9 compacted away: ARCHIVED/1/-",
        "10-15 acquired: ACQUIRED/1/m1",
        "10-14 aborted: ARCHIVED/1/-",
    ]


def test_throttled_records_are_recorded() -> None:
    """Records that throttling keeps from a delivery are recorded as such, and stay as they are."""
    scene = Scene(record_transitions=True).load(0, "[0-9 st0 dc3][10-14 st0]")
    scene.acquire("m1", 0, "[0-9][10-14]")

    assert recorded(scene) == [
        "0-4 acquired: ACQUIRED/4/m1",
        "5-9 throttled: AVAILABLE/3/-",
        "10-14 throttled: AVAILABLE/1/-",
    ]


def test_a_throttled_batch_that_waits_is_recorded() -> None:
    """A throttled batch that waits because others came first is recorded too."""
    scene = Scene(record_transitions=True).load(0, "[0-4 st0][5-9 st0 dc3]")
    scene.acquire("m1", 0, "[0-4][5-9]")

    assert recorded(scene) == ["0-4 acquired: ACQUIRED/2/m1", "5-9 throttled: AVAILABLE/3/-"]


def test_a_refusal_has_the_renewals_that_stand() -> None:
    """The error of a refused request has its renewals; what was withdrawn is not recorded."""
    scene = recording()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    with pytest.raises(InvalidRequestError) as refused:
        scene.acknowledge("m1", "0-4:renew", "5-9:accept", "10:accept")
    scene.acknowledge("m1", "5-9:accept")

    assert lines(refused.value.transitions) == ["0-4 renewed: ACQUIRED/1/m1"]
    assert recorded(scene, 2) == ["5-9 accepted: ACKNOWLEDGED/1/-* W0", "5-9 confirmed: ACKNOWLEDGED/1/- W0"]


def test_whole_renewals_are_recorded() -> None:
    """A renewal records the new deadline."""
    scene = recording()
    scene.acquire("m1", 0, "[0-4]")
    scene.now_ms = 400
    scene.acknowledge("m1", "0-4:renew")
    (transition,) = scene.effects[-1].transitions

    assert lines((transition,)) == ["0-4 renewed: ACQUIRED/1/m1"]
    assert transition.lock_deadline_ms == 10_400


@pytest.mark.parametrize(
    ("cells", "recorded"),
    [
        (AVAILABLE, []),
        (ARCHIVED, [(5, 8)]),
        ([AVAILABLE] * 4, []),
        ([ARCHIVED] * 4, [(5, 8)]),
        ([AVAILABLE, AGAIN, AVAILABLE, AGAIN], []),
        ([ARCHIVED, ARCHIVED, AVAILABLE, ARCHIVED], [(5, 6), (8, 8)]),
        ([AVAILABLE, AGAIN, ARCHIVED, AVAILABLE], [(7, 7)]),
    ],
)
def test_cells_without_a_cause_are_left_out(cells: Cell | list[Cell], recorded: list[tuple[int, int]]) -> None:
    """Only runs of cells that have one are recorded, of whole batches and of split ones."""
    recorder = TransitionRecorder()

    recorder.record_in_place(Batch(5, 8, cells), 5, 8, {ARCHIVED: Cause.ABORTED})

    assert [(first, last) for first, last, *_ in recorder.take()] == recorded


def test_transitions_of_no_record_are_none() -> None:
    """Where no cell of a range has a cause there are no transitions, and that is known at once."""
    recorder = TransitionRecorder()

    recorder.record_in_place(Batch(5, 6, [AVAILABLE, AGAIN]), 5, 6, {ARCHIVED: Cause.ABORTED})

    assert recorder.take() == ()
    assert not recorder.take()


def test_neighbors_that_change_alike_are_recorded_as_one() -> None:
    """Two cells of which a transition says the same make one run."""
    recorder, other = TransitionRecorder(), Cell(RecordState.ARCHIVED, 1)

    recorder.record_in_place(
        Batch(0, 2, [ARCHIVED, other, AVAILABLE]), 0, 2, dict.fromkeys((ARCHIVED, other), Cause.ABORTED)
    )

    ((first, last, *_),) = recorder.take()
    assert (first, last) == (0, 1)


def test_a_copy_goes_on_with_the_time_of_the_last_command() -> None:
    """What the answer of a write changes happens then, in the copy as in the original."""
    scene = recording()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding, scene.now_ms = True, 7_000
    scene.acknowledge("m1", "0-4:accept")

    copied = scene.partition.copy()

    assert {transition.at_ms for transition in copied.write_succeeded(0).transitions} == {7_000}
