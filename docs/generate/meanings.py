"""The meanings of an enumeration's members: the docstrings beneath them."""

import ast
import inspect
from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import pairwise
from textwrap import dedent


def meanings(enumeration: type[Enum]) -> Mapping[str, str]:
    """Return the docstring beneath each member of *enumeration*, by the member's name, on one line."""
    (definition,) = ast.parse(dedent(inspect.getsource(enumeration))).body
    assert isinstance(definition, ast.ClassDef)  # noqa: S101 - mypy cannot know what an enumeration's source is
    return dict(_documented(definition.body))


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for statement, below in pairwise(body):
        match statement, below:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, " ".join(text.split())
            case _:
                pass  # a member without a docstring, or what stands between a docstring and the next member
