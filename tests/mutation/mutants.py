"""
The mutants of a package: small changes of its source, most of them by Cosmic Ray's operators.

Only what functions do is changed: not annotations, which nothing evaluates, and not what runs when a module is
imported, such as tables, which would take an import for each mutant. Functions that run only then are left out later.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from copy import deepcopy
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from attrs import frozen
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_item import MutationSpec, WorkItem
from parso.python.tree import ExprStmt, Keyword, PythonNode

from tests.mutation.survivors import SOURCE, definition

# One replacement for each operator, the nearest: whoever notices it notices the others.
_REPLACED: Final = (
    "ReplaceBinaryOperator_Add_Sub",
    "ReplaceBinaryOperator_Sub_Add",
    "ReplaceBinaryOperator_Mul_Div",
    "ReplaceBinaryOperator_Div_Mul",
    "ReplaceBinaryOperator_FloorDiv_Mul",
    "ReplaceBinaryOperator_Mod_FloorDiv",
    "ReplaceBinaryOperator_Pow_Mul",
    "ReplaceBinaryOperator_RShift_LShift",
    "ReplaceBinaryOperator_LShift_RShift",
    "ReplaceBinaryOperator_BitOr_BitAnd",
    "ReplaceBinaryOperator_BitAnd_BitOr",
    "ReplaceBinaryOperator_BitXor_BitAnd",
    "ReplaceComparisonOperator_Eq_NotEq",
    "ReplaceComparisonOperator_NotEq_Eq",
    "ReplaceComparisonOperator_Lt_LtE",
    "ReplaceComparisonOperator_LtE_Lt",
    "ReplaceComparisonOperator_Gt_GtE",
    "ReplaceComparisonOperator_GtE_Gt",
    "ReplaceComparisonOperator_Is_IsNot",
    "ReplaceComparisonOperator_IsNot_Is",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_USub_UAdd",
    "AddNot",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ExceptionReplacer",
    "NumberReplacer",
    "ZeroIterationForLoop",
)


Node = Any  # parso's, which Cosmic Ray does not name


class RemoveStatement(Operator):
    """An operator that leaves out a call whose result is not used, a change in place, or an error that is raised."""

    def mutation_positions(self, node: Node) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Yield where *node* is, if it is such a statement."""
        if self._can_go(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Node, index: int) -> Node:  # noqa: ARG002 - there is one way
        """Return ``pass``, on as many lines as *node*."""
        first = node.get_first_leaf()
        return Keyword("pass" + "\n" * (node.end_pos[0] - node.start_pos[0]), node.start_pos, first.prefix)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Return one of each."""
        return (
            Example("f(x)\n", "pass\n"),
            Example("x.y = z\n", "pass\n"),
            Example("x += 1\n", "pass\n"),
            Example("raise x\n", "pass\n"),
        )

    @staticmethod
    def _can_go(node: Node) -> bool:
        if node.parent is None or node.parent.type != "simple_stmt":
            return False
        if isinstance(node, ExprStmt):  # an assignment to a name that is new would be missed at once
            target, sign = node.children[:2]
            return target.type in {"atom_expr", "power"} or (sign.type == "operator" and sign.value != "=")
        return node.type == "raise_stmt" or (isinstance(node, PythonNode) and node.type in {"atom_expr", "power"})


OPERATORS: Final = {name: get_operator(f"core/{name}")() for name in _REPLACED} | {"RemoveStatement": RemoveStatement()}


@frozen
class Place:
    """Where a mutant is, in words that outlive other changes of the file."""

    module: str
    """The file, below ``src/sharestate``."""
    definition: str
    """The qualified name of the innermost class or function, empty outside of one."""
    line: str
    """The line as it is, without its indentation."""
    change: str
    """What it becomes."""


def work_items(path: Path) -> Iterator[WorkItem]:
    """Yield the mutants of the file *path*, in the order of operators; other contents of it make other names."""
    source = path.read_text()
    module = ast.parse(source)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    annotations, bodies = [*_annotations(module)], [*_bodies(module)]
    for name in OPERATORS:
        for occurrence, (node, _, start, end) in enumerate(occurrences(source, name)):
            is_marker = node.parent is not None and node.parent.type == "parameters"  # of keyword arguments
            is_annotation = any(first <= start and end <= last for first, last in annotations)
            if is_marker or is_annotation or not any(start[0] in body for body in bodies):
                continue
            spec = MutationSpec(path, name, occurrence, start, end, {}, definition(module, start[0]))
            yield WorkItem.single(f"{path.relative_to(SOURCE)}:{digest}:{name}:{occurrence}", spec)


def mutated(spec: MutationSpec) -> str:
    """Return the source of the file of *spec* with the change that it asks for."""
    return _mutated(spec.module_path, spec.operator_name, spec.occurrence)


@lru_cache(maxsize=1)
def _mutated(path: Path, operator: str, occurrence: int) -> str:
    """
    Return what ``cosmic_ray.mutating.mutate_code`` does.

    That parses the whole file anew, as the tree that an operator has changed is of no more use: here it gets a copy of
    the part that it changes.
    """
    source = path.read_text()
    node, index, _, _ = occurrences(source, operator)[occurrence]
    part = deepcopy(node, {id(node.parent): node.parent})
    begin, end = (_offset(source, at) for at in (node.get_start_pos_of_prefix(), node.end_pos))
    return source[:begin] + str(OPERATORS[operator].mutate(part, index).get_code()) + source[end:]


@cache
def _nodes(source: str) -> list[Node]:
    return [*ast_nodes(get_ast(source))]


@cache
def occurrences(source: str, operator: str) -> list[tuple[Node, int, tuple[int, int], tuple[int, int]]]:
    """Return what *operator* can change: a node, the number of the change in it, and where that begins and ends."""
    return [
        (node, index, *position)
        for node in _nodes(source)
        for index, position in enumerate(OPERATORS[operator].mutation_positions(node))
    ]


def _offset(source: str, position: tuple[int, int]) -> int:
    """Return how many characters are before *position*, a line from 1 on and a column."""
    line, column = position
    return sum(len(each) for each in source.splitlines(keepends=True)[: line - 1]) + column


def place(spec: MutationSpec) -> Place:
    """Return where *spec* is."""
    row = spec.start_pos[0] - 1
    before, after = (text.splitlines()[row].strip() for text in (spec.module_path.read_text(), mutated(spec)))
    return Place(str(spec.module_path.relative_to(SOURCE)), spec.definition_name or "", before, after)


def statement_lines(path: Path, line: int) -> range:
    """Return the lines of the innermost statement around *line*; of a compound one, those of its head."""
    around = [node for node in _statements(path) if node.lineno <= line <= (node.end_lineno or 0)]
    if not around:
        return range(line, line + 1)
    innermost = max(around, key=lambda node: (node.lineno, -(node.end_lineno or 0)))
    body: list[ast.stmt] = getattr(innermost, "body", [])
    return range(innermost.lineno, body[0].lineno if body else (innermost.end_lineno or 0) + 1)


@cache
def _statements(path: Path) -> list[ast.stmt]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.stmt)]


def _annotations(module: ast.Module) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield where annotations begin and end."""
    for node in ast.walk(module):
        for name in ("annotation", "returns"):
            found = getattr(node, name, None)
            if found is not None:
                yield (found.lineno, found.col_offset), (found.end_lineno, found.end_col_offset)


def _bodies(module: ast.Module) -> Iterator[range]:
    """Yield the lines of the bodies of functions."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield range(node.body[0].lineno, (node.end_lineno or 0) + 1)
