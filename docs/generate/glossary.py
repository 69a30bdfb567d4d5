"""
Words that ``docs/glossary.md`` refuses, searched in names and docstrings of ``src``: ``python -m generate.glossary``.

The third column of its first table lists the words of each term in code spans; those after "in names" are refused in
names only, those in parentheses are left to readers. Its second table lists the places that are exempt.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import sharestate

PAGE: Final = Path(__file__).parents[1] / "glossary.md"
SOURCE: Final = Path(sharestate.__file__).parent

_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LITERAL: Final = re.compile(r"``.+?``", re.DOTALL)


class Word(NamedTuple):
    """A word that is refused."""

    term: str
    """The term to use in its place."""

    text: str
    """The word, or several with spaces between them."""

    is_for_names: bool
    """True if it is refused in names only."""

    def is_in(self, text: str) -> bool:
        """Return whether *text* has the word."""
        return re.search(rf"\b{self.text}\b".replace(" ", r"\s+"), text, re.IGNORECASE) is not None


class Exemption(NamedTuple):
    """A word that one file may use."""

    path: str
    """The file below ``src/sharestate``."""

    text: str
    """The word."""

    reason: str
    """Why."""


class Finding(NamedTuple):
    """A word that stands where it should not."""

    path: str
    """The file below ``src/sharestate``."""

    line: int
    """The line, counted from 1."""

    where: str
    """The name, or "docstring"."""

    word: Word
    """The word."""

    def __str__(self) -> str:
        """Return the finding as one line for a terminal."""
        return f"src/sharestate/{self.path}:{self.line}: {self.where}: {self.word.text!r} for {self.word.term!r}"


def words(page: str) -> list[Word]:
    """
    Return the words that the first table of *page* refuses.

    >>> [tuple(word) for word in words("| expire | It ends. | `lapse`, `ran out`; in names `fired` (over) |")]
    [('expire', 'lapse', False), ('expire', 'ran out', False), ('expire', 'fired', True)]
    """
    return [word for term, _, refused in _rows(page, 0) for word in _words(term, refused)]


def exemptions(page: str) -> list[Exemption]:
    """Return the rows of the second table of *page*."""
    return [Exemption(path.strip("`"), text.strip("`"), reason) for path, text, reason in _rows(page, 1)]


def _rows(page: str, index: int) -> Iterator[tuple[str, str, str]]:
    """Go through the rows of the table with that *index*; a table ends at a heading."""
    part = re.split(r"^## .+$", page, flags=re.MULTILINE)[index : index + 1]
    for line in "".join(part).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("| ") else []
        match [cell.removesuffix("|").strip() for cell in cells]:
            case [first, second, third] if first not in {"term", "file below `src/sharestate`"}:
                yield first, second, third


def _words(term: str, refused: str) -> Iterator[Word]:
    everywhere, _, in_names = re.sub(r"\(.*?\)", "", refused).partition("in names")
    for text, is_for_names in ((everywhere, False), (in_names, True)):
        for word in re.findall(r"`([^`]+)`", text):
            yield Word(term, word, is_for_names)


def parts(name: str) -> str:
    """
    Return the words of a *name*, with spaces between them.

    >>> parts("has_lapsed"), parts("HasLapsed"), parts("FIRE_LOCK"), parts("KIPWrites2")
    ('has lapsed', 'Has Lapsed', 'FIRE LOCK', 'KIP Writes')
    """
    return " ".join(_PART.findall(name))


def findings(path: str, source: str, refused: Iterable[Word]) -> Iterator[Finding]:
    """Go through the refused words in the path of a file and in the names and docstrings that its *source* defines."""
    names = [(1, name) for name in path.removesuffix(".py").split("/")]
    docstrings: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                docstrings.append((node.lineno, _LITERAL.sub("", text)))
            case _:
                names += _defined(node)
    for word in refused:
        for line, name in names:
            if word.is_in(parts(name)):
                yield Finding(path, line, name, word)
        for line, text in docstrings:
            if not word.is_for_names and word.is_in(text):
                yield Finding(path, line, "docstring", word)


def _defined(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield node.lineno, name
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield node.lineno, name
        case ast.alias(asname=str(name)):
            yield node.lineno, name
        case _:
            pass


def judge(found: Iterable[Finding], exempt: Iterable[Exemption]) -> list[str]:
    """Return a line for each finding that no exemption covers, and for each exemption that covers none."""
    found = sorted(found)
    places = {(row.path, row.text) for row in exempt}
    lines = [str(finding) for finding in found if (finding.path, finding.word.text) not in places]
    unused = places - {(finding.path, finding.word.text) for finding in found}
    return lines + [f"docs/glossary.md: {path} needs no exemption for {text!r}" for path, text in sorted(unused)]


def main() -> int:
    """Print what is wrong with ``src``, and return the exit status."""
    page = PAGE.read_text()
    refused = words(page)
    found = [
        finding
        for file in sorted(SOURCE.rglob("*.py"))
        for finding in findings(file.relative_to(SOURCE).as_posix(), file.read_text(), refused)
    ]
    lines = judge(found, exemptions(page))
    print("\n".join(lines) or "no word that the glossary refuses")  # noqa: T201 - a command
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
