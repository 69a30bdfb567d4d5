"""
Slices of the state topic: a partition of it, from one offset to another, each of which a task of Spark reads.

Slices are cut once, when a frame is made, and stay what they are: who computes the frame twice, or joins it with
itself, reads the same records, or an error if they are gone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from attrs import field, frozen

from sharestate.errors import UnreadableFileError
from sharestate.state_topic import StateTopicFile, TopicRecord, state_topic_files
from sharestate.state_topic.files import TOPIC, records_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from sharestate.state_topic.cluster import Cluster


class Slice(Protocol):
    """A part of the state topic that one task reads."""

    @property
    def topic(self) -> str:
        """The topic, by the name that its rows get."""
        ...

    def records(self) -> Iterator[TopicRecord]:
        """
        Yield the records, in the order of their offsets.

        Raises:
            UnreadableFileError: They cannot be read, or are gone.
            ExternalError: The cluster does not answer.
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
        """Yield the records of whole record batches; transaction markers are skipped."""
        from sharestate.segments import LogReader  # noqa: PLC0415 - needs an extra

        for path, size in self.sizes.items():
            for batch in LogReader(path):
                if batch.byte_offset + batch.size > size:
                    break
                yield from records_of(batch, self.partition)


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


@frozen(kw_only=True)
class StateTopicOfCluster:
    """
    The state topic of a cluster.

    Attributes:
        bootstrap: Brokers to ask first, as ``HOST:PORT,HOST:PORT``.
        topic: The topic's name there, which a copy may have changed.
        settings: Others for the client, by librdkafka's names.
        timeout_ms: How long brokers may be silent. [ms]
    """

    bootstrap: str
    topic: str = TOPIC
    settings: Mapping[str, str] = field(repr=False)  # there may be passwords
    timeout_ms: int

    def open(self) -> Cluster:
        """Return a client for it, which is a context manager."""
        from sharestate.state_topic.cluster import Cluster  # noqa: PLC0415 - needs an extra

        return Cluster(self.bootstrap, self.settings, topic=self.topic, timeout_s=self.timeout_ms / 1000)

    def slices(self, partitions: Collection[int] | None) -> list[Slice]:
        """
        Return a slice for each partition, or each of *partitions*, from where it starts to where it ends now.

        Raises:
            ExternalError: The cluster does not answer, or has no such topic.
            UnreadableFileError: The topic has no such partition.
        """
        with self.open() as cluster:
            offsets = cluster.state_offsets(partitions)
        return [BrokerSlice(self, number, span) for number, span in offsets.items()]


@frozen
class BrokerSlice:
    """
    What brokers have of one partition, from one offset to another.

    Attributes:
        source: The topic.
        partition: Its partition.
        offsets: From where the log started to where it ended.
    """

    source: StateTopicOfCluster
    partition: int
    offsets: range

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.source.topic

    def records(self) -> Iterator[TopicRecord]:
        """Yield the records, and refuse to go on if brokers have deleted some of them meanwhile."""
        if self.offsets:
            with self.source.open() as cluster:
                yield from cluster.records({self.partition: self.offsets})
