"""
Words that ``docs/glossary.md`` refuses, searched where people read: ``python -m generate.glossary``.

That is in names, docstrings and other texts of ``src``, such as messages and help, in the page of reports, and in the
documentation. The third columns of the first two tables list the words in code spans; those after "in code" are refused
in names and docstrings, those after "in names" in names only, those in parentheses are left to readers. The third table
lists the places that are exempt.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import sharestate

PAGE: Final = Path(__file__).parents[1] / "glossary.md"
ROOT: Final = PAGE.parents[1]
SOURCE: Final = Path(sharestate.__file__).parent
PROSE: Final = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md")
SCRIPTS: Final = ("report/page/*",)
"""What people see in a browser, below ``src/sharestate``."""

EVERYWHERE: Final = frozenset({"name", "docstring", "text"})
IN_CODE: Final = frozenset({"name", "docstring"})
IN_NAMES: Final = frozenset({"name"})
IN_PROSE: Final = frozenset({"docstring", "text"})

_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LITERAL: Final = re.compile(r"``.+?``", re.DOTALL)
_BLOCK: Final = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
_SPAN: Final = re.compile(r"`[^`]*`")


class Word(NamedTuple):
    """A word that is refused."""

    term: str
    """The term to use in its place."""

    text: str
    """The word, or several with spaces between them."""

    places: frozenset[str]
    """Where it is refused."""

    @property
    def pattern(self) -> str:
        """What finds it, in upper or in lower case."""
        return rf"\b{self.text}\b".replace(" ", r"\s+")

    def lines_in(self, text: str) -> list[int]:
        """Return the lines of *text* that have the word, counted from 0."""
        matches = re.finditer(self.pattern, _without_none(text), re.IGNORECASE)
        return [text.count("\n", 0, match.start()) for match in matches]


class Exemption(NamedTuple):
    """A word that one file may use."""

    path: str
    """The file, from the root of the repository."""

    text: str
    """The word."""

    reason: str
    """Why."""


class Finding(NamedTuple):
    """A word that stands where it should not."""

    path: str
    """The file, from the root of the repository."""

    line: int
    """The line, counted from 1."""

    where: str
    """The name, or "docstring" or "text"."""

    word: Word
    """The word."""

    def __str__(self) -> str:
        """Return the finding as one line for a terminal."""
        return f"{self.path}:{self.line}: {self.where}: {self.word.text!r} for {self.word.term!r}"


def words(page: str) -> list[Word]:
    """
    Return the words that the first two tables of *page* refuse.

    >>> page = "| expire | It ends. | `lapse`, `ran out`; in names `fired` (over) |"
    >>> [(word.text, sorted(word.places)) for word in words(page)]
    [('lapse', ['docstring', 'name', 'text']), ('ran out', ['docstring', 'name', 'text']), ('fired', ['name'])]
    """
    terms = [word for term, _, refused in _rows(page, 0) for word in _words(term, refused, EVERYWHERE)]
    return terms + [word for write, _, refused in _rows(page, 1) for word in _words(write, refused, IN_PROSE)]


def exemptions(page: str) -> list[Exemption]:
    """Return the rows of the third table of *page*."""
    return [Exemption(path.strip("`"), text.strip("`"), reason) for path, text, reason in _rows(page, 2)]


def _rows(page: str, index: int) -> Iterator[tuple[str, str, str]]:
    """Go through the rows of the table with that *index*; a table ends at a heading."""
    part = re.split(r"^## .+$", page, flags=re.MULTILINE)[index : index + 1]
    for line in "".join(part).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("| ") else []
        match [cell.removesuffix("|").strip() for cell in cells]:
            case [first, second, third] if first not in {"term", "write", "file"}:
                yield first, second, third


def _words(term: str, refused: str, places: frozenset[str]) -> Iterator[Word]:
    for word, only in re.findall(r"`([^`]+)`|(in code|in names)", re.sub(r"\(.*?\)", "", refused)):
        if only:
            places = IN_CODE if only == "in code" else IN_NAMES
        else:
            yield Word(term, word, places)


def _without_none(text: str) -> str:
    return text.replace("None", "")  # which Python has, and so is no word


def parts(name: str) -> str:
    """
    Return the words of a *name*, with spaces between them.

    >>> parts("has_lapsed"), parts("HasLapsed"), parts("FIRE_LOCK"), parts("KIPWrites2")
    ('has lapsed', 'Has Lapsed', 'FIRE LOCK', 'KIP Writes')
    """
    return " ".join(_PART.findall(name))


def findings(path: str, source: str, refused: Sequence[Word]) -> Iterator[Finding]:
    """Go through the refused words in the path of a file of Python, and in the names and texts of its *source*."""
    names = [(1, name) for name in path.removesuffix(".py").split("/")]
    texts: list[tuple[int, str, str, str]] = []
    docstrings: set[ast.AST] = set()
    for node in ast.walk(ast.parse(source)):  # a statement comes before what is in it
        match node:
            case ast.Expr(value=ast.Constant(value=str(text)) as constant):
                docstrings.add(constant)
                texts.append((node.lineno, "docstring", "docstring", _LITERAL.sub("", text)))
            case ast.Constant(value=str(text)) if node not in docstrings:
                texts.append((node.lineno, "text", "text", text))
            case _:
                names += _defined(node)
    spoken = [(line, name, "name", parts(name)) for line, name in names] + texts
    any_word = re.compile("|".join(word.pattern for word in refused), re.IGNORECASE)
    for line, where, place, text in spoken:
        if any_word.search(_without_none(text)):  # few have one, so they are not asked for each
            for word in refused:
                if place in word.places and word.lines_in(text):
                    yield Finding(path, line, where, word)


def text_findings(path: str, text: str, refused: Iterable[Word]) -> Iterator[Finding]:
    """Go through the refused words in a file of text."""
    for word in refused:
        for line in word.lines_in(text) if "text" in word.places else ():
            yield Finding(path, line + 1, "text", word)


def prose(page: str) -> str:
    """Return a page of Markdown without its code, on as many lines."""
    for code in (_BLOCK, _SPAN):
        page = code.sub(lambda found: "\n" * found[0].count("\n"), page)
    return page


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


def everything(refused: Sequence[Word]) -> Iterator[Finding]:
    """Go through the refused words in all that people read."""
    for file in sorted(SOURCE.rglob("*.py")):
        yield from findings(f"src/sharestate/{file.relative_to(SOURCE).as_posix()}", file.read_text(), refused)
    for file in sorted(file for pattern in SCRIPTS for file in SOURCE.glob(pattern)):
        yield from text_findings(f"src/sharestate/{file.relative_to(SOURCE).as_posix()}", file.read_text(), refused)
    for file in sorted({file for pattern in PROSE for file in ROOT.glob(pattern)} - {PAGE}):
        yield from text_findings(file.relative_to(ROOT).as_posix(), prose(file.read_text()), refused)


def main() -> int:
    """Print what is wrong, and return the exit status."""
    page = PAGE.read_text()
    lines = judge(everything(words(page)), exemptions(page))
    print("\n".join(lines) or "no word that the glossary refuses")  # noqa: T201 - a command
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
