"""A share coordinator over a state log: what its shard is asked takes effect in the log, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from sharestate.coordinator.profiles import LATEST_COORDINATOR, CoordinatorConfig, CoordinatorProfile
from sharestate.coordinator.pruning import fencing_updates
from sharestate.coordinator.records import decode_record, encode_record
from sharestate.coordinator.shard import CoordinatorShard, Outcome
from sharestate.coordinator.state_log import LoggedRecord, StateLog
from sharestate.coordinator.stored_state import StoredState
from sharestate.errors import MalformedInputError, RecordFormatError, StateLogError, UnknownRecordTypeError
from sharestate.values.records import SharePartitionKey

T = TypeVar("T")


class ShareCoordinator:
    """
    A shard, and the log in which its records are.

    Several coordinators may share a log, in one process or in several: each transaction begins with what the others
    have appended.

    >>> from sharestate import SharePartitionKey
    >>> from sharestate.coordinator import MemoryLog
    >>> log = MemoryLog()
    >>> key = SharePartitionKey(group_id="g", topic_id="AAECAwQFBgcICQoLDA0ODw", partition=0)
    >>> started = ShareCoordinator(log).run(
    ...     lambda shard: shard.initialize(key, state_epoch=1, start_offset=7, now_ms=0)
    ... )
    >>> ShareCoordinator(log).states[key].start_offset
    7

    Not thread-safe.

    Raises:
        StateLogError: The log cannot be read, or a record in it cannot.
    """

    def __init__(
        self, log: StateLog, profile: CoordinatorProfile = LATEST_COORDINATOR, config: CoordinatorConfig | None = None
    ) -> None:
        """
        Load the shard from *log*.

        Args:
            log: The log; nothing else may write to it but other coordinators.
            profile: Whose rules to follow.
            config: The settings; None for those that brokers have by default.
        """
        self._log = log
        self._profile = profile
        self._config = CoordinatorConfig() if config is None else config
        self._shard = CoordinatorShard(self._profile, self._config)
        self._end = 0
        """The end of what was replayed. [offset]"""
        self._appended = 0
        """The number of records that the transaction has appended so far. [records]"""
        self.run()

    def run(self, *operations: Callable[[CoordinatorShard], Outcome]) -> list[Outcome]:
        """
        Run *operations* in one transaction; each finds what those before it have changed.

        Args:
            operations: Functions of the shard that return an outcome, such as its methods with their arguments.

        Returns:
            The outcome of each; what they say is in the log by now.

        Raises:
            StateLogError: The log cannot be read or written; nothing was changed, or all if ending the transaction has
                failed.
            MalformedInputError: A record cannot be written down; nothing was changed.
        """
        return self._transaction(lambda: self._apply(operations))

    def prune(self, *, now_ms: int) -> int:
        """
        Delete the records that later ones have replaced, and return their number.

        Snapshots that are old are written again before, as a broker does in a job of its own. So are the highest leader
        epochs, which a broker forgets.

        Args:
            now_ms: The time. [ms since 1970]

        Raises:
            StateLogError: As for ``run``.
        """
        return self._transaction(lambda: self._prune(now_ms))

    @property
    def states(self) -> Mapping[SharePartitionKey, StoredState]:
        """The stored states, as the log has them now."""
        self.run()
        return self._shard.states

    def _transaction(self, do: Callable[[], T]) -> T:
        self._appended = 0
        try:
            with self._log.transaction():
                self._catch_up()
                result = do()
        except BaseException:
            self._shard.roll_back()
            raise
        self._shard.commit()
        self._end += self._appended
        return result

    def _catch_up(self) -> None:
        """Replay what others have appended, or all if they have pruned what was not replayed yet."""
        start, end = self._log.offsets()
        if not start <= self._end <= end:
            self._shard = CoordinatorShard(self._profile, self._config)
            self._end = start
        if self._end < end:
            for record in self._log.read(self._end):
                self._replay(record)
            self._shard.commit()
            self._end = end

    def _replay(self, logged: LoggedRecord) -> None:
        offset, key, value = logged
        try:
            self._shard.replay(offset, decode_record(key, value))
        except UnknownRecordTypeError:
            pass  # as in Kafka: a later release has written it, for something else
        except (RecordFormatError, MalformedInputError) as error:
            message = f"the record with offset {offset} cannot be read: {error}"
            raise StateLogError(message) from error

    def _apply(self, operations: Sequence[Callable[[CoordinatorShard], Outcome]]) -> list[Outcome]:
        outcomes = []
        encoded = []
        for operation in operations:
            outcome = operation(self._shard)
            outcomes.append(outcome)
            for record in outcome.records:
                encoded.append(encode_record(record))
                self._shard.replay(self._end + self._appended, record)
                self._appended += 1
        if encoded:
            self._log.append(encoded)
        return outcomes

    def _prune(self, now_ms: int) -> int:
        self._apply([lambda shard: shard.snapshot_cold(now_ms=now_ms)])
        offset = self._shard.redundant_offset()
        if offset is None or offset <= self._log.offsets().start:
            return 0
        self._apply([lambda shard: Outcome(records=fencing_updates(shard.states))])
        return self._log.prune(offset)
