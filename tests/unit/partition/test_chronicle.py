"""What a share partition tells of its records, if it was asked to."""

import pytest

from sharestate import ErrorCode, InvalidRequestError, PersistedState, SharePartition, StateBatch, Transition

from .scenes import KEY, Scene


def telling(*, limit: int = 5) -> Scene:
    """Return an active share partition that tells what happens to its records."""
    return Scene(tells=True, limit=limit).load()


def lines(transitions: tuple[Transition, ...]) -> list[str]:
    """Write down transitions: range, cause, what the records are now, and the write that carries them."""
    return [
        f"{first}-{last} {cause.value}: {state.name}/{count}/{member or '-'}{'*' * is_ongoing}"
        + ("" if write is None else f" W{write}")
        for first, last, cause, state, count, member, _, is_ongoing, _, write in transitions
    ]


def told(scene: Scene, commands: int = 1) -> list[str]:
    """Return what the last commands and outcomes have told."""
    return [line for effects in scene.effects[-commands:] for line in lines(effects.transitions)]


def test_nothing_is_told_unless_asked_for() -> None:
    """Without ``tells_transitions`` the effects say nothing of records."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "0-4:1")

    assert not any(effects.transitions for effects in scene.effects)


def test_what_was_read_is_told() -> None:
    """Loading tells each persisted batch, and which of them the SPSO has passed at once."""
    partition = SharePartition(KEY, tells_transitions=True)
    partition.initialize()
    batches = [StateBatch(10, 14, 2, 1), StateBatch(15, 19, 0, 3)]
    effects = partition.read_succeeded(PersistedState(start_offset=10, state_batches=batches))

    assert lines(effects.transitions) == [
        "10-14 read: ACKNOWLEDGED/1/-",
        "15-19 read: AVAILABLE/3/-",
        "10-14 passed: ACKNOWLEDGED/1/-",
    ]


def test_a_delivery_is_told() -> None:
    """An acquisition tells the range, the member and the count, with the deadline and the time."""
    scene = telling()
    scene.now_ms = 500
    scene.acquire("m1", 0, "[0-4]")
    (transition,) = scene.effects[-1].transitions

    assert lines((transition,)) == ["0-4 acquired: ACQUIRED/1/m1"]
    assert (transition.lock_deadline_ms, transition.at_ms, transition.write) == (10_500, 500, None)


def test_what_a_strict_limit_leaves_is_told() -> None:
    """Records that were cached without being delivered are told as such."""
    scene = telling()
    scene.acquire("m1", 0, "[0-4]", most=3, strict=True)

    assert told(scene) == ["0-2 acquired: ACQUIRED/1/m1", "3-4 cached: AVAILABLE/0/-"]


def test_an_acknowledgement_is_told_twice() -> None:
    """Once as it begins, with the write that carries it, and once with that write's outcome."""
    scene = telling()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.acknowledge("m1", "5-9:1,2,3,0,4")

    assert told(scene, 2) == [
        "9-9 renewed: ACQUIRED/1/m1",
        "5-5 accepted: ACKNOWLEDGED/1/-* W0",
        "6-6 released: AVAILABLE/1/-* W0",
        "7-7 rejected: ARCHIVED/1/-* W0",
        "8-8 gap: ARCHIVED/1/-* W0",
        "5-5 confirmed: ACKNOWLEDGED/1/- W0",
        "6-6 confirmed: AVAILABLE/1/- W0",
        "7-8 confirmed: ARCHIVED/1/- W0",
    ]


def test_what_leaves_the_cache_is_told() -> None:
    """A batch that the SPSO has passed is told a last time."""
    scene = telling()
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "0-4:1")

    assert told(scene) == ["0-4 confirmed: ACKNOWLEDGED/1/- W0", "0-4 passed: ACKNOWLEDGED/1/-"]


def test_a_failed_write_is_told() -> None:
    """Records that go back to their owner are told with the write that has failed."""
    scene = telling()
    scene.acquire("m1", 0, "[0-4]")
    scene.failure = ErrorCode.NOT_COORDINATOR
    scene.acknowledge("m1", "0-4:1")

    assert told(scene) == ["0-4 rolled back: ACQUIRED/1/m1 W0"]


def test_what_looks_alike_is_told_as_one() -> None:
    """Neighbours that were locked one after the other and then renewed together are one range from then on."""
    scene = telling()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "0-4:4")
    scene.is_holding = True

    scene.acknowledge("m1", "0-9:4")
    assert told(scene) == ["0-9 renewed: ACQUIRED/1/m1"]
    scene.acknowledge("m1", "0-9:2")
    assert told(scene) == ["0-9 released: AVAILABLE/1/-* W0"]
    scene.fail(0, ErrorCode.NOT_COORDINATOR)
    assert told(scene) == ["0-9 rolled back: ACQUIRED/1/m1 W0"]


