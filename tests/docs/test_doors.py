"""The doors of the test kit: each is found from its package, and its package from the page."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Final

import pytest

from sharestate import testing

PAGE: Final = (Path(__file__).parents[2] / "docs/testing.md").read_text()
SECTIONS: Final = {
    re.sub(r"[^a-z0-9 ]", "", heading.lower()).replace(" ", "-"): heading
    for heading in re.findall(r"^##+ (.+)$", PAGE, re.MULTILINE)
}
"""The headings of the page by their anchors."""

DOORS: Final = re.findall(r"^\| [^|]+ \| \[`(\w+)`\]\(#([\w-]+)\)[^|]* \| `([\w.]+)` \|", PAGE, re.MULTILINE)
"""Of each door its test, the anchor of its section, and its package."""

PACKAGES: Final = [module.name for module in iter_modules(testing.__path__) if module.ispkg]


@pytest.mark.parametrize(("test", "anchor", "package"), DOORS)
def test_a_door_is_found_from_its_package(test: str, anchor: str, package: str) -> None:
    """The package has the test, and its docstring names the test or its module, and the section of the page."""
    module = import_module(f"sharestate.testing.{package}")
    first_page = import_module(f"sharestate.testing.{package.partition('.')[0]}").__doc__ or ""

    assert hasattr(module, test)
    assert f"`{test}`" in first_page or f"``{package.rpartition('.')[2]}``" in first_page
    assert f'"{SECTIONS[anchor]}"' in " ".join(first_page.split())


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_says_whom_it_serves_and_where_its_section_is(package: str) -> None:
    """The page names it before its first section, and its docstring a section of the page."""
    begin, _, _ = PAGE.partition("\n## ")
    first_page = " ".join((import_module(f"sharestate.testing.{package}").__doc__ or "").split())

    assert f"`{package}`" in begin
    assert any(f'"{heading}"' in first_page for heading in SECTIONS.values())
    assert f"``{package}``" in (testing.__doc__ or "")


def test_there_are_seven_doors() -> None:
    """So none is left out because its row has another form."""
    assert len(DOORS) == 7
