"""The page names the code of every rule, and the code is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from generate.citations import RULES, cited, headings
from generate.data import DATA
from generate.places import PACKAGE, Place, carried, places
from generate.where_rules_live import asking
from sharestate import Quirk

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]

WITHOUT_CODE: Final = {
    "2": "lists what uses which rule",
    "7.11": "examples",
    "8.3": "examples",
    "18": "lists what follows from the other rules",
    "20": "only introduces its parts",
    "24": "only introduces its parts",
    "24.4": "says how often the library differs from Kafka",
}
"""Rules without code of their own, and why."""

CUTTING_ACROSS: Final = {
    "4.1": {"persister_error", "initialization_failed"},
    "16": {"wake", "_wake", "WAKE"},
    "20.4": {"count_completed", "completed_count"},
    "24.5": {"is_oversized", "split_refusal", "expires_per_call"},
}
"""Rules that have several homes, and the names that the code of each cannot do without."""


def test_the_rules_are_all_there() -> None:
    """Rules 1 to 16 with their parts, 18, 20, 21 and 24 with theirs have headings in ascending order."""
    parts = {1: 7, 4: 4, 7: 11, 8: 3, 20: 4, 21: 6, 24: 5}
    chapters = [*range(1, 17), 18, 20, 21, 24]
    expected = [
        number
        for chapter in chapters
        for number in [str(chapter), *(f"{chapter}.{part}" for part in range(1, parts.get(chapter, 0) + 1))]
    ]

    assert list(headings()) == expected


def test_each_heading_has_the_anchor_of_its_number() -> None:
    """A link to rule-7-8 leads to rule 7.8."""
    anchors = re.findall(r"^\(rule-([\d-]+)\)=\n#+ ([\d.]+) ", RULES.read_text(), re.MULTILINE)

    assert [anchor.replace("-", ".") for anchor, _ in anchors] == [number for _, number in anchors]
    assert len(re.findall(r"^##+ \d", RULES.read_text(), re.MULTILINE)) == len(anchors)


@pytest.mark.parametrize("number", [number for number in headings() if number not in WITHOUT_CODE])
def test_a_rule_has_code(number: str) -> None:
    """At least one place cites it as what it carries."""
    assert places()[number]


def using(names: set[str]) -> set[Place]:
    """Return the functions of the core and the leader that use one of *names*, other than to define it."""
    files = [file for folder in ("partition", "leader") for file in (PACKAGE / folder).glob("*.py")]
    return {
        Place(file.relative_to(PACKAGE).as_posix(), name)
        for file in files
        if file.stem not in {"invariants", "snapshots"}  # they look at all of the state
        for name, function in functions(ast.parse(file.read_text()).body)
        if names & {*map(used, ast.walk(function))}
    }


def functions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Go through the functions and methods of a module, with their qualified names."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            if statement.name != "__init__":
                yield prefix + statement.name, statement
        elif isinstance(statement, ast.ClassDef):
            yield from functions(statement.body, f"{prefix}{statement.name}.")


def used(node: ast.AST) -> str | None:
    """Return the name that *node* uses."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=name):
            return name
        case _:
            return None


@pytest.mark.parametrize("number", CUTTING_ACROSS)
def test_a_rule_that_cuts_across_lists_all_its_places(number: str) -> None:
    """Whatever maps errors, wakes fetches, counts completed records or minds the split limit cites that rule."""
    found = using(CUTTING_ACROSS[number])

    assert len({place.path for place in found}) > 1
    assert found <= set(places()[number])


def test_the_leader_lists_what_wakes_fetches() -> None:
    """Its module's docstring names every method that sets ``_wake``, but that which hands it over (rule 16)."""
    module = ast.parse((PACKAGE / "leader/leader.py").read_text())
    setting = {
        name.removeprefix("Leader.")
        for name, function in functions(module.body)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr == "_wake" and isinstance(node.ctx, ast.Store)
    }

    assert setting - {"_result"} == set(re.findall(r"``(\w+)``", ast.get_docstring(module) or "")) - {"wake"}


def test_every_rule_that_code_carries_is_a_heading() -> None:
    """There is no place for a rule that does not exist."""
    assert list(places()) == list(headings())


def texts() -> list[Path]:
    """Return the files that may cite rules."""
    folders = [file for folder in ("src", "tests", "docs", "bench", "examples") for file in (ROOT / folder).rglob("*")]
    pages = [*folders, *ROOT.glob("*.md"), *(ROOT / "newsfragments").glob("*.md")]
    return [file for file in pages if file.suffix in {".py", ".md", ".java", ".ipynb"}]


def test_every_rule_that_is_cited_is_a_heading() -> None:
    """In the code, the tests and the documentation."""
    unknown = {
        (file.relative_to(ROOT).as_posix(), number)
        for file in texts()
        for number in cited(file.read_text())
        if number not in headings()
    }

    assert not unknown


def test_every_recorded_example_is_one_of_a_rule() -> None:
    """The number in the name of a worked example is that of its rule."""
    names = [file.name for file in (DATA / "vectors/section22").glob("ex-*.jsonl")]

    assert {number for name in names for number in re.findall(r"^ex-([\d.]+)-", name)} <= set(headings())
    assert names


@pytest.mark.parametrize("quirk", Quirk)
def test_every_quirk_is_asked_for(quirk: Quirk) -> None:
    """Each bug that a profile may show is asked for in the state machine, where rule 24.1 is cited."""
    assert asking(quirk.name)
    assert set(asking(quirk.name)) <= set(places()["24.1"])


SOURCE: Final = '''\
"""Module of much (rule 7)."""

LIMIT = 1  # rule 7.1: a constant
OTHER = 2
"""A constant (rule 7.2)."""


class Thing:
    """A thing, not a place: rule 7.3 is only mentioned."""

    field = 1
    """A field (rules 7.4 and 7.5)."""

    def method(self):
        """
        Do it, over
        two lines (rule 8.1, step 3).

        And a mention of (rule 8.2).
        """
        # rules 9 and 10: both
        return 1  # as rule 11 says, a mention
'''


def test_places_are_where_the_citations_are() -> None:
    """The innermost function, class or constant carries what its docstring's first line or a comment in it cites."""
    assert list(carried(SOURCE)) == [
        ("7", ""),
        ("7.1", "LIMIT"),
        ("7.2", "OTHER"),
        ("7.4", "Thing.field"),
        ("7.5", "Thing.field"),
        ("8.1", "Thing.method"),
        ("9", "Thing.method"),
        ("10", "Thing.method"),
    ]


@cache
def defined(path: str) -> set[str]:
    """Return the names of the functions, classes and constants of a file of the library."""
    tree = ast.parse((PACKAGE / path).read_text())
    named = {getattr(node, "name", None) for node in ast.walk(tree)}
    return {name for name in named if name} | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def test_places_exist() -> None:
    """The page names files, and functions, classes or constants of them."""
    for found in places().values():
        for path, name in found:
            assert not name or name.rpartition(".")[2] in defined(path), (path, name)
