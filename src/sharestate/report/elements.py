"""The elements of pages: texts, tables, and what a page is filled with; nothing that a file says can become HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Final, NamedTuple

from sharestate.json_lines import printable

_LONG: Final = 40
"""The length from which on the text of a cell goes on in a new line. [characters]"""

_BAR_HEIGHT: Final = 48
"""The height of the highest bar, and the least one that can be seen. [CSS pixels]"""

_LEAST_HEIGHT: Final = 3

_FILES: Final = files("sharestate.report") / "page"


class Link(NamedTuple):
    """
    What leads to another place of the page.

    Attributes:
        text: What it says.
        fragment: The part of the address after ``#``.
    """

    text: str
    fragment: str


class PageLink(NamedTuple):
    """
    What leads to another page.

    Attributes:
        text: What it says.
        address: The address of that page.
    """

    text: str
    address: str


def read_part(name: str) -> str:
    """Return a file that pages are made of."""
    return (_FILES / name).read_text(encoding="utf-8")


def text_of(text: str) -> str:
    """
    Return *text*, which may come from anywhere, for HTML.

    >>> text_of("<b>")
    '&lt;b&gt;'
    """
    return escape(printable(text))


def list_of(lines: Sequence[str], element: str = "ul") -> str:
    """
    Return *lines* as a list; nothing without any.

    >>> list_of(["1 < 2"])
    '<ul><li>1 &lt; 2</li></ul>'
    """
    items = "".join(f"<li>{text_of(line)}</li>" for line in lines)
    return f"<{element}>{items}</{element}>" if items else ""


def outline_of(lines: Sequence[str]) -> str:
    """
    Return *lines* as a list; those that are indented by two spaces, or begin with a dash, are within the one before.

    >>> outline_of(["a:", "  b:", "  - c", "d"])
    '<ul><li>a:<ul><li>b:<ul><li>c</li></ul></li></ul></li><li>d</li></ul>'
    """
    parts: list[str] = []
    depth = -1
    for line in lines:
        text = line.lstrip()
        level = min((len(line) - len(text)) // 2 + text.startswith("- "), depth + 1)
        parts.append("<ul>" if level > depth else "</li>" + "</ul></li>" * (depth - level))
        parts.append(f"<li>{text_of(text.removeprefix('- '))}")
        depth = level
    return "".join([*parts, "</li></ul>" * (depth + 1)])


def table_of(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """
    Return a table.

    Args:
        heads: The heads of its columns, which are HTML.
        rows: Its rows: numbers, links, and what has a text, which is quoted.
    """
    head = "".join(f"<th>{each}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(map(_cell, heads, row))}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(head: str, value: object) -> str:
    """Return a cell, with the head of its column for narrow windows, in which it stands beside it."""
    name = f' data-head="{head}"' if head else ""
    if isinstance(value, Link):
        return f'<td class="link"{name}><a href="#{escape(value.fragment)}">{text_of(value.text)}</a></td>'
    if isinstance(value, PageLink):
        return f'<td class="link"{name}><a href="{escape(value.address)}">{text_of(value.text)}</a></td>'
    if isinstance(value, int):
        return f'<td class="number"{name}>{value}</td>'
    text = "" if value is None else text_of(str(value))
    return f'<td class="text"{name}>{text}</td>' if len(text) > _LONG else f"<td{name}>{text}</td>"


def strip_of(words: str, bars: Mapping[int, int], titles: Mapping[int, str], parts: int, most: int) -> str:
    """
    Return a strip of bars over time.

    Args:
        words: What it shows.
        bars: The height of each bar by its part of the time.
        titles: What each bar says when it is pointed at.
        parts: How many parts there are; bars take parts of the width, so that they fit into any window.
        most: The height that fills the strip: the same for strips that are compared.
    """
    drawn = []
    for part, count in bars.items():
        height = max(_BAR_HEIGHT * count / most, _LEAST_HEIGHT)
        drawn.append(
            f'<rect x="{100 * part / parts:.3f}%" y="{_BAR_HEIGHT - height:.1f}" width="{100 / parts:.3f}%" '
            f'height="{height:.1f}"><title>{text_of(titles[part])}</title></rect>'
        )
    return (
        f'<figure><figcaption>{text_of(words)}</figcaption><svg class="bars" role="img" aria-label="{text_of(words)}" '
        f'width="100%" height="{_BAR_HEIGHT}">{"".join(drawn)}</svg></figure>'
    )
