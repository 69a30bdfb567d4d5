"""A persister in a thread of its own: its callers wait for no disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Lock, get_ident
from typing import Any, ParamSpec

from sharestate.errors import ErrorCode
from sharestate.persister.coordinator_persister import CoordinatorPersister
from sharestate.persister.protocol import ClosingPersister, P, R
from sharestate.persister.requests import (
    InitializeOnceParameters,
    InitializeStateParameters,
    Parameters,
    PartitionErrorData,
    Result,
)
from sharestate.values.checks import expect

A = ParamSpec("A")


class ThreadedPersister(ClosingPersister):
    """
    Passes requests to a persister that it makes in a thread of its own, such as a ``SqlitePersister``.

    For event loops: requests return at once, and are answered in that thread. Those that come while the disk is waited
    for are one transaction afterwards, so many requests at a time take less time than one after the other. They are
    carried out in their order.

    Its methods may be called from any thread. ``close`` ends the thread; use it as a context manager.

    >>> from sharestate.coordinator import MemoryLog
    >>> from sharestate.persister import CoordinatorPersister, InitializeStateParameters, PartitionStateData
    >>> begin = InitializeStateParameters.of("g", "AAECAwQFBgcICQoLDA0ODw", PartitionStateData(partition=0))
    >>> with ThreadedPersister(CoordinatorPersister, MemoryLog()) as persister:
    ...     persister.initialize_state(begin).result().find("AAECAwQFBgcICQoLDA0ODw", 0).error_code.name
    'NONE'

    Raises:
        StateLogError: The persister cannot be made, as it says.
    """

    def __init__(self, make_persister: Callable[A, CoordinatorPersister], /, *args: A.args, **kwargs: A.kwargs) -> None:
        """
        Start the thread, and wait until it has called *make_persister*.

        Args:
            make_persister: Makes the persister, such as the class ``SqlitePersister``.
            *args: Its arguments, such as the path of the file.
            **kwargs: Its arguments by name.
        """
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sharestate-persister")
        self._lock = Lock()
        self._waiting: deque[tuple[Parameters[Any, Any], Future[Any]]] = deque()
        self._closing: Future[None] | None = None
        try:
            self._thread = self._executor.submit(get_ident).result()
            made = self._executor.submit(make_persister, *args, **kwargs).result()
            self._persister = expect(made, CoordinatorPersister, "make_persister")
        except BaseException:
            self._executor.shutdown(wait=False)
            raise

    def initialize_once(self, request: InitializeStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Initialize what is not initialized, in one transaction: see ``ensure_initialized``."""
        return self._take(InitializeOnceParameters.like(request))

    def close(self) -> None:
        """
        Answer what was asked so far, close the persister and end the thread.

        What is asked later is answered NOT_COORDINATOR. It waits for that, the second time too; in the thread itself,
        where futures are completed, it does not wait.
        """
        with self._lock:
            if self._closing is None:
                self._closing = self._executor.submit(self._persister.close)
        if get_ident() == self._thread:
            self._executor.shutdown(wait=False)
        else:
            self._executor.shutdown()
            self._closing.result()

    # ---- between the threads

    def _take(self, request: Parameters[P, R]) -> Future[Result[R]]:
        future: Future[Result[R]] = Future()
        future.set_running_or_notify_cancel()  # from now on `cancel` does nothing
        with self._lock:
            if self._closing is None:
                self._executor.submit(self._answer)
                self._waiting.append((request, future))
                return future
        future.set_result(request.failed(ErrorCode.NOT_COORDINATOR, "the persister is closed"))
        return future

    def _answer(self) -> None:
        """Have all requests answered that wait by now, together."""
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
        if waiting:  # else an earlier call has had them answered
            with self._persister.together():
                for request, future in waiting:
                    answer = self._persister._take(request)  # noqa: SLF001 - one persister stands in for the other
                    answer.add_done_callback(partial(_pass_on, future))


def _pass_on(future: Future[Any], answer: Future[Any]) -> None:
    error = answer.exception()
    if error is None:
        future.set_result(answer.result())
    else:
        future.set_exception(error)
