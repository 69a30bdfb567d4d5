"""One shard of a conversation: its log, and what Kafka's coordinator runtime does between the two."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeAlias

from sharestate.conversation.coordinator.grammar import MAX_BATCHES, Append, Appending, Encoded
from sharestate.conversation.coordinator.to_json import java_order, key_json, raised_json
from sharestate.coordinator.records import StateRecord, decode_record, encode_record
from sharestate.coordinator.shard import CoordinatorShard, Outcome
from sharestate.coordinator.state_log import LoggedRecord
from sharestate.errors import ErrorCode, MalformedInputError, ShareStateError, UnknownRecordTypeError
from sharestate.json_lines import Json
from sharestate.values.records import SharePartitionKey

Named: TypeAlias = tuple[str, str, int]
"""Group, topic and partition as a request names them, which need not be those of a share partition."""


_COST_OF_RECORD: Final = 512
"""What it costs to load a record, however short: 10 µs. [characters]"""

_COST_OF_BYTE: Final = 4
"""What it costs to load a byte of it: a state batch has 23. [characters]"""


class ShardOperation(NamedTuple):
    """An operation of a shard, and the forms of its answers."""

    run: Callable[[], Outcome]
    """What it does."""

    answer: Callable[[Outcome], Json]
    """Returns the answer once its records are committed."""

    failure: Callable[[ErrorCode, str | None], Json]
    """Returns the answer if they cannot be: for an error code, and a text instead of the code's own."""


class Pending:
    """An operation that waits for its records to be committed, or for others before them."""

    def __init__(self, operation: ShardOperation, outcome: Outcome) -> None:
        """Wait with what *operation* has come to."""
        self.answer: Callable[[], Json] = partial(operation.answer, outcome)
        self.failure = operation.failure
        self.number: int | None = None
        """The number by which the conversation knows it; None before it was answered so."""
        self.offset = -1
        """The end of the log by the commit of which it is answered."""


class Owner(Protocol):
    """The coordinator of a shard, as the shard needs it."""

    def show_record(self, shard: int, offset: int, record: StateRecord, encoded: tuple[bytes, bytes | None]) -> None:
        """Show a record that *shard* has produced; *offset* is -1 if it is not replayed."""

    def answer(self, pending: Pending, result: Json) -> None:
        """Answer an operation, of this request or of an earlier one."""

    def answered(self, pending: Pending) -> Json:
        """Return the answer to an operation of this request, or its number if there is none yet."""


