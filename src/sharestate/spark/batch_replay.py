"""
Histories replayed on Spark: one shuffle that brings each share partition's events together, in order, then the fold.

The rows of all kinds are made in one pass, so they are one frame: who wants more than one kind of them writes it
first, and reads the kinds from there.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from attrs import Factory, frozen
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody knows
from pyspark.sql.types import StructType

from sharestate.errors import HistoryError
from sharestate.history import DEFAULT_OUTPUTS, Order, ReplaySettings
from sharestate.history.files import expect_causal
from sharestate.history.rows import ROWS_MARK, ROWS_VERSION
from sharestate.spark.history_schemas import (
    REPLAY_ROWS,
    REPLAY_TABLES,
    SHARE_PARTITION,
    checked_events,
    lacks_of,
    order_of,
    topics_of,
)
from sharestate.spark.schemas import shaped
from sharestate.spark.workers import tasks, use_this_python
from sharestate.values.checks import expect, refuse
from sharestate.values.config import ShareConfig
from sharestate.values.profiles import LATEST, Profile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

ALL_BUT_STATES: Final = DEFAULT_OUTPUTS | {"transition"}
"""The kinds of rows that a replay on Spark makes unless it is asked for others."""


def replay(  # noqa: PLR0913 - the settings of a replay, by name
    events: DataFrame,
    *,
    profile: Profile = LATEST,
    config: ShareConfig | None = None,
    order: Order | None = None,
    lacks: Iterable[str] | None = None,
    outputs: Iterable[str] = ALL_BUT_STATES,
    partitions: int | None = None,
) -> ReplayResult:
    """
    Replay the histories of share partitions, each of them as ``sharestate.history.Replay`` does.

    Args:
        events: Rows with the columns of ``EVENTS``, in any order; others are ignored.
        profile: The rules until a ``config`` event names others.
        config: The groups' settings until ``config`` events change them; Kafka's defaults if None.
        order: The order of the events of each share partition by ``seq``; None for what ``read_history`` has found in
            the header. Only events in causal order are replayed.
        lacks: The kinds that the history lacks because nobody logged them; None for what ``read_history`` has found in
            the header, or nothing.
        outputs: The kinds of rows to make.
        partitions: The number of tasks that fold; None for ``spark.sql.shuffle.partitions``. It is fixed, so adaptive
            execution does not merge them. A share partition is replayed by one task. [tasks]

    Returns:
        The result, of which nothing is computed yet: ``write`` it, and go on with what that returns. Used as it is,
        every table is a replay of its own.

    Raises:
        HistoryError: A column is missing or of another type, ``field`` says which; or the events are in order of
            arrival, or nothing says in which order.
        MalformedInputError: An argument is wrong. When the result is computed, the job fails with a
            ``PythonException`` of Spark's that ends in a HistoryOrderError if an event is missing or comes twice, and
            in a HistoryError or MalformedInputError with its field if one is malformed.

    Complexity:
        O(n log n) in the events, most of it sorting by Spark, which spills. A task holds one share partition at a
        time, and of that no more than is in flight, however many events it has.
    """
    use_this_python(events.sparkSession)
    settings = settings_of(events, profile, config, order, lacks, outputs)
    in_order = events_in_order(checked_events(events), tasks(events, partitions))
    rows = in_order.mapInArrow(partial(replay_batches, settings), REPLAY_ROWS)
    return ReplayResult(rows, settings.outputs, topics_of(events))


@frozen(eq=False)
class ReplayResult:
    """
    What a replay has made, a table for each kind of rows.

    The order of rows is not kept: ``seq`` says after which event each of them was made.

    Attributes:
        rows: The rows of all kinds, ``REPLAY_ROWS``.
        outputs: The kinds that were made; others are refused.
        topics: The names of topics by their ids, as far as the history had them.
    """

    rows: DataFrame
    outputs: frozenset[str]
    topics: Mapping[str, str] = Factory(dict)

    def write(self, path: str) -> ReplayResult:
        """
        Replay once, write the rows as Parquet into the new directory *path*, and return the result that reads it.

        Each kind has a directory ``kind=...`` of its own. Spark writes them all or none.

        Raises:
            AnalysisException: *path* is there already.
        """
        mark = {ROWS_MARK: ROWS_VERSION, "outputs": sorted(self.outputs), "topics": dict(self.topics)}
        metadata = {**REPLAY_ROWS["seq"].metadata, **mark}
        marked = self.rows.withMetadata("seq", metadata)
        marked.write.partitionBy("kind").parquet(path)
        return ReplayResult(_read(self.rows.sparkSession, path), self.outputs, self.topics)

    @classmethod
    def read(cls, spark: SparkSession, path: str) -> ReplayResult:
        """
        Return the result that was written to *path*, by ``write`` or by ``sharestate history replay``.

        A replay of no events leaves no files. Its result has no rows, and refuses no kind.

        Raises:
            HistoryError: It is not a replay, or of a version that is not known.
            AnalysisException: It cannot be read.
        """
        fields = {each.name: each for each in _columns_at(spark, path)}
        if fields and not fields.keys() >= set(REPLAY_TABLES["transition"].names):
            message = "expected the rows of a replay, got a table with other columns"
            raise HistoryError(message, path)
        mark = fields["seq"].metadata if "seq" in fields else {}
        if mark.get(ROWS_MARK, ROWS_VERSION) != ROWS_VERSION:
            message = f"expected version {ROWS_VERSION}, got {mark[ROWS_MARK]!r}"
            raise HistoryError(message, path, None, ROWS_MARK)
        return cls(_read(spark, path), frozenset(mark.get("outputs", REPLAY_TABLES)), mark.get("topics", {}))

    def table(self, kind: str) -> DataFrame:
        """
        Return the rows of *kind* with the columns that it has, ``REPLAY_TABLES[kind]``.

        Raises:
            MalformedInputError: Rows of *kind* were not made.
        """
        if kind not in self.outputs:
            refuse(f"expected one of {', '.join(sorted(self.outputs))}, got {kind!r}", "outputs")
        return shaped(self.rows.where(F.col("kind") == kind), REPLAY_TABLES[kind])

    def initializations(self) -> DataFrame:
        """Return the new share partitions, with each of which what was not persisted is gone."""
        return self.table("initialization")

    def start_offsets(self) -> DataFrame:
        """Return where each SPSO has moved to."""
        return self.table("start_offset")

    def writes(self) -> DataFrame:
        """Return the writes that share partitions have issued."""
        return self.table("write")

    def transitions(self) -> DataFrame:
        """Return the changes of ranges of records, with their causes."""
        return self.table("transition")

    def acquisitions(self) -> DataFrame:
        """Return the ranges that members have acquired."""
        return self.table("acquisition")

    def dead_letters(self) -> DataFrame:
        """Return the ranges that were handed to dead-letter queues."""
        return self.table("dead_letter")

    def differences(self) -> DataFrame:
        """Return what was observed and computed otherwise."""
        return self.table("difference")

    def verdicts(self) -> DataFrame:
        """Return what the check of a broker's log found, and where nothing is known any more."""
        return self.table("verdict")

    def snapshots(self) -> DataFrame:
        """Return each share partition as it is at the end."""
        return self.table("snapshot")

    def metrics(self) -> DataFrame:
        """Return the counts of each share partition."""
        return self.table("metric")

    def states(self) -> DataFrame:
        """Return where a replay of later events goes on; made only if ``outputs`` names ``state``."""
        return self.table("state")


