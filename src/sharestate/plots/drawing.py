"""Runs of records as Altair charts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

import altair as alt
from attrs import frozen

from sharestate.plots.lines import HALF, OffsetLine, Run, Shown, line_of
from sharestate.values.checks import integer, refuse
from sharestate.values.records import RecordState

COLORS: Final[Mapping[RecordState, str]] = MappingProxyType(
    {
        RecordState.AVAILABLE: "#fbe7a1",
        RecordState.ACQUIRED: "#5ab8ed",
        RecordState.ACKNOWLEDGED: "#008a70",
        RecordState.ARCHIVING: "#623c59",
        RecordState.ARCHIVED: "#1c1c1c",
    }
)
"""The color of each state: each one darker than the one before, so that they differ in print and for any eye."""

_INK: Final = "#1c1c1c"
_PAPER: Final = "#ffffff"
_LIGHT: Final = frozenset({RecordState.AVAILABLE, RecordState.ACQUIRED})
"""The states on whose colors ink is read; on the others paper is."""

_RED: Final = "#c0392b"
_PALE: Final = 0.3
"""The opacity of what the SPSO has passed: still legible beside what is in flight."""

_HEIGHT: Final = 34
"""The height of a run. [px]"""

_MARGIN: Final = 72
"""Room for the name of the SPSO on the left and that of the SPEO on the right. [px]"""

_CHARACTER: Final = 7.5
"""The width of a character of a label in wide fonts. [px]"""

_GAP: Final = 4
"""The free space beside a label. [px]"""

_EDGE: Final = 4
"""The least width of a run with an edge; narrower ones would be all edge. [px]"""

Datum = dict[str, Any]


class PlotStep(NamedTuple):
    """
    One of the pictures of ``offset_lines``.

    Attributes:
        title: The text above it.
        shown: The state to draw. A share partition is drawn in its state at that time: take a snapshot of each step.
        note: The text beside it, with its line breaks.
    """

    title: str
    shown: Shown
    note: str = ""


def offset_line(shown: Shown, *, title: str = "", note: str = "", width: int = 640) -> alt.VConcatChart:
    """
    Draw the records of *shown* as runs on the axis of offsets.

    A run has the color of its state and, where there is room, its delivery count and its owner. A red bar above it
    stands for a pending write with its last transition; records that the SPSO has passed are pale. The SPSO is a line
    before its record, the SPEO one after its record, or before it if nothing is in flight.

    Args:
        shown: The state to draw.
        title: The text above it.
        note: The text beside it, with its line breaks.
        width: The width without the note; 200 or more. [px]

    Raises:
        MalformedInputError: *shown* cannot be drawn, or *width* is too small.

    Complexity:
        Linear in the runs, and in the records of split batches.

    >>> from sharestate import PersistedState, StateBatch
    >>> batches = [StateBatch(110, 112, 0, 1), StateBatch(113, 119, 2, 1)]
    >>> chart = offset_line(PersistedState(start_offset=110, state_batches=batches), title="Stored state")
    >>> chart.save("stored.svg")  # doctest: +SKIP
    """
    return offset_lines([PlotStep(title, shown, note)], width=width)


def offset_lines(steps: Iterable[PlotStep], *, width: int = 640) -> alt.VConcatChart:
    """
    Draw each of *steps* as ``offset_line`` does, one below the other on the same scale.

    Args:
        steps: The states to draw; at least one.
        width: The width without the notes; 200 or more. [px]

    Raises:
        MalformedInputError: There are no steps, one cannot be drawn, or *width* is too small.
    """
    integer(width, "width", 200)
    drawn = [(step, line_of(step.shown)) for step in steps] or refuse("expected steps, got none", "steps")
    ends = [offset for _, line in drawn for offset in line.offsets] or [0]
    axis = _Axis(width, min(ends), max(ends))
    charts = [_chart(line, step, axis) for step, line in drawn]
    config = alt.Config(background=_PAPER, padding=8, view=alt.ViewConfig(stroke=None))
    return alt.vconcat(*charts, spacing=14, config=config)


# ---- the axis


@frozen
class _Axis:
    """The axis of offsets, which all lines of a picture share."""

    width: int
    first_offset: int
    last_offset: int

    @property
    def record_width(self) -> float:
        """The width of a record. [px]"""
        return (self.width - 2 * _MARGIN) / (self.last_offset - self.first_offset + 1)

    def x(self) -> alt.X:
        """Return the encoding of a position on the axis."""
        margin = _MARGIN / self.record_width
        domain = [self.first_offset - HALF - margin, self.last_offset + HALF + margin]
        return alt.X(
            "x:Q",
            title=None,
            # No Scale and no Axis: those have a hundred fields, which Altair would copy with each part of a picture.
            scale={"domain": domain, "nice": False, "zero": False},
            axis={
                "format": "d",
                "grid": False,
                "labelExpr": "datum.value < 0 ? '' : datum.label",
                "tickCount": self.width // (_CHARACTER * (len(str(self.last_offset)) + 2)),
                "tickMinStep": 1,
            },
        )


# ---- a line


def _chart(line: OffsetLine, step: PlotStep, axis: _Axis) -> alt.LayerChart | alt.FacetChart:
    runs = [_datum(run, axis) for run in line.runs]
    marks = [{"x": mark.at, "label": f"{mark.name} {mark.offset}", "name": mark.name} for mark in line.marks]
    layers = [
        _runs(runs, axis),
        *([_writes(runs, axis)] if any(run["pending"] for run in runs) else []),
        _labels(runs, axis, "count", 12),
        _labels(runs, axis, "member", 10),
        *_marks(marks, axis),
        *([_note(step.note, axis)] if step.note else []),
    ]
    title = alt.Title(step.title.splitlines(), anchor="start", fontSize=12, fontWeight="bold", offset=4)
    return alt.layer(*layers, width=axis.width, height=_HEIGHT, title=title)


def _datum(run: Run, axis: _Axis) -> Datum:
    """Return the data of *run*, with the labels for which there is room."""
    room = run.size * axis.record_width
    count, member = (
        label if len(label) * _CHARACTER + _GAP <= room else "" for label in (f"×{run.delivery_count}", run.member_id)
    )
    return {
        "x": run.first_offset - HALF,
        "x2": run.last_offset + HALF,
        "state": run.state.name.title(),
        "pending": run.has_pending_write,
        "opacity": _PALE if run.has_passed else 1,
        "edge": 1 if room >= _EDGE else 0,
        "ink": _INK if run.has_passed or run.state in _LIGHT else _PAPER,
        "count": count,
        "count_y": _HEIGHT * (0.36 if member else 0.5),
        "member": member,
        "member_y": _HEIGHT * 0.74,
        "text": _text(run),
    }


def _text(run: Run) -> str:
    """Return *run* in words, as tooltip and for screen readers."""
    owner = f", held by {run.member_id}" if run.member_id else ""
    write = ", pending write" if run.has_pending_write else ""
    return f"{run.first_offset}-{run.last_offset} {run.state.name.title()} ×{run.delivery_count}{owner}{write}"


class _Inline(alt.Data):
    """Data that nobody changes: Altair copies all parts of a picture whenever it puts some of them together."""

    def __deepcopy__(self, _memo: object) -> Self:
        """Return the same."""
        return self


def _data(values: Sequence[Datum]) -> alt.Chart:
    return alt.Chart(_Inline(values=list(values)))


def _runs(runs: Sequence[Datum], axis: _Axis) -> alt.Chart:
    states = alt.Scale(domain=[state.name.title() for state in COLORS], range=list(COLORS.values()))
    legend = alt.Legend(orient="top", title=None, symbolType="square", symbolStrokeColor=_INK, symbolStrokeWidth=1)
    return (
        _data(runs)
        .mark_rect(y=0, y2=_HEIGHT, stroke=_INK)
        .encode(
            axis.x(),
            x2=alt.X2("x2:Q"),
            fill=alt.Fill("state:N", scale=states, legend=legend),
            opacity=alt.Opacity("opacity:Q", scale=None, legend=None),
            strokeWidth=alt.StrokeWidth("edge:Q", scale=None, legend=None),
            tooltip=alt.Tooltip("text:N"),
            description=alt.Description("text:N"),
        )
    )


def _writes(runs: Sequence[Datum], axis: _Axis) -> alt.Chart:
    """Draw a bar above each run with a pending write: it is seen above the narrowest one too."""
    label = "pending write"
    legend = alt.Legend(orient="top", title=None, symbolType="stroke", symbolStrokeWidth=4)
    return (
        _data([{"x": run["x"], "x2": run["x2"], "write": label} for run in runs if run["pending"]])
        .mark_rule(y=-4, aria=False, strokeWidth=4)
        .encode(
            axis.x(),
            x2=alt.X2("x2:Q"),
            color=alt.Color("write:N", scale=alt.Scale(domain=[label], range=[_RED]), legend=legend),
        )
    )


def _labels(runs: Sequence[Datum], axis: _Axis, label: str, size: int) -> alt.Chart:
    """Write its *label* into each run that has one."""
    middles = [
        {"x": (run["x"] + run["x2"]) / 2, "label": run[label], "y": run[f"{label}_y"], "ink": run["ink"]}
        for run in runs
        if run[label]
    ]
    return (
        _data(middles)
        .mark_text(fontSize=size, aria=False)
        .encode(
            axis.x(),
            y=alt.Y("y:Q", scale=None, axis=None),
            text=alt.Text("label:N"),
            color=alt.Color("ink:N", scale=None, legend=None),
        )
    )


def _marks(marks: Sequence[Datum], axis: _Axis) -> list[alt.Chart]:
    """Draw the SPSO with its name on the left, and the SPEO with its name on the right: the names never meet."""
    rules = _data(marks).mark_rule(color=_INK, aria=False, strokeWidth=2, y=-14, y2=_HEIGHT + 2).encode(axis.x())
    return [rules, *(_name(mark, axis, *_SIDES[mark["name"]]) for mark in marks)]


_SIDES: Final[Mapping[str, tuple[Any, int]]] = MappingProxyType({"SPSO": ("right", -5), "SPEO": ("left", 5)})
"""The alignment of each name, and its distance from the line. [px]"""


def _name(mark: Datum, axis: _Axis, align: Any, dx: int) -> alt.Chart:  # noqa: ANN401 - one of Altair's literals
    return (
        _data([mark])
        .mark_text(align=align, dx=dx, y=-10, baseline="middle", fontSize=11, color=_INK, aria=False)
        .encode(axis.x(), text=alt.Text("label:N"))
    )


def _note(note: str, axis: _Axis) -> alt.Chart:
    """Write *note* to the right of the line."""
    return (
        _data([{"label": note}])
        .mark_text(
            x=axis.width + 12,
            y=-14,
            align="left",
            baseline="top",
            lineBreak="\n",
            font="monospace",
            fontSize=11,
            color=_INK,
            aria=False,
        )
        .encode(text=alt.Text("label:N"))
    )
