"""What a share partition tells of its records: for each cause a worked example of the spec, to the last field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import pytest

from sharestate import KAFKA_4_3, Cause, ErrorCode, InvalidRequestError, RecordState, Transition

from .partition.scenes import KEY, Scene, state

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = RecordState


class Example(NamedTuple):
    """What happens, and what is told of it."""

    play: Callable[[], tuple[Transition, ...]]
    """Returns what the last command and the outcome of its write have told."""

    told: list[Transition]
    """Expected: first and last offset, cause, state, count, member, deadline, ongoing, time, write."""


def since(scene: Scene, play: Callable[[], object]) -> tuple[Transition, ...]:
    """Return what has been told while *play* ran."""
    before = len(scene.effects)
    play()
    return tuple(transition for effects in scene.effects[before:] for transition in effects.transitions)


def held(log: str = "[0-4]", *, limit: int = 5, cut: int = 100) -> Scene:
    """Return a scene in which m1 has acquired *log* at 0 ms, and writes are not answered."""
    scene = Scene(tells=True, limit=limit).load()
    scene.acquire("m1", 0, log, cut=cut)
    scene.is_holding = True
    return scene


def read() -> tuple[Transition, ...]:
    """Spec 4.4: start 10, [10-14 st2][20-24 st2]; the advance passes the first batch."""
    scene = Scene(tells=True)
    scene.partition.initialize()
    return scene.partition.read_succeeded(state(10, "[10-14 st2][20-24 st2]")).transitions


def cached() -> tuple[Transition, ...]:
    """Spec 20.1: log [0-4][5-9], record limit 3."""
    scene = Scene(tells=True).load()
    return since(scene, lambda: scene.acquire("m1", 0, "[0-4][5-9]", most=3, strict=True))


def acquired() -> tuple[Transition, ...]:
    """Spec 7.11: [0-9] AVAILABLE, a fetch at 3 returns log 3-6 only; at 2000 ms."""
    scene = Scene(tells=True).load(0, "[0-9 st0]")
    scene.now_ms = 2000
    return since(scene, lambda: scene.acquire("m1", 3, "[3-6]"))


def accepted() -> tuple[Transition, ...]:
    """Spec 8.3: [0-4] m1; ack 0-4:1; at 3000 ms."""
    scene = held()
    scene.now_ms = 3000
    return since(scene, lambda: scene.acknowledge("m1", "0-4:1"))


def by_types() -> tuple[Transition, ...]:
    """Spec 8.3: types [1,0,1,3,2]."""
    scene = held()
    scene.now_ms = 3000
    return since(scene, lambda: scene.acknowledge("m1", "0-4:1,0,1,3,2"))


def renewed() -> tuple[Transition, ...]:
    """Spec 20.2: a part is renewed; the lock starts anew at 3000 ms."""
    scene = held()
    scene.now_ms = 3000
    return since(scene, lambda: scene.acknowledge("m1", "1-2:4"))


def lapsed() -> tuple[Transition, ...]:
    """Spec 10: acquire 0-4; timeout."""
    scene = held()
    return since(scene, lambda: scene.wait(10_001))


def lapsed_in_flight() -> tuple[Transition, ...]:
    """Spec 10: a timeout while the acceptance is being written; the record keeps its deadline (24.5)."""
    scene = held()
    scene.acknowledge("m1", "0-4:1")
    return since(scene, lambda: scene.wait(10_001))


def archived_at_limit() -> tuple[Transition, ...]:
    """Spec 10: max 2, the second timeout; its write is the second one."""
    scene = held(limit=2)
    scene.is_holding = False
    scene.wait(10_001)
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    return since(scene, lambda: scene.wait(10_001))


def released_at_limit() -> tuple[Transition, ...]:
    """Spec 8.3: [0-4] max 2, count 2; ack RELEASE."""
    scene = Scene(tells=True, limit=2).load(0, "[0-4 st0]")
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    return since(scene, lambda: scene.acknowledge("m1", "0-4:2"))


def session_closed() -> tuple[Transition, ...]:
    """Spec 9: [0-9], [10-14] and [15-19] are m1's, LSO 12; m1 leaves."""
    scene = Scene(tells=True).load()
    for log in ("[0-9]", "[10-14]", "[15-19]"):
        scene.acquire("m1", int(log[1:].partition("-")[0]), log)
    scene.is_holding = True
    scene.partition.advance_log_start(12)
    return since(scene, lambda: scene.release("m1"))


