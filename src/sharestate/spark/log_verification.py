"""
Brokers' logs checked on Spark: one shuffle that brings each share partition's events together, then the check of each.

The events are written in the order that was found, and so are the verdicts, as ``sharestate log verify`` does it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Final, Self

from attrs import evolve, frozen
from pyspark.errors import AnalysisException
from pyspark.sql.types import StringType, StructField, StructType

from sharestate.errors import HistoryError
from sharestate.history import Header, Order, create_history
from sharestate.history.files import named_at_last
from sharestate.spark.batch_replay import events_in_order
from sharestate.spark.history_files import read_history
from sharestate.spark.history_schemas import checked_events, lacks_of, order_of, topics_of
from sharestate.spark.largest_partition import Size, largest_partition
from sharestate.spark.log_verification_columns import VERIFICATION
from sharestate.spark.schemas import arrow_schema, struct
from sharestate.spark.workers import tasks, use_this_python

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from sharestate.spark.log_verification_tasks import VerificationSettings

_WRITTEN: Final = StructType([StructField("directory", StringType()), StructField("name", StringType())])
_HISTORY: Final = "history"
_WHILE_WRITTEN: Final = "_temporary"
_SCHEMA_OF_SPARK: Final = "org.apache.spark.sql.parquet.row.metadata"
"""Where Spark looks in a Parquet file for its own schema, with the comments of columns."""


@frozen(eq=False)
class VerifiedLogs:
    """
    What a check of brokers' logs has made.

    Attributes:
        events: The events in causal order, as ``replay`` takes them.
        verdicts: A row for each share partition: ``verdicts`` on the page of tables.
        findings: A row for each place that is not explained: ``findings`` there.
    """

    events: DataFrame
    verdicts: DataFrame
    findings: DataFrame

    @classmethod
    def read(cls, spark: SparkSession, path: str) -> Self:
        """
        Return what ``verify`` has written to *path*.

        Raises:
            HistoryError: It is no such directory, or of a version that is not known.
        """
        try:
            events = read_history(spark, f"{path}/{_HISTORY}")
            tables = [
                spark.read.schema(struct(table.columns)).parquet(f"{path}/{name}")
                for name, table in VERIFICATION.items()
            ]
        except AnalysisException as error:
            message = "expected a directory that 'sharestate spark verify' has written"
            raise HistoryError(message, path) from error
        return cls(events, *tables)

    def largest(self) -> Size | None:
        """Return the share partition with the most events, by which no more tasks help; None without any."""
        return largest_partition(self.verdicts)


def verify(
    events: DataFrame, target: str, *, seconds: float | None = None, partitions: int | None = None
) -> VerifiedLogs:
    """
    Check that everything brokers sent or stored follows from Kafka's rules, and write the events in causal order.

    Args:
        events: Events in order of arrival, as ``read_history`` returns them from what ``import_logs`` or
            ``sharestate log import`` has written.
        target: The new directory, which every worker sees under this path: ``history`` has the events, ``verdicts`` and
            ``findings`` have the tables, all as Parquet. It has its name once all of it is written.
        seconds: How long the check of a share partition may take, in place of what its events allow. [s]
        partitions: The number of tasks; None for ``spark.sql.shuffle.partitions``. A share partition is checked by one
            of them. [tasks]

    Raises:
        HistoryError: A column is missing or of another type, the events are in causal order already, or *target* is
            there already.
        MalformedInputError: An argument is wrong.
        PythonException: One of Spark's, which ends in a HistoryOrderError if an event is missing or comes twice, and in
            a HistoryError or MalformedInputError if one is malformed; nothing is left of what was written.

    Complexity:
        One shuffle, sorted by Spark, which spills. A task has the events of one share partition in memory, 1.2 kB each,
        and takes the time that ``sharestate log verify`` takes for it.
    """
    from sharestate.spark.log_verification_tasks import VerificationSettings  # noqa: PLC0415 - imports pyarrow

    use_this_python(events.sparkSession)
    if order_of(events) is Order.CAUSAL:
        message = "its events are in causal order: there is nothing to look for"
        raise HistoryError(message, "events", None, "order")
    header = Header(order=Order.ARRIVAL, lacks=lacks_of(events), topics=topics_of(events))
    in_order = events_in_order(checked_events(events), tasks(events, partitions))
    directory = Path(target)
    if directory.exists():
        exists = "is there already"
        raise HistoryError(exists, target)
    schemas = {}
    for name, table in VERIFICATION.items():
        schema = struct(table.columns)
        schemas[name] = arrow_schema(schema).with_metadata({_SCHEMA_OF_SPARK: schema.json()})
    with named_at_last(directory) as path:
        scratch = path / _WHILE_WRITTEN
        scratch.mkdir(parents=True)
        settings = VerificationSettings(directory=str(scratch), header=header, schemas=schemas, seconds=seconds)
        rows = in_order.mapInArrow(partial(_verify, settings), _WRITTEN).collect()
        _name(path, scratch, sorted((row.directory, row.name) for row in rows), header)
    return VerifiedLogs.read(events.sparkSession, target)


def _name(path: Path, scratch: Path, files: list[tuple[str, str]], header: Header) -> None:
    """Give the files that were written their names; those of tasks that Spark has given up have none."""
    for directory in (_HISTORY, *VERIFICATION):
        (path / directory).mkdir()
        own = [name for made, name in files if made == directory]
        for number, name in enumerate(own):
            (scratch / name).rename(path / directory / f"part-{number:05}.parquet")
        if directory == _HISTORY and not own:
            with create_history(path / directory / "part-00000.parquet", evolve(header, order=Order.CAUSAL)):
                pass
    rmtree(scratch)


def _verify(settings: VerificationSettings, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from sharestate.spark.log_verification_tasks import verify_batches  # noqa: PLC0415 - imports pyarrow

    return verify_batches(settings, batches)
