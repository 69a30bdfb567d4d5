"""
Places in the code that carry a rule, found by the citations at those places.

A place carries the rules that its docstring cites in parentheses at the end of the first line, as in "Base offset of an
acquisition (rule 7.4).", and those of a comment that begins with a citation, as in "# rule 8.1, step 3: only the last".
Citations elsewhere, in the text of a docstring or a comment, are mentions.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import sharestate
from generate.citations import cited, headings

PACKAGE: Final = Path(sharestate.__file__).parent

_MENTION: Final = re.compile(r"[Rr]ules?\s+\d")
_AT_THE_END: Final = re.compile(r"\(([Rr]ules? [^()]+)\)\.?$")
_COMMENT: Final = re.compile(r"#\s*([Rr]ules? \d.*)")


class Place(NamedTuple):
    """A piece of code that carries a rule."""

    path: str
    """The file below ``src/sharestate``."""

    name: str
    """The function, class or constant, with those that it lies in; empty for the module."""


class Definition(NamedTuple):
    """A function, class or constant, and the lines on which it stands."""

    first_line: int
    last_line: int
    name: str
    docstring: str


@cache
def places() -> Mapping[str, list[Place]]:
    """Return the places that carry each rule, by its number; what only judges implementations is left out."""
    found: dict[str, list[Place]] = {number: [] for number in headings()}
    for file in sorted(PACKAGE.rglob("*.py")):
        path = file.relative_to(PACKAGE).as_posix()
        if path.startswith("testing/"):
            continue
        source = file.read_text()
        if not _MENTION.search(source):  # to parse and tokenize all takes a second
            continue
        for number, name in carried(source):
            place = Place(path, name)
            if place not in found.setdefault(number, []):
                found[number].append(place)
    return found


def carried(source: str) -> Iterator[tuple[str, str]]:
    r"""
    Go through the rules that *source* carries, each with the name of its place, from the top to the bottom.

    >>> list(carried("def f():\n    x = 1  # rule 7.2: room\n"))
    [('7.2', 'f')]
    """
    definitions = list(_definitions(ast.parse(source)))
    found = [
        (definition.first_line, number, definition.name)
        for definition in definitions
        if (match := _AT_THE_END.search(_first_line(definition.docstring)))
        for number in cited(match[1])
    ]
    for line, text in _comments(source) if _COMMENT.search(source) else ():
        inner = [definition for definition in definitions if definition.first_line <= line <= definition.last_line]
        name = max(inner, key=lambda definition: definition.first_line).name
        found += [(line, number, name) for number in _leading(text)]
    return ((number, name) for _, number, name in sorted(found, key=lambda row: row[0]))


def _first_line(docstring: str) -> str:
    """Return the first paragraph of a docstring on one line."""
    return " ".join(docstring.strip().partition("\n\n")[0].split())


def _leading(comment: str) -> list[str]:
    """Return the rules of the citation with which *comment* begins, if it begins with one."""
    match = _COMMENT.match(comment)
    return [] if match is None else cited(match[1].partition(":")[0])


def _comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _definitions(module: ast.Module) -> Iterator[Definition]:
    last_line = max((node.end_lineno or 0 for node in module.body), default=0)
    yield Definition(0, last_line + 1, "", ast.get_docstring(module) or "")
    yield from _in_body(module.body, "")


def _in_body(body: list[ast.stmt], prefix: str) -> Iterator[Definition]:
    for statement, following in pairwise([*body, ast.Pass()]):
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                name = prefix + statement.name
                yield _definition(statement, name, ast.get_docstring(statement) or "")
                if isinstance(statement, ast.ClassDef):
                    yield from _in_body(statement.body, f"{name}.")
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield _definition(statement, prefix + name, _docstring_below(following))
            case _:
                pass


def _definition(statement: ast.stmt, name: str, docstring: str) -> Definition:
    return Definition(statement.lineno, statement.end_lineno or statement.lineno, name, docstring)


def _docstring_below(following: ast.stmt) -> str:
    match following:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
        case _:
            return ""
