"""Requests of a share partition to its persister, and the state that it reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, overload

from attrs import field, frozen

from sharestate.values.checks import MIN_INT64, integer, rows
from sharestate.values.named_tuples import new_tuple
from sharestate.values.records import MAX_OFFSET, RecordState

if TYPE_CHECKING:
    from sharestate.values.records import SharePartitionKey

UNINITIALIZED_START_OFFSET: Final = -1
"""The persisted start offset of a share partition that has none yet."""

UNINITIALIZED_COUNT: Final = -1
"""The delivery complete count of a share partition of which none was written."""

PLAIN_INTEGERS: Final = frozenset({int, RecordState})
"""The types of nearly all numbers of a state batch; others take a closer look."""


class StateBatch(NamedTuple):
    """
    A range of records as it is persisted.

    Any values make one: they are checked when it is used, in a ``PersistedState`` or a request to a persister.

    Attributes:
        first_offset: The first offset of the range.
        last_offset: The last offset of the range, included.
        delivery_state: The number of a RecordState; a persister may answer any other number.
        delivery_count: The deliveries of each record so far. [deliveries]
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


_new_state_batch = partial(new_tuple, StateBatch)


class StateRun(NamedTuple):
    """
    Neighboring entries of a write, column by column: for many records that takes less time and memory.

    Attributes:
        first_offsets: The first offset of each entry.
        last_offsets: The last offset of each entry, included; the same sequence where each entry is one record.
        delivery_states: The number of each entry's RecordState.
        delivery_counts: The deliveries of each record of the entry so far. [deliveries]
    """

    first_offsets: Sequence[int]
    last_offsets: Sequence[int]
    delivery_states: Sequence[int]
    delivery_counts: Sequence[int]

    @classmethod
    def of_records(cls, offsets: Sequence[int], states: Sequence[int], counts: Sequence[int]) -> StateRun:
        """Make a run of single records."""
        return new_tuple(cls, (offsets, offsets, states, counts))

    @classmethod
    def of_batches(cls, batches: Sequence[StateBatch]) -> StateRun:
        """Make a run of *batches*, at least one."""
        return new_tuple(cls, zip(*batches, strict=True))

    def batches(self) -> Iterator[StateBatch]:
        """
        Return the entries one by one.

        >>> list(StateRun.of_records(range(7, 9), (2, 0), (1, 1)).batches())[1]
        StateBatch(first_offset=8, last_offset=8, delivery_state=0, delivery_count=1)
        """
        firsts, lasts, states, counts = self
        if firsts is lasts:
            firsts = lasts = tuple(firsts)  # a range would make each offset twice
        return map(_new_state_batch, zip(firsts, lasts, states, counts, strict=True))


class StateBatches(Sequence[StateBatch]):
    """
    The entries of a write: a sequence whose items are made when one is first looked at; it equals the tuple of them.

    Complexity:
        Making the items is linear in the entries; ``len`` is linear in the runs.

    >>> batches = StateBatches([StateRun.of_records(range(3), [2, 2, 4], [1, 1, 1])])
    >>> len(batches), batches[2].delivery_state, len(batches.runs)
    (3, 4, 1)
    """

    __slots__ = ("_batches", "_runs")

    def __init__(self, runs: Iterable[StateRun]) -> None:
        """Make the sequence of the entries of *runs*."""
        self._runs = tuple(runs)
        self._batches: tuple[StateBatch, ...] | None = None

    @property
    def runs(self) -> tuple[StateRun, ...]:
        """The entries column by column."""
        return self._runs

    def _all(self) -> tuple[StateBatch, ...]:
        if self._batches is None:
            self._batches = tuple(chain.from_iterable(run.batches() for run in self._runs))
        return self._batches

    def __bool__(self) -> bool:
        """Return whether there are entries."""
        return any(run.first_offsets for run in self._runs)

    def __len__(self) -> int:
        """Return the number of entries."""
        return sum(len(run.first_offsets) for run in self._runs)

    @overload
    def __getitem__(self, index: int) -> StateBatch: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[StateBatch, ...]: ...
    def __getitem__(self, index: int | slice) -> StateBatch | tuple[StateBatch, ...]:
        """Return one entry, or a tuple of some."""
        return self._all()[index]

    def __iter__(self) -> Iterator[StateBatch]:
        """Go through the entries."""
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        """Return whether *other* has the same entries, as a tuple or as such a sequence."""
        if isinstance(other, StateBatches):
            return self._all() == other._all()
        return self._all() == other

    def __hash__(self) -> int:
        """Return the hash of the tuple."""
        return hash(self._all())

    def __repr__(self) -> str:
        """Return the text of the tuple."""
        return repr(self._all())

    def __reduce__(self) -> tuple[type[StateBatches], tuple[tuple[StateRun, ...]]]:
        """Pickle and copy the runs only."""
        return StateBatches, (self._runs,)


