"""The columns of what the check of brokers' logs finds on Spark."""

from __future__ import annotations

from attrs import fields

from sharestate.log_check import Counts
from sharestate.spark.log_verification_columns import VERIFICATION


def test_each_count_of_a_check_has_a_column() -> None:
    """The table of verdicts has what ``log verify --json`` counts, under the same names."""
    columns = {column.name for column in VERIFICATION["verdicts"].columns}

    assert {f"explained_{field.name}" for field in fields(Counts)} <= columns
