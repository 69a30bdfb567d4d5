"""A share consumer of confluent-kafka that writes down what it is given, what it acknowledges, and the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, starmap
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

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
)

if TYPE_CHECKING:
    from confluent_kafka import AcknowledgeType, KafkaError, Message, ShareConsumer, TopicPartition

    from sharestate.audit.recorder.log import Recorder

    Base = ShareConsumer
else:
    Base = object  # the class that is recorded takes its place, so confluent-kafka is not needed to import this

CommitCallback: TypeAlias = "Callable[[dict[TopicPartition, set[int]], Any], object]"

Place: TypeAlias = tuple[str, int]
"""A topic and a partition."""

QUIET_MS: Final = 1000
"""Polls that bring nothing are one operation, until they have lasted so long. [ms]"""

MAX_UNANSWERED: Final = 10_000
"""How many acknowledgements of a partition may wait for their answers; the oldest then counts as unanswered."""

_MAX_POLL_INTERVAL_MS: Final = 300_000
"""The default of max.poll.interval.ms (librdkafka 2.16, CONFIGURATION.md). [ms]"""

_TYPES: Final = {1: AcknowledgedAs.ACCEPT, 2: AcknowledgedAs.RELEASE, 3: AcknowledgedAs.REJECT}
"""confluent_kafka.AcknowledgeType, which has no others."""


class SentRanges(NamedTuple):
    """
    Acknowledgements of a partition on their way.

    Attributes:
        begin_ms: Before they were sent. [ms]
        ranges: What was acknowledged, in the order of offsets.
    """

    begin_ms: float
    ranges: tuple[AcknowledgedRange, ...]


class AcknowledgedOffset(NamedTuple):
    """A record that was acknowledged by its offset, with as much of a message's methods as that takes."""

    a_topic: str
    a_partition: int
    an_offset: int

    def topic(self) -> str:
        """Return the topic."""
        return self.a_topic

    def partition(self) -> int:
        """Return the partition."""
        return self.a_partition

    def offset(self) -> int:
        """Return the offset."""
        return self.an_offset


# ---- ranges


def fetched_ranges(messages: Sequence[Message]) -> tuple[FetchedRanges, ...]:
    """
    Return the ranges of what one poll has brought, in its order.

    This is what recording costs most, so what is usual is found by whole columns: about 0.1 µs a record.

    Complexity: O(n).
    """
    kind = type(messages[0])  # methods of a class, which map calls without looking them up for each record
    topics, partitions = list(map(kind.topic, messages)), list(map(kind.partition, messages))
    offsets, counts = list(map(kind.offset, messages)), list(map(kind.delivery_count, messages))
    fetched, first = [], 0
    for (topic, partition), length in _lengths(topics, partitions):
        within = slice(first, first + length)
        fetched.append(FetchedRanges(topic, partition, _ranges(offsets[within], counts[within])))
        first += length
    return tuple(fetched)


def _lengths(topics: list[Any], partitions: list[Any]) -> Iterator[tuple[Place, int]]:
    """Yield each topic and partition with the number of its records, as they follow each other."""
    place, length = (topics[0], partitions[0]), len(topics)
    if topics.count(place[0]) == length == partitions.count(place[1]):
        yield place, length
        return
    for place, same in groupby(zip(topics, partitions, strict=True)):
        yield place, sum(1 for _ in same)


def _ranges(offsets: list[Any], counts: list[int | None]) -> tuple[DeliveredRange, ...]:
    first, last, length = offsets[0], offsets[-1], len(offsets)
    if last - first + 1 == length and counts.count(counts[0]) == length and offsets == list(range(first, last + 1)):
        return (DeliveredRange(first, last, counts[0]),)
    ranges: list[list[Any]] = []
    for offset, count in zip(offsets, counts, strict=True):
        if ranges and ranges[-1][1] == offset - 1 and ranges[-1][2] == count:
            ranges[-1][1] = offset
        else:
            ranges.append([offset, offset, count])
    return tuple(starmap(DeliveredRange, ranges))


