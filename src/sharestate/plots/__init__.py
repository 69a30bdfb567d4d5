"""
Pictures of the records of a share partition on the axis of offsets (extra ``plots``).

A picture is an Altair chart: a notebook shows it, and ``chart.save("line.svg")`` writes a file.
"""

try:
    from sharestate.plots.drawing import COLORS, PlotStep, offset_line, offset_lines
except ModuleNotFoundError as error:
    if error.name != "altair":
        raise
    message = "sharestate.plots needs the extra 'plots': pip install 'sharestate[plots]'"
    raise ModuleNotFoundError(message, name=error.name) from error
from sharestate.plots.lines import Shown

__all__ = ["COLORS", "PlotStep", "Shown", "offset_line", "offset_lines"]
