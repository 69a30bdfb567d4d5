"""A badge that says how many rules passed: a picture, or what shields.io makes one of."""

from __future__ import annotations

from html import escape
from typing import Final

from sharestate.conformance.verdicts import Conformance, ConformanceVerdict
from sharestate.json_lines import Json

_LABEL: Final = "share groups"
_COLORS: Final = {
    ConformanceVerdict.PASSED: ("brightgreen", "#2e7d32"),
    ConformanceVerdict.FAILED: ("red", "#c62828"),
    ConformanceVerdict.UNJUDGED: ("lightgrey", "#616161"),
}
"""The colors of a verdict on all: as shields.io calls it, and of the picture."""

_CHARACTER: Final = 7
"""The width of a character, with some room. [CSS pixels]"""


def _message(found: Conformance) -> str:
    return "not judged" if found.verdict is ConformanceVerdict.UNJUDGED else found.summary


def shields_json(found: Conformance) -> Json:
    """Return the badge as an endpoint of shields.io, version 1 of its schema."""
    color, _ = _COLORS[found.verdict]
    return {"schemaVersion": 1, "label": _LABEL, "message": _message(found), "color": color}


def badge_svg(found: Conformance) -> str:
    """Return the badge as a picture (SVG)."""
    message = _message(found)
    left, right = (_CHARACTER * len(text) + 10 for text in (_LABEL, message))
    words = escape(f"{_LABEL}: {message}")
    text = (
        '<text x="{}" y="14" fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">{}</text>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{words}">'
        f'<title>{words}</title><rect width="{left}" height="20" fill="#555"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{_COLORS[found.verdict][1]}"/>'
        f"{text.format(left / 2, _LABEL)}{text.format(left + right / 2, escape(message))}</svg>\n"
    )
