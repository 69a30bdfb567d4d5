"""The persister of leaders that follow each other, and what it has to answer them about one share partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from sharestate.coordinator.profiles import LATEST_COORDINATOR, CoordinatorProfile
from sharestate.errors import ErrorCode
from sharestate.leader.answers import Loaded, Refused, Written, read_answer, send_read, send_write, write_answer
from sharestate.persister.in_memory import InMemoryPersister
from sharestate.persister.requests import (
    DeleteStateParameters,
    InitializeStateParameters,
    PartitionIdData,
    PartitionStateData,
)
from sharestate.testing.persisters.failover_search import FailoverError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from sharestate.persister.protocol import Persister
    from sharestate.values.records import SharePartitionKey
    from sharestate.values.requests import PersistedState, ReadShareGroupState, WriteShareGroupState

T = TypeVar("T")

Connect: TypeAlias = "Callable[[], Persister]"
"""Returns the persister of the next leader, who finds in it what was stored through those before."""

_TIMEOUT_S: Final = 60
"""The longest time that an answer of the persister may take. [s]"""

_STATE_EPOCH: Final = 1


def in_memory(rules: CoordinatorProfile = LATEST_COORDINATOR) -> Connect:
    """Return how to connect to a new persister in memory."""
    persister = InMemoryPersister(profile=rules)
    return lambda: persister


class LeadersPersister:
    """
    The persister of the present leader, for one share partition: a wrong answer is an error.

    Args:
        key: The share partition; what is stored of it is deleted at first.
        connect: Returns a new persister for each leader.

    Raises:
        FailoverError: The persister does not take the initialization.
    """

    def __init__(self, key: SharePartitionKey, connect: Connect) -> None:
        """Delete what is stored, and initialize the state as a group coordinator does."""
        self._key = key
        self._connect = connect
        self._persister = connect()
        place = key.group_id, key.topic_id
        state = PartitionStateData(partition=key.partition, state_epoch=_STATE_EPOCH)
        entry = PartitionIdData(partition=key.partition)
        _done(self._persister.delete_state(DeleteStateParameters.of(*place, entry)))
        initialized = _done(self._persister.initialize_state(InitializeStateParameters.of(*place, state)))
        answer = write_answer(initialized, key)
        if answer != Written():
            message = f"the initialization was answered {answer}"
            raise FailoverError(message)

    def connect(self) -> None:
        """Go on with a new persister, as another leader does."""
        self._persister = self._connect()

    def read(self, read: ReadShareGroupState) -> PersistedState:
        """
        Return what a leader reads.

        Raises:
            FailoverError: The read is refused.
        """
        answer = read_answer(_done(send_read(self._persister, read)), self._key)
        if isinstance(answer, Loaded):
            return answer.state
        message = f"a read with leader epoch {read.leader_epoch} was answered {answer}"
        raise FailoverError(message)

    def write(self, write: WriteShareGroupState) -> None:
        """
        Let a write of the present leader arrive.

        Raises:
            FailoverError: It is refused.
        """
        answer = write_answer(_done(send_write(self._persister, write)), self._key)
        if answer != Written():
            message = f"a write of the leader was answered {answer}"
            raise FailoverError(message)

    def expect_fenced(self, write: WriteShareGroupState) -> None:
        """
        Let a write of an earlier leader arrive.

        Raises:
            FailoverError: It is accepted, or refused with another code than FENCED_LEADER_EPOCH.
        """
        answer = write_answer(_done(send_write(self._persister, write)), self._key)
        if not isinstance(answer, Refused) or answer.code != ErrorCode.FENCED_LEADER_EPOCH:
            message = f"a write of an earlier leader was answered {answer}"
            raise FailoverError(message)


def records_of(stored: PersistedState) -> dict[int, tuple[int, int]]:
    """Return state and delivery count of each record in a batch, by offset."""
    return {
        offset: (state, count)
        for first, last, state, count in stored.state_batches
        for offset in range(first, last + 1)
    }


def _done(future: Future[T]) -> Future[T]:
    """Return *future* when it is done."""
    future.exception(timeout=_TIMEOUT_S)
    return future
