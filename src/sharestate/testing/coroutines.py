"""Methods that may be coroutines: what the machines of this kit call are methods of somebody else's implementation."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextvars import Context, copy_context
from itertools import cycle
from types import coroutine
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
        self._context: Context | None = None

    def result_of(self, returned: Any) -> Any:  # noqa: ANN401 - what users return
        """Return what a method has *returned*; if that can be awaited, what comes of it."""
        if not inspect.isawaitable(returned):
            return returned
        if self._runner is None:
            self._runner, self._context = asyncio.Runner(), copy_context()
        # Runner.run() takes three times as long: it handles SIGINT anew each time. Ctrl-C ends waiting either way.
        loop = self._runner.get_loop()
        return loop.run_until_complete(loop.create_task(_wait(returned), context=self._context))

    def close(self) -> None:
        """Close the event loop, if there is one."""
        if self._runner is not None:
            self._runner.close()


async def _wait(returned: Awaitable[Any]) -> Any:  # noqa: ANN401 - what users return
    return await returned


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


async def overlapping(begin: Sequence[Callable[[], Any]], delays: Sequence[int]) -> Sequence[Any]:
    """
    Return what comes of several calls that overlap, in an order that *delays* decides.

    Args:
        begin: The calls, each of which may return something that can be awaited.
        delays: How many turns of the event loop pass before a call begins, or goes on after it has awaited something,
            one after the other and again from the beginning. [turns]

    >>> async def say(word: str) -> None:
    ...     for letter in word:
    ...         print(letter, end="")
    ...         await asyncio.sleep(0)
    >>> for delays in ([0], [0, 1], [9, 0]):
    ...     _ = asyncio.run(overlapping([lambda: say("ab"), lambda: say("cd")], delays))
    ...     print()
    acbd
    abcd
    cabd
    """
    turns = cycle(delays)

    async def run(call: Callable[[], Any]) -> Any:  # noqa: ANN401 - what users return
        await _pass(next(turns))
        returned = call()
        return await _in_turn(returned, turns) if inspect.isawaitable(returned) else returned

    return await asyncio.gather(*map(run, begin))


@coroutine
def _pass(turns: int) -> Generator[None, None, None]:
    for _ in range(turns):
        yield


@coroutine
def _in_turn(awaitable: Awaitable[Any], turns: Iterator[int]) -> Generator[Any, None, Any]:
    """Await, but let some turns pass after each thing that was awaited."""
    steps = awaitable.__await__()
    error: BaseException | None = None
    while True:
        try:
            awaited = next(steps) if error is None else steps.throw(error)
        except StopIteration as end:
            return end.value
        try:
            error = None
            yield awaited
            yield from _pass(next(turns))
        except BaseException as thrown:  # noqa: BLE001 - it is for what awaits
            error = thrown
