"""
Slices of the state topic: a partition of it, from one offset to another, each of which a task of Spark reads.

Slices are cut once, when a frame is made, and stay what they are: whoever computes the frame twice, or joins it with
itself, reads the same records, or an error if they are gone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Protocol

from attrs import field, frozen

from sharestate.errors import UnreadableFileError
from sharestate.state_topic import StateTopicFile, state_topic_files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from confluent_kafka import Consumer, Message

TOPIC: Final = "__share_group_state"


class TopicRecord(NamedTuple):
    """
    A record of the state topic.

    Attributes:
        partition: Its partition of the topic.
        offset: Its offset there.
        timestamp_ms: Its timestamp; negative for none. [ms since 1970]
        timestamp_type: Who has set that: 0 the producer, 1 the broker.
        key: The bytes of its key; none at all if there is no key.
        value: The bytes of its value; None for a tombstone.
    """

    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes
    value: bytes | None


class Slice(Protocol):
    """What a task reads."""

    @property
    def topic(self) -> str:
        """The topic, by the name that its rows get."""
        ...

    def records(self) -> Iterator[TopicRecord]:
        """
        Yield the records, in the order of their offsets.

        Raises:
            UnreadableFileError: They cannot be read, or are gone.
        """
        ...


# ---- log segments


@frozen
class SegmentSlice:
    """
    The segments of one partition, as far as they went when the slice was cut.

    Attributes:
        partition: The partition of the state topic.
        sizes: The size of each segment, by its path. [bytes]
        topic: The topic's name.
    """

    partition: int
    sizes: Mapping[str, int]
    topic: str = TOPIC

    def records(self) -> Iterator[TopicRecord]:
        """Yield the records of whole record batches; transaction markers are passed over."""
        from sharestate.segments import LogReader  # noqa: PLC0415 - needs an extra

        for path, size in self.sizes.items():
            for batch in LogReader(path):
                if batch.byte_offset + batch.size > size:
                    break
                if not batch.is_control:
                    for offset, timestamp_ms, key, value, _ in batch.records():
                        yield TopicRecord(self.partition, offset, timestamp_ms, batch.timestamp_type, key or b"", value)


def segment_slices(path: Path | str, partitions: Collection[int] | None) -> list[Slice]:
    """
    Return a slice for each partition of the topic whose segments are at *path*, or for those of *partitions*.

    Args:
        path: A partition's directory, named after it, or one with such directories, as a broker has them.
        partitions: The partitions to read; None for all.

    Raises:
        UnreadableFileError: There are no segments, or no name says which partition they are of.
    """
    files = [file for file in state_topic_files(path) if partitions is None or file.state_partition in partitions]
    return [SegmentSlice(_partition_of(file), _sizes(Path(file.file))) for file in files]


def _partition_of(file: StateTopicFile) -> int:
    if file.state_partition is None:
        message = f"no log segments in a directory of a partition's name, such as {TOPIC}-0"
        raise UnreadableFileError(message, file.file)
    return file.state_partition


def _sizes(path: Path) -> dict[str, int]:
    from sharestate.segments import segment_files  # noqa: PLC0415 - needs an extra

    files = segment_files(path) if path.is_dir() else [path]
    return {str(file): file.stat().st_size for file in files}


# ---- a broker


@frozen
class BrokerSlice:
    """
    What brokers have of one partition, from one offset to another.

    Attributes:
        topic: The topic's name, which a copy on another cluster may have changed.
        partition: Its partition.
        start: The first offset, where the log started.
        end: The offset after the last one, where the log ended.
        settings: Those of the client.
        timeout_ms: How long it waits for the next records. [ms]
    """

    topic: str
    partition: int
    start: int
    end: int
    settings: Mapping[str, str] = field(repr=False)  # there may be passwords
    timeout_ms: int

    def records(self) -> Iterator[TopicRecord]:
        """Yield the records, and refuse to go on if brokers have deleted some of them meanwhile."""
        from confluent_kafka import TopicPartition  # noqa: PLC0415 - needs an extra

        if self.start == self.end:
            return
        consumer = _consumer(self.settings)
        try:
            consumer.assign([TopicPartition(self.topic, self.partition, self.start)])
            yield from self._until_end(consumer)
        finally:
            consumer.close()

    def _until_end(self, consumer: Consumer) -> Iterator[TopicRecord]:
        next_offset = self.start
        while next_offset < self.end:
            message = consumer.poll(self.timeout_ms / 1000)
            if message is None:
                self._refuse(f"no record from offset {next_offset} on within {self.timeout_ms} ms")
            next_offset = self._offset_after(message)
            if message.error() is None and next_offset <= self.end:
                yield self._record(message)

    def _offset_after(self, message: Message) -> int:
        """Return the offset from which on nothing is read yet; an end of the log is a message with an error, too."""
        from confluent_kafka import KafkaError  # noqa: PLC0415 - needs an extra

        error = message.error()
        offset = message.offset() or 0
        if error is None:
            return offset + 1
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            if offset < self.end:
                self._refuse(f"the log ends at offset {offset} now, and has ended at {self.end}")
            return offset
        if error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 - its public name
            self._refuse(f"the log has started at offset {self.start}, and brokers have deleted records since then")
        return self._refuse(error.str())

    def _record(self, message: Message) -> TopicRecord:
        from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME  # noqa: PLC0415 - needs an extra

        kind, timestamp_ms = message.timestamp()
        key: Any = message.key()
        value: Any = message.value()
        offset = message.offset() or 0
        return TopicRecord(
            self.partition, offset, timestamp_ms, int(kind == TIMESTAMP_LOG_APPEND_TIME), key or b"", value
        )

    def _refuse(self, message: str) -> NoReturn:
        raise UnreadableFileError(message, f"{self.topic}-{self.partition} of {self.settings['bootstrap.servers']}")


def broker_slices(
    bootstrap: str, topic_name: str, partitions: Collection[int] | None, settings: Mapping[str, str], timeout_ms: int
) -> list[Slice]:
    """
    Return a slice for each partition of the topic on a cluster, from where it starts to where it ends now.

    It is a consumer without a group, which commits nothing and asks no coordinator for a state.

    Args:
        bootstrap: Brokers to ask first, as ``HOST:PORT,HOST:PORT``.
        topic_name: The topic's name there.
        partitions: The partitions to read; None for all.
        settings: Others for the client, by librdkafka's names.
        timeout_ms: How long to wait for an answer. [ms]

    Raises:
        UnreadableFileError: The cluster does not answer, or has no such topic or partition.
    """
    from confluent_kafka import KafkaException, TopicPartition  # noqa: PLC0415 - needs an extra

    settings = {**settings, "bootstrap.servers": bootstrap}
    timeout_s = timeout_ms / 1000
    consumer = _consumer(settings)
    try:
        topic = consumer.list_topics(topic_name, timeout_s).topics[topic_name]
        if topic.error is not None:
            raise UnreadableFileError(topic.error.str(), f"{topic_name} of {bootstrap}")
        missing = sorted(set(partitions or ()) - set(topic.partitions))
        if missing:
            message = f"no partition {missing[0]}; there are {len(topic.partitions)}"
            raise UnreadableFileError(message, f"{topic_name} of {bootstrap}")
        slices: list[Slice] = []
        for number in sorted(topic.partitions if partitions is None else set(partitions)):
            start, end = consumer.get_watermark_offsets(TopicPartition(topic_name, number), timeout_s)
            slices.append(BrokerSlice(topic_name, number, start, end, settings, timeout_ms))
    except KafkaException as error:
        raise UnreadableFileError(str(error.args[0]), f"{topic_name} of {bootstrap}") from error
    else:
        return slices
    finally:
        consumer.close()


def _consumer(settings: Mapping[str, str]) -> Consumer:
    from confluent_kafka import Consumer  # noqa: PLC0415 - needs an extra

    own = {
        "group.id": "sharestate",  # which the client wants, and which is never joined
        "enable.auto.commit": "false",
        "enable.partition.eof": "true",
        "auto.offset.reset": "error",  # a start that was deleted must not be skipped in silence
    }
    return Consumer({**settings, **own})
