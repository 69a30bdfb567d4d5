"""
Names for the places in a response.

The protocol keeps its rows short: ``[0,4,["ACQUIRED",1,"m1",1000,""]]``. A shape tells what stands where, so that a
path can say ``cell.delivery_count`` instead of ``[2][1]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

from sharestate.json_lines import Json


@frozen(kw_only=True)
class Shape:
    """What is known of a value's places; whatever is not known is told by its name or index."""

    members: Mapping[str, Shape] = field(factory=dict)
    """The shapes of an object's members."""

    items: Shape | None = None
    """The shape of every item of a list of any length."""

    row: Mapping[str, Shape | None] | None = None
    """The names and shapes of the items of a list that is a row."""

    variants: Mapping[Json, Shape] | None = None
    """The shapes that a list may have, by its first item if that is a word, else by its length."""

    def of(self, value: list[Json]) -> Shape | None:
        """Return the shape of *value*, a list; None if it is none of the variants."""
        if self.variants is None:
            return self
        tag = value[0] if value and isinstance(value[0], str) else len(value)
        return self.variants.get(tag)


def _rows(**row: Shape | None) -> Shape:
    return Shape(items=Shape(row=row))


_WRITE: Final = Shape(members={"state_batches": _rows(first=None, last=None, state=None, delivery_count=None)})

_EVENT: Final = Shape(
    variants={
        "read": Shape(row={"event": None, "answer": None}),
        "write": Shape(row={"event": None, "request": _WRITE, "answer": None}),
        "future": Shape(row={"event": None, "id": None, "status": None}),
        "wake": Shape(row={"event": None}),
        "lookup": Shape(row={"event": None, "kind": None, "value": None}),
    }
)

_CELL: Final = Shape(
    row={"state": None, "delivery_count": None, "member": None, "lock_deadline_ms": None, "flags": None}
)

_BATCH: Final = Shape(
    variants={
        3: Shape(row={"first": None, "last": None, "cell": _CELL}),
        4: Shape(row={"first": None, "last": None, "runs": _rows(first=None, last=None, cell=_CELL), "form": None}),
    }
)

RESPONSE: Final = Shape(
    members={
        "result": Shape(members={"acquired": _rows(first=None, last=None, delivery_count=None)}),
        "events": Shape(items=_EVENT),
        "state": Shape(members={"batches": Shape(items=_BATCH)}),
    }
)
"""A response of the protocol."""
