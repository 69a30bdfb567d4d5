"""
Comparison of two responses: at which level, and where they differ.

A difference is named by its path in the protocol's words: ``state.batches[2].cell.delivery_count: expected 2, got 3``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import count, islice, zip_longest
from typing import Final, assert_never

from attrs import field, frozen

from sharestate.json_lines import Json, brief

# ---- levels


class Level(Enum):
    """The part of a response that is compared."""

    ANSWERS = "answers"
    """
    Results and events, for implementations that show no state. Events are not compared where the recorded response has
    none (null, or no such member), and nothing is where it says ``unsupported``.
    """

    OBSERVABLE = "observable"
    """All but internals, flags and the texts of errors: the part that every implementation has to agree on."""

    FULL = "full"
    """The whole response."""

    def view(self, response: Json) -> Json:
        """Return the part of *response* that is compared at this level."""
        match self:
            case Level.FULL:
                return response
            case Level.OBSERVABLE:
                return observable(response)
            case Level.ANSWERS:
                return answers(response)
            case _:
                assert_never(self)

    def includes(self, other: Level) -> bool:
        """Return whether a difference at the level *other* is one at this level too."""
        levels = list(Level)
        return levels.index(other) <= levels.index(self)

    def differences(self, expected: Json, got: Json) -> tuple[Difference, ...]:
        """Return the first places in which the response *got* differs from *expected* at this level."""
        wanted, found = self.view(expected), self.view(got)
        if self is Level.ANSWERS:
            wanted, found = _as_far_as_shown(wanted, found)
        return differences(wanted, found)


def answers(response: Json) -> Json:
    """
    Return what *response* answers, as `observable` does, without its state.

    >>> answers({"result": {"error": "X", "message": "no"}, "events": [], "state": None})
    {'result': {'error': 'X'}, 'events': []}
    """
    match response:
        case {"result": result, **others}:
            events = others.get("events")
            view = observable({"result": result, "events": events or [], "state": None})
            return {"result": view["result"], "events": None if events is None else view["events"]}
        case _:
            return response


def _as_far_as_shown(expected: Json, got: Json) -> tuple[Json, Json]:
    """Return both without what *expected* does not show."""
    match expected:
        case {"result": {"unsupported": _}}:
            return None, None
        case {"events": None} if isinstance(got, dict):
            return {**expected, "events": None}, {**got, "events": None}
        case _:
            return expected, got


def observable(response: Json) -> Json:
    """
    Return *response* without the parts that may differ between implementations.

    An error keeps its ``error`` only, answers lose their messages; look-ups, flags and internals are removed; a lock
    that is no longer scheduled becomes none, and neighboring runs that are equal then are merged. A value that has
    not the form of a response is returned as it is.
    """
    match response:
        case {"result": result, "events": [*events], "state": state}:
            events = [_reduced(event) for event in events if not (isinstance(event, list) and event[:1] == ["lookup"])]
            return {"result": _reduced(result), "events": events, "state": _state(state)}
        case _:
            return response


def coordinator_view(response: Json, level: Level) -> Json:
    """
    Return the part of a share coordinator's *response* that is compared at *level*.

    An error that was raised keeps its ``error`` only, at every level; at level full alone answers have messages.
    """
    if level is Level.FULL:
        return _without_texts_of_raised(response)
    if level is Level.ANSWERS and isinstance(response, dict):
        response = {name: value for name, value in response.items() if name != "state"}
    return _reduced(response)


def assignor_differences(expected: Json, got: Json) -> tuple[Difference, ...]:
    """Return the first places in which two of the assignor's responses differ; of what was raised, ``error`` counts."""
    return differences(_assignor_view(expected), _assignor_view(got))


def _assignor_view(response: Json) -> Json:
    match response:
        case {"result": {"raised": raised}}:
            return {"result": {"raised": _reduced(raised)}}
        case _:
            return response


def _without_texts_of_raised(value: Json) -> Json:
    match value:
        case {"raised": raised}:
            return {"raised": _reduced(raised)}
        case {**members}:
            return {name: _without_texts_of_raised(inner) for name, inner in members.items()}
        case [*items]:
            return [_without_texts_of_raised(inner) for inner in items]
        case _:
            return value


