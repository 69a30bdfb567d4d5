"""The transitions that a share partition records: for each cause a worked example of the rules, to the last field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import pytest

from sharestate import KAFKA_4_3, KAFKA_4_4, Cause, ErrorCode, InvalidRequestError, RecordState, Transition
from tests.support.scenes import KEY, Scene, state

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState


class Example(NamedTuple):
    """A sequence of commands, and the transitions that it records."""

    play: Callable[[], Sequence[Transition]]
    """Returns the transitions of the last command and of the outcome of its write."""

    recorded: list[Transition]
    """Expected: first and last offset, cause, state, count, member, deadline, pending write, time, write."""


def since(scene: Scene, play: Callable[[], object]) -> Sequence[Transition]:
    """Return the transitions that were recorded while *play* ran."""
    before = len(scene.effects)
    play()
    return tuple(transition for effects in scene.effects[before:] for transition in effects.transitions)


def held(log: str = "[0-4]", *, limit: int = 5, cut: int = 100) -> Scene:
    """Return a scene in which m1 has acquired *log* at 0 ms, and writes are not answered."""
    scene = Scene(record_transitions=True, limit=limit).load()
    scene.acquire("m1", 0, log, cut=cut)
    scene.is_holding = True
    return scene


def read() -> Sequence[Transition]:
    """Rule 4.4: start 10, [10-14 st2][20-24 st2]; the advance passes the first batch."""
    scene = Scene(record_transitions=True)
    scene.partition.initialize()
    return scene.partition.read_succeeded(state(10, "[10-14 st2][20-24 st2]")).transitions


def dead_lettered() -> Sequence[Transition]:
    """Rule 21.3: [0-4] is rejected, the queue answers, and so does the second write."""
    scene = Scene(profile=KAFKA_4_4, queue=True, record_transitions=True).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "0-4:reject")
    return since(scene, lambda: scene.dead_letter(0))


def cached() -> Sequence[Transition]:
    """Rule 20.1: log [0-4][5-9], record limit 3."""
    scene = Scene(record_transitions=True).load()
    return since(scene, lambda: scene.acquire("m1", 0, "[0-4][5-9]", most=3, strict=True))


def acquired() -> Sequence[Transition]:
    """Rule 7.11: [0-9] AVAILABLE, a fetch at 3 returns log 3-6 only; at 2000 ms."""
    scene = Scene(record_transitions=True).load(0, "[0-9 st0]")
    scene.now_ms = 2000
    return since(scene, lambda: scene.acquire("m1", 3, "[3-6]"))


def accepted() -> Sequence[Transition]:
    """Rule 8.3: [0-4] m1; ack 0-4:1; at 3000 ms."""
    scene = held()
    scene.now_ms = 3000
    return since(scene, lambda: scene.acknowledge("m1", "0-4:accept"))


def by_types() -> Sequence[Transition]:
    """Rule 8.3: types [1,0,1,3,2]."""
    scene = held()
    scene.now_ms = 3000
    return since(scene, lambda: scene.acknowledge("m1", "0-4:1,0,1,3,2"))


def renewed() -> Sequence[Transition]:
    """Rule 20.2: a part is renewed; the lock starts anew at 3000 ms."""
    scene = held()
    scene.now_ms = 3000
    return since(scene, lambda: scene.acknowledge("m1", "1-2:renew"))


def expired() -> Sequence[Transition]:
    """Rule 10: acquire 0-4; timeout."""
    scene = held()
    return since(scene, lambda: scene.wait(10_001))


def expired_in_flight() -> Sequence[Transition]:
    """Rule 10: a timeout while the acceptance is being written; the record keeps its deadline (24.5)."""
    scene = held()
    scene.acknowledge("m1", "0-4:accept")
    return since(scene, lambda: scene.wait(10_001))


def archived_at_limit() -> Sequence[Transition]:
    """Rule 10: max 2, the second timeout; its write is the second one."""
    scene = held(limit=2)
    scene.is_holding = False
    scene.wait(10_001)
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    return since(scene, lambda: scene.wait(10_001))


def released_at_limit() -> Sequence[Transition]:
    """Rule 8.3: [0-4] max 2, count 2; ack RELEASE."""
    scene = Scene(record_transitions=True, limit=2).load(0, "[0-4 st0]")
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    return since(scene, lambda: scene.acknowledge("m1", "0-4:release"))


def session_closed() -> Sequence[Transition]:
    """Rule 9: [0-9], [10-14] and [15-19] are m1's, LSO 12; m1 leaves."""
    scene = Scene(record_transitions=True).load()
    for log in ("[0-9]", "[10-14]", "[15-19]"):
        scene.acquire("m1", int(log[1:].partition("-")[0]), log)
    scene.is_holding = True
    scene.partition.advance_log_start(12)
    return since(scene, lambda: scene.release("m1"))


