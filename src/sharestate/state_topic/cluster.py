"""
The state topic of a live cluster, or another one, and where logs of share partitions end (extra ``consumer``).

Nothing here is asked of a share coordinator: ReadShareGroupState is a leader's request, and fences the one there is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from time import monotonic
from types import TracebackType
from typing import Any, Final, NoReturn, Self

try:
    from confluent_kafka import (
        OFFSET_INVALID,
        TIMESTAMP_LOG_APPEND_TIME,
        Consumer,
        KafkaError,
        KafkaException,
        Message,
        TopicCollection,
        TopicPartition,
    )
    from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType, TopicMetadata
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "confluent_kafka":
        raise
    message = "a cluster needs the extra 'consumer': pip install 'sharestate[consumer]'"
    raise ModuleNotFoundError(message, name=error.name) from error
from sharestate.coordinator.wire import topic_id_text
from sharestate.errors import ErrorCode, ExternalError, InvalidConfigurationError, UnreadableFileError
from sharestate.state_topic.client_settings import client_settings
from sharestate.state_topic.files import TOPIC, TopicRecord
from sharestate.values.records import SharePartitionKey

__all__ = ["Cluster", "client_settings"]

CLIENT: Final = "sharestate"
"""By what name the brokers know the consumer, as a client and as a group, which it does not join."""

_AT_ONCE: Final = 500
"""The most records that are taken from the client in one go. [records]"""

_WAIT_S: Final = 0.1
"""How long the client is waited for before the deadline is looked at. [s]"""

_FAILED_AFTER_S: Final = 1
"""How long the first answer is waited for before it is asked whether there can be one. [s]"""

_HOPELESS: Final = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION})  # noqa: SLF001 - their names

_NO_FAILURE: Final = frozenset({KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET})  # noqa: SLF001 - their names
"""What the client says of a partition: its log has no more records, or none at the offset that is wanted."""

_ABSENT: Final = frozenset({KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION, KafkaError._NOENT})  # noqa: SLF001 - their names

_OTHER_LEADER: Final = frozenset(
    {
        *(KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION),
        *(KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH),
    }
)
"""What a broker answers that does not lead a partition, or leads it with a higher epoch."""

_EARLIEST: Final = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]

_FETCH: Final[dict[str, Any]] = {
    "group.id": CLIENT,
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",  # that records were deleted must not be passed over in silence
    "isolation.level": "read_uncommitted",
}
_ASK: Final[dict[str, Any]] = {"client.id": CLIENT, "log_level": 0}  # errors are raised, not printed


class Cluster:
    """
    A Kafka cluster, as a consumer sees it that belongs to no group; use it as a context manager.

    It fetches the state topic, and asks for metadata, topic ids and offsets. The broker is also asked where the
    coordinator of the group ``sharestate`` is, as by every consumer; nothing is committed, and no group made.

    Args:
        bootstrap_servers: Brokers to begin with: ``"localhost:9092"``, with commas between several.
        settings: What else librdkafka is to know, such as ``security.protocol``, in its own names.
        topic: The topic to fetch: a copy of the state topic, or one of other records, such as dead letters.
        timeout_s: How long the cluster may be silent. [s]

    Raises:
        InvalidConfigurationError: librdkafka does not take a setting.
        ExternalError: From the methods: the cluster cannot be reached, refuses, or has no such topic. With Kafka's
            error code.
        UnreadableFileError: From the methods: the topic has no such partition, or not the records any more.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        settings: Mapping[str, str] | None = None,
        *,
        topic: str = TOPIC,
        timeout_s: float = 30,
    ) -> None:
        """Make a client; nothing is connected to before it is asked something."""
        self._servers = bootstrap_servers
        self._topic = topic
        self._timeout_s = timeout_s
        self._failures: dict[int, KafkaError] = {}
        """By code, the latest at the end: one that is hopeless is not lost among many that come again and again."""
        self._settings: dict[str, Any] = {**_ASK, **(settings or {}), "bootstrap.servers": bootstrap_servers}
        try:
            self._consumer = Consumer(self._settings | _FETCH | {"error_cb": self._failed})
        except KafkaException as error:
            raise InvalidConfigurationError(_reason(error).str()) from error

    def state_offsets(self, partitions: Collection[int] | None = None) -> dict[int, range]:
        """Return the offsets that each partition of the topic has now, or each of *partitions*."""
        topic = self._topics().get(self._topic)
        if topic is None:
            makes = "; the first share group with a member makes it" if self._topic == TOPIC else ""
            _raise(f"{self._servers}: there is no topic {self._topic}{makes}", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if topic.error is not None:
            self._refuse(topic.error)
        for number in sorted(set(partitions or ()) - set(topic.partitions)):
            self._refuse_partition(f"there is no such partition, but {len(topic.partitions)} others", number)
        return {number: self._offsets_of(number) for number in sorted(partitions or topic.partitions)}

    def records(self, offsets: Mapping[int, range]) -> Iterator[TopicRecord]:
        """
        Yield the records at *offsets*, those of each partition of the topic in the order of the log.

        If brokers have deleted some of them, that is an UnreadableFileError.
        """
        return map(self._logged, self._read(offsets, self._refuse_deleted))

    def remaining_records(self, offsets: Mapping[int, range]) -> Iterator[TopicRecord]:
        """
        Yield the records at *offsets*; of a partition of which brokers have deleted some meanwhile, what it has then.

        So nothing is lost: what they delete, later snapshots have replaced, which may come after *offsets*.
        """
        return map(self._logged, self.remaining_messages(offsets))

    def remaining_messages(self, offsets: Mapping[int, range]) -> Iterator[Message]:
        """
        Yield the same as the client has it, with headers.

        Of other topics than the state topic, what was deleted meanwhile is lost.
        """
        return self._read(offsets, lambda number, _: self._offsets_of(number))

    def _offsets_of(self, number: int) -> range:
        """Return the offsets that a partition has now."""
        try:
            return range(*self._consumer.get_watermark_offsets(self._place(number), timeout=self._timeout_s))
        except KafkaException as error:
            self._refuse(_reason(error), error)

    def _place(self, number: int, offset: int = OFFSET_INVALID) -> TopicPartition:
        return TopicPartition(self._topic, number, offset)

    def _read(self, offsets: Mapping[int, range], once_deleted: Callable[[int, range], range]) -> Iterator[Message]:
        """Yield the records at *offsets*; where some are gone, at those that *once_deleted* returns."""
        left = {number: span for number, span in offsets.items() if span}
        self._consumer.assign([self._place(number, span.start) for number, span in left.items()])
        for message in self._messages(left):
            number = message.partition() or 0
            if number not in left:
                continue
            if _says(message, KafkaError._AUTO_OFFSET_RESET):  # noqa: SLF001 - its public name
                left[number] = once_deleted(number, left[number])
                reached = self._go_to(number, left[number].start)
            else:
                if message.error() is None and message.offset() in left[number]:
                    yield message
                reached = self._offset_after(message, left[number])
            if reached >= left[number].stop:
                del left[number]
        self._consumer.unassign()

    def _logged(self, message: Message) -> TopicRecord:
        key, value = message.key(), message.value()
        kind, timestamp_ms = message.timestamp()
        return TopicRecord(
            *(self._servers, None, None, message.partition(), message.offset(), timestamp_ms),
            b"" if key is None else _bytes(key),
            None if value is None else _bytes(value),
            int(kind == TIMESTAMP_LOG_APPEND_TIME),
        )

    def _offset_after(self, message: Message, span: range) -> int:
        """Return the offset from which on nothing is read yet; the end of the log is a message, too."""
        offset = message.offset() or 0
        if message.error() is None:
            return offset + 1
        if offset < span.stop:
            problem = f"the log ends at offset {offset} now, and has ended at {span.stop}"
            self._refuse_partition(problem, message.partition())
        return offset

    def _go_to(self, number: int, offset: int) -> int:
        """Read a partition from *offset* on, which is returned."""
        self._consumer.incremental_unassign([self._place(number)])
        self._consumer.incremental_assign([self._place(number, offset)])
        return offset

    def _refuse_deleted(self, number: int, span: range) -> NoReturn:
        problem = f"the log has started at offset {span.start}, and brokers have deleted records since then"
        self._refuse_partition(problem, number)

    def _refuse_partition(self, problem: str, number: int | None) -> NoReturn:
        raise UnreadableFileError(problem, f"{self._topic}-{number} of {self._servers}")

    def _messages(self, left: Mapping[int, range]) -> Iterator[Message]:
        """Yield what the client has fetched, ends of partitions included, until nothing is *left*."""
        give_up_s = monotonic() + self._timeout_s
        while left:
            for message in self._consumer.consume(_AT_ONCE, _WAIT_S):
                give_up_s = monotonic() + self._timeout_s
                error = message.error()
                if error is not None and error.code() not in _NO_FAILURE:
                    self._refuse(error)
                yield message
            if monotonic() > give_up_s:
                self._refuse(KafkaError(KafkaError._TIMED_OUT, f"nothing has come for {self._timeout_s} s"))  # noqa: SLF001

    def log_end_offsets(self, keys: Iterable[SharePartitionKey]) -> dict[SharePartitionKey, int]:
        """
        Return where the logs of the topic partitions of *keys* end: the offset of the next record.

        Those whose topic or partition is not there, or is not shown to this client, are left out.

        Complexity:
            One request for each broker, after one for the ids of all topics.
        """
        return self._listed(keys, self.topic_names(), _LATEST)

    def log_offsets(
        self, keys: Collection[SharePartitionKey], names: Mapping[str, str]
    ) -> dict[SharePartitionKey, range]:
        """
        Return the offsets that the logs of the topic partitions of *keys* have now: their starts and ends.

        Those whose topic or partition is not there, or is not shown to this client, are left out.

        Args:
            keys: The share partitions.
            names: The names of their topics by id, as ``topic_names`` returns them.

        Complexity:
            Two requests for each broker.
        """
        starts = self._listed(keys, names, _EARLIEST)
        ends = self._listed(starts, names, _LATEST)
        return {key: range(starts[key], end) for key, end in ends.items()}

    def _listed(
        self, keys: Iterable[SharePartitionKey], names: Mapping[str, str], spec: OffsetSpec
    ) -> dict[SharePartitionKey, int]:
        """Return the offsets that ListOffsets answers for the topic partitions of *keys*."""
        asked = {key: TopicPartition(names[key.topic_id], key.partition) for key in keys if key.topic_id in names}
        if not asked:
            return {}
        places = {(place.topic, place.partition): place for place in asked.values()}
        try:
            listed = self._list_offsets(places, spec)
            if None in listed.values():
                # librdkafka keeps the epochs of leaders that it has asked so, and is refused after a failover for good.
                del self._admin
                listed |= self._list_offsets({name: places[name] for name, at in listed.items() if at is None}, spec)
        except KafkaException as error:
            self._refuse(_reason(error), error)
        found = {key: listed.get((place.topic, place.partition)) for key, place in asked.items()}
        return {key: offset for key, offset in found.items() if offset is not None}

    def _list_offsets(
        self, places: Mapping[tuple[str, int], TopicPartition], spec: OffsetSpec
    ) -> dict[tuple[str, int], int | None]:
        """Return the offset of each place, None where its leader is another one; without those that are not shown."""
        futures = self._admin.list_offsets(dict.fromkeys(places.values(), spec), request_timeout=self._timeout_s)
        listed: dict[tuple[str, int], int | None] = {}
        for name, place in places.items():
            try:
                listed[name] = int(futures[place].result().offset)
            except KafkaException as error:
                self._pass_over(error)
                if _reason(error).code() in _OTHER_LEADER:
                    listed[name] = None
        return listed

    def topic_names(self) -> dict[str, str]:
        """
        Return the names of all topics by their ids; those that are not shown to this client are left out.

        Complexity:
            One request after one for the names.
        """
        names = TopicCollection(list(self._topics()))
        ids = {}
        try:
            for name, future in self._admin.describe_topics(names, request_timeout=self._timeout_s).items():
                try:
                    uuid = future.result().topic_id
                except KafkaException as error:
                    self._pass_over(error)
                else:
                    bits = uuid.get_most_significant_bits() % 2**64 << 64 | uuid.get_least_significant_bits() % 2**64
                    ids[topic_id_text(bits.to_bytes(16))] = name
        except KafkaException as error:
            self._refuse(_reason(error), error)
        return ids

    def group_configs(self, group_ids: Iterable[str], *, passes_over: bool = False) -> dict[str, dict[str, str]]:
        """
        Return the settings of groups, as they are in force there: brokers' defaults are among them.

        Brokers of 4.2 name only settings that a group can have there.

        Args:
            group_ids: The groups; one that does not exist has settings, too.
            passes_over: Whether groups are left out whose settings are not shown to this client; else that is an error.

        Complexity:
            One request.
        """
        asked = [ConfigResource(ResourceType.GROUP, group_id) for group_id in group_ids]
        configs = {}
        try:
            futures = self._admin.describe_configs(asked, request_timeout=self._timeout_s) if asked else {}
            for resource, future in futures.items():
                try:
                    entries = future.result()
                except KafkaException as error:
                    if not passes_over:
                        raise
                    self._pass_over(error)
                else:
                    configs[resource.name] = {
                        name: entry.value for name, entry in entries.items() if entry.value is not None
                    }
        except KafkaException as error:
            self._refuse(_reason(error), error)
        return configs

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient(self._settings)

    def _topics(self) -> dict[str, TopicMetadata]:
        """Return all topics that the cluster shows to this client, by name."""
        give_up_s = monotonic() + self._timeout_s
        while True:
            try:
                metadata = self._consumer.list_topics(timeout=min(_FAILED_AFTER_S, self._timeout_s))
            except KafkaException as error:
                self._consumer.poll(0)  # which calls back with what has failed
                if monotonic() > give_up_s or not _HOPELESS.isdisjoint(self._failures):
                    self._refuse(_reason(error), error)
            else:
                self._failures.clear()  # they are over
                return dict(metadata.topics)

    def _pass_over(self, error: Exception) -> None:
        """Raise *error* again unless it is about one topic or partition."""
        code = _reason(error).code()
        if code <= 0 and code not in _ABSENT:
            raise error

    # ---- its life

    def close(self) -> None:
        """End the connections."""
        self._consumer.close()

    def __enter__(self) -> Self:
        """Return the cluster."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def _failed(self, failure: KafkaError) -> None:
        """Note what the client calls back with."""
        code = failure.code()
        self._failures.pop(code, None)
        self._failures[code] = failure

    def _refuse(self, error: KafkaError, cause: Exception | None = None) -> NoReturn:
        """Raise what has failed last, or else *error*."""
        failed = [failure.str() for code, failure in self._failures.items() if code != KafkaError._ALL_BROKERS_DOWN]  # noqa: SLF001
        known = {code.value: code for code in ErrorCode}
        local = ErrorCode.REQUEST_TIMED_OUT if error.code() == KafkaError._TIMED_OUT else ErrorCode.NETWORK_EXCEPTION  # noqa: SLF001
        _raise(f"{self._servers}: {failed[-1] if failed else error.str()}", known.get(error.code(), local), cause)


def _says(message: Message, code: int) -> bool:
    error = message.error()
    return error is not None and error.code() == code


def _reason(error: Exception) -> KafkaError:
    """Return what an exception of the client is about, which is all that it has."""
    reason: KafkaError = error.args[0]
    return reason


def _bytes(data: bytes | str) -> bytes:
    return data.encode() if isinstance(data, str) else data


def _raise(message: str, code: ErrorCode, cause: Exception | None = None) -> NoReturn:
    raise ExternalError(message, code, code.exception) from cause
