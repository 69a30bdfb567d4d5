"""The state of a share partition changes through the doors that its module names."""

import ast
from pathlib import Path

from sharestate import partition

FILES = [file for file in Path(partition.__path__[0]).glob("*.py") if file.name != "state.py"]

THROUGH_METHODS = {"start_offset", "end_offset", "delivery_complete_count", "find_next", "gap_window"}


def test_nothing_else_assigns_what_has_a_method() -> None:
    """No other module assigns an offset, the complete count, find_next or the gap window of a state."""
    assigned = [
        f"{file.name}:{node.lineno} {node.attr}"
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in THROUGH_METHODS
    ]

    assert assigned == []
