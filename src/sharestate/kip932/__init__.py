"""The KIP's worked examples as data, and how they come out of a leader."""

from sharestate.kip932.reading import read_scenario, read_table
from sharestate.kip932.running import RowRun, TableRun, run_table
from sharestate.kip932.tables import TABLES, Caption, Printed, Row, Scenario, Source, Table

__all__ = [
    "TABLES",
    "Caption",
    "Printed",
    "Row",
    "RowRun",
    "Scenario",
    "Source",
    "Table",
    "TableRun",
    "read_scenario",
    "read_table",
    "run_table",
]
