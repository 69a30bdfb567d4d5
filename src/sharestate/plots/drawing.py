"""Runs of records as charts of Altair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import altair as alt
from attrs import frozen

from sharestate.plots.lines import HALF, OffsetLine, Run, Shown, line_of
from sharestate.values.checks import integer, refuse
from sharestate.values.records import RecordState

COLOURS: Final[Mapping[RecordState, str]] = MappingProxyType(
    {
        RecordState.AVAILABLE: "#fbe7a1",
        RecordState.ACQUIRED: "#56b4e9",
        RecordState.ACKNOWLEDGED: "#00735c",
        RecordState.ARCHIVED: "#1c1c1c",
    }
)
"""The colour of each state: each one darker than the one before, so that they differ in print and for any eye."""

_INK: Final = "#1c1c1c"
_PAPER: Final = "#ffffff"
_LIGHT: Final = frozenset({RecordState.AVAILABLE, RecordState.ACQUIRED})
"""The states on whose colours ink is read; on the others paper is."""

_RED: Final = "#c0392b"
_PALE: Final = 0.3

_HEIGHT: Final = 34
"""How high a run is. [px]"""

_MARGIN: Final = 72
"""Room for the name of the SPSO on the left and that of the SPEO on the right. [px]"""

_CHARACTER: Final = 7.5
"""How wide a character is in wide fonts, in the size in which runs are labelled. [px]"""

_GAP: Final = 4
"""What has to be free beside a label. [px]"""

_EDGE: Final = 4
"""Runs narrower than this have no edge, which would be all that is seen of them. [px]"""

Datum = dict[str, Any]


class Step(NamedTuple):
    """One of the pictures that ``offset_lines`` puts below each other."""

    title: str
    """What is written above it."""

    shown: Shown
    """What is drawn. A share partition is drawn as it is when the picture is made: take a snapshot of each step."""

    note: str = ""
    """What is written beside it, as it stands."""


def offset_line(shown: Shown, *, title: str = "", note: str = "", width: int = 640) -> alt.VConcatChart:
    """
    Draw what *shown* holds as runs on the axis of offsets.

    A run has the colour of its state, and in it, where there is room, the delivery count and who holds it. A red bar
    above it says that a write is in flight which carries its last change; what the SPSO has passed is pale. The SPSO is
    a line before its record, the SPEO one after its record, or before it if nothing is in flight.

    Args:
        shown: What to draw.
        title: What to write above it.
        note: What to write beside it, as it stands.
        width: How wide it is, without the note; 200 or more. [px]

    Raises:
        MalformedInputError: *shown* cannot be drawn, or *width* is too small.

    Complexity:
        Linear in the runs, and in the records of split batches.

    >>> from sharestate import PersistedState, StateBatch
    >>> batches = [StateBatch(110, 112, 0, 1), StateBatch(113, 119, 2, 1)]
    >>> chart = offset_line(PersistedState(start_offset=110, state_batches=batches), title="What is stored")
    >>> chart.save("stored.svg")  # doctest: +SKIP
    """
    return offset_lines([Step(title, shown, note)], width=width)


def offset_lines(steps: Iterable[Step], *, width: int = 640) -> alt.VConcatChart:
    """
    Draw each of *steps* as ``offset_line`` does, below each other and on one scale.

    Args:
        steps: What to draw; at least one.
        width: How wide they are, without the notes; 200 or more. [px]

    Raises:
        MalformedInputError: There are no steps, one cannot be drawn, or *width* is too small.
    """
    integer(width, "width", 200)
    drawn = [(step, line_of(step.shown)) for step in steps] or refuse("expected steps, got none", "steps")
    ends = [offset for _, line in drawn for offset in line.offsets] or [0]
    axis = _Axis(width, min(ends), max(ends))
    charts = [_chart(line, step, axis) for step, line in drawn]
    return alt.vconcat(*charts, spacing=14).configure(background=_PAPER, padding=8).configure_view(stroke=None)


# ---- the axis


@frozen
class _Axis:
    """The axis of offsets, which all lines of a picture share."""

    width: int
    first_offset: int
    last_offset: int

    @property
    def record_width(self) -> float:
        """How wide a record is. [px]"""
        return (self.width - 2 * _MARGIN) / (self.last_offset - self.first_offset + 1)

    def x(self) -> alt.X:
        """Return the encoding of a place on the axis."""
        margin = _MARGIN / self.record_width
        domain = [self.first_offset - HALF - margin, self.last_offset + HALF + margin]
        return alt.X(
            "x:Q",
            title=None,
            scale=alt.Scale(domain=domain, nice=False, zero=False),
            axis=alt.Axis(
                format="d",
                tickMinStep=1,
                tickCount=self.width // (_CHARACTER * (len(str(self.last_offset)) + 2)),
                grid=False,
                labelExpr="datum.value < 0 ? '' : datum.label",
            ),
        )


# ---- a line


def _chart(line: OffsetLine, step: Step, axis: _Axis) -> alt.LayerChart | alt.FacetChart:
    runs = [_datum(run, axis) for run in line.runs]
    marks = [{"x": mark.at, "label": f"{mark.name} {mark.offset}", "name": mark.name} for mark in line.marks]
    layers = [
        _runs(runs, axis),
        *([_writes(runs, axis)] if any(run["ongoing"] for run in runs) else []),
        _labels(runs, axis, "count", 12),
        _labels(runs, axis, "member", 10),
        *_marks(marks, axis),
        *([_note(step.note, axis)] if step.note else []),
    ]
    title = alt.Title(step.title.splitlines(), anchor="start", fontSize=12, fontWeight="bold", offset=4)
    return alt.layer(*layers).properties(width=axis.width, height=_HEIGHT, title=title)


def _datum(run: Run, axis: _Axis) -> Datum:
    """Return what is drawn of *run*, and what is said in it as far as there is room."""
    room = run.size * axis.record_width
    count, member = (
        label if len(label) * _CHARACTER + _GAP <= room else "" for label in (f"×{run.delivery_count}", run.member_id)
    )
    return {
        "x": run.first_offset - HALF,
        "x2": run.last_offset + HALF,
        "state": run.state.name.title(),
        "ongoing": run.is_ongoing,
        "opacity": _PALE if run.has_passed else 1,
        "edge": 1 if room >= _EDGE else 0,
        "ink": _INK if run.has_passed or run.state in _LIGHT else _PAPER,
        "count": count,
        "count_y": _HEIGHT * (0.36 if member else 0.5),
        "member": member,
        "member_y": _HEIGHT * 0.74,
        "said": _said(run),
    }


def _said(run: Run) -> str:
    """Return *run* in words, for who does not see it."""
    holder = f", held by {run.member_id}" if run.member_id else ""
    write = ", write in flight" if run.is_ongoing else ""
    return f"{run.first_offset}-{run.last_offset} {run.state.name.title()} ×{run.delivery_count}{holder}{write}"


def _data(values: Sequence[Datum]) -> alt.Chart:
    return alt.Chart(alt.Data(values=list(values)))


def _runs(runs: Sequence[Datum], axis: _Axis) -> alt.Chart:
    states = alt.Scale(domain=[state.name.title() for state in COLOURS], range=list(COLOURS.values()))
    legend = alt.Legend(orient="top", title=None, symbolType="square", symbolStrokeColor=_INK, symbolStrokeWidth=1)
    return (
        _data(runs)
        .mark_rect(y=0, y2=_HEIGHT, stroke=_INK)
        .encode(
            axis.x(),
            x2="x2:Q",
            fill=alt.Fill("state:N", scale=states, legend=legend),
            opacity=alt.Opacity("opacity:Q", scale=None, legend=None),
            strokeWidth=alt.StrokeWidth("edge:Q", scale=None, legend=None),
            tooltip="said:N",
            description="said:N",
        )
    )


def _writes(runs: Sequence[Datum], axis: _Axis) -> alt.Chart:
    """Draw a bar above each run of which a write is in flight: it is seen above the narrowest one too."""
    said = "write in flight"
    legend = alt.Legend(orient="top", title=None, symbolType="stroke", symbolStrokeWidth=4)
    return (
        _data([{"x": run["x"], "x2": run["x2"], "write": said} for run in runs if run["ongoing"]])
        .mark_rule(y=-4, aria=False, strokeWidth=4)
        .encode(
            axis.x(), x2="x2:Q", color=alt.Color("write:N", scale=alt.Scale(domain=[said], range=[_RED]), legend=legend)
        )
    )


def _labels(runs: Sequence[Datum], axis: _Axis, label: str, size: int) -> alt.Chart:
    """Write the *label* of each run that has one into it."""
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
            text="label:N",
            color=alt.Color("ink:N", scale=None, legend=None),
        )
    )


def _marks(marks: Sequence[Datum], axis: _Axis) -> list[alt.Chart]:
    """Draw the SPSO with its name on the left of it, and the SPEO with its name on the right: they never meet."""
    rules = _data(marks).mark_rule(color=_INK, aria=False, strokeWidth=2, y=-14, y2=_HEIGHT + 2).encode(axis.x())
    return [rules, *(_name(mark, axis, *_SIDES[mark["name"]]) for mark in marks)]


_SIDES: Final[Mapping[str, tuple[Any, int]]] = MappingProxyType({"SPSO": ("right", -5), "SPEO": ("left", 5)})
"""On which side of its line each name stands: how it is aligned, and how far away. [px]"""


def _name(mark: Datum, axis: _Axis, align: Any, dx: int) -> alt.Chart:  # noqa: ANN401 - one of Altair's words
    return (
        _data([mark])
        .mark_text(align=align, dx=dx, y=-10, baseline="middle", fontSize=11, color=_INK, aria=False)
        .encode(axis.x(), text="label:N")
    )


def _note(note: str, axis: _Axis) -> alt.Chart:
    """Write *note* on the right of the line."""
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
        .encode(text="label:N")
    )
