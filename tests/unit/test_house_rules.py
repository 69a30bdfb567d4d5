"""The house limits: files and functions stay small, and every public name says what it is for."""

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

import sharestate

PACKAGE = Path(sharestate.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = Function | ast.ClassDef


def functions() -> Iterator[tuple[str, int]]:
    """Yield where each function of the package is, and the lines of its body less the docstring."""
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, Function):
                yield f"{file.relative_to(PACKAGE)}:{node.lineno} {node.name}", body_lines(node)


def body_lines(function: Function) -> int:
    """Return how many lines *function* has after its head and docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body and body[-1].end_lineno else 0


def public_names(node: ast.Module | ast.ClassDef) -> Iterator[Documented]:
    """Yield the public classes and functions of *node*, and those inside these classes."""
    for child in node.body:
        if isinstance(child, Documented) and not child.name.startswith("_"):
            yield child
            if isinstance(child, ast.ClassDef):
                yield from public_names(child)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_file_has_at_most_400_lines(file: Path) -> None:
    """A file that outgrows 400 lines is two concerns."""
    assert len(file.read_text().splitlines()) <= 400


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_every_public_name_has_a_docstring(file: Path) -> None:
    """Every module, and every public class, function and method in it, has a docstring."""
    module = ast.parse(file.read_text())

    assert ast.get_docstring(module)
    assert [node.name for node in public_names(module) if not ast.get_docstring(node)] == []


def test_no_function_body_is_longer_than_60_lines() -> None:
    """A function body, its docstring aside, has at most 60 lines."""
    assert {where: lines for where, lines in functions() if lines > 60} == {}


def test_function_bodies_are_short() -> None:
    """Half of all function bodies have no more than 8 lines."""
    assert statistics.median(lines for _, lines in functions()) <= 8
