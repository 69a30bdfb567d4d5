"""
Reports: pages to open in a browser.

They are of share partitions, audits, conformance, diagnoses, dead-letter topics, states of explorations and
simulations. Those of share partitions are made of histories of any writer. Pages with pictures need the extra
``plots``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from sharestate.report.audit_page import audit_page
from sharestate.report.conformance_page import conformance_page
from sharestate.report.dead_letters_page import dead_letters_page
from sharestate.report.diagnosis_page import diagnosis_page
from sharestate.report.timeline import PartitionTimeline, ReportedPartition

__all__ = [
    "PartitionTimeline",
    "ReportedPartition",
    "audit_page",
    "conformance_page",
    "dead_letters_page",
    "diagnosis_page",
    "grid_chart",
    "report_history",
    "report_page",
    "simulation_page",
]

_MODULES: Final = {
    "grid_chart": "simulations",
    "report_history": "page",
    "report_page": "page",
    "simulation_page": "simulations",
}
"""Where the names are that need the extra ``plots``."""

if TYPE_CHECKING:
    from sharestate.report.page import report_history, report_page
    from sharestate.report.simulations import grid_chart, simulation_page
else:  # hidden from type checkers, for which every name would exist

    def __getattr__(name: str) -> object:
        """Load a page with pictures on first use, which needs an extra that the page of an audit does not need."""
        if name not in _MODULES:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        try:
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        except ModuleNotFoundError as error:
            if error.name not in {"altair", "vl_convert"}:
                raise
            message = f"sharestate.report.{name} needs the extra 'plots': pip install 'sharestate[plots]'"
            raise ModuleNotFoundError(message, name=error.name) from error
