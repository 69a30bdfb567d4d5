"""The mutants that may survive, each with its reason: ``survivors.toml``."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from attrs import field, frozen, validators

import sharestate

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = Path(sharestate.__file__).parent
FILE: Final = Path(__file__).with_name("survivors.toml")


@frozen(kw_only=True)
class Survivor:
    """A mutant that no test can or need notice."""

    module: str
    """The file, below ``src/sharestate``."""
    definition: str
    """The qualified name of the innermost class or function, empty outside of one."""
    line: str
    """The line as it is, without its indentation."""
    change: str
    """What it becomes."""
    kind: Literal["equivalent", "harmless"] = field(validator=validators.in_(("equivalent", "harmless")))
    """Whether all behaves the same, or otherwise in what nobody has to mind: time, memory, the words of a message."""
    reason: str = field(validator=validators.min_len(10))
    """Why."""

    @property
    def is_there(self) -> bool:
        """Whether the line stands in the definition."""
        file = SOURCE / self.module
        if not file.is_file():
            return False
        text = file.read_text()
        module, lines = _parsed(text), enumerate(text.splitlines(), start=1)
        return any(line.strip() == self.line and definition(module, at) == self.definition for at, line in lines)


def survivors(file: Path = FILE) -> tuple[Survivor, ...]:
    """Return what *file* says; an entry with several ``changes`` of a line, which have one reason, is one for each."""
    entries = tomllib.loads(file.read_text()).get("survivor", ())
    return tuple(
        Survivor(**entry, change=change)
        for entry in entries
        for change in (entry.pop("changes") if "changes" in entry else [entry.pop("change")])
    )


@lru_cache(maxsize=1)
def _parsed(text: str) -> ast.Module:
    """Return the tree of a source; most survivors follow another one of the same source."""
    return ast.parse(text)


def definition(module: ast.Module, line: int) -> str:
    """Return the qualified name of the innermost class or function around *line*, empty if there is none."""
    names: list[str] = []
    body: ast.AST = module
    while inner := [each for each in _definitions(body) if _first_line(each) <= line <= (each.end_lineno or 0)]:
        body = inner[0]
        names.append(inner[0].name)
    return ".".join(names)


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _definitions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Yield the classes and functions in *node*, those in other ones left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
        else:
            yield from _definitions(child)
