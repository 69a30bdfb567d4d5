"""
Share groups on Spark: the state topic, checks of brokers' logs, replays of histories, simulations (extra ``spark``).

Everything works on Spark Connect, too. Spark is imported when a name that needs it is used first.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sharestate.spark.batch_replay import ReplayResult, replay
    from sharestate.spark.client_audit import audit_logs
    from sharestate.spark.data_source import StateTopicSource, register
    from sharestate.spark.dead_letter_table import LETTER_RECORDS, read_letter_files, read_letters
    from sharestate.spark.grids import sweep_grid
    from sharestate.spark.health import health_table
    from sharestate.spark.history_files import read_history
    from sharestate.spark.history_schemas import EVENTS, REPLAY_ROWS, REPLAY_TABLES
    from sharestate.spark.library_zip import write_archive
    from sharestate.spark.log_verification import VerifiedLogs, verify
    from sharestate.spark.rebuild import count_records, rebuild_state
    from sharestate.spark.request_logs import ImportedLogs, import_logs
    from sharestate.spark.schemas import HEALTH, LETTERS, LOG_ENDS, RECORD_COUNTS, STATE_RECORDS, STATES
    from sharestate.spark.streams import read_rebuild_stream, read_replay_stream, rebuild_stream, replay_stream

__all__ = [
    "EVENTS",
    "HEALTH",
    "LETTERS",
    "LETTER_RECORDS",
    "LOG_ENDS",
    "RECORD_COUNTS",
    "REPLAY_ROWS",
    "REPLAY_TABLES",
    "STATES",
    "STATE_RECORDS",
    "ImportedLogs",
    "ReplayResult",
    "StateTopicSource",
    "VerifiedLogs",
    "audit_logs",
    "count_records",
    "health_table",
    "import_logs",
    "read_history",
    "read_letter_files",
    "read_letters",
    "read_rebuild_stream",
    "read_replay_stream",
    "rebuild_state",
    "rebuild_stream",
    "register",
    "replay",
    "replay_stream",
    "sweep_grid",
    "verify",
    "write_archive",
]

_MODULES: Final = {
    "EVENTS": "history_schemas",
    "HEALTH": "schemas",
    "ImportedLogs": "request_logs",
    "LETTERS": "schemas",
    "LETTER_RECORDS": "dead_letter_table",
    "LOG_ENDS": "schemas",
    "RECORD_COUNTS": "schemas",
    "REPLAY_ROWS": "history_schemas",
    "REPLAY_TABLES": "history_schemas",
    "ReplayResult": "batch_replay",
    "STATES": "schemas",
    "STATE_RECORDS": "schemas",
    "StateTopicSource": "data_source",
    "VerifiedLogs": "log_verification",
    "audit_logs": "client_audit",
    "count_records": "rebuild",
    "health_table": "health",
    "import_logs": "request_logs",
    "read_history": "history_files",
    "read_letter_files": "dead_letter_table",
    "read_letters": "dead_letter_table",
    "read_rebuild_stream": "streams",
    "read_replay_stream": "streams",
    "rebuild_state": "rebuild",
    "rebuild_stream": "streams",
    "register": "data_source",
    "replay": "batch_replay",
    "replay_stream": "streams",
    "sweep_grid": "grids",
    "verify": "log_verification",
    "write_archive": "library_zip",
}
"""Where each name is."""


def _loaded(name: str) -> object:
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    try:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyspark":
            raise
        message = f"{__name__} needs the extra 'spark': pip install 'sharestate[spark]'"
        raise ModuleNotFoundError(message, name=error.name) from error


if not TYPE_CHECKING:  # hidden from type checkers, for which every name would exist
    __getattr__ = _loaded