def aborted() -> Sequence[Transition]:
    """Rule 7.10: producer 1's transaction from 5 on was aborted."""
    scene = Scene(record_transitions=True).load()
    log = "[0-4 p2][5-9 p1][10 p1 ABORT][11 p2][12 p2 COMMIT]"
    return since(scene, lambda: scene.acquire("m1", 0, log, aborted=[(1, 5)]))


def compacted_away() -> Sequence[Transition]:
    """Rule 7.3: four batches are AVAILABLE, the fetch at 0 returns the last two."""
    scene = Scene(record_transitions=True).load(0, "[0-4 st0][5-9 st0][10-14 st0][15-19 st0]")
    return since(scene, lambda: scene.acquire("m1", 0, "[10-14][15-19]"))


def below_log_start() -> Sequence[Transition]:
    """Rule 13: [0-4]AV [5-9]AV [10-14]ACQ, L=7."""
    scene = Scene(record_transitions=True).load(0, "[0-4 st0][5-9 st0][10-14 st0]")
    scene.acquire("m1", 10, "[10-14]")
    return scene.partition.advance_log_start(7).transitions


def confirmed() -> Sequence[Transition]:
    """Rule 8.3: the write of 0-4:1 succeeds, and the batch leaves the cache."""
    scene = held()
    scene.now_ms = 3000
    scene.acknowledge("m1", "0-4:accept")
    return since(scene, lambda: scene.succeed(0))


def rolled_back() -> Sequence[Transition]:
    """v22-07-release-while-pending: the answer is an error: ACQUIRED/1/m1 with its lock."""
    scene = held()
    scene.acknowledge("m1", "0-4:accept")
    return since(scene, lambda: scene.fail(0, ErrorCode.NOT_COORDINATOR))


def rolled_back_expired() -> Sequence[Transition]:
    """v22-03-expiry-in-flight: the same after a timeout: AVAILABLE/1, in memory only (quirk B15)."""
    scene = held()
    scene.acknowledge("m1", "0-4:accept")
    scene.wait(10_001)
    return since(scene, lambda: scene.fail(0, ErrorCode.NOT_COORDINATOR))


def throttled() -> Sequence[Transition]:
    """Rule 20.3: max 5, [0-9] delivered three times, 10-14 is available too."""
    scene = Scene(record_transitions=True).load(0, "[0-9 st0 dc3][10-14 st0]")
    return since(scene, lambda: scene.acquire("m1", 0, "[0-9][10-14]"))


def throttled_at_last() -> Sequence[Transition]:
    """Rule 20.3: after the fourth delivery of 0-4 has timed out 0 is delivered alone."""
    scene = Scene(record_transitions=True).load(0, "[0-9 st0 dc3][10-14 st0]")
    scene.acquire("m1", 0, "[0-9][10-14]")
    scene.wait(10_001)
    return since(scene, lambda: scene.acquire("m1", 0, "[0-9][10-14]"))


def offered(first: int, last: int, cause: Cause, count: int, at_ms: int) -> Transition:
    """Return the transition of records that are available now, without a write."""
    return Transition(first, last, cause, AVAILABLE, count, "", None, False, at_ms, None)  # noqa: FBT003 - a row


def done(  # noqa: PLR0913 - a row
    first: int, last: int, cause: Cause, state_: RecordState, at_ms: int, write: int | None = None
) -> Transition:
    """Return the transition of records that are terminal after one delivery."""
    return Transition(first, last, cause, state_, 1, "", None, False, at_ms, write)  # noqa: FBT003 - a row


def owned(  # noqa: PLR0913 - a row
    first: int, last: int, cause: Cause, count: int, deadline_ms: int, at_ms: int
) -> Transition:
    """Return the transition of records that m1 owns now, without a write."""
    return Transition(first, last, cause, ACQUIRED, count, "m1", deadline_ms, False, at_ms, None)  # noqa: FBT003 - a row


