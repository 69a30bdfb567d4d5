"""A persister that keeps everything in memory and answers when it is told to."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, TypeVar

from sharestate.error_codes import ErrorCode
from sharestate.errors import MalformedInputError
from sharestate.persister.requests import (
    DeleteStateParameters,
    InitializeStateParameters,
    Parameters,
    PartitionAllData,
    PartitionErrorData,
    PartitionIdData,
    PartitionStateSummaryData,
    ReadStateParameters,
    ReadSummaryParameters,
    Result,
    WriteStateParameters,
)
from sharestate.persister.stored_state import States, StoredState, carry_out
from sharestate.values.checks import expect
from sharestate.values.keys import SharePartitionKey

P = TypeVar("P", bound=PartitionIdData)
R = TypeVar("R", bound=PartitionErrorData)


class HeldRequest(Generic[P, R]):
    """A request whose answer is held back: exactly one of the four methods ends it."""

    def __init__(self, persister: InMemoryPersister, request: Parameters[P, R]) -> None:
        """Hold *request* back."""
        self.request = request
        """What was asked."""
        self.future: Future[Result[R]] = Future()
        """What the caller waits for."""
        self.future.set_running_or_notify_cancel()  # so that callers cannot cancel it
        self._persister = persister
        self._result: Result[R] | None = None

    def answer(self) -> None:
        """Carry it out, and answer; earlier writes to its share partitions are carried out first."""
        result = self._carried_out()
        self._let_go().set_result(result)

    def fail(self, error_code: int, error_message: str | None = None) -> None:
        """Answer an error code for each entry. Nothing is carried out, unless a later write was answered before."""
        self._let_go().set_result(self.request.failed(error_code, error_message))

    def lose(self) -> None:
        """Carry it out, and let the answer be lost: the caller is told REQUEST_TIMED_OUT."""
        self._carried_out()
        self.fail(ErrorCode.REQUEST_TIMED_OUT)

    def throw(self, error: Exception) -> None:
        """Let the future fail, which no persister should. Nothing is carried out, as with ``fail``."""
        self._let_go().set_exception(error)

    def _let_go(self) -> Future[Result[R]]:
        self._persister._held.remove(self)  # noqa: SLF001 - the two are one
        return self.future

    def _carried_out(self) -> Result[R]:
        if self._result is None:
            self._persister._catch_up_to(self)  # noqa: SLF001
            self._result = self._persister._carry_out(self.request)  # noqa: SLF001
        return self._result


class InMemoryPersister:
    """
    Keeps the state of share partitions as a share coordinator does, in memory.

    It answers at once, or, while ``is_holding``, when a test says so and as the test says.

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

    def __init__(self) -> None:
        """Make one that stores nothing yet."""
        self.is_holding = False
        """Whether requests that come from now on are held."""
        self.requests: list[Parameters[Any, Any]] = []
        """Every request that has come, in order."""
        self._held: list[HeldRequest[Any, Any]] = []
        self._states: States = {}

    # ---- what a persister does

    def initialize_state(self, request: InitializeStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Begin the state of share partitions, or begin it anew."""
        return self._take(request, InitializeStateParameters)

    def read_state(self, request: ReadStateParameters, /) -> Future[Result[PartitionAllData]]:
        """Read the state of share partitions as their leader."""
        return self._take(request, ReadStateParameters)

    def write_state(self, request: WriteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Put changes into the state of share partitions."""
        return self._take(request, WriteStateParameters)

    def delete_state(self, request: DeleteStateParameters, /) -> Future[Result[PartitionErrorData]]:
        """Forget share partitions."""
        return self._take(request, DeleteStateParameters)

    def read_summary(self, request: ReadSummaryParameters, /) -> Future[Result[PartitionStateSummaryData]]:
        """Look at the state of share partitions without being their leader."""
        return self._take(request, ReadSummaryParameters)

    # ---- what a test does

    @property
    def held(self) -> tuple[HeldRequest[Any, Any], ...]:
        """The requests that are held, in the order in which they came."""
        return tuple(self._held)

    def stored(self, group_id: str, topic_id: str, partition: int) -> StoredState | None:
        """Return what is stored of a share partition; None if it was never initialised, or was deleted."""
        return self._states.get(SharePartitionKey(group_id=group_id, topic_id=topic_id, partition=partition))

    def _take(self, request: Parameters[P, R], kind: type[Parameters[P, R]]) -> Future[Result[R]]:
        try:
            held = HeldRequest(self, expect(request, kind, "request"))
        except MalformedInputError as error:
            failed: Future[Result[R]] = Future()
            failed.set_exception(error)
            return failed
        self.requests.append(request)
        self._held.append(held)
        if not self.is_holding:
            held.answer()
        return held.future

    def _catch_up_to(self, held: HeldRequest[Any, Any]) -> None:
        """Carry out the writes before *held* to the share partitions that it writes to: they overtake nobody."""
        if not isinstance(held.request, WriteStateParameters):
            return
        keys = _keys(held.request)
        for earlier in self._held[: self._held.index(held)]:
            if isinstance(earlier.request, WriteStateParameters) and keys & _keys(earlier.request):
                earlier._carried_out()  # noqa: SLF001

    def _carry_out(self, request: Parameters[P, R]) -> Result[R]:
        return request.result(partial(carry_out, self._states, request))


def _keys(request: WriteStateParameters) -> set[SharePartitionKey]:
    return {key for key, _ in request.entries()}
