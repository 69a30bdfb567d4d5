"""
Dead letters as they are read: what a record of a dead-letter topic says, if a broker has written it.

Source:
    KIP-1191; ShareGroupDLQStateManager (Kafka 4.4.0).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sharestate.columns import Column, Scalar, required
from sharestate.dead_letters.records import DELIVERY_COUNT, GROUP, MESSAGE, MESSAGES, OFFSET, PARTITION, TOPIC
from sharestate.values.dead_letters import DeadLetterCause

CAUSES: Final[Mapping[str, DeadLetterCause]] = MappingProxyType({text: cause for cause, text in MESSAGES.items()})
"""The causes by the texts with which Kafka 4.4.0 names them."""

_PLACE: Final = (TOPIC, PARTITION, OFFSET, GROUP)
_FORMS: Final = frozenset({_PLACE, (*_PLACE, DELIVERY_COUNT), (*_PLACE, MESSAGE), (*_PLACE, DELIVERY_COUNT, MESSAGE)})
"""The names of headers that a broker writes, in its order: the last two if it knows them."""

_PREFIX: Final = "__dlq.errors."
_NUMBER: Final = re.compile(r"\d{1,19}", re.ASCII)
_MOST: Final[Mapping[str, int]] = MappingProxyType({PARTITION: 2**31 - 1, OFFSET: 2**63 - 1, DELIVERY_COUNT: 2**15 - 1})
"""The greatest numbers that headers have."""


class LoggedLetter(NamedTuple):
    """
    A record of a dead-letter topic, whatever it says.

    Attributes:
        partition: The partition of the topic.
        offset: Its offset there.
        timestamp_ms: Its timestamp; None if it has none. [ms since 1970]
        key: Its key; None without one.
        value_size: The size of its value; None without one. [bytes]
        headers: The names and values of its headers, in order.
    """

    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value_size: int | None
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def size(self) -> int:
        """The size of key, value and headers. [bytes]"""
        headers = sum(len(name.encode(errors="replace")) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + (self.value_size or 0) + headers


class LetterKind(StrEnum):
    """What a record of a dead-letter topic is."""

    LETTER = "letter"
    """A dead letter of a broker."""

    OTHER_TOOL = "of another tool"
    """Its headers are not those that a broker writes: something else has written it, or has written it again."""

    MALFORMED = "malformed"
    """It has the headers of a broker, and one of them is not what it has to be."""


class QueuedLetter(NamedTuple):
    """
    A record of a dead-letter topic, read.

    Attributes:
        queue_partition: The partition of the dead-letter topic.
        queue_offset: Its offset there.
        timestamp_ms: When it was written, by the clock of the source partition's leader; None if it does not say.
            [ms since 1970]
        kind: What it is; where it is no letter, the fields from ``group_id`` to ``message`` are None.
        reason: Why it is no letter; None if it is one.
        group_id: The share group.
        topic: The topic of the record; its id if the broker did not know the name.
        partition: The partition of that topic.
        offset: The offset of the record there.
        delivery_count: How often it was delivered; None if that is not known. [deliveries]
        cause: Why it was given up; None if the text is none that Kafka 4.4.0 writes.
        message: The text of the broker; None without one.
        key: The key of the record; None if it has none, or is not copied.
        size: The size of key, value and headers. [bytes]
        is_copied: Whether it has a key or a value.
    """

    queue_partition: int
    queue_offset: int
    timestamp_ms: int | None
    kind: LetterKind
    reason: str | None = None
    group_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    delivery_count: int | None = None
    cause: DeadLetterCause | None = None
    message: str | None = None
    key: bytes | None = None
    size: int = 0
    is_copied: bool = False

    def row(self) -> tuple[Any, ...]:
        """Return it as a row of ``LETTER_COLUMNS``."""
        cause = None if self.cause is None else self.cause.value
        fields = self._replace(kind=self.kind.value, cause=cause)  # type: ignore[arg-type]
        return tuple(fields)


LETTER_COLUMNS: Final = (
    required("queue_partition", Scalar.INT32, "the partition of the dead-letter topic"),
    required("queue_offset", Scalar.INT64, "the offset there"),
    Column("timestamp_ms", Scalar.INT64, "when it was written; null if it does not say", "ms since 1970"),
    required("kind", Scalar.TEXT, "whether a broker has written it: letter, of another tool, or malformed"),
    Column("reason", Scalar.TEXT, "why it is no letter, so that what follows is null; null if it is one"),
    Column("group_id", Scalar.TEXT, "the share group"),
    Column("topic", Scalar.TEXT, "the topic of the record; its id if the broker did not know the name"),
    Column("partition", Scalar.INT32, "the partition of that topic"),
    Column("offset", Scalar.INT64, "the offset of the record there"),
    Column("delivery_count", Scalar.INT16, "how often it was delivered; null if that is not known", "deliveries"),
    Column("cause", Scalar.TEXT, "why it was given up; null if Kafka 4.4.0 does not write that text"),
    Column("message", Scalar.TEXT, "the text of the broker"),
    Column("key", Scalar.BINARY, "the key of the record; null if it has none, or is not copied"),
    required("size", Scalar.INT64, "the size of key, value and headers", "bytes"),
    required("is_copied", Scalar.BOOLEAN, "whether it has a key or a value"),
)
"""The columns of a table of letters: the fields of ``QueuedLetter``, in its order."""


def read_letter(logged: LoggedLetter) -> QueuedLetter:
    r"""
    Return what a record of a dead-letter topic says.

    It is a letter if its headers are exactly those that Kafka 4.4.0 writes, in its order (rule 21.6). Anything else is
    counted as what it is, and never an error: a topic takes what anyone writes to it.

    Complexity:
        O(1), but for the size of the headers.

    >>> from sharestate import DeadLetterCause, DeadLetterRequest, SharePartitionKey
    >>> from sharestate.dead_letter_topic import LoggedLetter, read_letter
    >>> from sharestate.dead_letters import dead_letter_records
    >>> key = SharePartitionKey(group_id="g", topic_id="t", partition=3)
    >>> request = DeadLetterRequest(key, 0, 7, 7, 2, DeadLetterCause.CLIENT_REJECT)
    >>> (record,) = dead_letter_records(request, topic_name="orders")
    >>> letter = read_letter(LoggedLetter(0, 0, None, record.key, None, record.headers))
    >>> letter.group_id, letter.topic, letter.partition, letter.offset, letter.delivery_count, letter.cause.value
    ('g', 'orders', 3, 7, 2, 'client_reject')
    >>> read_letter(LoggedLetter(0, 1, None, None, 4, ())).reason
    'no headers of a dead letter'
    """
    names = tuple(name for name, _ in logged.headers)
    if names not in _FORMS:
        has_some = any(name.startswith(_PREFIX) for name in names)
        reason = "headers that no broker writes, or not in its order" if has_some else "no headers of a dead letter"
        return _no_letter(logged, LetterKind.OTHER_TOOL, reason)
    found: dict[str, Any] = {}
    for name, value in logged.headers:
        text = _text(value)
        if text is None:
            return _no_letter(logged, LetterKind.MALFORMED, f"{name}: not UTF-8")
        if name in _MOST and not (_NUMBER.fullmatch(text) and int(text) <= _MOST[name]):
            return _no_letter(logged, LetterKind.MALFORMED, f"{name}: not a number, or too great")
        found[name] = int(text) if name in _MOST else text
    message = found.get(MESSAGE)
    return QueuedLetter(
        *(logged.partition, logged.offset, logged.timestamp_ms, LetterKind.LETTER, None),
        *(found[GROUP], found[TOPIC], found[PARTITION], found[OFFSET]),
        delivery_count=found.get(DELIVERY_COUNT),
        cause=None if message is None else CAUSES.get(message),
        message=message,
        key=logged.key,
        size=logged.size,
        is_copied=logged.key is not None or logged.value_size is not None,
    )


def _no_letter(logged: LoggedLetter, kind: LetterKind, reason: str) -> QueuedLetter:
    is_copied = logged.key is not None or logged.value_size is not None
    place = (logged.partition, logged.offset, logged.timestamp_ms)
    return QueuedLetter(*place, kind, reason, key=logged.key, size=logged.size, is_copied=is_copied)


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