def acknowledged_ranges(types: Mapping[int, AcknowledgedAs]) -> tuple[AcknowledgedRange, ...]:
    """Return the ranges of offsets and their acknowledge types. Complexity: O(n log n)."""
    ranges: list[list[Any]] = []
    for offset, each in sorted(types.items()):
        if ranges and offset == ranges[-1][1] + 1 and each is ranges[-1][2]:
            ranges[-1][1] = offset
        else:
            ranges.append([offset, offset, each])
    return tuple(starmap(AcknowledgedRange, ranges))


def _accepted(fetched: Iterable[FetchedRanges]) -> Iterator[tuple[Place, tuple[AcknowledgedRange, ...]]]:
    """Yield the acceptance of all that a poll has brought; ranges of different delivery counts stay apart."""
    for topic, partition, ranges, _ in fetched:
        yield (
            (topic, partition),
            tuple(AcknowledgedRange(first, last, AcknowledgedAs.ACCEPT) for first, last, _ in ranges),
        )


# ---- what is written down


class ConsumerRecording:
    """
    What one share consumer has done, turned into operations.

    Args:
        recorder: Where they go.
        client: The consumer's name.
        group: Its share group.
        is_implicit: Whether the next poll or commit accepts what the last one has brought.
        max_poll_interval_ms: max.poll.interval.ms, after which a consumer that does not poll leaves its group. [ms]
    """

    def __init__(
        self, recorder: Recorder, client: str, group: str, *, is_implicit: bool, max_poll_interval_ms: float
    ) -> None:
        """Begin with nothing."""
        self._recorder = recorder
        self._client = recorder.named(client)
        self._group = group
        self.is_implicit = is_implicit
        self._max_poll_interval_ms = max_poll_interval_ms
        self._fetch_begin_ms = self._poll_begin_ms = self._before_ms = recorder.now_ms()
        self._has_fetched = True
        self._quiet: tuple[float, float] | None = None
        self._messages: Sequence[Message] = ()
        self._fetched: tuple[FetchedRanges, ...] = ()
        self._unanswered: dict[Place, list[SentRanges]] = {}
        self.acknowledged: list[Message] = []
        self.types: list[AcknowledgeType | int] = []
        self.on_commit: CommitCallback | None = None
        self.on_error: Callable[[KafkaError], object] | None = None

    def sends(self, begin_ms: float) -> None:
        """Begin to send what was acknowledged, in whatever call of the consumer does so."""
        if self.is_implicit:
            sent = list(_accepted(self._fetched))
        elif self.acknowledged:
            sent = list(self._explicit())
        else:
            return
        self._messages, self._fetched = (), ()
        self.acknowledged.clear()
        self.types.clear()
        for place, ranges in sent:
            waiting = self._unanswered.setdefault(place, [])
            if len(waiting) >= MAX_UNANSWERED:
                self._write_answer(place, waiting.pop(0), None, None)
            waiting.append(SentRanges(begin_ms, ranges))

    def _explicit(self) -> Iterator[tuple[Place, tuple[AcknowledgedRange, ...]]]:
        accepted = self.types.count(1)
        if accepted == len(self.types) == len(self._messages) and self.acknowledged == list(self._messages):
            yield from _accepted(self._fetched)  # by far the most usual, and quickly found: they are the same objects
            return
        places: dict[Place, dict[int, AcknowledgedAs]] = {}
        for message, each in zip(self.acknowledged, self.types, strict=True):
            place = message.topic() or "", message.partition() or 0
            places.setdefault(place, {})[message.offset() or 0] = _TYPES[int(each)]
        for place, types in places.items():
            yield place, acknowledged_ranges(types)

    def committed(self, offsets: dict[TopicPartition, set[int]], error: Any) -> None:  # noqa: ANN401 - a KafkaException
        """Learn what brokers have answered, and pass it on; negative codes are librdkafka's own, and no answers."""
        end_ms = self._recorder.now_ms()
        code = 0 if error is None else error.args[0].code()
        for each, some in offsets.items():
            self.answered((each.topic, each.partition), some, None if code < 0 else code, end_ms)
        if self.on_commit is not None:
            self.on_commit(offsets, error)

    def failed(self, error: KafkaError) -> None:
        """Learn of an error, and pass it on; a connection was lost, mostly, if it is librdkafka's own."""
        if error.code() < 0:
            self.disconnected(self._recorder.now_ms())
        if self.on_error is not None:
            self.on_error(error)

    def answered(self, place: Place, offsets: set[int], code: int | None, end_ms: float) -> None:
        """Learn what a broker has answered to acknowledgements of a partition; None if it has not."""
        kept = []
        for sent in self._unanswered.pop(place, ()):
            inside, outside = _split(sent.ranges, offsets) if offsets else ((), sent.ranges)
            if inside:
                self._write_answer(place, SentRanges(sent.begin_ms, inside), code, end_ms)
                offsets = offsets.difference(*(range(first, last + 1) for first, last, _ in inside))
            if outside:
                kept.append(SentRanges(sent.begin_ms, outside))
        if kept:
            self._unanswered[place] = kept

    def _write_answer(self, place: Place, sent: SentRanges, code: int | None, end_ms: float | None) -> None:
        self._write_quiet()  # operations stand in the order in which they ended
        self._recorder.write(
            AcknowledgeOperation(
                begin_ms=sent.begin_ms,
                end_ms=None if code is None else end_ms,
                client=self._client,
                group=self._group,
                partitions=(AcknowledgedRanges(*place, sent.ranges, code),),
                implicit=self.is_implicit,
            )
        )

    def polls(self, begin_ms: float) -> None:
        """Begin a poll."""
        if begin_ms - self._poll_begin_ms > self._max_poll_interval_ms:
            self.left(self._poll_begin_ms + self._max_poll_interval_ms, begin_ms)
        self._before_ms, self._poll_begin_ms = self._poll_begin_ms, begin_ms
        if self._has_fetched:
            self._fetch_begin_ms, self._has_fetched = begin_ms, False

    def polled(self, messages: Sequence[Message], end_ms: float) -> None:
        """
        End the poll.

        librdkafka asks for records in a poll that finds none waiting, and goes on asking when that poll is over. So
        what a poll brings was acquired after the first poll began that followed the last one that brought something.
        """
        if not messages:
            begin_ms = self._quiet[0] if self._quiet else self._poll_begin_ms
            self._quiet = begin_ms, end_ms
            if end_ms - begin_ms >= QUIET_MS:
                self._write_quiet()
            return
        self._write_quiet()
        fetched = fetched_ranges(messages)
        self._write_fetch(self._fetch_begin_ms, end_ms, fetched)
        self._has_fetched = True
        self._messages = () if self.is_implicit else messages
        self._fetched = fetched

    def _write_quiet(self) -> None:
        if self._quiet:
            self._write_fetch(*self._quiet, ())
            self._quiet = None

    def _write_fetch(self, begin_ms: float, end_ms: float, fetched: tuple[FetchedRanges, ...]) -> None:
        self._recorder.write(
            FetchOperation(begin_ms=begin_ms, end_ms=end_ms, client=self._client, group=self._group, partitions=fetched)
        )

    def disconnected(self, end_ms: float) -> None:
        """
        Learn that a connection was lost, and with it the share session: what it held is released.

        That was after the poll before this one, which would have said it.
        """
        self.left(self._before_ms, end_ms)

    def left(self, begin_ms: float, end_ms: float) -> None:
        """Learn that the consumer has left its group or lost a share session."""
        self._write_quiet()
        self._recorder.write(CloseOperation(begin_ms=begin_ms, end_ms=end_ms, client=self._client, group=self._group))

    def closed(self, begin_ms: float, end_ms: float) -> None:
        """Learn that the consumer was closed; answers that have not come by now never come."""
        self._never_answered()
        self.left(begin_ms, end_ms)
        self._recorder.left(self)

    def abandoned(self) -> None:
        """Write down that the process ends, and that the consumer was not closed."""
        self._write_quiet()
        self._never_answered()
        self._recorder.write(CrashOperation(at_ms=self._recorder.now_ms(), client=self._client, group=self._group))

    def _never_answered(self) -> None:
        for place, waiting in self._unanswered.items():
            for sent in waiting:
                self._write_answer(place, sent, None, None)
        self._unanswered.clear()


