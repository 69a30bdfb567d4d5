"""
Compares what brokers have answered to the same script.

What no broker has in common with another one, or with itself the next time, is left out: rows of data say why.
"""

from __future__ import annotations

import json
import textwrap
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from sharestate.broker.node.topics import INTERNAL_TOPICS
from sharestate.broker.server.apis import HANDLERS
from tests.lockstep.producing import FIRST_MS
from tests.lockstep.steps import Taken
from tests.lockstep.wire import Fields, Json

DATA: Final = Path(__file__).parents[1] / "data" / "lockstep"
"""The scripts that brokers have answered, and what is open (``open.json``)."""

_OPEN: Final = json.loads((DATA / "open.json").read_text())


def _reasons(name: str) -> Mapping[tuple[str, str], str]:
    return MappingProxyType({(row["api"], row["field"]): row["reason"] for row in _OPEN[name]})


LEFT_OUT: Final = _reasons("left_out")
"""Fields of answers that are not compared, by API (``*`` for all of them) and name, and why."""

SHARED: Final = _reasons("left_out_of_several")
"""Fields that are compared only of groups that have had one member, who gets everything, and why."""

ANY_ORDER: Final = _reasons("any_order")
"""Lists of answers whose order is not compared, by API and name, and why."""

BROKERS_TIME_MS: Final = FIRST_MS + 10_000_000_000
"""From here on times are not those of a script's records, but of the markers that a broker writes. [ms]"""

LONGEST_LINE: Final = 500
"""How much is shown of a step that only leads to a difference. [characters]"""


@frozen
class Difference:
    """
    A step to which two brokers have answered otherwise.

    Attributes:
        number: Which one it is, from 0.
        first: What the one has answered.
        second: What the other has answered.
        fields: Where the answers differ.
    """

    number: int
    first: Taken
    second: Taken
    fields: tuple[str, ...]


def differences(first: list[Taken], second: list[Taken]) -> Iterator[Difference]:
    """Yield the steps that were answered otherwise."""
    members: defaultdict[str, set[str]] = defaultdict(set)
    for number, (one, other) in enumerate(zip(first, second, strict=False)):
        if one.step.api == "share_group_heartbeat":
            members[one.step.request["group_id"]].add(one.step.request["member_id"])
        if one.answer == other.answer:
            continue
        shared = {group for group, known in members.items() if len(known) > 1}
        fields = tuple(_paths("", comparable(one, shared), comparable(other, shared)))
        if fields:
            yield Difference(number, one, other, fields)


def comparable(taken: Taken, shared: Collection[str] = ()) -> Json:
    """Return of an answer what is compared; *shared* are groups that have had several members."""
    request = taken.step.request
    is_shared = any(group in shared for group in (request.get("group_id"), *request.get("group_ids", ())))
    left_out = {**LEFT_OUT, **SHARED} if is_shared else LEFT_OUT
    return None if taken.answer is None else _comparable(taken.step.api, "", taken.answer, left_out)


def _comparable(api: str, name: str, value: Json, left_out: Collection[tuple[str, str]]) -> Json:
    if isinstance(value, dict):
        return {
            key: _comparable(api, key, each, left_out)
            for key, each in value.items()
            if (api, key) not in left_out and ("*", key) not in left_out
        }
    if isinstance(value, list):
        items = [_comparable(api, name, each, left_out) for each in value if not _is_only_brokers(each)]
        return sorted(items, key=_text) if (api, name) in ANY_ORDER else items
    if name == "timestamp" and value >= BROKERS_TIME_MS:
        return "a time of the broker"
    return value


def _is_only_brokers(item: Json) -> bool:
    """
    Return whether an item of a list is about something that a test broker has not, as its page says.

    That are the topics that brokers make for themselves, when they first need them, and other APIs.
    """
    if not isinstance(item, dict):
        return False
    if "api_key" in item:
        return item["api_key"] not in HANDLERS
    return any(item.get(name) in INTERNAL_TOPICS for name in ("name", "resource_name"))


def _paths(path: str, one: Json, other: Json) -> Iterator[str]:
    """Yield the fields in which two answers differ, with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in dict.fromkeys([*one, *other]):
            yield from _paths(f"{path}.{name}" if path else name, one.get(name), other.get(name))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (each, its) in enumerate(zip(one, other, strict=True)):
            yield from _paths(f"{path}[{index}]", each, its)
    elif one != other:
        yield f"{path}: {_text(one)} != {_text(other)}"


def told(difference: Difference, first: list[Taken], names: tuple[str, str], before: int = 8) -> str:
    """Return a difference in words, with the steps that lead there: those of the same group or topics."""
    step = difference.first.step
    about = _subjects(step.request)
    leading = [
        (number, taken)
        for number, taken in enumerate(first[: difference.number])
        if _subjects(taken.step.request) & about or taken.step.client == step.client
    ][-before:]
    lines = [f"step {number}, round {taken.step.round}: {line_of(taken)}" for number, taken in leading]
    lines.append(f"step {difference.number}, round {step.round}: {_asked(difference.first)}")
    lines += [
        f"  {name}: {_text(taken.answer)}"
        for name, taken in zip(names, (difference.first, difference.second), strict=True)
    ]
    return "\n".join([*lines, *(f"  differs: {field}" for field in difference.fields)])


def line_of(taken: Taken) -> str:
    """Return a step and its answer in a line."""
    return textwrap.shorten(f"{_asked(taken)} -> {_text(taken.answer)}", LONGEST_LINE)


def _asked(taken: Taken) -> str:
    step = taken.step
    return f"{step.client} {step.how} {step.api} v{step.version} {_text(step.request)}"


def _subjects(request: Fields) -> set[str]:
    """Return the topics that a request names."""
    found: set[str] = set()

    def look(value: Any) -> None:  # noqa: ANN401 - of JSON
        if isinstance(value, dict):
            found.update(str(value[name]) for name in ("topic_id", "topic_name") if value.get(name))
            for each in value.values():
                look(each)
        elif isinstance(value, list):
            for each in value:
                look(each)

    look(request)
    return found


def _text(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))
