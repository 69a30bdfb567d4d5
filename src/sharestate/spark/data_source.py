"""
The state topic as a data source of Spark: ``spark.read.format("share_group_state")``.

Spark's own connector for Kafka reads internal topics as if they were empty; this one reads them from the log segments
of a broker, or from a cluster. Filters are not pushed into it: Spark 4 keeps those of one query for the next. Options
say what to leave out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attrs import frozen
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from sharestate.coordinator import decode_record
from sharestate.errors import RecordFormatError, UnknownRecordTypeError
from sharestate.spark.schemas import STATE_RECORDS, arrow_schema
from sharestate.spark.topic_slices import Slice, StateTopicOfCluster, segment_slices
from sharestate.spark.workers import use_this_python
from sharestate.state_topic import TopicRecord
from sharestate.state_topic.files import TOPIC
from sharestate.values.checks import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

TIMEOUT_MS: Final = 60_000
"""How long a broker may take to answer, unless an option says otherwise. [ms]"""

_CLIENT: Final = "kafka."
_OPTIONS: Final = frozenset({"path", "bootstrap", "topic", "partitions", "group", "timeout_ms"})
_ROWS_PER_BATCH: Final = 10_000
"""As many rows as Spark puts into a record batch of Arrow (spark.sql.execution.arrow.maxRecordsPerBatch)."""

_MAX_TIMESTAMP_MS: Final = (2**63 - 1) // 1000
"""The last time that Spark has a value for, in microseconds. [ms since 1970]"""


def register(spark: SparkSession) -> None:
    """Make the data source known to *spark*, on Spark Connect too: ``spark.read.format("share_group_state")``."""
    use_this_python(spark)
    spark.dataSource.register(StateTopicSource)


class StateTopicSource(DataSource):
    """
    The records of the state topic, a task for each partition of it.

    What is read is fixed when the frame is made, by ``load``: records that come later are not in it. If records are
    gone when it is computed, the job fails.

    Options:
        path: A partition's directory of log segments, or a directory of such directories, which every executor sees
            under this path; needs the extra ``segments``. Or, in its place:
        bootstrap: Brokers of a cluster, ``HOST:PORT,HOST:PORT``; needs the extra ``spark-kafka`` on every executor.
        topic: The name of the topic on the cluster, if it is a copy that has another one.
        partitions: The partitions of the state topic to read, as ``0,7,12``; without it, all.
        group: A share group, to read no other's records; none of unknown types, then.
        timeout_ms: How long a broker may take to answer; 60000 without it. [ms]
        kafka.*: Settings of the client, by librdkafka's names: ``kafka.security.protocol``.

    Raises:
        MalformedInputError: An option is unknown, missing or wrong; ``field`` names it.
        UnreadableFileError: The records cannot be read, or are gone.
        ExternalError: The cluster does not answer, or has no such topic. Spark wraps them into errors of its own.
    """

    def __init__(self, options: dict[str, str]) -> None:
        """Cut the slices that tasks will read."""
        super().__init__(options)
        self.slices = _slices(options)
        self.group = options.get("group")

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "share_group_state"

    def schema(self) -> StructType:
        """Return the columns of Spark's Kafka source."""
        return STATE_RECORDS

    def reader(self, schema: StructType) -> StateTopicReader:
        """Return what reads the slices; no other schema than its own is taken."""
        if schema != STATE_RECORDS:
            refuse(f"expected the schema STATE_RECORDS, got {schema.simpleString()}", "schema")
        return StateTopicReader(self.slices, self.group)


@frozen
class StateTopicReader(DataSourceReader):
    """
    What reads the slices of the topic.

    Attributes:
        slices: One for each task.
        group: The share group whose records are read; None for all.
    """

    slices: list[Slice]
    group: str | None

    def partitions(self) -> list[InputPartition]:
        """Return a partition of Spark's for each slice."""
        return [InputPartition(each) for each in self.slices]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a slice as batches of Arrow's, with exactly the types that Spark expects."""
        import pyarrow as pa  # noqa: PLC0415 - only where it runs

        schema = arrow_schema(STATE_RECORDS)
        rows: list[dict[str, Any]] = []
        slice_: Slice = partition.value
        for record in slice_.records():
            if self.group is None or _group_of(record) == self.group:
                rows.append({"topic": slice_.topic, **_row(record)})
                if len(rows) == _ROWS_PER_BATCH:
                    yield pa.RecordBatch.from_pylist(rows, schema)
                    rows = []
        yield pa.RecordBatch.from_pylist(rows, schema)


def _row(record: TopicRecord) -> dict[str, Any]:
    return {
        "key": record.key,
        "value": record.value,
        "partition": record.state_partition,
        "offset": record.offset,
        "timestamp": _microseconds(record.timestamp_ms),
        "timestampType": record.timestamp_type,
    }


def _microseconds(timestamp_ms: int | None) -> int | None:
    """Return a timestamp as Spark has it; None for none, and for one that Spark has no value for."""
    return None if timestamp_ms is None or not 0 <= timestamp_ms <= _MAX_TIMESTAMP_MS else timestamp_ms * 1000


def _group_of(record: TopicRecord) -> str | None:
    """Return the share group of a record; None for one of an unknown type."""
    try:
        return decode_record(record.key, None).key.group_id
    except UnknownRecordTypeError:
        return None
    except RecordFormatError as error:
        record.refuse(f"byte {error.byte_offset}: {error.message}", "key", error)


# ---- options


def _slices(options: Mapping[str, str]) -> list[Slice]:
    for name in options:
        if name not in _OPTIONS and not name.startswith(_CLIENT):
            refuse(f"an unknown option; there are {', '.join(sorted(_OPTIONS))} and {_CLIENT}*", name)
    partitions = _numbers(options["partitions"], "partitions") if "partitions" in options else None
    path, bootstrap = options.get("path"), options.get("bootstrap")
    if path is not None and bootstrap is not None:
        refuse("path is given, too; expected one of them", "bootstrap")
    if path is not None:
        return segment_slices(path, partitions)
    if bootstrap is None:
        refuse("expected this option or bootstrap, got neither", "path")
    settings = {name.removeprefix(_CLIENT): value for name, value in options.items() if name.startswith(_CLIENT)}
    timeout_ms = _numbers(options.get("timeout_ms", str(TIMEOUT_MS)), "timeout_ms")[0]
    topic = options.get("topic", TOPIC)
    source = StateTopicOfCluster(bootstrap=bootstrap, topic=topic, settings=settings, timeout_ms=timeout_ms)
    return source.slices(partitions)


def _numbers(text: str, field: str) -> list[int]:
    """Return the numbers in a list with commas."""
    numbers = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() for part in numbers):
        refuse(f"expected numbers, got {text!r}", field)
    return list(map(int, numbers))
