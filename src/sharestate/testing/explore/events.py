"""What may happen next in a state."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from sharestate.partition.share_partition import SharePartition
    from sharestate.testing.explore.configuration import Configuration
    from sharestate.testing.explore.explored_state import ExploredState


class ExploredEventKind(StrEnum):
    """The kinds of events."""

    FETCH = "fetch"
    """A member fetches; or learns where the log starts, if its fetch is out of range."""

    ACKNOWLEDGE = "acknowledge"
    """A member acknowledges all that it holds, or one record of it."""

    CLOSE = "close"
    """A member's session is closed."""

    DEADLINE = "deadline"
    """Time passes until the next acquisition lock expires."""

    STORE = "store"
    """The share coordinator applies a write, whose answer is under way then."""

    SUCCEED = "succeed"
    """A write is answered with success."""

    FAIL = "fail"
    """A write is answered with an error, whether it was applied or not."""

    DEAD_LETTER = "dead letter"
    """The dead-letter queue answers."""

    LOG_START = "log start"
    """The log start moves; the leader learns it from its next fetch."""

    COMPACT = "compact"
    """A batch is compacted away."""

    SWITCH = "switch"
    """The group's isolation level is set."""

    FAIL_OVER = "fail over"
    """Another leader reads what is stored; nobody hears of the writes of the old one any more."""


GOES_ON: Final = frozenset(
    {
        ExploredEventKind.FETCH,
        ExploredEventKind.DEADLINE,
        ExploredEventKind.STORE,
        ExploredEventKind.SUCCEED,
        ExploredEventKind.DEAD_LETTER,
    }
)
"""What happens even if nobody acknowledges any more and nobody leaves; nothing of it goes wrong."""


def possible(configuration: Configuration) -> tuple[ExploredEventKind, ...]:
    """Return the kinds of events that a group of *configuration* must come to if it is worth exploring."""
    depends = {
        ExploredEventKind.STORE: configuration.failovers,
        ExploredEventKind.FAIL: configuration.failures,
        ExploredEventKind.DEAD_LETTER: configuration.dead_letter_queue,
        ExploredEventKind.LOG_START: configuration.log_starts,
        ExploredEventKind.COMPACT: configuration.compactions,
        ExploredEventKind.SWITCH: configuration.switches,
        ExploredEventKind.FAIL_OVER: configuration.failovers,
    }
    return tuple(kind for kind in ExploredEventKind if depends.get(kind, True))


class Event(NamedTuple):
    """
    Something that happens.

    Attributes:
        kind: What.
        member: Who does it; empty for nobody.
        numbers: The rest: a fetch's batches and size; the first and last offset and the type of an acknowledgement; the
            number of a write or a dead letter; an offset; the position of a batch.
    """

    kind: ExploredEventKind
    member: str = ""
    numbers: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Return it for people."""
        return " ".join(filter(None, (self.kind.value, self.member, *map(str, self.numbers))))


def events(
    configuration: Configuration, state: ExploredState, partition: SharePartition, batches: int
) -> Iterator[Event]:
    """
    Yield what may happen in *state*, always in the same order.

    Args:
        configuration: The group and its surroundings.
        state: The state.
        partition: The leader of *state*, which stays as it is.
        batches: The most batches that a fetch brings. [batches]
    """
    held = _held(partition)
    can_write = len(state.sent) < configuration.writes
    for member in _members(configuration, state):
        yield from _fetches(configuration, member, batches)
        if can_write and member in held:
            yield from _acknowledgements(configuration, held[member], member)
            yield Event(ExploredEventKind.CLOSE, member)
    if partition.next_deadline_ms() is not None:
        yield Event(ExploredEventKind.DEADLINE)
    yield from _answers(state)
    if can_write:
        for number, _ in state.leader.dead_letters:
            yield Event(ExploredEventKind.DEAD_LETTER, numbers=(number,))
    yield from _mishaps(configuration, state)


def _held(partition: SharePartition) -> dict[str, list[tuple[int, int]]]:
    """Return the ranges that each member holds, in ascending order; the SPSO may have passed some."""
    held: dict[str, list[tuple[int, int]]] = {}
    for batch in partition.batches():
        for run in batch.runs:
            if run.state is RecordState.ACQUIRED:
                held.setdefault(str(run.member_id), []).append((run.first_offset, run.last_offset))
    return held


def _members(configuration: Configuration, state: ExploredState) -> list[str]:
    """Return who holds something, or will again if a write fails, and one who does not: those are all alike."""
    names = [f"m{number}" for number in range(1, configuration.members + 1)]
    known = {cell.member_id for cell in state.leader.cells}
    idle = [name for name in names if name not in known]
    return [name for name in names if name in known] + idle[:1]


def _fetches(configuration: Configuration, member: str, batches: int) -> Iterator[Event]:
    for fetched in range(1, batches + 1):
        for size in configuration.max_records:
            yield Event(ExploredEventKind.FETCH, member, (fetched, size))


def _acknowledgements(configuration: Configuration, held: list[tuple[int, int]], member: str) -> Iterator[Event]:
    offsets = [offset for first, last in held for offset in range(first, last + 1)]
    for type_ in configuration.types:
        yield Event(ExploredEventKind.ACKNOWLEDGE, member, (offsets[0], offsets[-1], int(type_)))
        if len(offsets) > 1:
            for offset in offsets:
                yield Event(ExploredEventKind.ACKNOWLEDGE, member, (offset, offset, int(type_)))


def _answers(state: ExploredState) -> Iterator[Event]:
    for sent in state.sent:
        # Without another leader nobody reads what is stored, and when it was stored makes no difference.
        if state.left.failovers and not sent.is_stored:
            yield Event(ExploredEventKind.STORE, numbers=(sent.number,))
        else:
            yield Event(ExploredEventKind.SUCCEED, numbers=(sent.number,))
        if state.left.failures:
            yield Event(ExploredEventKind.FAIL, numbers=(sent.number,))


def _mishaps(configuration: Configuration, state: ExploredState) -> Iterator[Event]:
    left, log = state.left, configuration.log
    if left.log_starts:
        for offset in range(state.log_start + 1, log[-1].last_offset + 2):
            yield Event(ExploredEventKind.LOG_START, numbers=(offset,))
    if left.compactions:
        for position in state.log[:-1]:  # the last batch of a log always stays
            yield Event(ExploredEventKind.COMPACT, numbers=(position,))
    if left.switches:
        yield Event(ExploredEventKind.SWITCH)
    if left.failovers:
        yield Event(ExploredEventKind.FAIL_OVER)
