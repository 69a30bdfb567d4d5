"""Days of logs: what the page that goes from a broker's log to answers does on Spark, on a run of three brokers."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.broker_answers import Key, answers_of
from tests.support.protocol_pages import sections
from tests.support.recipes import commands, lay_out, run

pytestmark = pytest.mark.spark

RUN: Final = "k440-three"
SECTION: Final = "Days of logs on Spark"
PLACES: Final = re.compile(r"/(?=(?:logs|data|config|out)\b)")
"""Where the page has its files: below the root."""


@contextmanager
def shared(session: SparkSession) -> Iterator[None]:
    """Let commands use the session of all tests, and leave it as it was: a program for each would start Java again."""
    partitions = str(session.conf.get("spark.sql.shuffle.partitions"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkSession, "stop", lambda _: None)
        yield
    session.conf.set("spark.sql.shuffle.partitions", partitions)


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directories of the page, after its commands, each of which prints what the page says."""
    place = tmp_path_factory.mktemp("page")
    lay_out(RUN, place / "brokers")
    for name in ("logs", "data", "config", "out"):
        (place / name).mkdir()
    for home in (place / "brokers").iterdir():
        (place / "logs" / home.name).mkdir()
        (home / "kafka-request.log").rename(place / "logs" / home.name / "kafka-request.log")
        (home / "data").rename(place / "data" / home.name)
        (home / "server.properties").rename(place / "config" / "server.properties")
    with shared(spark):
        for step in commands("log-to-answers.md", SECTION):
            result = run(PLACES.sub(f"{place}/", f"{step.text} --partitions 2"))
            assert result.exit_code == 0, result.output
            assert OutputChecker().check_output(step.output, result.output, ELLIPSIS), (step.text, result.output)
    return place


def counted(deliveries: DataFrame) -> dict[Key, int]:
    """Return how many deliveries there are of each share partition."""
    rows = deliveries.groupBy("group_id", "topic_id", "partition").count().collect()
    return {(row.group_id, row.topic_id, row.partition): row["count"] for row in rows}


def explained(spark: SparkSession, place: Path) -> set[Key]:
    """Return the share partitions whose verdict is *explained*."""
    rows = spark.read.parquet(f"{place}/out/checked/verdicts").where("verdict = 'explained'").collect()
    return {(row.group_id, row.topic_id, row.partition) for row in rows}


def test_tables_have_what_the_brokers_have_answered(spark: SparkSession, place: Path) -> None:
    """Each record of each answer is a delivery, of five of six share partitions; the lines say the same."""
    answers, keys = answers_of(RUN), explained(spark, place)
    records = spark.read.parquet(f"{place}/out/tables/records").where("deliveries > 1")

    assert counted(spark.read.parquet(f"{place}/out/tables/deliveries")) == {key: answers.acquired[key] for key in keys}
    assert counted(records) == Counter(
        key for key in keys for deliveries in answers.delivered[key].values() if deliveries > 1
    )
    assert len(keys) == 5


def test_a_file_of_the_history_is_explained_without_spark(place: Path) -> None:
    """Each has whole share partitions, in causal order."""
    lines: list[Any] = []
    for file in (place / "out" / "checked" / "history").glob("*.parquet"):
        result = run(f"sharestate log explain {file} --json")
        assert result.exit_code == 0, result.output
        lines += map(json.loads, result.stdout.splitlines())

    assert len(lines) == 6


def test_a_stream_makes_the_same_tables(spark: SparkSession, place: Path) -> None:
    """The page's program reads what its commands have written."""
    (program,) = re.findall(r"```python\n(.*?)```", sections("log-to-answers.md")[SECTION], re.DOTALL)
    exec(PLACES.sub(f"{place}/", program), {"spark": spark})  # noqa: S102 - it is what the page says

    assert counted(spark.read.parquet(f"{place}/out/live-tables/deliveries")) == counted(
        spark.read.parquet(f"{place}/out/tables/deliveries")
    )
