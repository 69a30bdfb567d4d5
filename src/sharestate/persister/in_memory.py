"""A persister in memory, which answers when the test lets it."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import Any, Generic

from sharestate.coordinator.profiles import LATEST_COORDINATOR, CoordinatorProfile
from sharestate.coordinator.shard import CoordinatorShard
from sharestate.coordinator.stored_state import StoredState
from sharestate.errors import ErrorCode
from sharestate.persister.operations import answer, operate
from sharestate.persister.protocol import CheckedPersister, P, R
from sharestate.persister.requests import Parameters, Result, WriteStateParameters
from sharestate.values.records import SharePartitionKey


class HeldRequest(Generic[P, R]):
    """
    A request whose answer is held back; exactly one of the four methods ends it.

    Attributes:
        request: The request.
        future: The caller's future; it cannot be cancelled.
    """

    def __init__(self, persister: InMemoryPersister, request: Parameters[P, R]) -> None:
        """Hold *request* back."""
        self.request = request
        self.future: Future[Result[R]] = Future()
        self.future.set_running_or_notify_cancel()  # from now on `cancel` does nothing
        self._persister = persister
        self._result: Result[R] | None = None

    def answer(self) -> None:
        """Apply the request and answer it; earlier writes to its share partitions are applied first."""
        result = self._applied()
        self._release().set_result(result)

    def fail(self, error_code: int, error_message: str | None = None) -> None:
        """Answer an error code for each entry; nothing is applied, unless a later write was answered before."""
        self._release().set_result(self.request.failed(error_code, error_message))

    def lose(self) -> None:
        """Apply the request and lose the answer: the caller gets REQUEST_TIMED_OUT."""
        self._applied()
        self.fail(ErrorCode.REQUEST_TIMED_OUT)

    def throw(self, error: Exception) -> None:
        """Complete the future with *error*, which a persister must not do; nothing is applied, as with ``fail``."""
        self._release().set_exception(error)

    def _release(self) -> Future[Result[R]]:
        self._persister._held.remove(self)  # noqa: SLF001 - the two are one
        return self.future

    def _applied(self) -> Result[R]:
        if self._result is None:
            self._persister._catch_up_to(self)  # noqa: SLF001
            self._result = self._persister._apply(self.request)  # noqa: SLF001
        return self._result


class InMemoryPersister(CheckedPersister):
    """
    Stores the state of share partitions in memory, by the rules of a share coordinator.

    It answers at once. While ``is_holding`` is True it holds requests back, and a test answers them: see ``held``.

    Args:
        profile: Whose rules to follow.

    Attributes:
        is_holding: Whether requests that come from now on are held back; False at first.

    >>> from sharestate.persister import InitializeStateParameters, PartitionStateData
    >>> from sharestate.persister import PartitionStateBatchData, WriteStateParameters
    >>> persister = InMemoryPersister()
    >>> begin = InitializeStateParameters.of("g", "t", PartitionStateData(partition=0, start_offset=5))
    >>> persister.initialize_state(begin).result().find("t", 0).error_code
    <ErrorCode.NONE: 0>
    >>> persister.is_holding = True
    >>> write = WriteStateParameters.of("g", "t", PartitionStateBatchData(partition=0, start_offset=7))
    >>> future = persister.write_state(write)
    >>> future.done(), persister.stored("g", "t", 0).start_offset
    (False, 5)
    >>> persister.held[0].answer()
    >>> future.done(), persister.stored("g", "t", 0).start_offset
    (True, 7)

    Not thread-safe.
    """

    def __init__(self, *, profile: CoordinatorProfile = LATEST_COORDINATOR) -> None:
        """Make a persister that stores nothing yet."""
        self.is_holding = False
        self._requests: list[Parameters[Any, Any]] = []
        self._held: list[HeldRequest[Any, Any]] = []
        self._shard = CoordinatorShard(profile)
        self._next_offset = 0

    # ---- for tests

    @property
    def requests(self) -> tuple[Parameters[Any, Any], ...]:
        """Every request so far, in the order of arrival."""
        return tuple(self._requests)

    @property
    def held(self) -> tuple[HeldRequest[Any, Any], ...]:
        """The requests that are held back, in the order of arrival."""
        return tuple(self._held)

    def stored(self, group_id: str, topic_id: str, partition: int) -> StoredState | None:
        """Return the stored state of a share partition; None if it was never initialized, or was deleted."""
        return self._shard.states.get(SharePartitionKey(group_id=group_id, topic_id=topic_id, partition=partition))

    def _take(self, request: Parameters[P, R]) -> Future[Result[R]]:
        held = HeldRequest(self, request)
        self._requests.append(request)
        self._held.append(held)
        if not self.is_holding:
            held.answer()
        return held.future

    def _catch_up_to(self, held: HeldRequest[Any, Any]) -> None:
        """Apply the writes before *held* to the share partitions that it writes to: no write overtakes another."""
        if not isinstance(held.request, WriteStateParameters):
            return
        keys = _keys(held.request)
        for earlier in self._held[: self._held.index(held)]:
            if isinstance(earlier.request, WriteStateParameters) and keys & _keys(earlier.request):
                earlier._applied()  # noqa: SLF001

    def _apply(self, request: Parameters[P, R]) -> Result[R]:
        return request.result(partial(self._answer, request))

    def _answer(self, request: Parameters[P, R], key: SharePartitionKey, entry: P) -> R:
        outcome = operate(self._shard, request, key, entry, now_ms=0)
        for record in outcome.records:
            self._shard.replay(self._next_offset, record)
            self._next_offset += 1
        self._shard.commit()
        answered: R = answer(request, key.partition, outcome)
        return answered


def _keys(request: WriteStateParameters) -> set[SharePartitionKey]:
    return {key for key, _ in request.entries()}
