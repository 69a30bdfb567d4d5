"""The observer of a leader: it gets everything that happens, in order, with its time and its effects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sharestate import (
    AcknowledgementBatch,
    AcknowledgeType,
    AcquiredRecords,
    AcquireMode,
    AsyncLeader,
    CoordinatorNotAvailableError,
    DeadLetterFailedError,
    DeadLetterQueueConfigError,
    ErrorCode,
    InMemoryPersister,
    InvalidRecordStateError,
    Leader,
    Lifecycle,
    MalformedInputError,
    NotLeaderOrFollowerError,
    PersistedState,
    ShareConfig,
    SharePartition,
)
from sharestate.leader import Failed, Loaded, Observation, Refused, Written, observed
from sharestate.persister import HeldRequest
from tests.support.fixtures import (
    KEY,
    LEADER_EPOCH,
    LOCK_MS,
    STATE_EPOCH,
    accept,
    failure,
    fetched,
    no_reset,
    partition,
    persister,
)

BROKEN = OSError("broken")
FETCH = observed.Acquired("m1", fetched(0, 9), 500, 500, AcquireMode.BATCH_OPTIMIZED)


class Seen(list[Observation]):
    """An observer that keeps what it gets."""

    def __call__(self, observations: tuple[Observation, ...]) -> None:
        """Keep *observations*, which are at least one."""
        assert observations
        self += observations

    def events(self) -> list[tuple[int, observed.LeaderEvent]]:
        """Return the events with their times."""
        return [(each.at_ms, each.event) for each in self]


def loaded(store: InMemoryPersister, seen: Seen) -> Leader:
    """Return a leader that has loaded its state at 0 ms and is observed by *seen* from then on."""
    leader = Leader(partition(), store, reset_offset=no_reset, observer=seen)
    leader.start(now_ms=0).result(timeout=0)
    seen.clear()
    return leader


def holding(store: InMemoryPersister, seen: Seen) -> Leader:
    """Return the same, in which m1 has acquired 0-9 at 1 ms and nothing is answered any more."""
    leader = loaded(store, seen)
    leader.acquire("m1", fetched(0, 9), now_ms=1)
    store.is_holding = True
    seen.clear()
    return leader


def test_a_read_is_observed_with_what_it_has_brought() -> None:
    """Profile and config of the start come first, then the persister's answer."""
    seen, made = Seen(), partition()

    Leader(made, persister(start_offset=4), reset_offset=no_reset, observer=seen).start(now_ms=9)

    answer = Loaded(PersistedState(start_offset=4, state_epoch=STATE_EPOCH))
    assert [each.key for each in seen] == [KEY, KEY]
    assert seen.events() == [
        (9, observed.Started(made.profile, made.config)),
        (9, observed.StateRead(LEADER_EPOCH, answer, None, Lifecycle.ACTIVE)),
    ]


def test_a_read_is_observed_with_the_offset_that_was_looked_up() -> None:
    """Where no start offset is persisted, it says where the leader starts."""
    seen = Seen()

    Leader(partition(), persister(start_offset=-1), reset_offset=lambda _: 40, observer=seen).start(now_ms=0)

    answer = Loaded(PersistedState(start_offset=-1, state_epoch=STATE_EPOCH))
    assert seen[1].event == observed.StateRead(LEADER_EPOCH, answer, 40, Lifecycle.ACTIVE)


@pytest.mark.parametrize(
    ("respond", "answer"),
    [
        (lambda held: held.fail(ErrorCode.GROUP_ID_NOT_FOUND, "gone"), Refused(ErrorCode.GROUP_ID_NOT_FOUND, "gone")),
        (lambda held: held.throw(BROKEN), Failed(BROKEN)),
    ],
)
def test_a_read_that_fails_is_observed_with_the_failure(
    respond: Callable[[HeldRequest[Any, Any]], None], answer: Refused | Failed
) -> None:
    """A code of the persister comes as it is, an exception as the cause; the effects have the error of the start."""
    seen, store = Seen(), persister()
    store.is_holding = True
    leader = Leader(partition(), store, reset_offset=no_reset, observer=seen)
    future = leader.start(now_ms=0)
    respond(store.held[0])
    leader.poll(now_ms=0)

    assert seen[-1].event == observed.StateRead(LEADER_EPOCH, answer, None, Lifecycle.FAILED)
    assert seen[-1].effects.error == failure(future)


def test_a_read_of_a_leader_that_was_fenced_meanwhile_says_so() -> None:
    """The lifecycle that comes with it is FENCED, whatever was read."""
    seen, store = Seen(), persister()
    store.is_holding = True
    leader = Leader(partition(), store, reset_offset=no_reset, observer=seen)
    leader.start(now_ms=0)
    leader.fence(now_ms=1)
    assert seen.events()[1:] == [(1, observed.Fenced())]
    store.held[0].answer()
    leader.poll(now_ms=2)

    answer = Loaded(PersistedState(start_offset=0, state_epoch=STATE_EPOCH))
    assert seen.events()[2:] == [(1, observed.StateRead(LEADER_EPOCH, answer, None, Lifecycle.FENCED))]


