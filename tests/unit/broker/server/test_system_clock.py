"""The computer's clock."""

from __future__ import annotations

import asyncio
import time

from sharestate.broker.server.clocks import SystemClock


def test_the_time_is_that_of_the_computer() -> None:
    """In milliseconds since 1970."""
    before_ms = time.time_ns() // 1_000_000
    now_ms = SystemClock().now_ms()

    assert before_ms - 1 <= now_ms <= time.time_ns() // 1_000_000 + 1


def test_a_call_comes_when_it_is_due() -> None:
    """Not before; one that is overdue comes at once, and one that is cancelled does not come."""

    async def live() -> list[tuple[str, int]]:
        clock, calls = SystemClock(), []
        due_ms = clock.now_ms() + 30
        clock.call_at(due_ms, lambda: calls.append(("due", clock.now_ms() - due_ms)))
        clock.call_at(due_ms - 10_000, lambda: calls.append(("overdue", 0)))
        clock.call_at(due_ms, lambda: calls.append(("cancelled", 0))).cancel()
        clock.call_at(2**63, lambda: calls.append(("never", 0)))
        await asyncio.sleep(0.1)
        return calls

    (first, _), (second, late_ms) = asyncio.run(live())

    assert (first, second) == ("overdue", "due")
    assert late_ms >= 0
