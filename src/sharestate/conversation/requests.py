"""The requests of a conversation, as typed values: one class for each ``op``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from sharestate.conversation.lookups import LookupTable
from sharestate.conversation.meanings import Answer, NoFuture, ReadMeaning, Thrown, WriteMeaning
from sharestate.partition.lifecycle import Lifecycle
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.records import AcquireMode, FetchedRecords


def can_give(answer: Answer[Any]) -> bool:
    """Return whether a persister in Python can answer so: it does not throw instead, as one in Java may."""
    return not isinstance(answer.meaning, Thrown | NoFuture)


class Command:
    """What a request asks for; ``key``, ``answers`` and ``quiet`` are not part of it."""

    __slots__ = ()

    @property
    def is_supported(self) -> bool:
        """Whether this implementation has it."""
        return True


@frozen(kw_only=True)
class Open(Command):
    """Start with a new share partition."""

    leader_epoch: int
    """The leader's epoch."""

    config: Mapping[str, Any]
    """The settings that were named."""

    lifecycle: Lifecycle
    """Where it starts."""

    timer: str
    """How equal deadlines fire."""

    @property
    def is_supported(self) -> bool:
        """Whether this implementation has it: no timer without an order."""
        return self.timer == "fifo"


@frozen(kw_only=True)
class Initialize(Command):
    """Load the persisted state."""

    answer: Answer[ReadMeaning]
    """What the persister answers to the read."""

    lookup: LookupTable
    """The look-up table from now on."""


@frozen(kw_only=True)
class Acquire(Command):
    """Acquire records for a member."""

    member: str
    """The member."""

    mode: AcquireMode
    """How strictly ``max_records`` is taken."""

    batch_size: int
    """How many records one new batch may have. [records]"""

    max_records: int
    """How many records the member asks for. [records]"""

    fetched: FetchedRecords
    """What the log gave."""

    is_isolation_supported: bool
    """Whether the isolation level is one of share groups."""

    @property
    def is_supported(self) -> bool:
        """Whether this implementation has it: no fetch up to the log's end."""
        return self.is_isolation_supported


@frozen(kw_only=True)
class Acknowledge(Command):
    """Say what became of records."""

    member: str
    """The member."""

    batches: tuple[AcknowledgementBatch, ...]
    """Which records, and what became of them."""


@frozen(kw_only=True)
class Release(Command):
    """Give back all that a member holds."""

    member: str
    """The member."""


@frozen
class NextFetchOffset(Command):
    """Ask where the next fetch begins."""


@frozen
class CanAcquire(Command):
    """Ask whether there is room for more records in flight."""


@frozen(kw_only=True)
class LogStart(Command):
    """Tell that the log starts later now."""

    offset: int
    """Its first offset."""


@frozen(kw_only=True)
class LockFetch(Command):
    """Take the fetch lock."""

    id: str
    """Who takes it."""


@frozen(kw_only=True)
class UnlockFetch(Command):
    """Let the fetch lock go."""

    id: str
    """Who had it."""


@frozen
class Fence(Command):
    """Tell that another leader has taken over."""


@frozen(kw_only=True)
class Configure(Command):
    """Set the group's configuration."""

    config: Mapping[str, Any] | None
    """The settings that were named; None if the group has no configuration."""


@frozen(kw_only=True)
class Advance(Command):
    """Let time pass."""

    ms: int
    """How much. [ms]"""

    clock: str
    """Which clock moves."""

    @property
    def is_supported(self) -> bool:
        """Whether this implementation has it: no second clock."""
        return self.clock == "both"


@frozen(kw_only=True)
class FireLock(Command):
    """Fire a lock that has not lapsed, as some of Kafka's white-box tests do."""

    first: int
    """The first offset that it covers."""

    last: int
    """The last one."""

    @property
    def is_supported(self) -> bool:
        """Whether this implementation has it: it has not."""
        return False


@frozen(kw_only=True)
class CompleteRead(Command):
    """Answer the read that was held."""

    answer: Answer[ReadMeaning]
    """The answer."""

    lookup: LookupTable | None
    """The look-up table from now on; None to keep the one there is."""

    @property
    def is_supported(self) -> bool:
        """Whether this implementation has it: what was called long ago can no longer throw."""
        return can_give(self.answer)


@frozen(kw_only=True)
class CompleteWrite(Command):
    """Answer a write that was held."""

    write: int
    """The write's number."""

    answer: Answer[WriteMeaning]
    """The answer."""

    @property
    def is_supported(self) -> bool:
        """Whether this implementation has it."""
        return can_give(self.answer)


@frozen(kw_only=True)
class DefaultAnswer(Command):
    """Set the answer to writes without one of their own."""

    answer: Answer[WriteMeaning]
    """The answer."""

    @property
    def is_supported(self) -> bool:
        """Whether this implementation has it."""
        return can_give(self.answer)


@frozen(kw_only=True)
class Lookup(Command):
    """Set the look-up table."""

    lookup: LookupTable
    """The table."""


@frozen
class Timers(Command):
    """Ask how many locks will lapse."""


@frozen
class State(Command):
    """Ask for nothing but the state."""


@frozen(kw_only=True)
class Request:
    """One line of a conversation."""

    op: str
    """The operation's name."""

    key: str
    """Which share partition is meant."""

    answers: tuple[Answer[WriteMeaning], ...]
    """The answers to the writes made on the way, in order."""

    quiet: bool
    """Whether the response leaves the state out."""

    command: Command
    """What is asked for."""

    @property
    def is_supported(self) -> bool:
        """Whether this implementation can do all of it."""
        return self.command.is_supported and all(map(can_give, self.answers))
