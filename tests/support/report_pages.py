"""Reports: their texts, and in a browser, opened and waited for until all is drawn."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from tests.support.browser import Browser, Page

WIDE = 1200
"""The width of a window on a desk. [CSS pixels]"""


class Text(HTMLParser):
    """The text of each table of a page, by the id of the element that is around it."""

    def __init__(self, page: str) -> None:
        """Take the texts out of *page*."""
        super().__init__()
        self.cells: dict[str, list[str]] = {}
        self._around: list[str] = []
        self._is_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        name = dict(attrs).get("id")
        if tag in {"table", "section"} and name:
            self._around.append(name)
        self._is_cell = self._is_cell or tag == "td"
        if tag == "td" and self._around:
            self.cells.setdefault(self._around[-1], []).append("")

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        self._is_cell = self._is_cell and tag != "td"

    def handle_data(self, data: str) -> None:
        """Add the text of a cell."""
        if self._is_cell and self._around:
            self.cells[self._around[-1]][-1] += data


def drawn(browser: Browser, report: Path, fragment: str = "", *, width: int = WIDE, is_dark: bool = False) -> Page:
    """Return a report that was opened as ``Browser.open`` does, with its pictures drawn."""
    page = browser.open(report, fragment, width=width, is_dark=is_dark)
    settle(page)
    return page


def settle(page: Page) -> None:
    """Wait until a report has drawn all that it is about to draw."""
    page.run("""(async () => {
      do { await new Promise((done) => setTimeout(done, 20)); await drawing; }
      while (pending || !document.body.dataset.drawn);
    })()""")


def lightness(color: str) -> float:
    """
    Return the relative luminance of a color such as ``#14171a``.

    Source:
        WCAG 2.2, "relative luminance".
    """
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