class ServedShard:
    """A shard and its log."""

    def __init__(self, index: int, owner: Owner, make: Callable[[], CoordinatorShard]) -> None:
        """Make a shard with an empty log; *make* makes what is loaded from it."""
        self.index = index
        self.log: list[LoggedRecord] = []
        self.size = 0
        """The size of the records in the log and in the open batch. [bytes]"""
        self.start = self.end = self.committed = 0
        self.pruned: int | None = None
        self.has_failed = False
        self.shard = make()
        self._owner = owner
        self._make = make
        self._batch: list[tuple[bytes, bytes | None]] | None = None
        """The records that are replayed, but not in the log yet; None without an open batch."""
        self._in_batch: list[Pending] = []
        self._waiting: list[Pending] = []

    @property
    def cost_of_loading(self) -> int:
        """What it costs to load the log. [characters]"""
        return _COST_OF_RECORD * len(self.log) + _COST_OF_BYTE * self.size

    def expect_room(self, key: SharePartitionKey, count: int, path: str) -> None:
        """
        Check that *count* more state batches of *key*, those at *path* of a request, can be stored.

        Raises:
            MalformedInputError: They would be more than a conversation has room for.
        """
        state = self.shard.states.get(key)
        if state is not None and len(state.state_batches) + count > MAX_BATCHES:
            message = f"a share partition has at most {MAX_BATCHES} state batches"
            raise MalformedInputError(message, path)

    # ---- loading

    def load(self) -> Json:
        """Load the shard from its log; what is pending fails."""
        self._abandon()
        self.pruned = None
        self.has_failed = False
        self.shard = self._make()
        self.committed = self.end
        loaded = skipped = 0
        try:
            for offset, key, value in self.log:
                try:
                    self.shard.replay(offset, decode_record(key, value))
                    loaded += 1
                except UnknownRecordTypeError:
                    skipped += 1
        except ShareStateError as error:
            self.has_failed = True
            self.shard = self._make()
            return raised_json(error)
        self.shard.commit()
        return {"shard": self.index, "loaded": loaded, "skipped": skipped}

    def put_log(self, records: Iterable[Encoded], start: int) -> None:
        """Put *records* in the place of the log; those without an offset follow the one before, the first *start*."""
        logged = []
        end = start
        for offset, key, value in records:
            logged.append(LoggedRecord(end if offset is None else offset, key, value))
            end = logged[-1].offset + 1
        self._keep(logged)
        self.start = logged[0].offset if logged else start
        self.end = self.committed = end

    def truncate(self, end: int) -> None:
        """Lose the log from *end* on."""
        self._keep([logged for logged in self.log if logged.offset < end])
        self.end = min(self.end, max(end, self.start))
        self.committed = min(self.committed, self.end)

    def delete_before(self, offset: int) -> int:
        """Delete the records below *offset*, and return their number."""
        before = len(self.log)
        self._keep([logged for logged in self.log if logged.offset >= offset])
        self.start = max(self.start, offset)
        return before - len(self.log)

    def _keep(self, logged: list[LoggedRecord]) -> None:
        self.log = logged
        self.size = sum(_size(*data) for data in (*((key, value) for _, key, value in logged), *(self._batch or ())))

    # ---- operations

    def run(self, operation: ShardOperation, append: Appending) -> Json:
        """Run an operation that may write, and return its answer or its number."""
        if self.has_failed:
            return operation.failure(ErrorCode.NOT_COORDINATOR, None)
        try:
            outcome = operation.run()
            records = sorted(outcome.records, key=lambda record: java_order(record.key))
            encoded = [encode_record(record) for record in records]
        except ShareStateError as error:
            return operation.failure(error.code, str(error))
        if append is Append.DROP:
            for record, data in zip(records, encoded, strict=True):
                self._owner.show_record(self.index, -1, record, data)
            return operation.answer(outcome)
        pending = Pending(operation, outcome)
        if not records:
            return self._answer_in_turn(pending)
        self._in_batch.append(pending)
        if self._replay(records, encoded) and append is not Append.HOLD:
            self.flush(append)
        return self._owner.answered(pending)

    def _answer_in_turn(self, pending: Pending) -> Json:
        """Answer an operation without records after those before it."""
        if self._batch is not None:
            self._in_batch.append(pending)
        elif self.committed < self.end:
            pending.offset = self.end
            self._waiting.append(pending)
        else:
            self._owner.answer(pending, pending.answer())
        return self._owner.answered(pending)

    def _replay(self, records: list[StateRecord], encoded: list[tuple[bytes, bytes | None]]) -> bool:
        """Replay *records* into the open batch; the batch fails, and False is returned, if that cannot be done."""
        if self._batch is None:
            self._batch = []
        try:
            for record, data in zip(records, encoded, strict=True):
                offset = self.end + len(self._batch)
                self.shard.replay(offset, record)
                self._batch.append(data)
                self.size += _size(*data)
                self._owner.show_record(self.index, offset, record, data)
        except ShareStateError as error:
            self._fail_batch(error.code, str(error))
            return False
        return True

    def flush(self, append: Appending) -> None:
        """Write the open batch to the log, or let that fail."""
        if self._batch is not None:
            if isinstance(append, ErrorCode):
                self._fail_batch(append)
                return
            self._write_batch(self._batch)
        if append is Append.OK:
            self.commit(self.end)

    def _write_batch(self, batch: list[tuple[bytes, bytes | None]]) -> None:
        for key, value in batch:
            self.log.append(LoggedRecord(self.end, key, value))
            self.end += 1
        self.shard.commit()
        for pending in self._in_batch:
            pending.offset = self.end
        self._waiting += self._in_batch
        self._in_batch = []
        self._batch = None

    def commit(self, offset: int) -> None:
        """Move the high watermark, and answer what has waited for it."""
        self.committed = max(self.committed, min(offset, self.end))
        ready = [pending for pending in self._waiting if pending.offset <= self.committed]
        self._waiting = [pending for pending in self._waiting if pending.offset > self.committed]
        for pending in ready:
            self._owner.answer(pending, pending.answer())

    def time_out(self, number: int) -> bool:
        """Fail the operation with this number; what it has done stays."""
        for waiting in (self._in_batch, self._waiting):
            for pending in waiting:
                if pending.number == number:
                    waiting.remove(pending)
                    self._owner.answer(pending, pending.failure(ErrorCode.REQUEST_TIMED_OUT, None))
                    return True
        return False

    def _fail_batch(self, code: ErrorCode, message: str | None = None) -> None:
        """Take back what is in the open batch, with all its operations."""
        self.shard.roll_back()
        self._drop_batch()
        failing, self._in_batch = self._in_batch, []
        for pending in failing:
            self._owner.answer(pending, pending.failure(code, message))

    def _abandon(self) -> None:
        """Fail what is pending."""
        self._drop_batch()
        failing = self._waiting + self._in_batch
        self._waiting, self._in_batch = [], []
        for pending in failing:
            self._owner.answer(pending, pending.failure(ErrorCode.NOT_COORDINATOR, None))

    def _drop_batch(self) -> None:
        self.size -= sum(_size(*data) for data in self._batch or ())
        self._batch = None

    # ---- state

    def state(self, named: Collection[Named]) -> Json:
        """Return the state, with that of the share partitions *named*, or of all if none is."""
        size = 0 if self._batch is None else len(self._batch)
        state: Json = {"shard": self.index, "log": [self.start, self.end, self.committed, size]}
        if self.has_failed:
            return state | {"failed": True}
        states = self.shard.states
        return state | {
            "redundant": self.shard.least_needed_offset(),
            "pruned": self.pruned,
            "keys": [
                key_json(key, states[key])
                for key in sorted(states, key=java_order)
                if not named or (key.group_id, key.topic_id, key.partition) in named
            ],
        }


def _size(key: bytes, value: bytes | None) -> int:
    return len(key) + len(value or b"")
