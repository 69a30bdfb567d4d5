"""
Pictures of what a share partition holds, on the axis of offsets; they need the extra ``plots``.

A picture is a chart of Altair: a notebook shows it, and ``chart.save("line.svg")`` writes it down.
"""

try:
    from sharestate.plots.drawing import COLOURS, Step, offset_line, offset_lines
except ModuleNotFoundError as error:
    if error.name != "altair":
        raise
    message = "sharestate.plots needs the extra 'plots': pip install 'sharestate[plots]'"
    raise ModuleNotFoundError(message, name=error.name) from error
from sharestate.plots.lines import Shown

__all__ = ["COLOURS", "Shown", "Step", "offset_line", "offset_lines"]