def test_a_command_comes_before_the_answer_to_its_write() -> None:
    """An acquisition comes with what was acquired, an acknowledgement with its write, and the answer names that."""
    seen = Seen()
    leader = loaded(persister(), seen)

    leader.acquire("m1", fetched(0, 9), now_ms=1)
    leader.acknowledge("m1", accept(0, 9), now_ms=2)

    write = seen[1].effects.writes[0]
    assert seen.events() == [
        (1, FETCH),
        (2, observed.Acknowledged("m1", tuple(accept(0, 9)))),
        (2, observed.WriteAnswered(write, Written())),
    ]
    assert seen[0].effects.acquired == (AcquiredRecords(0, 9, 1),)
    assert [tuple(map(int, batch)) for batch in write.state_batches] == [(0, 9, 2, 1)]


def test_an_answer_has_the_time_of_the_command_before_it_was_taken() -> None:
    """That is the time of the share partition to which it is reported."""
    seen, store = Seen(), persister()
    leader = holding(store, seen)
    leader.acknowledge("m1", accept(0, 4), now_ms=2)
    store.held[0].fail(ErrorCode.NOT_COORDINATOR, "moved")

    leader.acknowledge("m1", accept(5, 9), now_ms=8)

    write = seen[0].effects.writes[0]
    assert seen.events()[1:] == [
        (2, observed.WriteAnswered(write, Refused(ErrorCode.NOT_COORDINATOR, "moved"))),
        (8, observed.Acknowledged("m1", tuple(accept(5, 9)))),
    ]
    assert seen[1].effects.error == CoordinatorNotAvailableError("moved")


def test_a_leader_that_fences_itself_is_observed() -> None:
    """It comes after the answer that says that another leader has taken over."""
    seen, store = Seen(), persister()
    leader = holding(store, seen)
    leader.release("m1", now_ms=2)
    store.held[0].fail(ErrorCode.FENCED_STATE_EPOCH)
    leader.poll(now_ms=3)

    assert seen[0].event == observed.Released("m1")
    assert [type(each.event) for each in seen[1:]] == [observed.WriteAnswered, observed.Fenced]


def test_a_refused_command_is_observed_with_the_refusal() -> None:
    """It is the error that the member gets; an invalid argument is not observed."""
    seen = Seen()
    leader = loaded(persister(), seen)

    with pytest.raises(InvalidRecordStateError) as refusal:
        leader.acknowledge("m2", accept(0, 9), now_ms=1)
    with pytest.raises(MalformedInputError):
        leader.acknowledge("m2", "0-9", now_ms=1)  # type: ignore[arg-type] # what is tested

    assert seen.events() == [(1, observed.Acknowledged("m2", tuple(accept(0, 9))))]
    assert seen[0].effects.error == refusal.value


def test_acknowledgements_of_an_iterator_are_observed() -> None:
    """The observer and the share partition both get them."""
    seen = Seen()
    leader = loaded(persister(), seen)
    leader.acquire("m1", fetched(0, 9), now_ms=0)

    leader.acknowledge("m1", iter(accept(0, 9)), now_ms=0)

    assert seen[1].event == observed.Acknowledged("m1", tuple(accept(0, 9)))
    assert leader.partition.start_offset == 10


def test_settings_and_the_log_start_are_observed() -> None:
    """Each comes with its argument."""
    seen, config = Seen(), ShareConfig(delivery_count_limit=7)
    leader = loaded(persister(), seen)

    leader.configure(config, now_ms=1)
    leader.advance_log_start(3, now_ms=2)

    assert seen.events() == [(1, observed.Configured(config)), (2, observed.LogStartAdvanced(3))]


def test_questions_are_observed_if_they_clear_find_next() -> None:
    """The first that finds nothing to deliver again does; nothing is left to clear for the second."""
    seen = Seen()
    leader = loaded(persister(), seen)
    leader.acquire("m1", fetched(0, 9), now_ms=0)
    leader.acknowledge("m1", [AcknowledgementBatch(0, 9, (AcknowledgeType.RELEASE,))], now_ms=0)
    leader.acquire("m1", fetched(0, 9), now_ms=0)
    assert leader.partition.find_next
    seen.clear()

    assert [leader.next_fetch_offset(now_ms=1), leader.next_fetch_offset(now_ms=2)] == [10, 10]

    assert seen.events() == [(1, observed.FindNextCleared())]


def test_every_expired_lock_is_observed() -> None:
    """Each comes with its own write, before the answer to that."""
    seen = Seen()
    leader = loaded(persister(), seen)
    leader.acquire("m1", fetched(0, 4), now_ms=0)
    leader.acquire("m2", fetched(5, 9), now_ms=0)
    seen.clear()

    leader.poll(now_ms=LOCK_MS + 1)

    expired, _, also_expired, _ = seen
    assert seen.events() == [
        (LOCK_MS + 1, observed.LockExpired()),
        (LOCK_MS + 1, observed.WriteAnswered(expired.effects.writes[0], Written())),
        (LOCK_MS + 1, observed.LockExpired()),
        (LOCK_MS + 1, observed.WriteAnswered(also_expired.effects.writes[0], Written())),
    ]


