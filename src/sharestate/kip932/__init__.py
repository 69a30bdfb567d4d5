"""The KIP's worked examples as data, run by a leader and compared with the KIP."""

from sharestate.kip932.run import RowRun, ScenarioStep, TableRun, run_table
from sharestate.kip932.tables import (
    TABLES,
    Caption,
    Printed,
    Row,
    Scenario,
    Source,
    Table,
    read_scenario,
    read_table,
    scenario_from_json,
    table_from_json,
)

__all__ = [
    "TABLES",
    "Caption",
    "Printed",
    "Row",
    "RowRun",
    "Scenario",
    "ScenarioStep",
    "Source",
    "Table",
    "TableRun",
    "read_scenario",
    "read_table",
    "run_table",
    "scenario_from_json",
    "table_from_json",
]