def pending(  # noqa: PLR0913 - a row
    first: int, last: int, cause: Cause, state_: RecordState, at_ms: int, count: int = 1
) -> Transition:
    """Return the transition of records that are pending with write 0; their lock still runs."""
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
    "expired": Example(expired, [offered(0, 4, Cause.LOCK_EXPIRED, 1, 10_001)._replace(write=0)]),
    "expired in flight": Example(expired_in_flight, [pending(0, 4, Cause.LOCK_EXPIRED, ACKNOWLEDGED, 10_001)]),
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
    "rolled back, expired": Example(
        rolled_back_expired, [offered(0, 4, Cause.ROLLED_BACK, 1, 10_001)._replace(write=0)]
    ),
    "dead-lettered": Example(
        dead_lettered,
        [
            done(0, 4, Cause.DEAD_LETTERED, ARCHIVED, 0, write=1),
            done(0, 4, Cause.PASSED, ARCHIVED, 0),
        ],
    ),
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
def test_a_worked_example_is_recorded(example: Example) -> None:
    """Range, cause, what the records are then, the time, and the write that carries it or has caused it."""
    assert list(example.play()) == example.recorded


def test_every_cause_has_an_example() -> None:
    """No cause is left out."""
    assert {transition.cause for example in EXAMPLES.values() for transition in example.recorded} == set(Cause)


def test_throttled_records_end_with_the_wanted_records() -> None:
    """A batch that would not have been delivered anyway, as the member wants no more, is not said to be held back."""
    scene = Scene(record_transitions=True).load(0, "[0-9 st0 dc3][10-14 st0]")
    recorded = since(scene, lambda: scene.acquire("m1", 0, "[0-9][10-14]", most=5))

    assert list(recorded) == [owned(0, 4, Cause.ACQUIRED, 4, 10_000, 0), offered(5, 9, Cause.THROTTLED, 3, 0)]


def test_renewals_of_a_refused_request_are_recorded_with_their_time() -> None:
    """The error has the renewals before the refusal; the other changes are not recorded (rules 20.2 and 24.3)."""
    scene = held("[0-4][5-9]", cut=5)
    scene.now_ms = 3000

    with pytest.raises(InvalidRequestError) as refused:
        scene.acknowledge("m1", "5-9:accept", "0-4:renew", "8-12:accept")
    assert list(refused.value.transitions) == [owned(0, 4, Cause.RENEWED, 1, 13_000, 3000)]
    assert scene.batches == ["[0-4] ACQUIRED/1/m1", "[5-9] ACQUIRED/1/m1"]


def test_commands_that_change_no_record_record_nothing() -> None:
    """Settings, fencing, an empty acquisition, an ignored log start, a refused time."""
    scene = held()
    partition = scene.partition

    assert partition.configure(partition.config).transitions == ()
    assert since(scene, lambda: scene.acquire("m2", 0, "[0-4]")) == ()
    assert partition.advance_log_start(0).transitions == ()
    assert partition.fence().transitions == ()
    assert since(scene, lambda: scene.acknowledge("m1")) == ()


def test_healed_an_expired_lock_expires_again_after_the_rollback() -> None:
    """Without quirk B15 the records are rolled back, and expire in a command of their own with a write."""
    scene = Scene(profile=KAFKA_4_3.healed, record_transitions=True).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")
    scene.wait(10_001)

    failed = since(scene, lambda: scene.fail(0, ErrorCode.NOT_COORDINATOR))
    assert list(failed) == [owned(0, 4, Cause.ROLLED_BACK, 1, 10_000, 10_001)._replace(write=0)]
    assert list(since(scene, scene.expire)) == [offered(0, 4, Cause.LOCK_EXPIRED, 1, 10_001)._replace(write=1)]


def test_a_restored_share_partition_records_if_asked_to() -> None:
    """Recording is no part of the state: it is asked for again."""
    scene = held()
    silent = type(scene.partition).restore(scene.partition.snapshot())
    recording = type(scene.partition).restore(scene.partition.snapshot(), record_transitions=True)

    assert silent.key == recording.key == KEY
    assert silent.expire_next(now_ms=10_001) is not None
    effects = recording.expire_next(now_ms=10_001)
    assert effects is not None
    assert list(effects.transitions) == [offered(0, 4, Cause.LOCK_EXPIRED, 1, 10_001)._replace(write=0)]


def test_no_record_is_recorded_twice() -> None:
    """Entries far apart and back again, in one call: each record is recorded once, in ascending order."""
    scene = Scene(record_transitions=True).load()
    scene.acquire("m1", 0, "[0-199]")
    scene.is_holding = True

    recorded = since(
        scene, lambda: scene.acknowledge("m1", "5-6:accept", "30-31:accept", "100-101:accept", "10-11:accept")
    )
    assert [(transition.first_offset, transition.last_offset) for transition in recorded] == [
        (5, 6),
        (10, 11),
        (30, 31),
        (100, 101),
    ]
    assert {transition.cause for transition in recorded} == {Cause.ACCEPTED}
