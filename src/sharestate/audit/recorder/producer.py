"""A producer of confluent-kafka that writes down what it produces, with its offsets, and how its transactions end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sharestate.audit.operations import EndTransactionOperation, ProduceOperation

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

    from sharestate.audit.recorder.log import Recorder

    Base = Producer
else:
    Base = object  # the class that is recorded takes its place, so confluent-kafka is not needed to import this

RecordId: TypeAlias = Callable[[Any], str]
"""Returns the id that the application gave the record of a message, from its key or its value."""

DeliveryCallback: TypeAlias = "Callable[[KafkaError | None, Message], object]"

_NOT_SENT: Final = frozenset({-152, -188, -190})
"""Codes of librdkafka for records that it has not sent: purged from the queue, unknown topic, unknown partition."""

_CALLBACKS: Final = ("callback", "on_delivery", "dr_cb")
"""What a delivery callback is called, among a producer's settings or in a call; the last is an old name."""


class ProducerRecording:
    """
    What one producer has done, turned into operations.

    Args:
        recorder: Where they go.
        client: The producer's name.
        transactional_id: Its transactional.id, if it has one.
        record_id: Returns the id of a record, if operations are to have ids.
    """

    def __init__(
        self, recorder: Recorder, client: str, transactional_id: str | None = None, record_id: RecordId | None = None
    ) -> None:
        """Begin with nothing."""
        self._recorder = recorder
        self._client = recorder.named(client)
        self._transactional_id = transactional_id
        self._record_id = record_id
        self._transactions = 0
        self._transaction: str | None = None
        self._lock = threading.Lock()
        self._reports: list[Message] = []
        self._callback: tuple[DeliveryCallback | None, DeliveryCallback] = None, self._passing_on(None)
        self.is_flushed = True

    def begins(self) -> None:
        """Begin a transaction."""
        self._transactions += 1
        self._transaction = f"{self._transactional_id}/{self._transactions}"

    def delivered(self, callback: DeliveryCallback | None = None) -> DeliveryCallback:
        """Return what keeps a report, and passes it on to the application's *callback*, if there is one."""
        if callback is not self._callback[0]:  # most applications have but one
            self._callback = callback, self._passing_on(callback)
        return self._callback[1]

    def _passing_on(self, callback: DeliveryCallback | None) -> DeliveryCallback:
        append = self._reports.append
        if callback is None:
            return lambda _error, message: append(message)

        def passes_on(error: KafkaError | None, message: Message) -> None:
            append(message)
            callback(error, message)

        return passes_on

    def served(self, begin_ms: float, end_ms: float) -> None:
        """End a call that has served delivery reports."""
        with self._lock:
            reports = self._reports[:]
            del self._reports[: len(reports)]  # callbacks of other threads may go on appending
        for messages in _runs(reports):
            self._write(messages, begin_ms, end_ms)

    def _write(self, messages: Sequence[Message], begin_ms: float, end_ms: float) -> None:
        """
        Write what was produced to a partition.

        A message's latency is the time from its ``produce`` to its report, which was after the call began that served
        it. So it was not produced before that begin, less its latency.
        """
        first = messages[0]
        error, partition, offset = first.error(), first.partition(), first.offset()
        code = 0 if error is None else error.code()
        if partition is None or partition < 0 or code in _NOT_SENT:
            return
        is_known = error is None and offset is not None and offset >= 0  # without acks there is no offset
        self._recorder.write(
            ProduceOperation(
                begin_ms=begin_ms - 1000 * max((each.latency() or 0) for each in messages),
                end_ms=end_ms if is_known or code > 0 else None,
                client=self._client,
                topic=first.topic() or "",
                partition=partition,
                first_offset=offset if is_known else None,
                last_offset=messages[-1].offset() if is_known else None,
                count=None if is_known else len(messages),
                transaction=self._transaction,
                ids=() if self._record_id is None else tuple(map(self._record_id, messages)),
                code=max(code, 0),
            )
        )

    def ended(self, begin_ms: float, end_ms: float | None, *, committed: bool, code: int = 0) -> None:
        """End a transaction; negative codes are librdkafka's own, and leave open what has become of it."""
        if self._transaction is None:
            return
        self._recorder.write(
            EndTransactionOperation(
                begin_ms=begin_ms,
                end_ms=None if code < 0 else end_ms,
                client=self._client,
                transaction=self._transaction,
                committed=committed,
                code=max(code, 0),
            )
        )

    def closed(self) -> None:
        """Learn that the producer was closed."""
        self._recorder.left(self)

    def abandoned(self) -> None:
        """Learn that the producer goes: what was not reported by then may have been written or not."""
        if not self.is_flushed:
            self._recorder.incomplete()