def runs_of(batches: Sequence[StateBatch]) -> tuple[StateRun, ...]:
    """Return *batches* column by column; those that a share partition has made are so already."""
    if type(batches) is StateBatches:  # an isinstance of what is abstract takes as long as making the run
        return batches.runs
    if len(batches) == 1:  # as most writes have: a third of the time of a zip
        ((first, last, state, count),) = batches
        return (new_tuple(StateRun, ((first,), (last,), (state,), (count,))),)
    return (StateRun.of_batches(batches),) if batches else ()


_STATE_BATCH: Final = (
    ("first_offset", MIN_INT64, MAX_OFFSET),
    ("last_offset", MIN_INT64, MAX_OFFSET),
    ("delivery_state", -(2**7), 2**7 - 1),
    ("delivery_count", -(2**15), 2**15 - 1),
)
"""The fields with what the wire can carry: ReadShareGroupStateResponse (KIP-932). An offset follows on the last one."""


def _state_batches(batches: Iterable[StateBatch]) -> tuple[StateBatch, ...]:
    batches = rows(batches, StateBatch, "state_batches")
    for index, batch in enumerate(batches):
        for value, (name, low, high) in zip(batch, _STATE_BATCH, strict=True):
            if type(value) not in PLAIN_INTEGERS or not low <= value <= high:  # nearly never; all names would be felt
                integer(value, f"state_batches[{index}].{name}", low, high)
    return batches


def _start_offset(offset: int) -> int:
    return integer(offset, "start_offset", UNINITIALIZED_START_OFFSET)


def _state_epoch(epoch: int) -> int:
    return integer(epoch, "state_epoch")


@frozen(kw_only=True)
class PersistedState:
    """
    The persisted state of a share partition.

    Attributes:
        start_offset: The SPSO, or -1 if nothing was persisted yet.
        state_epoch: The epoch of the state; the leader's writes carry it back.
        state_batches: The ranges that are in flight, in ascending order.

    Raises:
        MalformedInputError: A part is of the wrong type, or the wire cannot carry it. Whether the state makes sense is
            judged as it is taken over.

    Source:
        ReadShareGroupStateResponse (KIP-932).
    """

    start_offset: int = field(default=0, converter=_start_offset)
    state_epoch: int = field(default=0, converter=_state_epoch)
    state_batches: tuple[StateBatch, ...] = field(default=(), converter=_state_batches)


@frozen(kw_only=True)
class ReadShareGroupState:
    """
    The request for the persisted state, made once by ``initialize``.

    Attributes:
        key: The share partition.
        leader_epoch: The leader's epoch.
    """

    key: SharePartitionKey
    leader_epoch: int


class WriteShareGroupState(NamedTuple):
    """
    A change to be persisted. It must be answered once, in any order, with success or failure.

    Attributes:
        key: The share partition.
        number: The request's number: 0, 1, 2 ... in the order in which this share partition issued them.
        start_offset: The SPSO before this change; under the KIP's write policy a new one, or -1 to leave the
            persisted one.
        delivery_complete_count: The number of terminal records at or above the SPSO, this change included. [records]
        state_epoch: The epoch that was read with the state.
        leader_epoch: The leader's epoch.
        state_batches: The changed ranges, in the order of rule 15; empty only under the KIP's write policy. A tuple, or
            a sequence that is made when it is first looked at.

    Source:
        WriteShareGroupStateRequest version 1 (KIP-932, KIP-1226).
    """

    key: SharePartitionKey
    number: int
    start_offset: int
    delivery_complete_count: int
    state_epoch: int
    leader_epoch: int
    state_batches: Sequence[StateBatch]

    @property
    def runs(self) -> tuple[StateRun, ...]:
        """The state batches column by column, which costs less where many records changed one by one."""
        return runs_of(self.state_batches)
