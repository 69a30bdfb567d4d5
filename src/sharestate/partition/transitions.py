"""
Spec 1.1, 1.2 and 1.4: the record machine, as a table.

Two rules hold here. All that decides a record's state is in this table: no other file names a target state. And this
file knows nothing of time, members, offsets or I/O: those decide *which input* happens, elsewhere.

A record is offered (AVAILABLE), held by a member (ACQUIRED) and done (ACKNOWLEDGED, ARCHIVED). Its delivery count goes
up when it is acquired and never goes down. Whatever would offer it again archives it instead once it has been
delivered as often as the group allows.

Source:
    RecordState, InFlightState.tryUpdateState and archive (Kafka 4.3.1).
"""

from __future__ import annotations

from enum import IntEnum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from sharestate.errors import InvalidRecordStateError
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from collections.abc import Mapping


class Input(IntEnum):
    """What can happen to a record."""

    ACQUIRE = auto()
    """A member fetches it."""

    GAP = auto()
    """The member says that there is no such record."""

    ACCEPT = auto()
    """The member has processed it."""

    RELEASE = auto()
    """The member gives it back."""

    REJECT = auto()
    """The member says that it cannot be processed."""

    RENEW = auto()
    """The member needs more time."""

    LAPSE = auto()
    """The acquisition lock ran out."""

    SESSION_CLOSE = auto()
    """The member has left."""

    BELOW_START = auto()
    """The log starts after it now."""

    COMPACTED_AWAY = auto()
    """A fetch shows that the log no longer has it."""

    ABORTED = auto()
    """Its transaction was aborted, and the group reads committed records only."""


class Rule(NamedTuple):
    """What an input does in a state."""

    target: RecordState
    """The state after it."""

    at_limit: RecordState | None = None
    """The state after it once the delivery count has reached the limit; None if the limit does not matter."""

    delivery: int = 0
    """What is added to the delivery count. [deliveries]"""


_AV, _AQ, _AK, _AR = RecordState  # short names, for the table's columns only

# fmt: off
TRANSITIONS: Final[Mapping[tuple[RecordState, Input], Rule]] = MappingProxyType({
    (_AV, Input.ACQUIRE):        Rule(_AQ, delivery=+1),
    (_AV, Input.BELOW_START):    Rule(_AR),
    (_AV, Input.COMPACTED_AWAY): Rule(_AR),
    (_AQ, Input.GAP):            Rule(_AR),
    (_AQ, Input.ACCEPT):         Rule(_AK),
    (_AQ, Input.RELEASE):        Rule(_AV, at_limit=_AR),
    (_AQ, Input.REJECT):         Rule(_AR),
    (_AQ, Input.RENEW):          Rule(_AQ),
    (_AQ, Input.LAPSE):          Rule(_AV, at_limit=_AR),
    (_AQ, Input.SESSION_CLOSE):  Rule(_AV, at_limit=_AR),
    (_AQ, Input.BELOW_START):    Rule(_AR),
    (_AQ, Input.ABORTED):        Rule(_AR),
})
# fmt: on
"""A pair that is not here is illegal. ACKNOWLEDGED and ARCHIVED are terminal: they have no rows."""

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


def step(
    state: RecordState, input_: Input, *, delivery_count: int, delivery_count_limit: int
) -> tuple[RecordState, int]:
    """
    Return the state and the delivery count after *input_*.

    Args:
        state: The record's state now.
        input_: What happened to it.
        delivery_count: Deliveries so far, this one included.
        delivery_count_limit: ``share.delivery.count.limit``.

    Raises:
        InvalidRecordStateError: *state* does not accept *input_*.

    >>> step(RecordState.ACQUIRED, Input.RELEASE, delivery_count=5, delivery_count_limit=5)
    (<RecordState.ARCHIVED: 4>, 5)
    """
    rule = TRANSITIONS.get((state, input_))
    if rule is None:
        message = f"{state.name} records do not accept {input_.name}"
        raise InvalidRecordStateError(message)
    target, at_limit, delivery = rule
    if at_limit is not None and delivery_count >= delivery_count_limit:
        return at_limit, delivery_count
    return target, delivery_count + delivery
