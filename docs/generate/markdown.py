"""Tables and Mermaid diagrams as Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

NOTICE: Final = "<!-- Made by `make diagrams`: change what it is made from, then run that again. -->"
"""Begins every page that is made, for those who open it to change it."""

NO_REMARKS: Final[Mapping[str, str]] = MappingProxyType({})


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """
    Return a table.

    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [_row(head), "|" + "---|" * len(head), *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def state_diagram(
    begin: str, arrows: Mapping[tuple[str, str], Sequence[str]], remarks: Mapping[str, str] = NO_REMARKS
) -> str:
    """
    Return a Mermaid state diagram.

    Args:
        begin: The state in which it begins.
        arrows: What is written at the arrow from one state to another, line by line.
        remarks: What is written inside of states.

    >>> print(state_diagram("A", {("A", "B"): ["x", "y"]}, {"B": "the end"}))
    ```mermaid
    stateDiagram-v2
        B : B
        B : the end
        [*] --> A
        A --> B : x<br/>y
    ```
    """
    lines = [f"{state} : {text}" for state, remark in remarks.items() for text in (state, remark)]
    lines.append(f"[*] --> {begin}")
    lines += [f"{here} --> {there} : {'<br/>'.join(labels)}" for (here, there), labels in arrows.items()]
    return "\n    ".join(["```mermaid\nstateDiagram-v2", *lines]) + "\n```"
