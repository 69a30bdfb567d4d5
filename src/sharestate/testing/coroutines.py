"""Methods that may be coroutines: what the machines of this kit call are methods of somebody else's implementation."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Sequence
from typing import Any


class CoroutineRunner:
    """
    Waits for coroutines, all of them in one event loop, which begins with the first.

    >>> async def answer() -> int:
    ...     return 42
    >>> runner = CoroutineRunner()
    >>> runner.result_of(answer()), runner.result_of(7)
    (42, 7)
    >>> runner.close()
    """

    def __init__(self) -> None:
        """Begin without an event loop."""
        self._runner: asyncio.Runner | None = None

    def result_of(self, returned: Any) -> Any:  # noqa: ANN401 - what users return
        """Return what a method has *returned*; if that can be awaited, what comes of it."""
        if not inspect.isawaitable(returned):
            return returned
        if self._runner is None:
            self._runner = asyncio.Runner()

        async def wait() -> Any:  # noqa: ANN401 - as above
            return await returned

        return self._runner.run(wait())

    def close(self) -> None:
        """Close the event loop, if there is one."""
        if self._runner is not None:
            self._runner.close()


def at_once(returned: Sequence[Any]) -> Sequence[Any] | Awaitable[Sequence[Any]]:
    """
    Return what methods have returned; if that can be awaited, what awaits all of it at once.

    >>> at_once([1, 2])
    [1, 2]
    """
    if not all(map(inspect.isawaitable, returned)):
        return returned

    async def gather() -> Sequence[Any]:
        return await asyncio.gather(*returned)

    return gather()