def _reduced(value: Json) -> Json:
    match value:
        case {"error": _}:
            return {name: _reduced(inner) for name, inner in value.items() if name not in {"message", "exception"}}
        case {**members}:
            return {name: _reduced(inner) for name, inner in members.items() if name != "message"}
        case [*items]:
            return [_reduced(inner) for inner in items]
        case _:
            return value


def _state(state: Json) -> Json:
    match state:
        case {"batches": [*batches], **rest}:
            rest.pop("internal", None)
            return {**rest, "batches": [_batch(batch) for batch in batches]}
        case _:
            return state


def _batch(batch: Json) -> Json:
    match batch:
        case [first, last, [*runs], "per_offset"]:
            return [first, last, _merged(runs), "per_offset"]
        case [first, last, cell]:
            return [first, last, _cell(cell)]
        case _:
            return batch


def _cell(cell: Json) -> Json:
    match cell:
        case [state, delivery_count, member, deadline, _flags]:
            return [state, delivery_count, member, None if deadline == -1 else deadline]
        case _:
            return cell


def _merged(runs: list[Json]) -> list[Json]:
    merged: list[Json] = []
    for run in runs:
        match run:
            case [int(first), int(last), cell] if merged and _continues(merged[-1], first, _cell(cell)):
                merged[-1][1] = last
            case [first, last, cell]:
                merged.append([first, last, _cell(cell)])
            case _:
                merged.append(run)
    return merged


def _continues(run: Json, first: int, cell: Json) -> bool:
    match run:
        case [_, int(last), before]:
            return first == last + 1 and before == cell
        case _:
            return False


# ---- names of the places in a response


@frozen(kw_only=True)
class Shape:
    """
    Names for the items of a value.

    The protocol keeps its rows short: ``[0,4,["ACQUIRED",1,"m1",1000,""]]``. With a shape, a path says
    ``cell.delivery_count`` instead of ``[2][1]``; a place without a name is shown by its index.
    """

    members: Mapping[str, Shape] = field(factory=dict)
    """The shapes of an object's members."""

    items: Shape | None = None
    """The shape of every item of a list of any length."""

    row: Mapping[str, Shape | None] | None = None
    """The names and shapes of the items of a list that is a row."""

    variants: Mapping[Json, Shape] | None = None
    """The shapes that a list may have, by its first item if that is a word, else by its length."""

    def of(self, value: list[Json]) -> Shape | None:
        """Return the shape of *value*, a list; None if no variant has it."""
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
        "dlq": Shape(row={"event": None, "request": None, "answer": None}),
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


# ---- differences

SHOWN: Final = 8
"""The number of differences that are shown of one response. [differences]"""


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
    """The expected value, as JSON; ``nothing`` if there should be none."""

    got: str
    """The actual value, as JSON; ``nothing`` if it is missing."""

    def __str__(self) -> str:
        """Return the difference in one line."""
        return f"{self.path}: expected {self.expected}, got {self.got}"


def differences(expected: Json, got: Json) -> tuple[Difference, ...]:
    """
    Return the first SHOWN places in which *got* differs from *expected*; none if they are equal.

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
    """Return whether two lists are compared item by item: rows must be of the same kind and length."""
    if shape is None:
        return True
    known = shape.of(expected)
    return known is shape.of(got) and (known is None or known.row is None or len(expected) == len(got))


def _in_items(expected: Json, got: Json, path: str, shape: Shape | None) -> Iterator[Difference]:
    pairs = zip_longest(expected, got, fillvalue=_MISSING)
    for (step, known), (one, other) in zip(_steps(shape), pairs, strict=False):
        yield from _differences(one, other, path + step, known)


def _steps(shape: Shape | None) -> Iterator[tuple[str, Shape | None]]:
    """Yield for each item of a list of *shape* the next part of its path, and the item's shape."""
    named = shape.row if shape and shape.row else {}
    yield from ((f".{name}", inner) for name, inner in named.items())
    yield from ((f"[{index}]", shape and shape.items) for index in count(len(named)))


def _shown(value: Json) -> str:
    return "nothing" if value is _MISSING else brief(value)