def test_dead_letters_are_observed_with_their_failure() -> None:
    """Without a queue they fail; the write that archives them is in the effects."""
    seen = Seen()
    made = SharePartition(KEY, config=ShareConfig(dead_letter_queue=True))
    leader = Leader(made, persister(), reset_offset=no_reset, observer=seen)
    leader.start(now_ms=0)
    leader.acquire("m1", fetched(0, 9), now_ms=0)
    leader.acknowledge("m1", [AcknowledgementBatch(0, 9, (AcknowledgeType.REJECT,))], now_ms=0)

    *_, first_write, answered, second_write = seen
    (request,) = first_write.effects.dead_letters
    assert isinstance(answered.event, observed.DeadLetterAnswered)
    assert answered.event.request == request
    assert isinstance(answered.event.error, DeadLetterFailedError)
    assert isinstance(answered.event.error.__cause__, DeadLetterQueueConfigError)
    assert second_write.event == observed.WriteAnswered(answered.effects.writes[0], Written())


def test_waiting_reports_what_has_happened() -> None:
    """The observer has the answer when the wait ends."""
    seen, store = Seen(), persister()
    leader = holding(store, seen)
    future = leader.acknowledge("m1", accept(0, 4), now_ms=2)
    store.held[0].answer()

    leader.wait(future, clock=lambda: 2)

    assert [type(each.event) for each in seen] == [observed.Acknowledged, observed.WriteAnswered]


def test_a_close_is_observed_once() -> None:
    """It fences the leader; later ones and commands that are refused are not observed."""
    seen = Seen()
    leader = loaded(persister(), seen)
    leader.poll(now_ms=4)

    leader.close()
    leader.close()
    with pytest.raises(NotLeaderOrFollowerError):
        leader.acquire("m1", fetched(0, 9), now_ms=5)

    assert seen.events() == [(4, observed.Fenced())]


def test_an_observer_that_raises_changes_nothing() -> None:
    """The command raises its exception, but has taken place, and the observer does not get it again."""
    seen = Seen()

    def fail_once(observations: tuple[Observation, ...]) -> None:
        seen(observations)
        if observations[-1].event == FETCH:
            raise BROKEN

    leader = Leader(partition(), persister(), reset_offset=no_reset, observer=fail_once)
    leader.start(now_ms=0)
    with pytest.raises(OSError, match="broken"):
        leader.acquire("m1", fetched(0, 9), now_ms=1)
    leader.acknowledge("m1", accept(0, 9), now_ms=1).result(timeout=0)

    assert leader.partition.start_offset == 10
    assert [type(each.event) for each in seen[2:]] == [observed.Acquired, observed.Acknowledged, observed.WriteAnswered]


def test_an_observer_has_to_be_callable() -> None:
    """The error names the argument."""
    with pytest.raises(MalformedInputError, match=r"^observer: expected a callable"):
        Leader(partition(), persister(), reset_offset=no_reset, observer=[])  # type: ignore[arg-type] # what is tested


def test_an_asynchronous_leader_is_observed() -> None:
    """The observer gets what its own task has done too, such as an expired lock, and the end."""
    seen, now_ms = Seen(), 0

    async def live() -> None:
        nonlocal now_ms
        async with AsyncLeader(
            partition(), persister(), reset_offset=no_reset, observer=seen, clock=lambda: now_ms
        ) as leader:
            await leader.start()
            leader.acquire("m1", fetched(0, 9))
            now_ms = LOCK_MS + 1
            leader.tick()

    asyncio.run(live())

    kinds = [type(each.event) for each in seen[2:]]
    assert kinds == [observed.Acquired, observed.LockExpired, observed.WriteAnswered, observed.Fenced]


def test_an_observer_that_raises_closes_an_asynchronous_leader() -> None:
    """Tasks that wait are woken even if it raises at the close too, and leaving raises its exception."""
    store, is_full = persister(), False

    def observe(_: tuple[Observation, ...]) -> None:
        if is_full:
            raise BROKEN

    async def live() -> None:
        nonlocal is_full
        leader = AsyncLeader(partition(), store, reset_offset=no_reset, observer=observe)
        await leader.__aenter__()
        await leader.start()
        leader.acquire("m1", fetched(0, 9))
        store.is_holding = True
        release = asyncio.create_task(leader.release("m1"))
        await asyncio.sleep(0.01)  # the leader's own task has polled, and woken those who wait
        waiting = asyncio.create_task(leader.wait_for_records())
        await asyncio.sleep(0)
        is_full = True
        store.held[0].answer()
        with pytest.raises(NotLeaderOrFollowerError):
            await asyncio.wait_for(waiting, 5)
        with pytest.raises(OSError, match="broken"):
            await leader.__aexit__(None, None, None)
        await release

    asyncio.run(live())