def aborted() -> tuple[Transition, ...]:
    """Spec 7.10: producer 1's transaction from 5 on was aborted."""
    scene = Scene(tells=True).load()
    log = "[0-4 p2][5-9 p1][10 p1 ABORT][11 p2][12 p2 COMMIT]"
    return since(scene, lambda: scene.acquire("m1", 0, log, aborted=[(1, 5)]))


def compacted_away() -> tuple[Transition, ...]:
    """Spec 7.3: four batches are AVAILABLE, the fetch at 0 returns the last two."""
    scene = Scene(tells=True).load(0, "[0-4 st0][5-9 st0][10-14 st0][15-19 st0]")
    return since(scene, lambda: scene.acquire("m1", 0, "[10-14][15-19]"))


def below_log_start() -> tuple[Transition, ...]:
    """Spec 13: [0-4]AV [5-9]AV [10-14]ACQ, L=7."""
    scene = Scene(tells=True).load(0, "[0-4 st0][5-9 st0][10-14 st0]")
    scene.acquire("m1", 10, "[10-14]")
    return scene.partition.advance_log_start(7).transitions


def confirmed() -> tuple[Transition, ...]:
    """Spec 8.3: the write of 0-4:1 succeeds, and the batch leaves the cache."""
    scene = held()
    scene.now_ms = 3000
    scene.acknowledge("m1", "0-4:1")
    return since(scene, lambda: scene.succeed(0))


def rolled_back() -> tuple[Transition, ...]:
    """Spec 22, 7: the answer is an error: ACQUIRED/1/m1 with its lock."""
    scene = held()
    scene.acknowledge("m1", "0-4:1")
    return since(scene, lambda: scene.fail(0, ErrorCode.NOT_COORDINATOR))


def rolled_back_lapsed() -> tuple[Transition, ...]:
    """Spec 22, 3: the same after a timeout: AVAILABLE/1, in memory only (quirk B15)."""
    scene = held()
    scene.acknowledge("m1", "0-4:1")
    scene.wait(10_001)
    return since(scene, lambda: scene.fail(0, ErrorCode.NOT_COORDINATOR))


def throttled() -> tuple[Transition, ...]:
    """Spec 20.3: max 5, [0-9] delivered three times, 10-14 is available too."""
    scene = Scene(tells=True).load(0, "[0-9 st0 dc3][10-14 st0]")
    return since(scene, lambda: scene.acquire("m1", 0, "[0-9][10-14]"))


def throttled_at_last() -> tuple[Transition, ...]:
    """Spec 20.3: after the fourth delivery of 0-4 has timed out 0 is delivered alone."""
    scene = Scene(tells=True).load(0, "[0-9 st0 dc3][10-14 st0]")
    scene.acquire("m1", 0, "[0-9][10-14]")
    scene.wait(10_001)
    return since(scene, lambda: scene.acquire("m1", 0, "[0-9][10-14]"))


def offered(first: int, last: int, cause: Cause, count: int, at_ms: int) -> Transition:
    """Return what is told of records that are offered, without a write."""
    return Transition(first, last, cause, AVAILABLE, count, "", None, False, at_ms, None)  # noqa: FBT003 - a row


def done(  # noqa: PLR0913 - a row
    first: int, last: int, cause: Cause, state_: RecordState, at_ms: int, write: int | None = None
) -> Transition:
    """Return what is told of records that are done after one delivery."""
    return Transition(first, last, cause, state_, 1, "", None, False, at_ms, write)  # noqa: FBT003 - a row


def owned(  # noqa: PLR0913 - a row
    first: int, last: int, cause: Cause, count: int, deadline_ms: int, at_ms: int
) -> Transition:
    """Return what is told of records that m1 holds, without a write."""
    return Transition(first, last, cause, ACQUIRED, count, "m1", deadline_ms, False, at_ms, None)  # noqa: FBT003 - a row


def pending(  # noqa: PLR0913 - a row
    first: int, last: int, cause: Cause, state_: RecordState, at_ms: int, count: int = 1
) -> Transition:
    """Return what is told of records whose change is in flight with write 0; their lock still runs."""
    return Transition(first, last, cause, state_, count, "", 10_000, True, at_ms, 0)  # noqa: FBT003 - a row


