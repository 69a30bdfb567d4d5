"""Effects of a command: what the caller has to send and wake, and what happened to which records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain, compress, repeat
from operator import add, is_not
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, overload

from sharestate.values.list_slices import TupleLike
from sharestate.values.named_tuples import new_tuple

if TYPE_CHECKING:
    from sharestate.input_errors import ShareStateError
    from sharestate.values.dead_letters import DeadLetterRequest
    from sharestate.values.records import AcquiredRecords, RecordState
    from sharestate.values.requests import WriteShareGroupState


class Cause(StrEnum):
    """The cause of a transition."""

    READ = "read"
    """They were read with the persisted state."""

    CACHED = "cached"
    """They are the rest of a log batch of which the member wanted only a part; never delivered."""

    ACQUIRED = "acquired"
    """A member has acquired them."""

    ACCEPTED = "accepted"
    """Their member has processed them."""

    RELEASED = "released"
    """Their member has given them back."""

    REJECTED = "rejected"
    """Their member cannot process them."""

    GAP = "gap"
    """Their member says that there are no such records."""

    RENEWED = "renewed"
    """Their member has asked for more time."""

    LOCK_EXPIRED = "lock expired"
    """Their acquisition lock has expired; if a write of them is pending, that matters only if the write fails."""

    SESSION_CLOSED = "session closed"
    """Their member has left."""

    ARCHIVED_AT_LIMIT = "archived at the limit"
    """They would have become available again, but have been delivered as often as the group allows."""

    ABORTED = "aborted"
    """Their transaction was aborted."""

    COMPACTED_AWAY = "compacted away"
    """The log no longer has them."""

    BELOW_LOG_START = "below the log start"
    """The log starts after them now."""

    CONFIRMED = "confirmed"
    """The write that carries their last change has succeeded."""

    ROLLED_BACK = "rolled back"
    """The write that carried their last change has failed."""

    THROTTLED = "throttled"
    """They are available, but were held back: records that keep failing are delivered in smaller pieces."""

    PASSED = "passed"
    """They are durable, and the SPSO has passed them: they are no longer in flight."""

    DEAD_LETTERED = "dead-lettered"
    """The dead-letter queue has answered, or could not take them: they are archived now."""


class Transition(NamedTuple):
    """
    A change of a range of records of one batch.

    Attributes:
        first_offset: The first offset of the range.
        last_offset: The last offset of the range, included.
        cause: The cause of the change.
        state: The records' state after it.
        delivery_count: Their deliveries so far. [deliveries]
        member_id: Their owner after it; empty for none.
        lock_deadline_ms: The last instant at which their lock holds after it; None without a lock. [ms]
        has_pending_write: Whether a write that carries it is pending.
        at_ms: The ``now_ms`` of the command, or of the last one that had one. [ms]
        write: The number of the write that carries it, or whose outcome caused it.
    """

    first_offset: int
    last_offset: int
    cause: Cause
    state: RecordState
    delivery_count: int
    member_id: str
    lock_deadline_ms: int | None
    has_pending_write: bool
    at_ms: int
    write: int | None


TransitionFields: TypeAlias = tuple[Cause, "RecordState", int, str, int | None, bool, int, int | None]
"""What a transition says beside its range."""


class TransitionRuns:
    """
    The transitions of neighboring records that may all differ, kept record by record until they are looked at.

    Complexity:
        Going through them is linear in the records.
    """

    __slots__ = ("_fields", "_first_offset", "_keys")

    def __init__(self, first_offset: int, keys: Sequence[object], fields: Mapping[Any, TransitionFields]) -> None:
        """Make those of the records from *first_offset* on: each has a key, of which *fields* says more, or nothing."""
        self._first_offset = first_offset
        self._keys = keys
        self._fields = fields

    def __iter__(self) -> Iterator[Transition]:
        """Go through them, one for each run of records with the same fields."""
        first, fields = self._first_offset, self._fields
        last = first + len(self._keys) - 1
        # C code goes through them, for neighbors may all differ. Equal fields become one object, and are told by that.
        same = dict(zip(fields.values(), fields.values(), strict=True))
        each = [*map({key: same[those] for key, those in fields.items()}.get, self._keys)]
        ends = [*map(is_not, each, each[1:])]
        firsts = (first, *compress(range(first + 1, last + 1), ends))
        lasts = (*compress(range(first, last), ends), last)
        runs = each[0], *compress(each[1:], ends)
        ranges = compress(zip(firsts, lasts, strict=True), runs)
        return map(new_tuple, repeat(Transition), map(add, ranges, filter(None, runs)))


class Transitions(TupleLike[Transition]):
    """
    The transitions of a command: a sequence whose items are made when one is first looked at; it equals their tuple.

    Complexity:
        Making the items is linear in the records that they are of; whether there are any is known at once.
    """

    __slots__ = ("_made", "_parts")

    def __init__(self, parts: Iterable[Iterable[Transition]]) -> None:
        """Make the sequence of *parts*, of which there is at least one, and none is empty."""
        self._parts = tuple(parts)
        self._made: tuple[Transition, ...] | None = None

    def _all(self) -> tuple[Transition, ...]:
        if self._made is None:
            self._made, self._parts = tuple(chain.from_iterable(self._parts)), ()
        return self._made

    def __bool__(self) -> bool:
        """Return True."""
        return True

    def __len__(self) -> int:
        """Return the number of transitions."""
        return len(self._all())

    @overload
    def __getitem__(self, index: int) -> Transition: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Transition, ...]: ...
    def __getitem__(self, index: int | slice) -> Transition | tuple[Transition, ...]:
        """Return one transition, or a tuple of some."""
        return self._all()[index]

    def __iter__(self) -> Iterator[Transition]:
        """Go through the transitions."""
        return iter(self._all())


class Effects(NamedTuple):
    """
    The result of a command: side effects for the caller to carry out, and information.

    >>> Effects().wake
    False

    Attributes:
        acquired: The records that the member has acquired, in ascending order.
        writes: The writes to send to the persister, in this order.
        wake: Whether fetches that wait for this share partition should try again.
        transitions: The changes of records with their causes, in order; only with ``record_transitions``. A tuple, or
            a sequence that is made when it is first looked at.
        error: The failure of the read or write whose outcome this command has reported; None for success.
        dead_letters: The records to hand to the dead-letter queue, in this order, after the writes.
    """

    acquired: tuple[AcquiredRecords, ...] = ()
    writes: tuple[WriteShareGroupState, ...] = ()
    wake: bool = False
    transitions: Sequence[Transition] = ()
    error: ShareStateError | None = None
    dead_letters: tuple[DeadLetterRequest, ...] = ()

    @property
    def acquired_count(self) -> int:
        """The number of acquired records. [records]"""
        return sum(last - first + 1 for first, last, _ in self.acquired)


NOTHING: Final = Effects()
"""The effects of a command that leaves nothing to do."""

WAKE: Final = Effects(wake=True)
"""The effects of a command that leaves nothing to do but to wake fetches."""
