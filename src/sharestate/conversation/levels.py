"""How closely two responses have to agree."""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from sharestate.json_lines import Json


class Level(Enum):
    """A level of comparison."""

    OBSERVABLE = "observable"
    """What an implementation with other internals has to agree on."""

    FULL = "full"
    """Everything."""

    def view(self, response: Json) -> Json:
        """Return the part of *response* that is compared at this level."""
        match self:
            case Level.FULL:
                return response
            case Level.OBSERVABLE:
                return observable(response)
            case _:
                assert_never(self)


def observable(response: Json) -> Json:
    """
    Return *response* without what other implementations may do otherwise.

    ERR keeps its ``error`` only, answers lose their messages; look-ups, flags and internals go; a lock that is no
    longer scheduled counts as none, and neighbours that are equal then count as one. What does not look like the
    protocol's is left as it is.
    """
    match response:
        case {"result": result, "events": [*events], "state": state}:
            events = [_reduced(event) for event in events if not _is_lookup(event)]
            return {"result": _reduced(result), "events": events, "state": _state(state)}
        case _:
            return response


def _is_lookup(event: Json) -> bool:
    return isinstance(event, list) and event[:1] == ["lookup"]


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