EXAMPLES: Final = {
    "read": Example(
        read,
        [
            done(10, 14, Cause.READ, ACKNOWLEDGED, 0),
            done(20, 24, Cause.READ, ACKNOWLEDGED, 0),
            done(10, 14, Cause.PASSED, ACKNOWLEDGED, 0),
        ],
    ),
    "cached": Example(cached, [owned(0, 2, Cause.ACQUIRED, 1, 10_000, 0), offered(3, 4, Cause.CACHED, 0, 0)]),
    "acquired": Example(acquired, [owned(3, 6, Cause.ACQUIRED, 2, 12_000, 2000)]),
    "accepted": Example(accepted, [pending(0, 4, Cause.ACCEPTED, ACKNOWLEDGED, 3000)]),
    "gap, rejected, released": Example(
        by_types,
        [
            pending(0, 0, Cause.ACCEPTED, ACKNOWLEDGED, 3000),
            pending(1, 1, Cause.GAP, ARCHIVED, 3000),
            pending(2, 2, Cause.ACCEPTED, ACKNOWLEDGED, 3000),
            pending(3, 3, Cause.REJECTED, ARCHIVED, 3000),
            pending(4, 4, Cause.RELEASED, AVAILABLE, 3000),
        ],
    ),
    "renewed": Example(renewed, [owned(1, 2, Cause.RENEWED, 1, 13_000, 3000)]),
    "lapsed": Example(lapsed, [offered(0, 4, Cause.LAPSED, 1, 10_001)._replace(write=0)]),
    "lapsed in flight": Example(lapsed_in_flight, [pending(0, 4, Cause.LAPSED, ACKNOWLEDGED, 10_001)]),
    "archived at the limit": Example(
        archived_at_limit,
        [done(0, 4, Cause.ARCHIVED_AT_LIMIT, ARCHIVED, 20_002, write=1)._replace(delivery_count=2)],
    ),
    "released at the limit": Example(released_at_limit, [pending(0, 4, Cause.ARCHIVED_AT_LIMIT, ARCHIVED, 0, count=2)]),
    "session closed": Example(
        session_closed,
        [
            pending(0, 9, Cause.BELOW_LOG_START, ARCHIVED, 0),
            pending(10, 11, Cause.BELOW_LOG_START, ARCHIVED, 0),
            pending(12, 14, Cause.SESSION_CLOSED, AVAILABLE, 0),
            pending(15, 19, Cause.SESSION_CLOSED, AVAILABLE, 0),
        ],
    ),
    "aborted": Example(aborted, [owned(0, 12, Cause.ACQUIRED, 1, 10_000, 0), done(5, 9, Cause.ABORTED, ARCHIVED, 0)]),
    "compacted away": Example(
        compacted_away,
        [
            done(0, 4, Cause.COMPACTED_AWAY, ARCHIVED, 0),
            done(5, 9, Cause.COMPACTED_AWAY, ARCHIVED, 0),
            owned(10, 14, Cause.ACQUIRED, 2, 10_000, 0),
            owned(15, 19, Cause.ACQUIRED, 2, 10_000, 0),
        ],
    ),
    "below the log start": Example(
        below_log_start,
        [done(0, 4, Cause.BELOW_LOG_START, ARCHIVED, 0), done(5, 6, Cause.BELOW_LOG_START, ARCHIVED, 0)],
    ),
    "confirmed, passed": Example(
        confirmed,
        [
            done(0, 4, Cause.CONFIRMED, ACKNOWLEDGED, 3000, write=0),
            done(0, 4, Cause.PASSED, ACKNOWLEDGED, 3000),
        ],
    ),
    "rolled back": Example(rolled_back, [owned(0, 4, Cause.ROLLED_BACK, 1, 10_000, 0)._replace(write=0)]),
    "rolled back, lapsed": Example(rolled_back_lapsed, [offered(0, 4, Cause.ROLLED_BACK, 1, 10_001)._replace(write=0)]),
    "throttled": Example(
        throttled,
        [
            owned(0, 4, Cause.ACQUIRED, 4, 10_000, 0),
            offered(5, 9, Cause.THROTTLED, 3, 0),
            offered(10, 14, Cause.THROTTLED, 1, 0),
        ],
    ),
    "throttled at last": Example(
        throttled_at_last,
        [
            owned(0, 0, Cause.ACQUIRED, 5, 20_001, 10_001),
            offered(1, 4, Cause.THROTTLED, 4, 10_001),
            offered(5, 9, Cause.THROTTLED, 3, 10_001),
            offered(10, 14, Cause.THROTTLED, 1, 10_001),
        ],
    ),
}
"""The examples by the causes that they show."""


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_a_worked_example_is_told(example: Example) -> None:
    """Range, cause, what the records are then, the time, and the write that carries it or has caused it."""
    assert list(example.play()) == example.told