def _split(
    ranges: tuple[AcknowledgedRange, ...], offsets: set[int]
) -> tuple[tuple[AcknowledgedRange, ...], tuple[AcknowledgedRange, ...]]:
    """Return which of *ranges* are within *offsets*, and which are not."""
    if all(offsets.issuperset(range(first, last + 1)) for first, last, _ in ranges):
        return ranges, ()
    types = {offset: each for first, last, each in ranges for offset in range(first, last + 1)}
    inside = {offset: each for offset, each in types.items() if offset in offsets}
    outside = {offset: each for offset, each in types.items() if offset not in offsets}
    return acknowledged_ranges(inside), acknowledged_ranges(outside)


# ---- the consumer


class RecordedShareConsumer(Base):
    """What comes before ``confluent_kafka.ShareConsumer``, or a class derived from it, to record what it does."""

    _acknowledge: Callable[[Message, AcknowledgeType | int], None]
    """The ``acknowledge`` of the class that is recorded: ``super()`` costs more than the rest of ours."""

    def __init__(self, config: Mapping[str, Any], recorder: Recorder, client: str) -> None:
        """Make the consumer, and hear of its errors and of its commits, as well as the application does."""
        given = dict(config)
        self._now_ms = recorder.now_ms
        self._recording = recording = ConsumerRecording(
            recorder,
            client,
            str(given.get("group.id", "")),
            is_implicit=given.get("share.acknowledgement.mode", "implicit") == "implicit",
            max_poll_interval_ms=float(given.get("max.poll.interval.ms", _MAX_POLL_INTERVAL_MS)),
        )
        self._note, self._note_type = recording.acknowledged.append, recording.types.append
        recording.on_error = given.pop("error_cb", None)
        super().__init__({**given, "error_cb": recording.failed})
        super().set_acknowledgement_commit_callback(recording.committed)
        recorder.opened(self, recording)

    def poll(self, timeout: float = -1) -> Any:  # noqa: ANN401 - confluent-kafka does not export the class
        """Poll, and write down what comes."""
        recording = self._recording
        begin_ms = self._now_ms()
        recording.sends(begin_ms)
        recording.polls(begin_ms)
        messages: Any = super().poll(timeout)
        recording.polled(messages, self._now_ms())
        return messages

    def acknowledge(self, message: Message, ack_type: AcknowledgeType | int = 1) -> None:
        """Acknowledge a record; it is sent with the next poll or commit."""
        self._acknowledge(message, ack_type)
        self._note(message)
        self._note_type(ack_type)

    def acknowledge_offset(self, topic: str, partition: int, offset: int, ack_type: AcknowledgeType | int = 1) -> None:
        """Acknowledge a record by its offset."""
        super().acknowledge_offset(topic, partition, offset, ack_type)  # type: ignore[arg-type] # it takes numbers, too
        self._note(AcknowledgedOffset(topic, partition, offset))  # type: ignore[arg-type] # it has what is asked of a message
        self._note_type(ack_type)

    def commit_sync(self, timeout: float = 60) -> Any:  # noqa: ANN401 - as confluent-kafka has it
        """Commit; the callback hears of what comes of it before this returns."""
        self._recording.sends(self._now_ms())
        return super().commit_sync(timeout)

    def commit_async(self) -> None:
        """Commit; the callback hears later of what comes of it."""
        self._recording.sends(self._now_ms())
        super().commit_async()

    def set_acknowledgement_commit_callback(self, callback: Any) -> None:  # noqa: ANN401 - as confluent-kafka has it
        """Have the application hear of commits, too."""
        recording = self._recording
        is_one = callback is None or callable(callback)
        super().set_acknowledgement_commit_callback(recording.committed if is_one else callback)  # refuses what is none
        recording.on_commit = callback

    def unsubscribe(self) -> None:
        """Leave the group."""
        begin_ms = self._now_ms()
        self._recording.sends(begin_ms)
        super().unsubscribe()
        self._recording.left(begin_ms, self._now_ms())

    def close(self) -> None:
        """Close the consumer, and the file if it has no other client."""
        begin_ms = self._now_ms()
        if not self._recording.is_implicit:
            self._recording.sends(begin_ms)
        super().close()
        self._recording.closed(begin_ms, self._now_ms())

    def __exit__(self, *_error: object) -> None:
        """Close the consumer."""
        self.close()
