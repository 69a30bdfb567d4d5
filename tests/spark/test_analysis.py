"""The tables of the analysis, compared with a plain loop over the rows of the replay in their order."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from attrs import define
from pyspark.sql import DataFrame, SparkSession

from sharestate import SharePartition
from sharestate.diagnose import HistoryFacts
from sharestate.errors import MalformedInputError
from sharestate.explain import End
from sharestate.history import OUTPUTS, Header, ReplaySettings, replay_events
from sharestate.history.parquet_files import ParquetRows
from sharestate.history.rows import OutputRow
from sharestate.history.synthetic import SyntheticHistory
from sharestate.spark import ReplayResult
from sharestate.spark.analysis import write_tables
from sharestate.spark.analysis_columns import ANALYSIS
from sharestate.values.snapshot import Snapshot

pytestmark = pytest.mark.spark

Record = tuple[str, str, int, int]
SYNTHETIC: Final = SyntheticHistory(share_partitions=12, events=3_000, hot_percent=40, seed=8)
TERMINAL: Final = (2, 3, 4)
PAGE: Final = Path(__file__).parents[2] / "docs" / "spark-analysis.md"


class Analysis(NamedTuple):
    """A replay: its rows, in order, and the tables that Spark has made of them."""

    rows: list[OutputRow]
    tables: Mapping[str, DataFrame]
    path: Path

    def table(self, name: str, *order: str) -> list[tuple[Any, ...]]:
        """Return the rows of a table, ordered by the share partition and the columns *order*."""
        frame = self.tables[name]
        first = [each for each in ("group_id", "topic_id", "partition") if each in frame.columns]
        return [tuple(row) for row in frame.orderBy(*first, *order).collect()]


@pytest.fixture(scope="module")
def analysis(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    """Tables of a synthetic history with leaders that fail over, members that hang and leave, and writes that fail."""
    path = tmp_path_factory.mktemp("analysis")
    rows = list(replay_events(SYNTHETIC, ReplaySettings(outputs=frozenset(OUTPUTS))))
    file = ParquetRows(path / "rows")
    file.write_rows(rows)
    file.close()
    result = ReplayResult.read(spark, str(path / "rows"))
    return Analysis(rows, write_tables(result, str(path / "tables")), path)


# ---- the plain loop


@define
class Delivery:
    """A delivery of a record, as far as the rows have gone."""

    number: int
    count: int
    member: str
    begin_us: int | None
    end_us: int | None = None
    cause: str | None = None
    is_done: bool = False

    def end(self, us: int | None, cause: str | None, *, is_done: bool) -> None:
        """Note why and when it has ended; with no cause, that it goes on."""
        self.end_us, self.cause, self.is_done = us, cause, is_done


class Loop:
    """Follows the records from row to row."""

    def __init__(self) -> None:
        """Start before the first row."""
        self.known: dict[Record, list[Delivery]] = defaultdict(list)
        self.leaders: dict[tuple[str, str, int], list[tuple[int, int | None]]] = defaultdict(list)
        self.done_seq: dict[Record, int] = {}

    def acquire(self, row: OutputRow) -> None:
        """Begin a delivery of each record; if it was done before, that was lost with the leader that comes next."""
        _, _, member, count = row.values
        for offset in records_in(row.values):
            record = (*row.key, offset)
            each = self.known[record]
            if each and each[-1].is_done:
                lost_us = next(us for seq, us in self.leaders[row.key] if seq > self.done_seq[record])
                each[-1].end(lost_us, "new leader", is_done=False)
            each.append(Delivery(len(each) + 1, count, member, row.at_us))

    def change(self, row: OutputRow) -> None:
        """End a delivery of each record, or let it go on."""
        _, _, _, _, cause, before, after, _ = row.values
        if not (before == 1 and after not in (1, None)) and cause not in ("rolled back", "archived at the limit"):
            return
        for offset in records_in(row.values):
            self.done_seq[*row.key, offset] = row.seq
            if each := self.known[*row.key, offset]:
                each[-1].end(*((None, None) if after == 1 else (row.at_us, cause)), is_done=after in TERMINAL)

    def lead(self, row: OutputRow) -> None:
        """End what a new leader knows nothing of."""
        self.leaders[row.key].append((row.seq, row.at_us))
        for record, each in self.known.items():
            if record[:3] == row.key and each and each[-1].cause is None:
                each[-1].end(row.at_us, "new leader", is_done=False)


@pytest.fixture(scope="module")
def delivered(analysis: Analysis) -> dict[Record, list[Delivery]]:
    """Return the deliveries of each record."""
    loop = Loop()
    follow = {"acquisition": loop.acquire, "transition": loop.change, "initialization": loop.lead}
    for row in analysis.rows:
        if row.kind in follow:
            follow[row.kind](row)
    return {record: each for record, each in sorted(loop.known.items()) if each}


def time(us: int | None) -> datetime | None:
    """Return a time as Spark returns it."""
    return None if us is None else datetime.fromtimestamp(us // 10**6, UTC).replace(microsecond=us % 10**6, tzinfo=None)


def took(begin_us: int | None, end_us: int | None) -> float | None:
    """Return the time between two, in milliseconds."""
    return None if begin_us is None or end_us is None else (end_us - begin_us) / 1000


def records_in(values: tuple[Any, ...]) -> range:
    """Return the offsets of a range at the beginning of a row."""
    return range(values[0], values[1] + 1)


# ---- the tables


def test_each_delivery_ends_where_the_loop_ends_it(analysis: Analysis, delivered: dict[Record, list[Delivery]]) -> None:
    """Members, times, and causes are those of the loop, for every cause that there is."""
    expected = [
        (
            *record,
            record[1],  # the history has no names of topics
            each.number,
            each.count,
            each.member,
            time(each.begin_us),
            took(None if before is None else before.end_us, each.begin_us),
            time(each.end_us),
            took(each.begin_us, each.end_us),
            each.cause,
            each.is_done,
        )
        for record, all_ in delivered.items()
        for before, each in zip((None, *all_), all_, strict=False)
    ]

    assert analysis.table("deliveries", "offset", "delivery") == expected
    assert {each[-2] for each in expected} >= {"accepted", "released", "rejected", "lock expired", "new leader"}
    assert {each[-2] for each in expected} >= {None, "gap", "session closed", "archived at the limit"}


def test_a_record_has_its_deliveries_in_order(analysis: Analysis, delivered: dict[Record, list[Delivery]]) -> None:
    """It has the time of the first delivery, that of its end if it is done, and how each delivery has ended."""
    expected = []
    for record, all_ in delivered.items():
        first_us = all_[0].begin_us or 0
        done = [each.end_us for each in all_ if each.is_done and each.end_us is not None]
        last = max(done, default=None)
        took = None if last is None else (last - first_us) / 1000
        ends = [(each.number, each.member, each.cause) for each in all_]
        expected.append((*record, len(all_), time(first_us), time(last), took, ends))

    assert analysis.table("records", "offset") == expected
    assert max(row[4] for row in expected) > 3


def test_lock_expiries_are_counted_by_member_and_hour(
    analysis: Analysis, delivered: dict[Record, list[Delivery]]
) -> None:
    """Each record counts in the hour in which its lock has expired."""
    counts: Counter[tuple[Any, ...]] = Counter()
    partitions = defaultdict(set)
    for record, all_ in delivered.items():
        for each in all_:
            if each.cause == "lock expired" and each.end_us is not None:
                place = record[0], each.member, time(each.end_us // 3_600_000_000 * 3_600_000_000)
                counts[place] += 1
                partitions[place].add(record[1:3])

    assert analysis.table("lock_expiries", "member_id", "hour") == [
        (*place, len(partitions[place]), count) for place, count in sorted(counts.items())
    ]


def quantile(values: list[float], part: float) -> float:
    """Return a percentile of sorted *values* with interpolation, as textbooks have it."""
    at = part * (len(values) - 1)
    low = int(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


def test_completion_times_and_rates_are_those_of_share_partitions(
    analysis: Analysis, delivered: dict[Record, list[Delivery]]
) -> None:
    """Percentiles are of times from the first delivery to the end, rates of deliveries that were not the first."""
    took: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    numbers = defaultdict(list)
    for record, all_ in delivered.items():
        numbers[record[:3]].append(len(all_))
        first_us = all_[0].begin_us or 0
        took[record[:3]] += [(each.end_us - first_us) / 1000 for each in all_ if each.is_done and each.end_us]
    times = []
    for key, values in took.items():
        values.sort()
        times.append((*key, len(values), *(pytest.approx(quantile(values, part)) for part in (0.5, 0.9, 0.99, 1))))
    rates = [
        (*key, len(each), sum(each), sum(n > 1 for n in each), pytest.approx(1 - len(each) / sum(each)))
        for key, each in numbers.items()
    ]

    assert analysis.table("completion_times") == times
    assert analysis.table("redelivery_rates") == rates


def test_archived_records_have_the_last_cause(analysis: Analysis) -> None:
    """A record that was delivered again, or whose write has failed, is not archived."""
    archived: dict[Record, tuple[int, datetime | None, str]] = {}
    for row in analysis.rows:
        if row.kind == "transition":
            _, _, _, count, cause, before, after, _ = row.values
            for offset in records_in(row.values):
                record = (*row.key, offset)
                if cause == "acquired" or (before in (3, 4) and after in (0, 1, 2)):
                    archived.pop(record, None)
                elif after in (3, 4) and before not in (3, 4) and cause != "read":
                    archived[record] = count, time(row.at_us), cause

    assert analysis.table("archived_records", "offset") == [
        (*record, *each) for record, each in sorted(archived.items())
    ]
    assert {cause for _, _, cause in archived.values()} >= {"rejected", "gap", "archived at the limit"}


def test_start_offsets_are_where_the_spso_has_been(analysis: Analysis) -> None:
    """It stays until it moves, also back with a new leader, or the history ends; a leader that goes on is no move."""
    end_us = {row.key: row.at_us or 0 for row in analysis.rows}
    places: dict[tuple[str, str, int], list[tuple[int, int]]] = defaultdict(list)
    for row in analysis.rows:
        if row.kind == "start_offset":
            (start_offset,) = row.values
            if [start for start, _ in places[row.key][-1:]] != [start_offset]:
                places[row.key].append((start_offset, row.at_us or 0))
    expected = []
    for key, each in sorted(places.items()):
        left_us = [*(us for _, us in each[1:]), end_us[key]]
        for number, ((start, us), after) in enumerate(zip(each, left_us, strict=True), 1):
            expected.append((*key, start, time(us), (after - us) / 1000, number == len(each)))
    table = analysis.table("start_offsets", "reached_at", "start_offset")
    snapshots = {row.key: Snapshot.from_json(row.values[0]) for row in analysis.rows if row.kind == "snapshot"}

    assert Counter(table) == Counter(expected)
    assert {row[:3]: row[3] for row in table if row[-1]} == {key: each.start_offset for key, each in snapshots.items()}


def test_in_flight_ends_as_in_the_snapshot(analysis: Analysis) -> None:
    """The last numbers of each share partition are those of its snapshot, and no number is ever negative."""
    table = analysis.table("in_flight", "seq", "at")
    snapshots = {row.key: row.values[0] for row in analysis.rows if row.kind == "snapshot"}

    assert min(min(row[-2:]) for row in table) == 0
    assert {row[:3]: row[-2:] for row in table} == {key: in_flight_of(text) for key, text in snapshots.items()}


def in_flight_of(text: str) -> tuple[int, int]:
    """Return how many records of a snapshot are in flight, and acquired."""
    runs = [run for batch in SharePartition.restore(Snapshot.from_json(text)).batches() for run in batch.runs]
    sizes = [(run.last_offset - run.first_offset + 1, run.state) for run in runs]
    return sum(size for size, _ in sizes), sum(size for size, state in sizes if state == 1)


def test_a_diagnosis_counts_the_same(analysis: Analysis) -> None:
    """Records, deliveries, those delivered again, and ends of deliveries of records that were not done."""
    facts = HistoryFacts(Header())
    for event in SYNTHETIC:
        facts.apply(event)
    ended: Counter[tuple[str, str, int]] = Counter()
    for row in analysis.tables["deliveries"].select("group_id", "topic_id", "partition", "cause").collect():
        ended[tuple(row)[:3]] += row["cause"] in {"lock expired", "released", "session closed", "archived at the limit"}
    undone = (End.LOCK_EXPIRED, End.RELEASED, End.SESSION_CLOSED)
    found = {key: each.life.happened for key, each in facts.partitions.items()}

    assert [row[:6] for row in analysis.table("redelivery_rates")] == [
        (*key, each.delivered.records, each.deliveries, each.redelivered.records) for key, each in sorted(found.items())
    ]
    assert ended == {key: sum(each.deliveries.ended[end] for end in undone) for key, each in facts.partitions.items()}


def test_columns_are_as_they_are_documented(analysis: Analysis) -> None:
    """Each table has the columns that `ANALYSIS` lists, with meaning and unit, and has rows."""
    for name, frame in analysis.tables.items():
        columns = ANALYSIS[name].columns
        assert [(each.name, each.metadata.get("comment")) for each in frame.schema] == [
            (each.name, each.comment) for each in columns
        ]
        assert not frame.isEmpty()
    assert list(analysis.tables) == list(ANALYSIS)


def test_a_replay_without_transitions_is_refused(spark: SparkSession, analysis: Analysis, tmp_path: Path) -> None:
    """Rows that were made without transitions, as by default, say nothing about ends; nothing is written."""
    file = ParquetRows(tmp_path / "rows")
    file.write_rows(row for row in analysis.rows if row.kind != "transition")
    file.close()

    with pytest.raises(MalformedInputError, match="expected transitions beside the acquisitions"):
        write_tables(ReplayResult.read(spark, str(tmp_path / "rows")), str(tmp_path / "tables"))
    assert not (tmp_path / "tables").exists()


@pytest.mark.parametrize("query", re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL))
def test_the_queries_of_the_documentation_find_rows(spark: SparkSession, analysis: Analysis, query: str) -> None:
    """Each of them runs over the tables as they are written, and finds something."""
    for name, table in analysis.tables.items():
        table.createOrReplaceTempView(name)

    assert not spark.sql(query).isEmpty()
