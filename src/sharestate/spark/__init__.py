"""
Share groups on Spark: the state topic as a source, and what it holds as tables (extra ``spark``).

Everything works on Spark Connect, too. Spark is imported when a name that needs it is used first.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sharestate.spark.archive import write_archive
    from sharestate.spark.data_source import StateTopicSource, register
    from sharestate.spark.health import health_table
    from sharestate.spark.rebuild import count_records, rebuild_state
    from sharestate.spark.schemas import HEALTH, LOG_ENDS, RECORD_COUNTS, STATE_RECORDS, STATES

__all__ = [
    "HEALTH",
    "LOG_ENDS",
    "RECORD_COUNTS",
    "STATES",
    "STATE_RECORDS",
    "StateTopicSource",
    "count_records",
    "health_table",
    "rebuild_state",
    "register",
    "write_archive",
]

_MODULES: Final = {
    "HEALTH": "schemas",
    "LOG_ENDS": "schemas",
    "RECORD_COUNTS": "schemas",
    "STATES": "schemas",
    "STATE_RECORDS": "schemas",
    "StateTopicSource": "data_source",
    "count_records": "rebuild",
    "health_table": "health",
    "rebuild_state": "rebuild",
    "register": "data_source",
    "write_archive": "archive",
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
