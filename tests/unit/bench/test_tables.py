"""Tables of figures, and where they are put."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.tables import put, table


def test_text_is_to_the_left_and_figures_to_the_right() -> None:
    """A table is Markdown whose columns are as wide as their widest cell."""
    assert [*table(("what", "µs"), [("a long name", "1.0"), ("short", "1,000.0")])] == [
        "| what        |      µs |",
        "|-------------|--------:|",
        "| a long name |     1.0 |",
        "| short       | 1,000.0 |",
    ]


def test_figures_replace_what_was_between_the_marks(tmp_path: Path) -> None:
    """What stands before and after the marks is kept, and so are the marks."""
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a -->\nold\n<!-- z -->\nafter\n", "utf-8")

    put(page, "new\n", "<!-- a -->", "<!-- z -->")

    assert page.read_text("utf-8") == "before\n<!-- a -->\n\nnew\n\n<!-- z -->\nafter\n"


@pytest.mark.parametrize("text", ["no marks\n", "<!-- a -->\n", "<!-- z -->\n<!-- a -->\n"])
def test_a_page_without_marks_is_left_alone(text: str, tmp_path: Path) -> None:
    """Where a mark is missing, the file is named and not written."""
    page = tmp_path / "page.md"
    page.write_text(text, "utf-8")

    with pytest.raises(SystemExit, match=r"page\.md lacks the marks"):
        put(page, "new\n", "<!-- a -->", "<!-- z -->")

    assert page.read_text("utf-8") == text
