"""Requests of a conversation as typed values: one class for each ``op``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from attrs import frozen

from sharestate.conversation.answers import (
    DeadLetterMeaning,
    GivenAnswer,
    LookupTable,
    NoFuture,
    ReadMeaning,
    Thrown,
    WriteMeaning,
)
from sharestate.partition.lifecycle import Lifecycle
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.fetched_records import FetchedRecords
from sharestate.values.records import AcquireMode

R = TypeVar("R")


def can_give(answer: GivenAnswer[Any]) -> bool:
    """Return whether *answer* is supported: a call that throws, or returns no future, exists in Java only."""
    return not isinstance(answer.meaning, Thrown | NoFuture)


class Command:
    """The operation of a request with its arguments, without ``key``, ``answers`` and ``quiet``."""

    __slots__ = ()

    @property
    def is_supported(self) -> bool:
        """True if this implementation has the operation with these arguments."""
        return True


@frozen(kw_only=True)
class Open(Command):
    """Open a new share partition in place of the one before."""

    leader_epoch: int
    """The leader's epoch."""

    config: Mapping[str, Any]
    """The settings that the request names."""

    lifecycle: Lifecycle
    """Its lifecycle state at first."""

    timer: str
    """The order of locks with the same deadline: ``fifo`` or that of Kafka's mock timer."""

    @property
    def is_supported(self) -> bool:
        """True for the timer ``fifo``."""
        return self.timer == "fifo"


@frozen(kw_only=True)
class Initialize(Command):
    """Load the persisted state."""

    answer: GivenAnswer[ReadMeaning]
    """The persister's answer to the read."""

    lookup: LookupTable
    """The log's answers to look-ups from now on."""


@frozen(kw_only=True)
class Acquire(Command):
    """Acquire records for a member."""

    member: str
    """The member."""

    mode: AcquireMode
    """The acquire mode: whether ``max_records`` is a strict limit."""

    batch_size: int
    """The largest size of a new batch. [records]"""

    max_records: int
    """The number of records that the member asks for. [records]"""

    fetched: FetchedRecords
    """The records that were fetched from the log."""

    is_isolation_supported: bool
    """True if share groups have the isolation level."""

    @property
    def is_supported(self) -> bool:
        """True for all isolation levels but ``log_end``."""
        return self.is_isolation_supported

    def call(self, acquire: Callable[..., R], *, now_ms: int) -> R:
        """Return the result of *acquire*, the method of a `SharePartition` or of a `Leader`, with these arguments."""
        return acquire(
            self.member,
            self.fetched,
            now_ms=now_ms,
            max_records=self.max_records,
            batch_size=self.batch_size,
            mode=self.mode,
        )


@frozen(kw_only=True)
class Acknowledge(Command):
    """Acknowledge records."""

    member: str
    """The member."""

    batches: tuple[AcknowledgementBatch, ...]
    """The ranges of offsets with their acknowledge types."""


@frozen(kw_only=True)
class Release(Command):
    """Release all records of a member, as at the end of its share session."""

    member: str
    """The member."""


@frozen
class NextFetchOffset(Command):
    """Return the next fetch offset."""


@frozen
class CanAcquire(Command):
    """Return whether more records can be acquired."""


@frozen(kw_only=True)
class LogStart(Command):
    """Move the start of the log."""

    offset: int
    """The log's first offset now."""


@frozen(kw_only=True)
class LockFetch(Command):
    """Take the fetch lock."""

    id: str
    """The id of the fetch that takes it."""


@frozen(kw_only=True)
class UnlockFetch(Command):
    """Release the fetch lock."""

    id: str
    """The id of the fetch that holds it."""


@frozen
class Fence(Command):
    """Fence the share partition: another broker is its leader now."""


@frozen(kw_only=True)
class Configure(Command):
    """Set the group's configuration."""

    config: Mapping[str, Any] | None
    """The settings that the request names; None if the group has no configuration."""


@frozen(kw_only=True)
class Advance(Command):
    """Advance the clock, and handle the locks that expire."""

    ms: int
    """The time that passes. [ms]"""

    clock: str
    """The clock: ``both``, or one of the two that Kafka's tests have."""

    @property
    def is_supported(self) -> bool:
        """True for the clock ``both``."""
        return self.clock == "both"


@frozen(kw_only=True)
class ExpireLock(Command):
    """Expire a lock before its deadline, as some of Kafka's white-box tests do."""

    first: int
    """The first offset of its batch or record."""

    last: int
    """The last offset."""

    @property
    def is_supported(self) -> bool:
        """False: only tests of Kafka's own class can do it."""
        return False


@frozen(kw_only=True)
class CompleteRead(Command):
    """Answer the held read."""

    answer: GivenAnswer[ReadMeaning]
    """The answer."""

    lookup: LookupTable | None
    """The log's answers to look-ups from now on; None for no change."""

    @property
    def is_supported(self) -> bool:
        """True if this implementation can give the answer."""
        return can_give(self.answer)


@frozen(kw_only=True)
class CompleteWrite(Command):
    """Answer a held write."""

    write: int
    """The write's number."""

    answer: GivenAnswer[WriteMeaning]
    """The answer."""

    @property
    def is_supported(self) -> bool:
        """True if this implementation can give the answer."""
        return can_give(self.answer)


@frozen(kw_only=True)
class CompleteDeadLetter(Command):
    """Answer for records that were handed to the dead-letter queue and are held there."""

    number: int
    """The number under which they were handed over."""

    answer: GivenAnswer[DeadLetterMeaning]
    """The answer."""

    @property
    def is_supported(self) -> bool:
        """True if this implementation can give the answer."""
        return can_give(self.answer)


@frozen(kw_only=True)
class DefaultAnswer(Command):
    """Set the answer to writes for which the request has none."""

    answer: GivenAnswer[WriteMeaning]
    """The answer."""

    @property
    def is_supported(self) -> bool:
        """True if this implementation can give the answer."""
        return can_give(self.answer)


@frozen(kw_only=True)
class DefaultDeadLetterAnswer(Command):
    """Set the dead-letter queue's answer where the request has none."""

    answer: GivenAnswer[DeadLetterMeaning]
    """The answer."""

    @property
    def is_supported(self) -> bool:
        """True if this implementation can give the answer."""
        return can_give(self.answer)


@frozen(kw_only=True)
class Lookup(Command):
    """Set the log's answers to look-ups."""

    lookup: LookupTable
    """The table."""


@frozen
class Timers(Command):
    """Return the number of scheduled acquisition locks."""


@frozen
class State(Command):
    """Return nothing; the response has the state anyway."""


@frozen(kw_only=True)
class RequestLine:
    """One line of a conversation."""

    op: str
    """The operation's name."""

    key: str
    """The name of the share partition in the conversation."""

    answers: tuple[GivenAnswer[WriteMeaning], ...]
    """The answers to the writes that it causes, in order."""

    dead_letter_answers: tuple[GivenAnswer[DeadLetterMeaning], ...]
    """The answers of the dead-letter queue to what it is handed meanwhile, in order."""

    quiet: bool
    """True if the response leaves out the state."""

    command: Command
    """The operation."""

    @property
    def is_supported(self) -> bool:
        """True if this implementation has the operation with its arguments and answers."""
        answers: tuple[GivenAnswer[Any], ...] = (*self.answers, *self.dead_letter_answers)
        return self.command.is_supported and all(map(can_give, answers))
