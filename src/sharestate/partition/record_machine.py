"""
The record machine, as a table.

Two rules hold here. All that decides which state follows which is in this table: commands name an input, never a target
state. And this file knows nothing of time, members, offsets or I/O: those decide *which input* a command applies.

A record is AVAILABLE (it may be acquired), ACQUIRED (a member holds it), ARCHIVING (the dead-letter queue has it) or
terminal (ACKNOWLEDGED, ARCHIVED). Its delivery count goes up when it is acquired and never goes down. An input that
would make it AVAILABLE again archives it instead once its delivery count has reached the limit. Where a group has a
dead-letter queue, what its members cannot process is ARCHIVING first.

Source:
    RecordState, InFlightState.tryUpdateState and archive (Kafka 4.4.0).
"""

from __future__ import annotations

from enum import IntEnum, auto
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from sharestate.errors import InvalidRecordStateError
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.dead_letters import DeadLetterCause
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from collections.abc import Mapping


class Input(IntEnum):
    """The inputs of the record machine."""

    ACQUIRE = auto()
    """A member fetches it."""

    GAP = auto()
    """The member reports that there is no such record."""

    ACCEPT = auto()
    """The member has processed it."""

    RELEASE = auto()
    """The member releases it."""

    REJECT = auto()
    """The member reports that it cannot be processed."""

    RENEW = auto()
    """The member renews its acquisition lock."""

    LOCK_TIMEOUT = auto()
    """The acquisition lock has expired."""

    SESSION_CLOSE = auto()
    """The member has left."""

    BELOW_START = auto()
    """The log start has moved past it."""

    COMPACTED_AWAY = auto()
    """A fetch shows that log compaction has removed it."""

    ABORTED = auto()
    """Its transaction was aborted, and the group reads with read_committed."""

    DEAD_LETTERED = auto()
    """The dead-letter queue has answered."""


class Rule(NamedTuple):
    """The effect of an input in a state."""

    target: RecordState
    """The state after it."""

    at_limit: RecordState | None = None
    """The state after it once the delivery count has reached the limit; None if the limit plays no part."""

    delivery: int = 0
    """The increase of the delivery count. [deliveries]"""

    dead_letter: DeadLetterCause | None = None
    """The cause for which it is ARCHIVING where it would be ARCHIVED, if there is a dead-letter queue."""


# Short names, for the table's columns only.
_AV, _AQ, _AK, _AI, _AR = RecordState
_REJECTED, _EXCEEDED = DeadLetterCause

# fmt: off
TRANSITIONS: Final[Mapping[tuple[RecordState, Input], Rule]] = MappingProxyType({
    (_AV, Input.ACQUIRE):        Rule(_AQ, delivery=+1),
    (_AV, Input.BELOW_START):    Rule(_AR),
    (_AV, Input.COMPACTED_AWAY): Rule(_AR),
    (_AQ, Input.GAP):            Rule(_AR),
    (_AQ, Input.ACCEPT):         Rule(_AK),
    (_AQ, Input.RELEASE):        Rule(_AV, at_limit=_AR, dead_letter=_EXCEEDED),
    (_AQ, Input.REJECT):         Rule(_AR, dead_letter=_REJECTED),
    (_AQ, Input.RENEW):          Rule(_AQ),
    (_AQ, Input.LOCK_TIMEOUT):   Rule(_AV, at_limit=_AR, dead_letter=_EXCEEDED),
    (_AQ, Input.SESSION_CLOSE):  Rule(_AV, at_limit=_AR, dead_letter=_EXCEEDED),
    (_AQ, Input.BELOW_START):    Rule(_AR),
    (_AQ, Input.ABORTED):        Rule(_AR),
    (_AI, Input.DEAD_LETTERED):  Rule(_AR),
})
# fmt: on
"""A pair that is not here is illegal. ACKNOWLEDGED and ARCHIVED are terminal: they have no rows (rule 1.1)."""

TERMINAL: Final = frozenset(RecordState) - {state for state, _ in TRANSITIONS}
"""The states that nothing leaves."""

ACKNOWLEDGEMENTS: Final[Mapping[int, Input]] = MappingProxyType(
    {
        AcknowledgeType.GAP: Input.GAP,
        AcknowledgeType.ACCEPT: Input.ACCEPT,
        AcknowledgeType.RELEASE: Input.RELEASE,
        AcknowledgeType.REJECT: Input.REJECT,
        AcknowledgeType.RENEW: Input.RENEW,
    }
)
"""The input behind each type that a member may send."""


@lru_cache(maxsize=4096)
def step(
    state: RecordState,
    input_: Input,
    delivery_count: int,
    delivery_count_limit: int | None = None,
    has_queue: bool = False,  # noqa: FBT001, FBT002 - called in hot loops
) -> tuple[RecordState, int]:
    """
    Return the state and the delivery count after *input_* (rules 1.2 and 21.1).

    Args:
        state: The record's state now.
        input_: The input.
        delivery_count: Deliveries so far, this one included.
        delivery_count_limit: ``share.delivery.count.limit``; None for inputs in which it plays no part.
        has_queue: Whether the group has a dead-letter queue.

    Raises:
        InvalidRecordStateError: *state* does not accept *input_*.

    >>> step(RecordState.ACQUIRED, Input.RELEASE, 5, 5)
    (<RecordState.ARCHIVED: 4>, 5)
    """
    rule = TRANSITIONS.get((state, input_))
    if rule is None:
        message = f"{state.name} records do not accept {input_.name}"
        raise InvalidRecordStateError(message)
    target, at_limit, delivery, dead_letter = rule
    if at_limit is not None and delivery_count >= _known(delivery_count_limit, input_):
        target, delivery = at_limit, 0
    if has_queue and dead_letter is not None and target is RecordState.ARCHIVED:
        target = RecordState.ARCHIVING
    return target, delivery_count + delivery


def _known(limit: int | None, input_: Input) -> int:
    """Return *limit*: a rule that asks for it must never be applied without one, or it would archive everything."""
    if limit is None:
        message = f"{input_.name} needs the delivery count limit"
        raise TypeError(message)
    return limit
