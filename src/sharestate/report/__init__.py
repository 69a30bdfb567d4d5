"""
Reports: pages to open in a browser, of share partitions, of what an audit found out, and of a dead-letter topic.

Those of share partitions are made of histories of any writer, and have pictures that need the extra ``plots``.
"""

from typing import TYPE_CHECKING

from sharestate.report.audit_page import audit_page
from sharestate.report.dead_letters_page import dead_letters_page
from sharestate.report.timeline import PartitionTimeline, ReportedPartition

__all__ = ["PartitionTimeline", "ReportedPartition", "audit_page", "dead_letters_page", "report_history", "report_page"]

if TYPE_CHECKING:
    from sharestate.report.page import report_history, report_page
else:  # hidden from type checkers, for which every name would exist

    def __getattr__(name: str) -> object:
        """Load the page with pictures on first use, which needs an extra that the page of an audit does not need."""
        if name not in __all__:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        try:
            from sharestate.report import page  # noqa: PLC0415 - on first use
        except ModuleNotFoundError as error:
            if error.name not in {"altair", "vl_convert"}:
                raise
            message = f"sharestate.report.{name} needs the extra 'plots': pip install 'sharestate[plots]'"
            raise ModuleNotFoundError(message, name=error.name) from error
        return getattr(page, name)
