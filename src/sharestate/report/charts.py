"""
The charts of a report as Vega-Lite specifications, without their data.

The page gives each chart its rows by name, and the shown time through the parameters ``from`` and ``to``, in
milliseconds since 1970: it aggregates what is too much to draw. Colors come with the page's theme: a chart names only
the order of what it colors, and says it a second time by shape, by dashes or in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal

import altair as alt

from sharestate.values.effects import Cause
from sharestate.values.records import RecordState

STATES: Final = tuple(state.name.title() for state in RecordState)
"""The states in the order of their colors."""

LINES: Final = ("SPSO", "SPEO", "log end")
"""The lines of offsets, in the order of their dashes."""

HELD: Final = "held"
"""What has become of records that nothing has ended the holding of."""

ENDS: Final[Mapping[Cause, str]] = MappingProxyType(
    {
        Cause.ACCEPTED: "accepted",
        Cause.RELEASED: "released",
        Cause.SESSION_CLOSED: "session closed",
        Cause.LOCK_EXPIRED: "lock expired",
        Cause.REJECTED: "archived",
        Cause.GAP: "archived",
        Cause.ARCHIVED_AT_LIMIT: "archived",
        Cause.ABORTED: "archived",
        Cause.COMPACTED_AWAY: "archived",
        Cause.BELOW_LOG_START: "archived",
    }
)
"""How a change ends the time for which a member holds records; the others do not end it."""

OUTCOME_NAMES: Final = (HELD, *dict.fromkeys(ENDS.values()))
"""What may become of records that a member holds; the later, the worse."""

_SHAPES: Final = ("stroke", "circle", "triangle-up", "square", "cross", "diamond")
_DASHES: Final = ((1, 0), (6, 3), (2, 3))
_TICKS: Final = alt.expr("ceil(width / 120)")
_LEGEND: Final = alt.Legend(title=None, columns=alt.expr("width < 290 ? 2 : width < 500 ? 3 : 0"))
_CLOCK: Final = {
    "year": "%Y",
    "month": "%B",
    "week": "%b %d",
    "date": "%b %d",
    "hours": "%H:%M",
    "minutes": "%H:%M",
    "seconds": "%H:%M:%S",
    "milliseconds": "%H:%M:%S.%L",
}
"""What a tick says, by what it is the beginning of."""


@cache
def charts(*, is_timed: bool) -> Mapping[str, dict[str, Any]]:
    """Return the charts by name, made once; without times their axis counts events, which are a second apart."""
    time = _Time(is_timed=is_timed)
    return {
        "whole": _whole(time),
        "records": _records(time),
        "members": _members(time),
        "lag": _lag(time),
        "deliveries": _deliveries(),
    }


class _Time:
    """The axis of time, which all charts but one share."""

    def __init__(self, *, is_timed: bool) -> None:
        self._axis = (
            alt.Axis(title="time, UTC", labelOverlap=True, tickCount=_TICKS, format=_CLOCK)
            if is_timed
            else alt.Axis(title="event", labelExpr="format(datum.value / 1000, 'd')", tickCount=_TICKS)
        )
        self._type: Literal["utc", "linear"] = "utc" if is_timed else "linear"
        self._kind = "T" if is_timed else "Q"

    def x(self, field: str, begin: str = "from", end: str = "to") -> alt.X:
        """Return the encoding of *field*, between the parameters *begin* and *end*."""
        scale = alt.Scale(type=self._type, domainMin=alt.expr(begin), domainMax=alt.expr(end), nice=False)
        return alt.X(f"{field}:{self._kind}", scale=scale, axis=self._axis)


def _offsets(field: str, low: str = "low", high: str = "high") -> alt.Y:
    """Return the encoding of an offset, between the parameters *low* and *high*."""
    scale = alt.Scale(domainMin=alt.expr(low), domainMax=alt.expr(high), nice=False, zero=False)
    return alt.Y(f"{field}:Q", scale=scale, axis=alt.Axis(title="offset", format="d", tickMinStep=1, tickCount=6))


def _edge() -> alt.StrokeWidth:
    """Return the encoding of the width of an edge: cells of a grid have none."""
    return alt.StrokeWidth("edge:Q", scale=None, legend=None)


def _parameters(*names: str) -> list[alt.Parameter]:
    return [alt.param(name=name, value=0) for name in names]


def _lines(data: str, x: alt.X, y: alt.Y) -> alt.Chart:
    dashes = alt.StrokeDash("line:N", scale=alt.Scale(domain=LINES, range=_DASHES), legend=_LEGEND)
    mark = alt.Chart(alt.NamedData(data)).mark_line(interpolate="step-after", strokeWidth=1, clip=True)
    return mark.encode(x, y, strokeDash=dashes, detail=alt.Detail("line:N"), order=alt.Order("at:Q"))


def _spec(
    chart: alt.Chart | alt.LayerChart | alt.FacetChart, description: str, height: int | alt.Step
) -> dict[str, Any]:
    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    sized = chart.properties(width="container", height=height, description=description, autosize=fit)
    spec: dict[str, Any] = sized.to_dict()
    return spec


def _whole(time: _Time) -> dict[str, Any]:
    """Draw the offsets over the whole time, in which to choose what is shown below."""
    brush = alt.selection_interval(name="brush", encodings=["x"])
    lines = _lines("lines", time.x("at", "whole_from", "whole_to"), _offsets("offset", "whole_low", "whole_high"))
    chart = alt.layer(lines.add_params(brush)).add_params(
        *_parameters("whole_from", "whole_to", "whole_low", "whole_high")
    )
    return _spec(chart, "SPSO, SPEO and log end over the whole time; the tables below say the same", 110)


def _records(time: _Time) -> dict[str, Any]:
    """Draw ranges of records, each for the time of a state; or cells of a grid with the state of most of theirs."""
    fill = alt.Fill("state:N", scale=alt.Scale(domain=STATES), legend=_LEGEND)
    ranges = (
        alt.Chart(alt.NamedData("ranges"))
        .mark_rect(clip=True, cursor="pointer")
        .encode(
            time.x("begin"),
            _offsets("bottom"),
            x2=alt.X2("end"),
            y2=alt.Y2("top"),
            fill=fill,
            tooltip=alt.Tooltip("first:Q"),
            strokeWidth=_edge(),
        )
    )
    labels = (
        alt.Chart(alt.NamedData("labels"))
        .mark_text(fontSize=10, clip=True, align="left", baseline="middle")
        .encode(time.x("begin"), _offsets("middle"), text=alt.Text("label:N"))
    )
    found = (
        alt.Chart(alt.NamedData("found"))
        .mark_rule(strokeWidth=2, strokeDash=[8, 4], clip=True)
        .encode(_offsets("offset"))
    )
    lines = _lines("lines", time.x("at"), _offsets("offset"))
    chart = alt.layer(ranges, labels, lines, found).add_params(*_parameters("from", "to", "low", "high"))
    return _spec(chart, "The states of records over the shown time; the table of changes says the same", 320)


def _members(time: _Time) -> dict[str, Any]:
    """Draw a lane for each member: when it held records, and what became of them."""
    color = alt.Fill("outcome:N", scale=alt.Scale(domain=OUTCOME_NAMES), legend=_LEGEND)
    shape = alt.Shape("outcome:N", scale=alt.Scale(domain=OUTCOME_NAMES, range=_SHAPES), legend=_LEGEND)
    lane = alt.Y("member:N", sort=None, axis=alt.Axis(title=None, labelLimit=150))
    bars = alt.Chart(alt.NamedData("bars")).mark_bar(clip=True, height={"band": 0.8})
    marks = alt.Chart(alt.NamedData("marks")).mark_point(clip=True, size=40, strokeWidth=0.8, filled=True)
    chart = alt.layer(
        bars.encode(
            time.x("begin"), lane, x2=alt.X2("end"), fill=color, tooltip=alt.Tooltip("text:N"), strokeWidth=_edge()
        ),
        marks.encode(time.x("at"), lane, fill=color, shape=shape, tooltip=alt.Tooltip("text:N")),
    ).add_params(*_parameters("from", "to"))
    return _spec(chart, "What each member held over the shown time; the table of members says the same", alt.Step(22))


def _lag(time: _Time) -> dict[str, Any]:
    """Draw how many records are still to be delivered or finished."""
    mark = alt.Chart(alt.NamedData("lag")).mark_area(interpolate="step-after", line=True, opacity=0.35, clip=True)
    # Points at the same time are no parts of a sum.
    y = alt.Y("lag:Q", stack=None, axis=alt.Axis(title="records", format="d", tickMinStep=1, tickCount=4))
    return _spec(mark.encode(time.x("at"), y).add_params(*_parameters("from", "to")), "Lag over the shown time", 110)


def _deliveries() -> dict[str, Any]:
    """Draw how many records were delivered once, twice, and so on."""
    chart = (
        alt.Chart(alt.NamedData("deliveries"))
        .mark_bar(height={"band": 0.7})
        .encode(
            alt.X("records:Q", axis=alt.Axis(title="deliveries of records", format="d", tickMinStep=1, tickCount=4)),
            alt.Y("label:N", sort=None, axis=alt.Axis(title=None)),
        )
    )
    return _spec(
        chart, "Deliveries in the shown time by delivery count; the table of deliveries says the same", alt.Step(22)
    )
