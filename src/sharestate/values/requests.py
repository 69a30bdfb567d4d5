"""What a share partition asks of its persister, and what it reads from there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from attrs import field, frozen

from sharestate.values.checks import MIN_INT64, integer, rows
from sharestate.values.records import MAX_OFFSET

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sharestate.values.keys import SharePartitionKey

UNINITIALIZED_START_OFFSET: Final = -1
"""The persisted start offset of a share partition that has none yet."""


class StateBatch(NamedTuple):
    """A range of records as it is persisted."""

    first_offset: int
    """The first offset of the range."""

    last_offset: int
    """The last offset of the range, included."""

    state: int
    """The number of a RecordState; a state that was read may hold a number that is none."""

    delivery_count: int
    """How often the records have been delivered. [deliveries]"""


_new_state_batch = partial(tuple.__new__, StateBatch)


def state_batches(
    offsets: Iterable[int], states: Iterable[int], delivery_counts: Iterable[int]
) -> Iterator[StateBatch]:
    """
    Return one StateBatch for each offset; half the time of calling the class for each.

    >>> list(state_batches([7], [2], [1]))
    [StateBatch(first_offset=7, last_offset=7, state=2, delivery_count=1)]
    """
    offsets = tuple(offsets)
    return map(_new_state_batch, zip(offsets, offsets, states, delivery_counts))  # noqa: B905 - constants repeat


_STATE_BATCH: Final = (
    ("first_offset", MIN_INT64, MAX_OFFSET),
    ("last_offset", MIN_INT64, MAX_OFFSET),
    ("state", -(2**7), 2**7 - 1),
    ("delivery_count", -(2**15), 2**15 - 1),
)
"""The fields with what the wire can carry: ReadShareGroupStateResponse (KIP-932). An offset follows on the last one."""


def _state_batches(batches: Iterable[StateBatch]) -> tuple[StateBatch, ...]:
    batches = rows(batches, StateBatch, "state_batches")
    for index, batch in enumerate(batches):
        for value, (name, low, high) in zip(batch, _STATE_BATCH, strict=True):
            integer(value, f"state_batches[{index}].{name}", low, high)
    return batches


def _start_offset(offset: int) -> int:
    return integer(offset, "start_offset", UNINITIALIZED_START_OFFSET)


def _state_epoch(epoch: int) -> int:
    return integer(epoch, "state_epoch")


@frozen(kw_only=True)
class PersistedState:
    """
    What the persister knows of a share partition.

    Raises:
        MalformedInputError: A part is of the wrong type, or the wire cannot carry it. Whether the state makes sense is
            judged as it is taken over.

    Source:
        ReadShareGroupStateResponse (KIP-932).
    """

    start_offset: int = field(default=0, converter=_start_offset)
    """The SPSO, or -1 if nothing was persisted yet."""

    state_epoch: int = field(default=0, converter=_state_epoch)
    """The epoch of the state; the leader's writes carry it back."""

    state_batches: tuple[StateBatch, ...] = field(default=(), converter=_state_batches)
    """The ranges that are in flight, in ascending order."""


@frozen(kw_only=True)
class ReadShareGroupState:
    """The request for the persisted state, made once by ``initialize``."""

    key: SharePartitionKey
    """Which share partition."""

    leader_epoch: int
    """The leader's epoch."""


class WriteShareGroupState(NamedTuple):
    """
    A change to be persisted. It must be answered once, in any order, with success or failure.

    Source:
        WriteShareGroupStateRequest version 1 (KIP-932, KIP-1226).
    """

    key: SharePartitionKey
    """Which share partition."""

    number: int
    """The request's number: 0, 1, 2 ... in the order in which this share partition issued them."""

    start_offset: int
    """The SPSO before this very change; under the KIP's write policy a new one, or -1 to leave the persisted one."""

    delivery_complete_count: int
    """How many records at or above the SPSO are terminal, this very change included. [records]"""

    state_epoch: int
    """The epoch that was read with the state."""

    leader_epoch: int
    """The leader's epoch."""

    state_batches: tuple[StateBatch, ...]
    """What changed, in the order of spec section 15; empty only under the KIP's write policy."""
