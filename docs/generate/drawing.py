"""State diagrams as SVG files, which are shown without a script and without network."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import copysign, hypot
from types import MappingProxyType
from typing import Final, NamedTuple

_LINE: Final = 16
"""The distance of two lines of text. [pixels]"""

_LETTER: Final = 7
"""The width of a letter. [pixels]"""

_HALF_WIDTH: Final = 84
"""Half the width of a state's box. [pixels]"""

_SHIFT: Final = 9
"""The distance by which an arrow is moved aside if there is one in the other direction. [pixels]"""

_STYLE: Final = """\
  <style>
    text { font: 13px sans-serif; fill: #222; text-anchor: middle }
    .name { font-weight: bold }
    .page, .behind { fill: #fff }
    .state { fill: #e8eef7; stroke: #456; rx: 8px }
    .arrow { fill: none; stroke: #456; stroke-width: 1.4px; marker-end: url(#head) }
    .head { fill: #456 }
  </style>
  <defs>
    <marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">
      <path class="head" d="M0 0 L10 5 L0 10 z"/>
    </marker>
  </defs>"""


class Point(NamedTuple):
    """A place in a drawing, from its upper left corner. [pixels]"""

    x: float
    """To the right."""

    y: float
    """Downwards."""


class StateDiagram(NamedTuple):
    """A state machine and where its states are drawn."""

    size: Point
    """The width and the height of the drawing."""

    places: Mapping[str, Point]
    """The middle of each state; the first state is the initial one."""

    arrows: Mapping[tuple[str, str], Sequence[str]]
    """The labels of the arrow from one state to another, one on each line."""

    remarks: Mapping[str, Sequence[str]] = MappingProxyType({})
    """The lines of text inside of states, below their names."""

    def svg(self) -> str:
        """Return the drawing as the text of an SVG file; its background is white, in dark pages too."""
        width, height = self.size
        size = f'width="{width}" height="{height}"'
        begin, (x, y) = next(iter(self.places.items()))
        edge = x - _HALF_WIDTH
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}">',
            _STYLE,
            f'  <rect class="page" {size}/>',
            f'  <g><title>begin: {begin}</title><circle class="head" cx="{edge - 34}" cy="{y}" r="6"/></g>',
            f'  <path class="arrow" d="M{edge - 28} {y} L{edge} {y}"/>',
            *(f'  <path class="arrow" d="{self._path(*arrow)}"/>' for arrow in self.arrows),
            *(line for arrow in self.arrows for line in self._labels(*arrow)),
            *(line for state in self.places for line in self._state(state)),
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    def _path(self, here: str, there: str) -> str:
        if here == there:
            x, y = self.places[here].x, self.places[here].y - self._half_height(here)
            return f"M{x - 24:.0f} {y:.0f} C{x - 40:.0f} {y - 46:.0f} {x + 40:.0f} {y - 46:.0f} {x + 24:.0f} {y:.0f}"
        begin, end = self._line(here, there)
        return f"M{begin.x:.0f} {begin.y:.0f} L{end.x:.0f} {end.y:.0f}"

    def _line(self, here: str, there: str) -> tuple[Point, Point]:
        aside = self._aside(here, there)
        return self._edge(here, there, aside), self._edge(there, here, aside)

    def _aside(self, here: str, there: str) -> Point:
        """Return how far an arrow is moved to its left, because there is one in the other direction."""
        if (there, here) not in self.arrows:
            return Point(0, 0)
        x, y = self.places[there].x - self.places[here].x, self.places[there].y - self.places[here].y
        return Point(y / hypot(x, y) * _SHIFT, -x / hypot(x, y) * _SHIFT)

    def _edge(self, here: str, there: str, aside: Point) -> Point:
        """Return where the line from the middle of one state to that of another, moved aside, leaves the box."""
        middle = self.places[here]
        x, y = self.places[there].x - middle.x, self.places[there].y - middle.y
        parts = (
            (half - copysign(off, off * way)) / abs(way)
            for half, off, way in ((_HALF_WIDTH, aside.x, x), (self._half_height(here), aside.y, y))
            if way
        )
        part = min(parts)
        return Point(middle.x + aside.x + x * part, middle.y + aside.y + y * part)

    def _half_height(self, state: str) -> float:
        return 12 + _LINE * (1 + len(self.remarks.get(state, ()))) / 2

    def _labels(self, here: str, there: str) -> Iterator[str]:
        labels = self.arrows[here, there]
        half_width, half_height = max(map(len, labels)) * _LETTER / 2 + 5, len(labels) * _LINE / 2
        if here == there:
            middle = Point(self.places[here].x, self.places[here].y - self._half_height(here) - 44)
        else:
            begin, end = self._line(here, there)
            aside = self._aside(here, there)
            # Of two parallel lines, each has its labels on its own side.
            beside = ((abs(aside.x) * half_width + abs(aside.y) * half_height) / _SHIFT + 2) / _SHIFT
            middle = Point((begin.x + end.x) / 2 + aside.x * beside, (begin.y + end.y) / 2 + aside.y * beside)
        yield f"  <g><title>{here} to {there}</title>"
        yield _box("behind", middle, half_width, half_height)
        yield from _text(middle, labels, "label")
        yield "  </g>"

    def _state(self, state: str) -> Iterator[str]:
        middle, half_height = self.places[state], self._half_height(state)
        remarks = self.remarks.get(state, ())
        yield f"  <g><title>{state}</title>"
        yield _box("state", middle, _HALF_WIDTH, half_height)
        yield from _text(Point(middle.x, middle.y - _LINE * len(remarks) / 2), [state], "name")
        yield from _text(Point(middle.x, middle.y + _LINE / 2), remarks, "remark")
        yield "  </g>"


def _box(class_: str, middle: Point, half_width: float, half_height: float) -> str:
    corner = f'x="{middle.x - half_width:.0f}" y="{middle.y - half_height:.0f}"'
    return f'    <rect class="{class_}" {corner} width="{2 * half_width:.0f}" height="{2 * half_height:.0f}"/>'


def _text(middle: Point, lines: Sequence[str], class_: str) -> Iterator[str]:
    first = middle.y - _LINE * (len(lines) - 1) / 2 + 4  # a letter is about as high above its line
    for number, line in enumerate(lines):
        yield f'    <text class="{class_}" x="{middle.x:.0f}" y="{first + _LINE * number:.0f}">{escape(line)}</text>'
