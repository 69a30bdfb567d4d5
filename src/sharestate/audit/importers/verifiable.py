"""
The events of Kafka's ``VerifiableShareConsumer`` and ``VerifiableProducer``, read as operations.

Source:
    org.apache.kafka.tools.VerifiableShareConsumer and VerifiableProducer (Kafka 4.3.1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from sharestate.audit.importers.event_files import EventsReader
from sharestate.audit.operation_files import OperationsError
from sharestate.audit.operations import (
    AcknowledgedAs,
    AcknowledgedRange,
    AcknowledgedRanges,
    AcknowledgeOperation,
    CloseOperation,
    CrashOperation,
    DeliveredRange,
    FetchedRanges,
    FetchOperation,
    LoggedOperation,
    OperationsHeader,
    ProduceOperation,
    SettingsOperation,
    View,
)
from sharestate.error_messages import ERROR_MESSAGES
from sharestate.json_checks import Check, Field, boolean, integer, list_of, nullable, one_of, record, text
from sharestate.json_line_files import NumberedLines
from sharestate.json_lines import Json

Place: TypeAlias = tuple[str, int]
"""A topic and a partition."""

Event: TypeAlias = dict[str, Any]
"""The checked fields of an event."""

_BY_MESSAGE: Final[Mapping[str, int]] = MappingProxyType(
    {message: int(code) for code, message in ERROR_MESSAGES.items()}
)

_COUNT: Final = re.compile(r'"count":(\d{1,9})')
"""How many records a poll has returned; the first count of its event."""

# ---- checks

_OFFSET: Final = integer(0)
_PARTITION: Final = integer(0, 2**31 - 1)
_PLACE: Final = {"topic": Field(text), "partition": Field(_PARTITION)}
_SOME: Final = list_of(
    record({**_PLACE, "count": Field(_OFFSET), "offsets": Field(list_of(_OFFSET))}, lambda **some: some)
)
_RECORD: Final = {"key": Field(nullable(text)), "value": Field(nullable(text))}

_FIELDS: Final[Mapping[str, Mapping[str, Field]]] = {
    "startup_complete": {},
    "shutdown_complete": {},
    "offset_reset_strategy_set": {"offsetResetStrategy": Field(text)},
    "record_data": {**_PLACE, "offset": Field(_OFFSET)},
    "records_consumed": {"count": Field(_OFFSET), "partitions": Field(_SOME)},
    "offsets_acknowledged": {
        "count": Field(_OFFSET),
        "partitions": Field(_SOME),
        "success": Field(boolean),
        "error": Field(nullable(text), None),
    },
    "producer_send_success": {**_RECORD, **_PLACE, "offset": Field(integer(-1))},
    "producer_send_error": {**_RECORD, "topic": Field(text), "exception": Field(text)},
    "tool_data": {"sent": Field(_OFFSET), "acked": Field(_OFFSET)},
}
"""The events of both, with the fields that are looked at; there are more, and later releases may add some."""


def _event(fields: Mapping[str, Field]) -> Check[Event]:
    time = integer(0, 2**52)
    return record({"timestamp": Field(time), **fields}, lambda **event: event, extensible=True)


_EVENTS: Final = {name: _event(fields) for name, fields in _FIELDS.items()}


class VerifiableReader(EventsReader):
    """
    A file of events of one share consumer or of one producer.

    An event has one time, that of its line. A begin is the latest time at which an operation had surely not started: a
    record is acknowledged after it was delivered, and one is produced after the start. Delivery counts are not in the
    events.

    A share consumer asks for more in a poll that finds nothing left of the last answers, and the request may be on its
    way before that poll returns. So what it gets of a partition was acquired after the poll began that has returned the
    last of it before. A poll that has returned as many records as any may have left some.
    """

    def __init__(self, path: Path | str, *, group: str, client: str | None = None) -> None:
        """Open the file."""
        super().__init__(path, group=group, client=client)
        self._began_ms = self._last_ms = 0
        self._printed: list[tuple[Place, int]] = []
        self._asked_ms: dict[Place, int] = {}
        self._polled_ms = 0
        self._delivered_ms: dict[tuple[Place, int], int] = {}
        self._is_consumer = False
        self._is_closed = False
        self._takes: Mapping[str, Callable[[Event], Iterator[LoggedOperation]]] = {
            "startup_complete": self._started,
            "shutdown_complete": self._shut_down,
            "offset_reset_strategy_set": self._reset_strategy,
            "record_data": self._record,
            "records_consumed": self._consumed,
            "offsets_acknowledged": self._acknowledged,
            "producer_send_success": self._produced,
            "producer_send_error": self._nothing,  # it names no partition, so the log is not complete
            "tool_data": self._nothing,
        }

    def _header(self, client: str) -> OperationsHeader:
        is_whole, self._most = _survey(self.path)
        return OperationsHeader(
            client=client, view=View.APPLICATION, source="Kafka's verifiable clients", complete=is_whole
        )

    def _operations(self, event: dict[str, Json]) -> Iterator[LoggedOperation]:
        name = event.get("name")
        checked = one_of(_EVENTS)(name, "name")(event, "")
        yield from self._takes[str(name)](checked)
        self._last_ms = checked["timestamp"]

    def _nothing(self, _: Event) -> Iterator[LoggedOperation]:
        yield from ()

    def _started(self, event: Event) -> Iterator[LoggedOperation]:
        self._began_ms = self._polled_ms = event["timestamp"]
        yield from ()

    # ---- the share consumer

    def _reset_strategy(self, event: Event) -> Iterator[LoggedOperation]:
        self._is_consumer = True
        yield SettingsOperation(
            at_ms=event["timestamp"], group=self.group, auto_offset_reset=event["offsetResetStrategy"].lower()
        )

    def _record(self, event: Event) -> Iterator[LoggedOperation]:
        self._printed.append(((event["topic"], event["partition"]), event["offset"]))
        yield from ()

    def _consumed(self, event: Event) -> Iterator[LoggedOperation]:
        """If it is verbose, records were printed before, in their true order; those of the event are sorted."""
        self._is_consumer = True
        at_ms: int = event["timestamp"]
        offsets: dict[Place, list[int]] = {}
        for place, offset in self._printed or _listed(event["partitions"]):
            offsets.setdefault(place, []).append(offset)
        self._printed = []
        yield FetchOperation(
            begin_ms=min((self._asked_ms.get(place, self._began_ms) for place in offsets), default=self._last_ms),
            end_ms=at_ms,
            group=self.group,
            partitions=tuple(
                FetchedRanges(*place, tuple(DeliveredRange(*each) for each in offset_ranges(some)))
                for place, some in offsets.items()
            ),
        )
        for place, some in offsets.items():
            if event["count"] < self._most:
                self._asked_ms[place] = self._polled_ms
            self._delivered_ms.update({(place, offset): at_ms for offset in some})
        self._polled_ms = at_ms

    def _acknowledged(self, event: Event) -> Iterator[LoggedOperation]:
        """What was no answer of a broker has texts of its own, which are no error code's."""
        code = 0 if event["success"] else _BY_MESSAGE.get(event["error"] or "")
        acknowledged = []
        begin_ms = self._last_ms
        for some in event["partitions"]:
            place, offsets = (some["topic"], some["partition"]), sorted(some["offsets"])
            for offset in offsets:
                begin_ms = min(begin_ms, self._delivered_ms.pop((place, offset), self._began_ms))
            ranges = (AcknowledgedRange(*each, AcknowledgedAs.ACCEPT) for each in offset_ranges(offsets))
            acknowledged.append(AcknowledgedRanges(*place, tuple(ranges), code))
        yield AcknowledgeOperation(
            begin_ms=begin_ms,
            end_ms=None if code is None else event["timestamp"],
            group=self.group,
            partitions=tuple(acknowledged),
            implicit=True,
        )

    def _shut_down(self, event: Event) -> Iterator[LoggedOperation]:
        self._is_closed = True
        if self._is_consumer:
            yield CloseOperation(begin_ms=self._last_ms, end_ms=event["timestamp"], group=self.group)

    def _ended(self) -> Iterator[LoggedOperation]:
        if self._is_consumer and not self._is_closed:
            yield CrashOperation(at_ms=self._last_ms, group=self.group)

    # ---- the producer

    def _produced(self, event: Event) -> Iterator[LoggedOperation]:
        """Without acks there is no offset, and no answer."""
        offset = event["offset"]
        yield ProduceOperation(
            begin_ms=self._began_ms,
            end_ms=None if offset < 0 else event["timestamp"],
            topic=event["topic"],
            partition=event["partition"],
            first_offset=None if offset < 0 else offset,
            last_offset=None if offset < 0 else offset,
            count=1 if offset < 0 else None,
            ids=() if event["value"] is None else (event["value"],),
        )


