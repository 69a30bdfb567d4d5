"""
Reports: what happened to share partitions as one page with pictures, to open in a browser (extra ``plots``).

They are made of histories of any writer.
"""

try:
    from sharestate.report.page import report_history, report_page
except ModuleNotFoundError as error:
    if error.name not in {"altair", "vl_convert"}:
        raise
    message = "sharestate.report needs the extra 'plots': pip install 'sharestate[plots]'"
    raise ModuleNotFoundError(message, name=error.name) from error
from sharestate.report.timeline import PartitionTimeline, ReportedPartition

__all__ = ["PartitionTimeline", "ReportedPartition", "report_history", "report_page"]
