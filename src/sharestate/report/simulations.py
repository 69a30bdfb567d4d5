"""The page of simulations: what comes of loads in charts and tables, what was fitted, and advice; it has no script."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template
from typing import Any, Final

import altair as alt
import vl_convert

from sharestate.report.elements import list_of, read_part, table_of, text_of
from sharestate.simulate import MEASURES, Advised, Fit, GridPoint, Spread, measure_text, parts_line

CHARTED: Final = ("throughput", "latency_p95_ms", "duplicates", "wasted_ms")
"""The measures that are drawn."""

_NOT_SHOWN: Final = frozenset({"seed", "ended"})
"""What is no measure; how simulations have ended stands after these."""

_MOST_POINTS: Final = 200
"""The most points that are drawn and listed; the others are in the JSON form."""

_WIDTH: Final = 300
_HEIGHT: Final = 180
_AS_GIVEN: Final = "as given"
_SECOND_MS: Final = 1000

_COUNTED: Final = "Loads: {:,}, each with {} seeds: means, and the least and greatest value"


def simulation_page(
    points: Sequence[GridPoint], *, title: str, fitted: Fit | None = None, advised: Advised | None = None
) -> str:
    """
    Return what comes of loads as one page of HTML, which needs neither network nor other files nor scripts.

    Its numbers are those of the results. Equal arguments give equal pages, with equal releases of what draws them.

    Args:
        points: The loads with their results: one, two that are compared, or a grid.
        title: What they are: settings in words.
        fitted: What the load was fitted to.
        advised: The advice on it.
    """
    shown = points[:_MOST_POINTS]
    seeds = max(len(point.results) for point in points)
    parts = [
        "" if advised is None else _section("advice", "Advice", _advice(advised, fitted)),
        _section("results", "Results", _charts(shown) if len(shown) > 1 else "", _results(shown, fitted)),
        "" if fitted is None else _section("load", "The load, as the history shows it", _fitted(fitted)),
    ]
    return Template(read_part("sections.html")).substitute(
        title="Simulated share group",
        subtitle=text_of(f"{title or 'The default load'}. {_COUNTED.format(len(points), seeds)}"),
        style=read_part("page.css"),
        sections="\n".join(filter(None, parts)),
    )


def grid_chart(points: Sequence[GridPoint], measure: str) -> alt.LayerChart | alt.FacetChart:
    """
    Draw a measure of points: means over the seeds, with bars from the least to the greatest value.

    The first setting that differs is the axis, the second one is the color, others go with it.

    Args:
        points: The points with their results.
        measure: A field of ``SimulationResult``.

    Returns:
        A chart, which notebooks show, and ``save`` writes.
    """
    is_time, words = measure.endswith("_ms"), MEASURES[measure]
    rows = [_row(point, measure, _SECOND_MS if is_time else 1) for point in points]
    first = next(iter(points[-1].changes), "")
    kinds = list(dict.fromkeys(row["line"] for row in rows))
    color = alt.Color("line:N", sort=None, legend=None if len(kinds) == 1 else alt.Legend(title=None))
    x = alt.X("at:N", sort=None, axis=alt.Axis(title=first, labelAngle=0))
    y = alt.Y("mean:Q", axis=alt.Axis(title=f"{words} [s]" if is_time else words))
    base = alt.Chart(alt.Data(values=rows))
    lines = base.mark_line(point=True).encode(x, y, color)
    bars = base.mark_rule().encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), color)
    return alt.layer(lines, bars).properties(width=_WIDTH, height=_HEIGHT)


def _row(point: GridPoint, measure: str, unit: int) -> dict[str, Any]:
    at, *others = list(point.changes.items()) or [("", _AS_GIVEN)]
    spread = point.measure(measure)
    numbers = {} if spread is None else {name: value / unit for name, value in spread._asdict().items()}
    return {"at": at[1], "line": " ".join(f"{name}={text}" for name, text in others), **numbers}


def _section(name: str, title: str, *parts: str) -> str:
    return f'<section id="{name}"><h2>{title}</h2>{"".join(parts)}</section>'


def _charts(points: Sequence[GridPoint]) -> str:
    figures = []
    for measure in CHARTED:
        if not any(point.measure(measure) for point in points):
            continue
        svg: str = vl_convert.vegalite_to_svg(grid_chart(points, measure).to_dict())
        caption = text_of(f"{MEASURES[measure]}; the table says the same")
        figures.append(f"<figure><figcaption>{caption}</figcaption>{svg}</figure>")
    return f'<div class="charts">{"".join(figures)}</div>'


def _results(points: Sequence[GridPoint], fitted: Fit | None) -> str:
    """Return a row for each measure of a few points, and a row for each of many points."""
    few = 3
    measures = [name for name in MEASURES if name not in _NOT_SHOWN]
    if len(points) > few:
        axes = list(points[0].changes)
        rows = [
            [*point.changes.values(), *(_cell(name, point.measure(name)) for name in measures), _ended(point)]
            for point in points
        ]
        return table_of([*axes, *(MEASURES[name] for name in measures), MEASURES["ended"]], rows)
    observed = {} if fitted is None else fitted.observed
    heads = ["measure", *(["history"] if fitted else []), *map(_label, points)]
    rows = []
    for name in measures:
        seen = [measure_text(name, observed[name]) if name in observed else ""] if fitted else []
        rows.append([MEASURES[name], *seen, *(_cell(name, point.measure(name)) for point in points)])
    rows.append([MEASURES["ended"], *([""] if fitted else []), *map(_ended, points)])
    return table_of(heads, rows)


def _ended(point: GridPoint) -> str:
    """Return how the simulations of a load have ended, each way once."""
    return ", ".join(dict.fromkeys(result.ended for result in point.results))


def _label(point: GridPoint) -> str:
    return text_of(" ".join(f"{name}={text}" for name, text in point.changes.items()) or _AS_GIVEN)


def _cell(name: str, spread: Spread | None) -> str:
    if spread is None:
        return "-"
    text, low, high = (measure_text(name, value) for value in spread)
    return text if low == high else f"{text} ({low}..{high})"


def _advice(advised: Advised, fitted: Fit | None) -> str:
    of = "" if fitted is None else f'<p class="hint">{text_of(parts_line(fitted))}</p>'
    said = [each.sentence for each in advised.advice]
    nothing = "No setting that was tried would have been better with every seed."
    return of + list_of(said or [nothing]) + list_of(advised.notes)


def _fitted(fitted: Fit) -> str:
    heads = ("setting", "value", "what it comes from")
    known = table_of(heads, [tuple(each) for each in fitted.known])
    assumed = table_of(("setting", "value", "why it is assumed"), [tuple(each) for each in fitted.assumed])
    return f"{known}<h3>Assumed</h3>{assumed}{list_of(fitted.notes)}"