def events_in_order(events: DataFrame, partitions: int) -> DataFrame:
    """
    Return *events* in *partitions* tasks, each share partition's in one of them, in the order of ``seq``.

    The fixed number keeps adaptive execution from splitting or merging tasks, and nothing may stand between this and
    the fold: Spark would sort again, by less.
    """
    return events.repartition(partitions, *SHARE_PARTITION).sortWithinPartitions(*SHARE_PARTITION, "seq")


def replay_batches(settings: ReplaySettings, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task; see ``sharestate.history.arrow_replay``."""
    from sharestate.history import arrow_replay  # noqa: PLC0415 - only where it runs

    return arrow_replay.replay_batches(batches, settings)


def settings_of(  # noqa: PLR0913 - the arguments of ``replay``
    events: DataFrame,
    profile: Profile,
    config: ShareConfig | None,
    order: Order | None,
    lacks: Iterable[str] | None,
    outputs: Iterable[str],
) -> ReplaySettings:
    """
    Return the settings of a replay of *events*; the arguments are those of ``replay``.

    Raises:
        HistoryError: The events are not known to be in causal order.
        MalformedInputError: One of them is wrong.
    """
    expect_causal(order_of(events) if order is None else expect(order, Order, "order"), "events")
    settings = ReplaySettings(
        profile=profile,
        config=ShareConfig() if config is None else config,
        lacks=lacks_of(events) if lacks is None else frozenset(lacks),
        outputs=frozenset(outputs),
    )
    settings.begin(("", "", 0))  # which judges what it is given
    return settings


def _columns_at(spark: SparkSession, path: str) -> StructType:
    """Return the columns of the Parquet files at *path*; none if it is a directory without files."""
    try:
        return spark.read.parquet(path).schema
    except AnalysisException as error:
        if error.getCondition() != "UNABLE_TO_INFER_SCHEMA":
            raise
        return StructType()


def _read(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.schema(REPLAY_ROWS).parquet(path)  # a schema, as there may be no rows
