"""A persister whose state is in the log of a share coordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from time import time_ns
from typing import Any, TypeAlias

from sharestate.coordinator.profiles import LATEST_COORDINATOR, CoordinatorConfig, CoordinatorProfile
from sharestate.coordinator.shard import FAILURES, Outcome
from sharestate.coordinator.share_coordinator import ShareCoordinator
from sharestate.coordinator.state_log import StateLog
from sharestate.coordinator.stored_state import StoredState
from sharestate.errors import MalformedInputError, StateLogError
from sharestate.persister.operations import answer, operate
from sharestate.persister.protocol import ClosingPersister, P, R
from sharestate.persister.requests import (
    InitializeOnceParameters,
    InitializeStateParameters,
    Parameters,
    PartitionErrorData,
    Result,
)
from sharestate.values.checks import a_callable
from sharestate.values.records import SharePartitionKey

_Unanswered: TypeAlias = tuple[Parameters[Any, Any], Future[Any]]
"""A request, and what its answer goes to."""


def wall_clock_ms() -> int:
    """Return the time that snapshots carry. [ms since 1970]"""
    return time_ns() // 1_000_000


class CoordinatorPersister(ClosingPersister):
    """
    Stores the state of share partitions in a state log, by the rules of a share coordinator.

    Each request is one transaction of the log, or several are with ``together``, and is answered when that has ended.
    If the log fails, every entry of the request is answered NOT_COORDINATOR, and nothing has changed unless ending the
    transaction is what has failed.
    Records that later ones have replaced are deleted from time to time.

    >>> from sharestate.coordinator import MemoryLog
    >>> from sharestate.persister import InitializeStateParameters, PartitionStateData
    >>> begin = InitializeStateParameters.of("g", "AAECAwQFBgcICQoLDA0ODw", PartitionStateData(partition=0))
    >>> with CoordinatorPersister(MemoryLog()) as persister:
    ...     persister.initialize_state(begin).done()
    True

    Not thread-safe.

    Raises:
        StateLogError: The log cannot be read.
    """

    def __init__(
        self,
        log: StateLog,
        *,
        profile: CoordinatorProfile = LATEST_COORDINATOR,
        config: CoordinatorConfig | None = None,
        clock: Callable[[], int] = wall_clock_ms,
    ) -> None:
        """
        Load the state from *log*.

        Args:
            log: The log; nothing else may write to it but other persisters like this one.
            profile: Whose rules to follow.
            config: The settings of the coordinator; None for those that brokers have by default.
            clock: Returns the time. [ms since 1970]
        """
        config = CoordinatorConfig() if config is None else config
        self._log = log
        self._clock = a_callable(clock, "clock")
        self._coordinator = ShareCoordinator(log, profile, config)
        self._prune_interval_ms = config.prune_interval_ms
        self._pruned_ms = clock()
        self._unanswered: list[_Unanswered] = []
        self._waits = False
        """Whether requests wait for the end of a context."""

    def initialize_once(self, request: InitializeStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Initialize what is not initialized, in one transaction: see ``ensure_initialized``."""
        return self._take(InitializeOnceParameters.like(request))

    def stored(self, group_id: str, topic_id: str, partition: int) -> StoredState | None:
        """
        Return the stored state of a share partition; None if it was never initialized, or was deleted.

        Raises:
            StateLogError: The log cannot be read.
        """
        self._expect_caller()
        key = SharePartitionKey(group_id=group_id, topic_id=topic_id, partition=partition)
        return self._coordinator.states.get(key)

    @contextmanager
    def together(self) -> Iterator[None]:
        """
        Return the context of requests that are one transaction of the log.

        Waiting for the disk is what takes longest, and so is done once for all of them. Each is carried out in its
        turn, and answered when the context ends, even if it ends with an error: requests are not taken back. One that
        is malformed does not affect the others. If the log fails, all of them are answered so. A context within
        another one belongs to it.

        >>> from sharestate.coordinator import MemoryLog
        >>> from sharestate.persister import InitializeStateParameters, PartitionStateData
        >>> persister = CoordinatorPersister(MemoryLog())
        >>> with persister.together():
        ...     futures = [
        ...         persister.initialize_state(
        ...             InitializeStateParameters.of(group, "AAECAwQFBgcICQoLDA0ODw", PartitionStateData(partition=0))
        ...         )
        ...         for group in ("orders", "payments")
        ...     ]
        ...     [future.done() for future in futures]
        [False, False]
        >>> [future.done() for future in futures]
        [True, True]
        """
        self._expect_caller()
        waited, self._waits = self._waits, True
        try:
            yield
        finally:
            self._waits = waited
            if not waited:
                self._answer_all()

    def prune(self) -> int:
        """
        Delete the records that later ones have replaced, and return their number; requests do it from time to time.

        Raises:
            StateLogError: The log cannot be written; nothing was changed.
        """
        self._expect_caller()
        self._pruned_ms = self._clock()
        return self._coordinator.prune(now_ms=self._pruned_ms)

    def close(self) -> None:
        """Close the log; the persister cannot be used afterwards."""
        self._expect_caller()
        self._log.close()

    def _expect_caller(self) -> None:
        """Raise an error for a caller that the log does not serve, before anything is changed: it may be at work."""

    def _take(self, request: Parameters[P, R]) -> Future[Result[R]]:
        self._expect_caller()
        future: Future[Result[R]] = Future()
        self._unanswered.append((request, future))
        if not self._waits:
            self._answer_all()
        return future

    def _answer_all(self) -> None:
        unanswered, self._unanswered = self._unanswered, []
        try:
            self._answer(unanswered)
        except BaseException as error:  # such as Ctrl-C; whoever has a future must not wait for ever
            for _, future in unanswered:
                if not future.done():
                    future.set_exception(error)
            raise

    def _answer(self, unanswered: Sequence[_Unanswered]) -> None:
        requests = [request for request, _ in unanswered]
        try:
            results = self._run(requests)
        except MalformedInputError as error:
            # Nothing was done. The request that it is about has to be alone with it.
            if len(unanswered) == 1:
                unanswered[0][1].set_exception(error)
                return
            for alone in unanswered:
                self._answer([alone])
            return
        except StateLogError as error:
            code = FAILURES.get(error.code, error.code)
            results = [request.failed(code, error.message) for request in requests]
        else:
            self._prune_if_due()
        for (_, future), result in zip(unanswered, results, strict=True):
            future.set_result(result)

    def _run(self, requests: Sequence[Parameters[Any, Any]]) -> list[Result[Any]]:
        now_ms = self._clock()
        operations: list[Any] = [
            partial(operate, request=request, key=key, entry=entry, now_ms=now_ms)
            for request in requests
            for key, entry in request.entries()
        ]
        outcomes = iter(self._coordinator.run(*operations))
        return [self._result(request, outcomes) for request in requests]

    def _prune_if_due(self) -> None:
        if abs(self._clock() - self._pruned_ms) >= self._prune_interval_ms:  # a clock may be put back, by years
            with suppress(StateLogError):  # the request has succeeded; as in Kafka the next time will do
                self.prune()

    def _result(self, request: Parameters[P, R], outcomes: Iterator[Outcome]) -> Result[R]:
        """Return the result of *request*, whose outcomes are the next of *outcomes*."""
        return request.result(lambda key, _: self._entry(request, key.partition, next(outcomes)))

    def _entry(self, request: Parameters[P, R], partition: int, outcome: Outcome) -> R:
        """Return the entry of *request*'s result for *partition*."""
        entry: R = answer(request, partition, outcome)
        return entry