def test_every_cause_has_an_example() -> None:
    """No cause is left out."""
    assert {transition.cause for example in EXAMPLES.values() for transition in example.told} == set(Cause)


def test_what_throttling_holds_back_ends_where_the_wanted_records_end() -> None:
    """A batch that would not have been delivered anyway, as the member wants no more, is not said to be held back."""
    scene = Scene(tells=True).load(0, "[0-9 st0 dc3][10-14 st0]")
    told = since(scene, lambda: scene.acquire("m1", 0, "[0-9][10-14]", most=5))

    assert list(told) == [owned(0, 4, Cause.ACQUIRED, 4, 10_000, 0), offered(5, 9, Cause.THROTTLED, 3, 0)]


def test_what_a_refused_request_has_renewed_is_told_with_its_time() -> None:
    """The error tells the renewals before the refusal; what had begun is withdrawn and never told (spec 20.2, 24.3)."""
    scene = held("[0-4][5-9]", cut=5)
    scene.now_ms = 3000

    with pytest.raises(InvalidRequestError) as refused:
        scene.acknowledge("m1", "5-9:1", "0-4:4", "8-12:1")
    assert list(refused.value.transitions) == [owned(0, 4, Cause.RENEWED, 1, 13_000, 3000)]
    assert scene.batches == ["[0-4] ACQUIRED/1/m1", "[5-9] ACQUIRED/1/m1"]


def test_nothing_is_told_by_what_changes_no_record() -> None:
    """Settings, fencing, an empty acquisition, an ignored log start, a refused time."""
    scene = held()
    partition = scene.partition

    assert partition.configure(partition.config).transitions == ()
    assert since(scene, lambda: scene.acquire("m2", 0, "[0-4]")) == ()
    assert partition.advance_log_start(0).transitions == ()
    assert partition.fence().transitions == ()
    assert since(scene, lambda: scene.acknowledge("m1")) == ()


def test_healed_a_lock_that_had_fired_lapses_after_the_rollback() -> None:
    """Without quirk B15 the records go back to their owner, and lapse in a command of their own with a write."""
    scene = Scene(profile=KAFKA_4_3.healed, tells=True).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:1")
    scene.wait(10_001)

    failed = since(scene, lambda: scene.fail(0, ErrorCode.NOT_COORDINATOR))
    assert list(failed) == [owned(0, 4, Cause.ROLLED_BACK, 1, 10_000, 10_001)._replace(write=0)]
    assert list(since(scene, scene.expire)) == [offered(0, 4, Cause.LAPSED, 1, 10_001)._replace(write=1)]


def test_a_share_partition_can_be_told_to_tell_when_it_is_restored() -> None:
    """Telling is no part of the state: it is asked for again."""
    scene = held()
    silent = type(scene.partition).restore(scene.partition.snapshot())
    telling = type(scene.partition).restore(scene.partition.snapshot(), tells_transitions=True)

    assert silent.key == telling.key == KEY
    assert silent.expire_next(now_ms=10_001) is not None
    effects = telling.expire_next(now_ms=10_001)
    assert effects is not None
    assert list(effects.transitions) == [offered(0, 4, Cause.LAPSED, 1, 10_001)._replace(write=0)]


def test_no_record_is_told_of_twice() -> None:
    """Entries far apart and back again, in one call: each record is told of once, in ascending order."""
    scene = Scene(tells=True).load()
    scene.acquire("m1", 0, "[0-199]")
    scene.is_holding = True

    told = since(scene, lambda: scene.acknowledge("m1", "5-6:1", "30-31:1", "100-101:1", "10-11:1"))
    assert [(transition.first_offset, transition.last_offset) for transition in told] == [
        (5, 6),
        (10, 11),
        (30, 31),
        (100, 101),
    ]
    assert {transition.cause for transition in told} == {Cause.ACCEPTED}