def _runs(reports: Sequence[Message]) -> Iterator[Sequence[Message]]:
    """Yield messages of one topic and partition with the same error, and of offsets without a gap, in their order."""
    if not reports:
        return
    kind = type(reports[0])  # as in the share consumer's: what is usual is found by whole columns
    topics, partitions = list(map(kind.topic, reports)), list(map(kind.partition, reports))
    if topics.count(topics[0]) == len(reports) == partitions.count(partitions[0]):
        yield from _runs_of_partition(reports, kind)
        return
    places: dict[tuple[str | None, int | None], list[Message]] = {}
    for topic, partition, message in zip(topics, partitions, reports, strict=True):
        places.setdefault((topic, partition), []).append(message)
    for messages in places.values():
        yield from _runs_of_partition(messages, kind)


def _runs_of_partition(messages: Sequence[Message], kind: type[Message]) -> Iterator[Sequence[Message]]:
    errors, offsets = list(map(kind.error, messages)), list(map(kind.offset, messages))
    first, length = offsets[0], len(messages)
    if first is not None and set(map(type, errors)) == {NoneType} and offsets == list(range(first, first + length)):
        yield messages
        return

    def run(numbered: tuple[int, KafkaError | None, int | None]) -> tuple[object, ...]:
        number, error, offset = numbered
        has_offset = error is None and offset is not None and offset >= 0
        return None if error is None else error.code(), offset - number if has_offset and offset is not None else None

    for _, same in groupby(zip(range(length), errors, offsets, strict=True), run):
        yield [messages[number] for number, _, _ in same]


# ---- the producer


class RecordedProducer(Base):
    """What comes before ``confluent_kafka.Producer``, or a class derived from it, to record what it does."""

    def __init__(
        self, config: Mapping[str, Any], recorder: Recorder, client: str, record_id: RecordId | None = None
    ) -> None:
        """Make the producer, and hear of its deliveries, as well as the application does."""
        given = dict(config)
        callbacks = [given.pop(name) for name in _CALLBACKS if name in given]
        self._now_ms = recorder.now_ms
        self._recorder = recorder
        transactional_id = given.get("transactional.id")
        self._recording = recording = ProducerRecording(
            recorder, client, None if transactional_id is None else str(transactional_id), record_id
        )
        super().__init__({**given, "on_delivery": recording.delivered(*callbacks[:1])})
        recorder.opened(self, recording)

    def produce(  # noqa: PLR0913 - confluent-kafka's own arguments, in its order
        self,
        topic: str,
        value: Any = None,  # noqa: ANN401 - as confluent-kafka has it
        key: Any = None,  # noqa: ANN401 - as above
        partition: int = -1,
        callback: Any = None,  # noqa: ANN401 - as above
        on_delivery: Any = None,  # noqa: ANN401 - as above
        timestamp: int = 0,
        headers: Any = None,  # noqa: ANN401 - as above
    ) -> None:
        """Produce a record; its delivery is written down whatever callback it has."""
        recording = self._recording
        recording.is_flushed = False
        if callback is None:
            callback = on_delivery  # where both are given, the first is called, even if it is None
        if callback is not None:
            callback = recording.delivered(callback)
        # By position: it takes 0.2 us less than by name, which more than pays for this method.
        super().produce(topic, value, key, partition, callback, None, timestamp, headers)

    def produce_batch(self, topic: str, messages: Any, *args: Any, **named: Any) -> int:  # noqa: ANN401 - as above
        """Produce records, of which only those are written down that have no callback of their own."""
        if any(isinstance(each, dict) and each.get("callback") for each in messages) or args[1:] or named:
            self._recorder.incomplete()
        return super().produce_batch(topic, messages, *args, **named)

    def poll(self, timeout: float = -1) -> int:
        """Serve delivery reports."""
        with self._serving():
            return super().poll(timeout)

    def flush(self, timeout: float = -1) -> int:
        """Serve delivery reports until there are no more to come."""
        with self._serving():
            left = super().flush(timeout)
        self._recording.is_flushed = not left
        return left

    def begin_transaction(self, *args: float) -> None:
        """Begin a transaction."""
        super().begin_transaction(*args)
        self._recording.begins()

    def commit_transaction(self, *args: float) -> None:
        """Commit the transaction."""
        self._end(super().commit_transaction, args, committed=True)

    def abort_transaction(self, *args: float) -> None:
        """Abort the transaction."""
        self._end(super().abort_transaction, args, committed=False)

    def _end(self, end: Callable[..., None], args: tuple[float, ...], *, committed: bool) -> None:
        begin_ms = self._now_ms()
        try:
            with self._serving():
                end(*args)
        except Exception as error:
            code = getattr(error.args[0] if error.args else None, "code", lambda: -1)()
            self._recording.ended(begin_ms, self._now_ms(), committed=committed, code=code)
            raise
        self._recording.ended(begin_ms, self._now_ms(), committed=committed)

    def close(self, *args: Any) -> Any:  # noqa: ANN401 - as above
        """Close the producer, and the file if it has no other client."""
        with self._serving():
            closed = super().close(*args)
        self._recording.closed()
        return closed

    def __exit__(self, *_error: object) -> None:
        """Close the producer."""
        self.close()

    @contextmanager
    def _serving(self) -> Iterator[None]:
        begin_ms = self._now_ms()
        try:
            yield
        finally:
            self._recording.served(begin_ms, self._now_ms())
