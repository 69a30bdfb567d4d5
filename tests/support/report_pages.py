"""Reports in a browser: opened, and waited for until all is drawn."""

from __future__ import annotations

from pathlib import Path

from tests.support.browser import Browser, Page

WIDE = 1200
"""The width of a window on a desk. [CSS pixels]"""


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
