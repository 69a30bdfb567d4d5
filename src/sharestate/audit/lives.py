"""Lives of records in words, and bugs of Kafka that look like what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from sharestate.audit.circumstances import Act, Circumstances
from sharestate.audit.guarantees import Guarantee
from sharestate.audit.operation_log import (
    ACKNOWLEDGED_AS,
    NO_ANSWER,
    NO_TRANSACTION,
    OperationLog,
    OperationRowKind,
    SharePartitionName,
)
from sharestate.audit.record_histories import RecordHistory
from sharestate.error_codes import ErrorCode

_MOST_SENTENCES: Final = 50
"""How many sentences of a life are kept, the first ones. [sentences]"""


def life_in_words(around: Circumstances, history: RecordHistory, begin_us: int) -> Iterator[str]:
    """
    Yield what was done to records, a sentence for each operation.

    Args:
        around: What lies around them.
        history: Their history.
        begin_us: The time of the log's first operation, on the first clock. [µs]
    """
    acts = sorted(
        (*history.produced, *history.life), key=lambda act: (around.shifted_us(act.begin_us, act.clock), act.operation)
    )
    for act in acts[:_MOST_SENTENCES]:
        seconds = (around.shifted_us(around.log.begin_us[act.operation], act.clock) - begin_us) / 10**6
        yield f"{seconds:,.3f} s: {_sentence(around.log, act)} ({around.log.place(act.operation)})"
    if len(acts) > _MOST_SENTENCES:
        yield f"and {len(acts) - _MOST_SENTENCES} operations more"


def _sentence(log: OperationLog, act: Act) -> str:
    name = log.clients[act.client].name
    if act.kind == OperationRowKind.PRODUCED:
        of = "" if act.what == NO_TRANSACTION else f", in transaction {log.transactions[act.what][1]}"
        return f"{name} produces it{of}"
    if act.kind == OperationRowKind.DELIVERED:
        return f"{name} gets it" + (f", delivery {act.what}" if act.what else "")
    return f"{name} acknowledges it, {ACKNOWLEDGED_AS[act.what]}{_answer(act.code)}"


def _answer(code: int) -> str:
    if code == NO_ANSWER:
        return ", without an answer"
    return f", refused with {code_name(code)}" if code else ""


def code_name(code: int) -> str:
    """
    Return Kafka's name of an error code; the number if it has none.

    >>> code_name(121), code_name(9999)
    ('INVALID_RECORD_STATE', '9999')
    """
    return next((each.name for each in ErrorCode if each == code), str(code))


# ---- bugs of Kafka


def _has_fault(log: OperationLog, key: SharePartitionName) -> bool:
    faults = (*log.faults, *log.moves)
    return any(topic in {None, key.topic} and number in {None, key.partition} for _, topic, number in faults)


def _has_deletion(log: OperationLog, key: SharePartitionName) -> bool:
    return bool(log.deletions.get((key.topic, key.partition)))


def _has_transaction(log: OperationLog, key: SharePartitionName) -> bool:
    return any(log.what[row] != NO_TRANSACTION for row in log.produced.get((key.topic, key.partition), ()))


_KNOWN: Final[tuple[tuple[Guarantee, Callable[[OperationLog, SharePartitionName], bool], tuple[str, ...]], ...]] = (
    (Guarantee.ACCEPTED_IS_FINAL, _has_fault, ("F3", "C2")),
    (Guarantee.REJECTED_IS_FINAL, _has_fault, ("F3", "C2")),
    (Guarantee.DELIVERY_LIMIT, _has_fault, ("B15",)),
    (Guarantee.NOTHING_LOST, _has_fault, ("F1", "B17")),
    (Guarantee.NOTHING_LOST, _has_deletion, ("F4", "F5", "F8")),
    (Guarantee.NOTHING_LOST, _has_transaction, ("F7",)),
)
"""The bugs of Kafka's releases that clients can see, by the guarantee that they break, and by what they need."""


def known_bugs(log: OperationLog, key: SharePartitionName, guarantee: Guarantee) -> tuple[str, ...]:
    """Return the ids of bugs of Kafka that may be behind a broken guarantee; ``docs/kafka-bugs.md`` describes them."""
    return tuple(id_ for broken, has, ids in _KNOWN if broken is guarantee and has(log, key) for id_ in ids)
