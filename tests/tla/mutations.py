"""Ways to falsify a conversation: one answer becomes one that the rules do not allow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

State = Any
"""The state in a response: JSON."""

Response = Any
"""A response: JSON."""


def _cells(state: State) -> Iterator[list[Any]]:
    """Yield the cells of a state, which may be changed."""
    for _, _, content, *split in state["batches"]:
        yield from (run[2] for run in content) if split else [content]


def _first_cell(name: str, change: Callable[[list[Any]], None], *, flags: str = "") -> Callable[[State], bool]:
    """Return what changes the first cell in the state *name*, and says whether there is one."""

    def falsify(state: State) -> bool:
        for cell in _cells(state):
            if cell[0] == name and cell[4] == flags:
                change(cell)
                return True
        return False

    return falsify


def _put(place: int, value: object) -> Callable[[list[Any]], None]:
    def change(cell: list[Any]) -> None:
        cell[place] = value

    return change


def _add(place: int, more: int) -> Callable[[list[Any]], None]:
    def change(cell: list[Any]) -> None:
        cell[place] += more

    return change


def _number(name: str, more: int) -> Callable[[State], bool]:
    """Return what changes a number of the state, where something is in flight."""

    def falsify(state: State) -> bool:
        state[name] += more
        return bool(state["batches"])

    return falsify


def _flip_find(state: State) -> bool:
    state["internal"]["find_next"] = not state["internal"]["find_next"]
    return bool(state["batches"])


def _gap(place: int, more: int) -> Callable[[State], bool]:
    def falsify(state: State) -> bool:
        if not (gap := state["internal"]["gap"]):
            return False
        gap[place] += more
        return True

    return falsify


def _forget_gap(state: State) -> bool:
    had, state["internal"]["gap"] = state["internal"]["gap"], None
    return had is not None


def _invent_gap(state: State) -> bool:
    had, state["internal"]["gap"] = state["internal"]["gap"], [state["start_offset"], state["end_offset"]]
    return had is None and bool(state["batches"])


def _lose_batch(place: int) -> Callable[[State], bool]:
    def falsify(state: State) -> bool:
        if not state["batches"]:
            return False
        del state["batches"][place]
        return True

    return falsify


def _longer_batch(state: State) -> bool:
    for batch in state["batches"][-1:]:
        if len(batch) == 3:  # whole
            batch[1] += 1
            return True
    return False


def _in_state(falsify: Callable[[State], bool]) -> Callable[[Response], bool]:
    return lambda response: falsify(response["state"])


def _forget_letter(response: Response) -> bool:
    for event in response["events"]:
        if event[0] == "dlq":
            response["events"].remove(event)
            return True
    return False


def _longer_letter(response: Response) -> bool:
    for kind, letter, answer in _with_two(response["events"]):
        if kind == "dlq" and answer == "hold":
            letter["last"] += 1
            return True
    return False


def _hold_answered_letter(response: Response) -> bool:
    for event in _with_two(response["events"]):
        if event[0] == "dlq" and event[2] != "hold":
            event[2] = "hold"
            return True
    return False


def _forget_second_write(response: Response) -> bool:
    events = response["events"]
    for event, next_event in pairwise(events):
        if event[0] == "dlq" and next_event[0] == "write":
            events.remove(next_event)
            return True
    return False


def _with_two(events: list[Any]) -> list[Any]:
    """Return the events that say two things: what was asked, and what was answered."""
    return [event for event in events if len(event) == 3]


STATES: Final[Mapping[str, Callable[[State], bool]]] = MappingProxyType(
    {
        "SPSO too high": _number("start_offset", 1),
        "SPSO too low": _number("start_offset", -1),
        "SPEO too high": _number("end_offset", 1),
        "SPEO too low": _number("end_offset", -1),
        "count of complete records too high": _number("delivery_complete_count", 1),
        "count of complete records too low": _number("delivery_complete_count", -1),
        "find_next the other way": _flip_find,
        "gap window begins later": _gap(0, 1),
        "gap window begins earlier": _gap(0, -1),
        "gap window ends later": _gap(1, 1),
        "gap window forgotten": _forget_gap,
        "gap window made up": _invent_gap,
        "first batch forgotten": _lose_batch(0),
        "last batch forgotten": _lose_batch(-1),
        "last batch longer": _longer_batch,
        "acquired record available": _first_cell("ACQUIRED", _put(0, "AVAILABLE")),
        "acquired record of another member": _first_cell("ACQUIRED", _put(2, "somebody")),
        "acquired record counted twice": _first_cell("ACQUIRED", _add(1, 1)),
        "acquired record accepted": _first_cell("ACQUIRED", _put(0, "ACKNOWLEDGED")),
        "available record archived": _first_cell("AVAILABLE", _put(0, "ARCHIVED")),
        "available record with a lower count": _first_cell("AVAILABLE", _add(1, -1)),
        "accepted record available again": _first_cell("ACKNOWLEDGED", _put(0, "AVAILABLE")),
        "archived record accepted": _first_cell("ARCHIVED", _put(0, "ACKNOWLEDGED")),
        "pending write forgotten": _first_cell("ACKNOWLEDGED", _put(4, ""), flags="o"),
    }
)
"""What is changed in the state of one response; True if there was something to change."""

LETTERS: Final[Mapping[str, Callable[[Response], bool]]] = MappingProxyType(
    {
        "record archived past the queue": _in_state(_first_cell("ARCHIVING", _put(0, "ARCHIVED"))),
        "record on its way to the queue available": _in_state(_first_cell("ARCHIVING", _put(0, "AVAILABLE"))),
        "pending write of a dead letter forgotten": _in_state(_first_cell("ARCHIVING", _put(4, ""), flags="o")),
        "dead letter forgotten": _forget_letter,
        "dead letter of a record too many": _longer_letter,
        "answer of the queue forgotten": _hold_answered_letter,
        "second write of a dead letter forgotten": _forget_second_write,
    }
)
"""What is changed in one response of a group with a dead-letter queue; True if there was something to change."""


WAYS: Final[Mapping[str, Callable[[Response], bool]]] = MappingProxyType(
    {**{name: _in_state(falsify) for name, falsify in STATES.items()}, **LETTERS}
)
"""What is changed in one response; True if there was something to change."""


def falsified(exchanges: list[tuple[Any, Any]], falsify: Callable[[Response], bool]) -> Iterator[list[tuple[Any, Any]]]:
    """Yield *exchanges* with one response changed, for each where there is something to change."""
    for place, (request, response) in enumerate(exchanges):
        changed = json.loads(json.dumps(response))
        if request["op"] not in {"open", "initialize"} and changed.get("state") and falsify(changed):
            yield [*exchanges[:place], (request, changed), *exchanges[place + 1 :]]
