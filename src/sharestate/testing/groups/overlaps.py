"""Events that may overlap: what each of them asks of an implementation, and how its answer is judged."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sharestate.error_codes import ErrorCode
from sharestate.testing.groups.events import Range
from sharestate.testing.groups.model import ClientModel, Delivery
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType


class Overlap(NamedTuple):
    """
    A kind of event that may overlap with others.

    Attributes:
        begin: Asks a machine for it, given the arguments of the event; what it returns may be awaited.
        judge: Judges what came of that, given what clients know, the result and the arguments.
    """

    begin: Callable[..., Any]
    judge: Callable[..., Any]


def code_of(error: Exception) -> int:
    """Return the error code of an error that an acknowledgement has raised; raise it if it has none."""
    code = getattr(error, "code", None)
    if isinstance(code, int):
        return code
    raise error


async def _acknowledge(machine: Any, member: str, ranges: Iterable[Range]) -> int:  # noqa: ANN401 - a machine
    try:
        returned = machine.acknowledge(member, batches_of(ranges))
        return int((await returned if inspect.isawaitable(returned) else returned) or ErrorCode.NONE)
    except Exception as error:  # noqa: BLE001 - those without a code are raised again
        return code_of(error)


def batches_of(ranges: Iterable[Range]) -> list[AcknowledgementBatch]:
    """Return the ranges of an event as an implementation gets them."""
    return [
        AcknowledgementBatch(first, last, tuple(AcknowledgeType[name] for name in names))
        for first, last, names in ranges
    ]


def by_offset(ranges: Iterable[Range]) -> Mapping[int, str]:
    """Return the name of the type of each offset."""
    return {
        offset: names[0 if len(names) == 1 else index]
        for first, last, names in ranges
        for index, offset in enumerate(range(first, last + 1))
    }


def _judge_fetch(model: ClientModel, returned: Iterable[Sequence[Any]], member: str, max_records: int) -> None:
    model.delivered(member, [Delivery(*delivery) for delivery in returned], max_records)


OVERLAPS: Final[Mapping[str, Overlap]] = {
    "member_fetches": Overlap(lambda machine, member, most: machine.fetch(member, most), _judge_fetch),
    "member_acknowledges": Overlap(
        _acknowledge,
        lambda model, code, member, ranges: model.acknowledged(member, by_offset(ranges), code),
    ),
    "member_leaves": Overlap(
        lambda machine, member: machine.close_session(member), lambda model, _, member: model.left(member)
    ),
    "time_passes": Overlap(lambda machine, ms: machine.advance_clock(ms), lambda model, _, ms: model.time_passed(ms)),
}
"""The kinds of events that may overlap, by the methods of the machine that let one happen by itself."""
