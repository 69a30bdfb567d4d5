"""Waiting for a persister that answers from another thread: nobody waits for ever without a reason."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from sharestate import (
    InMemoryPersister,
    Leader,
    LeaderStateError,
    Lifecycle,
    MalformedInputError,
    NotLeaderOrFollowerError,
    monotonic_ms,
)
from tests.support.fixtures import LOCK_MS, accept, fetched, partition, persister, writes

SOON_S = 10
"""How long a test waits for what should happen at once. [s]"""


def holding(lock_ms: int = LOCK_MS) -> tuple[Leader, InMemoryPersister, Future[None]]:
    """Return a leader with a pending acknowledgement of 0-4 out of 0-9, its persister and the future."""
    store = persister()
    leader = Leader(partition(lock_ms=lock_ms), store, reset_offset=lambda _: 0)
    leader.start(now_ms=0).result()
    leader.acquire("m1", fetched(0, 9), now_ms=0)
    store.is_holding = True
    return leader, store, leader.acknowledge("m1", accept(0, 4), now_ms=0)


@pytest.mark.parametrize(
    "wait", [lambda future: future.result(), lambda future: future.exception()], ids=["result", "exception"]
)
def test_a_future_refuses_to_wait_without_a_poll(wait: Callable[[Future[None]], object]) -> None:
    """Without a timeout nobody would take the answer, even after it has come: the message says who polls."""
    _, store, future = holding()

    with pytest.raises(LeaderStateError, match=r"only Leader\.poll takes answers: call Leader\.wait"):
        wait(future)
    store.held[0].answer()
    with pytest.raises(LeaderStateError):
        wait(future)


def test_a_future_may_be_waited_for_while_another_thread_polls() -> None:
    """With a timeout the future is one like any other."""
    leader, store, future = holding()
    store.held[0].answer()
    timer = threading.Timer(0.01, leader.poll, kwargs={"now_ms": 1})
    timer.start()

    future.result(timeout=SOON_S)
    timer.join()
    assert future.exception() is None


def test_a_leader_waits_for_an_answer_from_another_thread() -> None:
    """``wait`` takes the answer when it arrives, and the share partition has moved then."""
    leader, store, future = holding()
    thread = threading.Timer(0.01, store.held[0].answer)
    thread.start()
    leader.wait(future, clock=lambda: 1, timeout_s=SOON_S)
    thread.join()

    assert (future.done(), leader.partition.start_offset) == (True, 5)


def test_waiting_raises_the_error_of_the_write() -> None:
    """A write that fails is raised where it is waited for, at once if that is known."""
    leader, store, future = holding()
    store.held[0].fail(74)

    for _ in range(2):
        with pytest.raises(NotLeaderOrFollowerError):
            leader.wait(future, clock=lambda: 1)


def test_waiting_ends_at_a_timeout() -> None:
    """A persister that does not answer in time is given up, and may still answer."""
    leader, store, future = holding()

    with pytest.raises(TimeoutError, match="the persister has not answered in time"):
        leader.wait(future, clock=lambda: 1, timeout_s=0.01)
    store.held[0].answer()
    leader.wait(future, clock=lambda: 1)


def test_locks_expire_while_a_leader_waits() -> None:
    """Whoever waits polls: a lock that expires meanwhile is written, and the next poll wakes fetches."""
    leader, store, future = holding(lock_ms=20)
    start_ms = monotonic_ms()

    with pytest.raises(TimeoutError):
        leader.wait(future, clock=lambda: monotonic_ms() - start_ms, timeout_s=0.2)

    assert [batches for _, batches in writes(store)[1:]] == [[(offset, offset, 0, 1)] for offset in range(5, 10)]
    assert leader.poll(now_ms=1000).wake


def test_a_leader_without_locks_waits() -> None:
    """Before the state was read nothing is locked, so nothing but the answer ends the wait for it."""
    store = persister()
    store.is_holding = True
    leader = Leader(partition(), store, reset_offset=lambda _: 0)
    future = leader.start(now_ms=0)
    thread = threading.Timer(0.01, store.held[0].answer)
    thread.start()
    leader.wait(future, clock=lambda: 0, timeout_s=SOON_S)
    thread.join()

    assert leader.partition.lifecycle is Lifecycle.ACTIVE


def test_a_wait_looks_at_the_clock_again_when_a_lock_expires() -> None:
    """It sleeps until the first lock expires, not until its own end: by then the answer may have come."""
    leader, store, future = holding(lock_ms=20)
    times_ms = iter((0, 21, 21))
    start_ms = monotonic_ms()

    def clock() -> int:
        now_ms = next(times_ms)
        if now_ms and store.held:
            store.held[0].answer()
        return now_ms

    leader.wait(future, clock=clock, timeout_s=SOON_S)

    assert monotonic_ms() - start_ms < SOON_S * 1000
    assert [batches for _, batches in writes(store)[1:]] == [[(offset, offset, 0, 1)] for offset in range(5, 10)]


@pytest.mark.parametrize("timeout_s", [float("inf"), 2.0**70])
def test_a_leader_may_wait_for_longer_than_threads_can(timeout_s: float) -> None:
    """Neither a lock of 2^62 ms nor a timeout that no thread takes keeps the answer from being taken."""
    leader, store, future = holding(lock_ms=2**62)
    thread = threading.Timer(0.01, store.held[0].answer)
    thread.start()
    leader.wait(future, clock=lambda: 1, timeout_s=timeout_s)
    thread.join()

    assert future.done()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("future", None),
        ("clock", 5),
        ("timeout_s", "1"),
        ("timeout_s", -1),
        ("timeout_s", float("nan")),
        ("now_ms", lambda: 1.5),
    ],
    ids=[
        "no future",
        "no clock",
        "a timeout that is text",
        "a negative one",
        "a timeout that is no number",
        "a clock of fractions",
    ],
)
def test_arguments_of_a_wait_are_checked(field: str, value: object) -> None:
    """A malformed argument, or time, is named in the error."""
    leader, _, future = holding()
    arguments: dict[str, Any] = {"future": future, "clock": lambda: 1, "clock" if field == "now_ms" else field: value}

    with pytest.raises(MalformedInputError, match=f"^{field}: expected "):
        leader.wait(**arguments)


def test_a_leader_waits_for_its_own_futures_only() -> None:
    """A future of another leader is refused: this one would wait for ever."""
    leader, _, _ = holding()
    _, _, other = holding()

    with pytest.raises(LeaderStateError, match="belongs to another leader"):
        leader.wait(other, clock=lambda: 1)
