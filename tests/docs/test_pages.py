"""The generated pages are as fresh as what they are made from."""

from __future__ import annotations

import pytest

from generate.pages import DOCS, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_fresh(name: str) -> None:
    """What is committed is what `make diagrams` would write."""
    assert (DOCS / name).read_text() == PAGES[name](), "run make diagrams"
