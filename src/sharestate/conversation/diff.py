"""Where two responses differ, in words: ``state.batches[2].cell.delivery_count: expected 2, got 3``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice, zip_longest
from typing import Final

from attrs import frozen

from sharestate.conversation.shapes import RESPONSE, Shape
from sharestate.json_lines import Json, brief

SHOWN: Final = 8
"""How many paths are told of one response; the first ones are what one needs."""


_MISSING: Final = object()


@frozen
class Difference:
    """
    One place where two responses differ.

    >>> print(*differences({"result": [1, 2]}, {"result": [1, 3]}))
    result[1]: expected 2, got 3
    """

    path: str
    """The place."""

    expected: str
    """What was expected there, as JSON; ``nothing`` if it should not be there."""

    got: str
    """What was there instead; ``nothing`` if it is missing."""

    def __str__(self) -> str:
        """Return the difference in one line."""
        return f"{self.path}: expected {self.expected}, got {self.got}"


def differences(expected: Json, got: Json) -> tuple[Difference, ...]:
    """
    Return where the responses *expected* and *got* differ: the first SHOWN places, none if they are equal.

    Values are equal if their JSON is: 1 is neither true nor 1.0.
    """
    return tuple(islice(_differences(expected, got, "", RESPONSE), SHOWN))


def _differences(expected: Json, got: Json, path: str, shape: Shape | None) -> Iterator[Difference]:
    match expected, got:
        case dict(), dict():
            yield from _in_members(expected, got, path, shape)
        case list(), list() if _comparable(expected, got, shape):
            yield from _in_items(expected, got, path, shape and shape.of(expected))
        case _ if type(expected) is not type(got) or expected != got:
            yield Difference(path, _shown(expected), _shown(got))
        case _:
            pass


def _in_members(expected: Json, got: Json, path: str, shape: Shape | None) -> Iterator[Difference]:
    for name in expected | got:
        inner = f"{path}.{name}" if path else name
        known = shape and shape.members.get(name)
        yield from _differences(expected.get(name, _MISSING), got.get(name, _MISSING), inner, known)


def _comparable(expected: Json, got: Json, shape: Shape | None) -> bool:
    """Return whether it helps to compare two lists item by item: rows must be of the same kind and length."""
    if shape is None:
        return True
    known = shape.of(expected)
    return known is shape.of(got) and (known is None or known.row is None or len(expected) == len(got))


def _in_items(expected: Json, got: Json, path: str, shape: Shape | None) -> Iterator[Difference]:
    pairs = zip_longest(expected, got, fillvalue=_MISSING)
    for (step, known), (one, other) in zip(_steps(shape), pairs, strict=False):
        yield from _differences(one, other, path + step, known)


def _steps(shape: Shape | None) -> Iterator[tuple[str, Shape | None]]:
    """Yield how a path goes on to each item of a list of *shape*, and the item's shape."""
    named = shape.row if shape and shape.row else {}
    yield from ((f".{name}", inner) for name, inner in named.items())
    yield from ((f"[{index}]", shape and shape.items) for index in count(len(named)))


def _shown(value: Json) -> str:
    return "nothing" if value is _MISSING else brief(value)
