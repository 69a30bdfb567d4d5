"""The workers of a session: which Python they run, and how many tasks they share."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from sharestate.values.checks import integer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def use_this_python(spark: SparkSession) -> None:
    """
    Let the workers of a session on this machine run the Python that runs here, unless ``PYSPARK_PYTHON`` names another.

    They would take the first ``python3`` on the path, which need not have this library.
    """
    if "PYSPARK_PYTHON" in os.environ:
        return
    with suppress(PySparkException):  # Spark Connect has no context: its server chooses
        context = spark.sparkContext
        if str(context.master).startswith("local"):
            context.pythonExec = sys.executable


def tasks(frame: DataFrame, partitions: int | None) -> int:
    """Return the number of tasks that fold: *partitions*, or ``spark.sql.shuffle.partitions`` if that is None."""
    if partitions is None:
        return int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    return integer(partitions, "partitions", 1)
