"""A leader in an event loop that hands over dead letters: it waits for them at its end, and reports what has failed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from sharestate import (
    KAFKA_4_4,
    AcknowledgementBatch,
    AcknowledgeType,
    AsyncLeader,
    InMemoryDeadLetterQueue,
    InMemoryPersister,
    ShareConfig,
    SharePartition,
    ShareStateError,
)
from tests.support.fixtures import KEY, LEADER_EPOCH, fetched, persister, writes

SOON_S = 10
"""How long a test waits for what should happen at once. [s]"""

REJECT = [AcknowledgementBatch(0, 9, (AcknowledgeType.REJECT,))]


async def holding(leader: AsyncLeader) -> None:
    """Load *leader*, and let m1 acquire 0-9."""
    await leader.start()
    assert leader.acquire("m1", fetched(0, 9))


def a_leader(
    store: InMemoryPersister, queue: InMemoryDeadLetterQueue, on_error: Callable[[ShareStateError], object] = print
) -> AsyncLeader:
    """Return a leader of a group that has a dead-letter queue."""
    config = ShareConfig(dead_letter_queue=True)
    partition = SharePartition(KEY, leader_epoch=LEADER_EPOCH, profile=KAFKA_4_4, config=config)
    return AsyncLeader(
        partition, store, reset_offset=lambda _: 0, dead_letter_queue=queue, clock=lambda: 0, on_error=on_error
    )


def test_leaving_waits_for_the_queue_and_for_the_second_write() -> None:
    """Both may be answered in any thread; the SPSO has passed the records when the context is left."""
    store, queue = persister(), InMemoryDeadLetterQueue()

    async def work() -> SharePartition:
        async with a_leader(store, queue) as leader:
            await holding(leader)
            queue.is_holding = True
            await leader.acknowledge("m1", REJECT)
            store.is_holding = True
            threading.Timer(0.01, queue.held[0].answer).start()
            threading.Thread(target=answer_write).start()
        return leader.partition

    def answer_write() -> None:
        while not store.held:
            time.sleep(0.001)
        store.held[0].answer()

    partition = asyncio.run(asyncio.wait_for(work(), SOON_S))

    assert writes(store) == [(0, [(0, 9, 3, 1)]), (0, [(0, 9, 4, 1)])]
    assert partition.start_offset == 10


def test_what_was_not_written_goes_to_the_hook() -> None:
    """Even if the context is left at once, and nothing has to be waited for."""
    queue, errors = InMemoryDeadLetterQueue(max_records=0), list[ShareStateError]()

    async def work() -> None:
        async with a_leader(persister(), queue, errors.append) as leader:
            await holding(leader)
            await leader.acknowledge("m1", REJECT)
            assert leader.partition.start_offset == 10

    asyncio.run(asyncio.wait_for(work(), SOON_S))

    assert [type(error).__name__ for error in errors] == ["DeadLetterFailedError"]


def test_what_fails_while_the_context_is_left_goes_to_the_hook() -> None:
    """An exception leaves it at once; what has failed before is not lost with it."""
    queue, errors = InMemoryDeadLetterQueue(), list[ShareStateError]()

    async def work() -> None:
        async with a_leader(persister(), queue, errors.append) as leader:
            await holding(leader)
            queue.is_holding = True
            await leader.acknowledge("m1", REJECT)
            queue.held[0].fail(OSError("full"))
            raise LookupError

    with pytest.raises(LookupError):
        asyncio.run(asyncio.wait_for(work(), SOON_S))

    assert [str(error.__cause__) for error in errors] == ["full"]
