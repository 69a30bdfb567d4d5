"""A test broker for scripts, whose time stands where they do not let it pass."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from sharestate import KAFKA_4_3, KAFKA_4_4
from sharestate.broker import StandingClock, TestBroker
from sharestate.values.profiles import Profile
from tests.lockstep.runner import Runner
from tests.lockstep.steps import SETTINGS

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType({"4.3.1": KAFKA_4_3, "4.4.0": KAFKA_4_4})
"""The rules of the releases."""

TURNS: Final = 12
"""
How often the event loop of a broker goes round until a request that was sent to it is with the node.

Loopback has delivered it when it is sent. A new connection takes most: it is accepted, made, and read.
"""


class BrokersTime:
    """
    The time of a test broker, which the script moves.

    Args:
        broker: The broker, whose clock stands.
    """

    def __init__(self, broker: TestBroker) -> None:
        """Begin with the broker's time."""
        self._broker = broker
        self._loop = broker.run(lambda _: asyncio.get_running_loop())

    def now_ms(self) -> float:
        """Return the time. [ms]"""
        return self._broker.now_ms

    def sleep_ms(self, duration_ms: float) -> None:
        """Let time pass, when the broker has read what was sent to it. [ms]"""
        asyncio.run_coroutine_threadsafe(self._let_pass(round(duration_ms)), self._loop).result()

    def wait_ms(self, max_wait_ms: float) -> None:
        """Let pass what a request may wait that was sent. [ms]"""
        self.sleep_ms(max_wait_ms)

    async def _let_pass(self, duration_ms: int) -> None:
        """Let time pass in the broker's own thread, whose loop goes round there without being called each time."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
        self._broker.advance(ms=duration_ms)
        await asyncio.sleep(0)  # what follows from it is answered in the next turn


@contextmanager
def standing_runner(profile: Profile) -> Iterator[Runner]:
    """Start a test broker by the rules of a release, and yield what takes steps there."""
    with TestBroker(profile=profile, config=SETTINGS, clock=StandingClock()) as broker:
        runner = Runner(broker.bootstrap_servers, BrokersTime(broker))
        try:
            yield runner
        finally:
            runner.close()
