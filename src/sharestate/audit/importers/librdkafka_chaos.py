"""
The events of ``share_consume_verify``, the workload of librdkafka's chaos harness, read as operations.

Source:
    tests/chaos/share_consume_verify.c and its port to Python, in librdkafka's branch for KIP-932.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sharestate.audit.importers.event_files import EventsReader
from sharestate.audit.operations import (
    AcknowledgedAs,
    AcknowledgedRange,
    AcknowledgedRanges,
    AcknowledgeOperation,
    DeliveredRange,
    FetchedRanges,
    FetchOperation,
    LoggedOperation,
    OperationsHeader,
    View,
)
from sharestate.json_checks import Field, integer, one_of, record, text
from sharestate.json_lines import Json

SOME_TIME_MS: Final = 2**42
"""
The end of all operations, which begin at 0: the year 2109, so what other files say of the same time lies between. [ms]

The events have no times, and those of two consumers no order. So every operation may have been at any time.
"""

_NO_ID: Final = frozenset({"", "AAAAAAAAAAAAAAAAAAAAAA"})
"""What stands for no topic id."""

_PLACE: Final = {
    "t": Field(text),
    "id": Field(text, ""),
    "p": Field(integer(0, 2**31 - 1)),
    "o": Field(integer(0)),
}

_CONSUMED: Final = record({"e": Field(text), **_PLACE, "dc": Field(integer(0, 2**15 - 1))}, lambda **event: event)
_ACKED: Final = record({"e": Field(text), **_PLACE, "err": Field(integer(-(2**15), 2**15 - 1))}, lambda **event: event)
_EVENTS: Final = {"consumed": _CONSUMED, "acked": _ACKED}

Event = dict[str, Json]


class LibrdkafkaChaosReader(EventsReader):
    """
    A file of events of librdkafka's chaos harness.

    Topics are named with their ids, as ``orders:AbC...``, because the harness deletes topics and makes them again.
    A delivery is an operation, and so is an acknowledgement; of acknowledgements, all are ``accept``.
    """

    def _header(self, client: str) -> OperationsHeader:
        return OperationsHeader(
            client=client, clock="none", view=View.APPLICATION, source="librdkafka's chaos harness", complete=False
        )

    def _operations(self, event: dict[str, Json]) -> Iterator[LoggedOperation]:
        check = one_of(_EVENTS)(event.get("e"), "e")
        checked = check(event, "")
        topic = checked["t"] if checked["id"] in _NO_ID else f"{checked['t']}:{checked['id']}"
        partition, offset = checked["p"], checked["o"]
        if checked["e"] == "consumed":
            yield FetchOperation(
                begin_ms=0,
                end_ms=SOME_TIME_MS,
                group=self.group,
                partitions=(FetchedRanges(topic, partition, (DeliveredRange(offset, offset, checked["dc"] or None),)),),
            )
            return
        code = (
            checked["err"] if checked["err"] >= 0 else None
        )  # negative ones are librdkafka's own: there was no answer
        yield AcknowledgeOperation(
            begin_ms=0,
            end_ms=SOME_TIME_MS if code is not None else None,
            group=self.group,
            partitions=(
                AcknowledgedRanges(topic, partition, (AcknowledgedRange(offset, offset, AcknowledgedAs.ACCEPT),), code),
            ),
        )

    def _ended(self) -> Iterator[LoggedOperation]:
        yield from ()
