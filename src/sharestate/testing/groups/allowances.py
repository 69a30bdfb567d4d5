"""Known bugs of an implementation, and those of Kafka that clients notice, by what clients know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from sharestate.audit.guarantees import Guarantee
from sharestate.testing.groups.knowledge import ClientKnowledge
from sharestate.testing.groups.known_records import Content, Knowledge, KnownRecord


class Allowance(NamedTuple):
    """
    A known bug of an implementation.

    Attributes:
        bug: Its name.
        guarantee: The guarantee that it breaks.
        applies: Whether it has broken it now, given the machine.
    """

    bug: str
    guarantee: Guarantee
    applies: Callable[[Any], bool]


def _first_left_over(known: ClientKnowledge) -> int | None:
    """Return the lowest offset that a member should get."""
    available = (record.offset for record in known.left_over() if record.state is Knowledge.AVAILABLE)
    return min(available, default=None)


def _is_behind_full_window(known: ClientKnowledge, is_cause: Callable[[KnownRecord], bool]) -> bool:
    """Return whether what is left over comes after as much that is done as a window holds, with a cause in it."""
    left_over = _first_left_over(known)
    if left_over is None:
        return False
    before = [record for offset, record in known.records.items() if offset < left_over]
    done = [record for record in before if known.may_be_terminal(record)]
    return len(done) >= known.settings.max_record_locks and any(map(is_cause, done))


def _is_deleted_from_window(machine: Any) -> bool:  # noqa: ANN401 - a machine
    known: ClientKnowledge = machine.known
    return _is_behind_full_window(known, lambda record: record.offset < known.log_start)


def _is_deleted_from_gap(machine: Any) -> bool:  # noqa: ANN401 - a machine
    known: ClientKnowledge = machine.known
    deleted = [record for record in known.records.values() if record.offset < known.log_start]
    return _first_left_over(known) is not None and any(record.leader < known.leader for record in deleted)


def _is_compacted_in_window(machine: Any) -> bool:  # noqa: ANN401 - a machine
    return _is_behind_full_window(machine.known, lambda record: record.content is Content.HOLE)


def _is_aborted_in_window(machine: Any) -> bool:  # noqa: ANN401 - a machine
    return _is_behind_full_window(machine.known, lambda record: record.is_aborted)


def _is_left_below_log_start(machine: Any) -> bool:  # noqa: ANN401 - a machine
    known: ClientKnowledge = machine.known
    if not known.is_record_limit or _first_left_over(known) is None:
        return False
    deleted = [record for record in known.records.values() if record.offset < known.log_start]
    taken = {record.batch for record in deleted if record.leader == known.leader}
    return any(record.batch in taken and record.leader < known.leader for record in deleted)


KAFKA_ALLOWANCES: Final[Mapping[str, Allowance]] = {
    "F4": Allowance("F4", Guarantee.NOTHING_LOST, _is_deleted_from_window),
    "F5": Allowance("F5", Guarantee.NOTHING_LOST, _is_deleted_from_gap),
    "F6": Allowance("F6", Guarantee.NOTHING_LOST, _is_compacted_in_window),
    "F7": Allowance("F7", Guarantee.NOTHING_LOST, _is_aborted_in_window),
    "F8": Allowance("F8", Guarantee.NOTHING_LOST, _is_left_below_log_start),
}
"""The bugs of Kafka's releases that clients notice, by their ids, for implementations that copy them."""