def test_batches_are_told_apart() -> None:
    """A transition is about records of one batch, whatever its neighbour looks like."""
    scene = telling()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.is_holding = True

    scene.acknowledge("m1", "0-9:2")
    assert told(scene) == ["0-4 released: AVAILABLE/1/-* W0", "5-9 released: AVAILABLE/1/-* W0"]


def test_a_lapsed_lock_is_told() -> None:
    """An expiry tells what it has made of the records, and its write."""
    scene = telling()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.wait(10_001)

    assert told(scene) == ["0-4 lapsed: AVAILABLE/1/- W0"]


def test_the_limit_is_told_as_the_cause() -> None:
    """Records that would have been offered again are told to be archived at the limit."""
    lapsed = telling(limit=1)
    lapsed.acquire("m1", 0, "[0-4]")
    lapsed.is_holding = True
    lapsed.wait(10_001)
    released = telling(limit=1)
    released.acquire("m1", 0, "[0-4]")
    released.is_holding = True
    released.release("m1")

    assert told(lapsed) == ["0-4 archived at the limit: ARCHIVED/1/- W0"]
    assert told(released) == ["0-4 archived at the limit: ARCHIVED/1/-* W0"]


def test_a_closed_session_is_told() -> None:
    """A release tells that the member has left."""
    scene = telling()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.release("m1")

    assert told(scene) == ["0-4 session closed: AVAILABLE/1/-* W0"]


def test_a_lock_that_lapses_during_a_write_is_told() -> None:
    """It changes no state yet, but it will decide if the write fails."""
    scene = telling()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:1")
    scene.wait(10_001)

    assert told(scene) == ["0-4 lapsed: ACKNOWLEDGED/1/-* W0"]


def test_what_the_log_has_lost_is_told() -> None:
    """Records below the log start, compacted away or aborted are told with their cause."""
    scene = Scene(tells=True).load(0, "[0-4 st0][5-9 st0]")
    below = lines(scene.partition.advance_log_start(2).transitions)
    scene.acquire("m1", 2, "[10-14 p1][15 p1 ABORT]", aborted=[(1, 10)])

    assert below == ["0-1 below the log start: ARCHIVED/1/-"]
    assert told(scene) == [
        "2-4 compacted away: ARCHIVED/1/-",
        "5-9 compacted away: ARCHIVED/1/-",
        "10-15 acquired: ACQUIRED/1/m1",
        "10-14 aborted: ARCHIVED/1/-",
    ]


def test_what_is_held_back_is_told() -> None:
    """Records that throttling keeps from a delivery are told as such, and stay as they are."""
    scene = Scene(tells=True).load(0, "[0-9 st0 dc3][10-14 st0]")
    scene.acquire("m1", 0, "[0-9][10-14]")

    assert told(scene) == [
        "0-4 acquired: ACQUIRED/4/m1",
        "5-9 throttled: AVAILABLE/3/-",
        "10-14 throttled: AVAILABLE/1/-",
    ]


def test_what_waits_for_another_delivery_is_told() -> None:
    """A throttled batch that waits because others came first is told too."""
    scene = Scene(tells=True).load(0, "[0-4 st0][5-9 st0 dc3]")
    scene.acquire("m1", 0, "[0-4][5-9]")

    assert told(scene) == ["0-4 acquired: ACQUIRED/2/m1", "5-9 throttled: AVAILABLE/3/-"]


def test_a_refusal_tells_the_renewals_that_stand() -> None:
    """Of a refused request the renewals are told by the error; what was withdrawn is never told."""
    scene = telling()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    with pytest.raises(InvalidRequestError) as refused:
        scene.acknowledge("m1", "0-4:4", "5-9:1", "10:1")
    scene.acknowledge("m1", "5-9:1")

    assert lines(refused.value.transitions) == ["0-4 renewed: ACQUIRED/1/m1"]
    assert told(scene, 2) == ["5-9 accepted: ACKNOWLEDGED/1/-* W0", "5-9 confirmed: ACKNOWLEDGED/1/- W0"]


def test_whole_renewals_are_told() -> None:
    """A renewal tells the new deadline."""
    scene = telling()
    scene.acquire("m1", 0, "[0-4]")
    scene.now_ms = 400
    scene.acknowledge("m1", "0-4:4")
    (transition,) = scene.effects[-1].transitions

    assert lines((transition,)) == ["0-4 renewed: ACQUIRED/1/m1"]
    assert transition.lock_deadline_ms == 10_400
