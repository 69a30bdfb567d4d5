"""What a dead-letter topic has: the letters in columns, counted by what they have in common."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from sharestate.dead_letter_topic.letters import LetterKind, QueuedLetter
from sharestate.values.dead_letters import DeadLetterCause

MOST_LETTERS: Final = 2**22
"""The most letters that are looked at: each takes 50 bytes, and 250 while they are compared. [letters]"""

MOST_SHARE_PARTITIONS: Final = 2**17
"""The most share partitions whose letters are looked at. [share partitions]"""

_MOST_TEXTS: Final = 1000
"""The most texts of brokers, and reasons why a record is no letter, that are counted one by one; Kafka has two."""

_MOST_KEYS: Final = 2**16
"""The most keys that are kept to be shown, the first ones that come. [keys]"""

_LONGEST_KEY: Final = 256
"""How much is kept of a key. [bytes]"""

_NONE: Final = -1
"""What stands in a column for a number that is not known."""

OTHERS: Final = "others"
"""What stands for the texts that are not counted one by one."""


class ShareKey(NamedTuple):
    """
    A share partition as letters name it.

    Attributes:
        group_id: The share group.
        topic: The topic; its id if the broker did not know the name.
        partition: The partition.
    """

    group_id: str
    topic: str
    partition: int

    def __str__(self) -> str:
        """Return it in words."""
        return f"partition {self.partition} of {self.topic}, group {self.group_id}"


class QueuePartition:
    """
    What was read of a partition of the dead-letter topic.

    Attributes:
        number: The partition.
        span: The offsets that its log has; None if the source does not say.
        records: The records that were read. [records]
        first_ms: The least timestamp of its letters; None without one. [ms since 1970]
        last_ms: The greatest timestamp of its letters; None without one. [ms since 1970]
    """

    def __init__(self, number: int) -> None:
        """Begin with nothing read."""
        self.number = number
        self.span: range | None = None
        self.records = 0
        self.first_ms: int | None = None
        self.last_ms: int | None = None

    @property
    def missing(self) -> int:
        """How many offsets have no record: compaction has removed it, or it was a transaction marker. [offsets]"""
        return 0 if self.span is None else max(0, len(self.span) - self.records)

    @property
    def has_lost_the_beginning(self) -> bool:
        """Whether the log does not begin with offset 0 any more: its retention, or somebody, has deleted records."""
        return self.span is None or self.span.start > 0

    def note(self, timestamp_ms: int | None) -> None:
        """Take the timestamp of a letter."""
        if timestamp_ms is not None:
            self.first_ms = timestamp_ms if self.first_ms is None else min(self.first_ms, timestamp_ms)
            self.last_ms = timestamp_ms if self.last_ms is None else max(self.last_ms, timestamp_ms)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        span = self.span
        return {
            "partition": self.number,
            "start_offset": None if span is None else span.start,
            "end_offset": None if span is None else span.stop,
            "records": self.records,
            "missing": self.missing,
            "first_ms": self.first_ms,
            "last_ms": self.last_ms,
        }


class QueueContents:
    """
    The letters of a dead-letter topic.

    Letters are kept in columns, not one by one, and values not at all: their share partition, offset, time, delivery
    count, cause, where they are, and a hash of the key.

    Attributes:
        kinds: The records of each kind. [records]
        reasons: Why records are no letters. [records]
        texts: The letters by the text of the broker, None for those without one. [letters]
        copied: The letters that have a key or a value. [letters]
        size: The size of keys, values and headers of all records. [bytes]
        unread: The letters that are not looked at, because there are more than ``MOST_LETTERS``, or more than
            ``MOST_SHARE_PARTITIONS``. [letters]
        partitions: The partitions of the topic.
        share_partitions: Their share partitions, in the order in which they came up.

    Complexity:
        Amortized O(1) for each letter. Memory of 47 bytes for each, and for each share partition, and for the first
        65,536 keys, of which 256 bytes are kept at the most.
    """

    def __init__(self) -> None:
        """Begin with no letters."""
        self.kinds: Counter[LetterKind] = Counter()
        self.reasons: Counter[str] = Counter()
        self.texts: Counter[str | None] = Counter()
        self.copied = 0
        self.size = 0
        self.unread = 0
        self.partitions: dict[int, QueuePartition] = {}
        self.share_partitions: list[ShareKey] = []
        self._places: dict[ShareKey, int] = {}
        self.places = array("i")
        self.offsets = array("q")
        self.times_ms = array("q")
        self.counts = array("h")
        self.causes = array("b")
        self.keys = array("q")
        self.queue_partitions = array("i")
        self.queue_offsets = array("q")
        self._key_bytes: dict[int, bytes] = {}

    def __len__(self) -> int:
        """Return how many letters are looked at."""
        return len(self.offsets)

    def read(self, letters: Iterable[QueuedLetter]) -> None:
        """Add *letters*, those of each partition in order."""
        for letter in letters:
            self.add(letter)

    def add(self, letter: QueuedLetter) -> None:
        """Add the next record of a partition of the topic."""
        number = letter.queue_partition
        partition = self.partitions.get(number) or self.partitions.setdefault(number, QueuePartition(number))
        partition.records += 1
        self.kinds[letter.kind] += 1
        self.size += letter.size
        if letter.kind is not LetterKind.LETTER:
            _count(self.reasons, letter.reason)
            return
        partition.note(letter.timestamp_ms)
        _count(self.texts, letter.message)
        self.copied += letter.is_copied
        place = self._place(letter)
        if place is None or len(self) >= MOST_LETTERS:
            self.unread += 1
            return
        self.places.append(place)
        self.offsets.append(letter.offset or 0)
        self.times_ms.append(_NONE if letter.timestamp_ms is None else letter.timestamp_ms)
        self.counts.append(_NONE if letter.delivery_count is None else letter.delivery_count)
        self.causes.append(_NONE if letter.cause is None else _CAUSES.index(letter.cause))
        self.keys.append(self._hash(letter.key))
        self.queue_partitions.append(number)
        self.queue_offsets.append(letter.queue_offset)

    def finish(self, spans: dict[int, range]) -> None:
        """Take the offsets that the partitions of the topic have, once all is read."""
        for number, span in spans.items():
            (self.partitions.get(number) or self.partitions.setdefault(number, QueuePartition(number))).span = span

    def in_order(self) -> list[int]:
        """
        Return the numbers of the letters by share partition and offset, and where these are equal as they were read.

        Complexity:
            O(n log n).
        """
        places, offsets = self.places, self.offsets
        return sorted(range(len(self)), key=lambda number: (places[number] << 63) + offsets[number])

    def share_partition(self, number: int) -> ShareKey:
        """Return the share partition of a letter."""
        return self.share_partitions[self.places[number]]

    def time_ms(self, number: int) -> int | None:
        """Return when a letter was written; None if it does not say. [ms since 1970]"""
        at_ms = self.times_ms[number]
        return None if at_ms < 0 else at_ms

    def cause(self, number: int) -> DeadLetterCause | None:
        """Return the cause of a letter; None if the text is none that Kafka writes."""
        place = self.causes[number]
        return None if place < 0 else _CAUSES[place]

    def cause_named(self, place: int) -> str | None:
        """Return the cause that a *place* in the column stands for; None for a text that Kafka does not write."""
        return None if place < 0 else _CAUSES[place].value

    def key(self, number: int) -> bytes | None:
        """Return the key of a letter, as far as it is kept; None if it has none, or it is not kept."""
        return self._key_bytes.get(self.keys[number])

    def by(self, of: str) -> Counter[Any]:
        """Return the letters by their *group*, *topic*, *cause*, or *delivery count*. [letters]"""
        if of == "cause":
            return Counter({self.cause_named(at): letters for at, letters in Counter(self.causes).items()})
        if of == "delivery count":
            return Counter({None if count < 0 else count: n for count, n in Counter(self.counts).items()})
        counted: Counter[Any] = Counter()
        for place, letters in Counter(self.places).items():
            key = self.share_partitions[place]
            counted[key.group_id if of == "group" else key.topic] += letters
        return counted

    def slices(self, order: list[int]) -> Iterator[tuple[ShareKey, list[int]]]:
        """Yield the share partitions with the numbers of their letters by offset; *order* is that of ``in_order``."""
        begin = 0
        for end in range(1, len(order) + 1):
            if end == len(order) or self.places[order[end]] != self.places[order[begin]]:
                yield self.share_partition(order[begin]), order[begin:end]
                begin = end

    def _place(self, letter: QueuedLetter) -> int | None:
        key = ShareKey(letter.group_id or "", letter.topic or "", letter.partition or 0)
        place = self._places.get(key)
        if place is None and len(self.share_partitions) < MOST_SHARE_PARTITIONS:
            place = self._places[key] = len(self.share_partitions)
            self.share_partitions.append(key)
        return place

    def _hash(self, key: bytes | None) -> int:
        """Return the number by which letters with the same key are known: two keys in 10^19 have the same one."""
        if key is None:
            return _NONE
        number = hash(key)
        if number not in self._key_bytes and len(self._key_bytes) < _MOST_KEYS:
            self._key_bytes[number] = key[:_LONGEST_KEY]
        return number


_CAUSES: Final = tuple(DeadLetterCause)


def _count(counts: Counter[Any], text: str | None) -> None:
    counts[text if text in counts or len(counts) < _MOST_TEXTS else OTHERS] += 1