def _listed(partitions: Iterable[Event]) -> Iterator[tuple[Place, int]]:
    for some in partitions:
        for offset in some["offsets"]:
            yield (some["topic"], some["partition"]), offset


def offset_ranges(offsets: Iterable[int]) -> Iterator[tuple[int, int]]:
    """
    Yield the first and the last offset of each run of *offsets*, in their order.

    >>> list(offset_ranges([3, 4, 5, 9, 1]))
    [(3, 5), (9, 9), (1, 1)]
    """
    ranges: list[list[int]] = []
    for offset in offsets:
        if ranges and offset == ranges[-1][1] + 1:
            ranges[-1][1] = offset
        else:
            ranges.append([offset, offset])
    yield from ((first, last) for first, last in ranges)


def _survey(path: Path) -> tuple[bool, int]:
    """
    Return whether the events are all there are, and the most records that one poll has returned.

    They are all if they end with the end of the program, and say of each record where it was written. What cannot be
    read is found when it is read.
    """
    lines = NumberedLines(path, OperationsError)
    has_ended, has_failed, most = False, False, 0
    try:
        for _, line in lines:
            has_failed = has_failed or '"producer_send_error"' in line
            has_ended = has_ended or '"shutdown_complete"' in line
            if '"records_consumed"' in line and (count := _COUNT.search(line)):
                most = max(most, int(count[1]))
    except OperationsError:
        return False, most
    finally:
        lines.close()
    return has_ended and not has_failed, most
