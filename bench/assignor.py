"""
What a target assignment costs, with a thousand members and a thousand partitions: ``python -m bench.assignor``.

Each figure is CPU time, the least of several rounds; beside it is its ratio to what ``json.loads`` takes for the file
that the assignor is given, because machines differ and other work runs on them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any, Final

from bench.tables import table
from sharestate.broker.groups import AssignmentInput, AssignmentOrder, read_assignment_input

SIZES: Final = (100, 1_000)
"""How many members there are, and as many partitions."""

TOPICS: Final = ("AAECAwQFBgcICQoLDA0ODw", "-_-_-_-_-_-_-_-_-_-_-A", "IoNTqcc65nJltKVVhKBPPQ", "KHnhHEAbRvOK4NGrXOcIGQ")
ROUNDS: Final = 5
YARDSTICK: Final = "json.loads of the file"


def group(size: int, *, is_heterogeneous: bool = False) -> Any:  # noqa: ANN401 - JSON
    """Return a file with so many members and partitions; a heterogeneous group's members leave out a topic each."""
    topics = dict.fromkeys(TOPICS, size // len(TOPICS))
    members = [
        {
            "id": f"member-{number}",
            "topics": [
                topic for index, topic in enumerate(TOPICS) if not is_heterogeneous or index != number % len(TOPICS)
            ],
            "target": {},
        }
        for number in range(size)
    ]
    return {"assignment": 1, "topics": topics, "members": members}


def assigned(document: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the file with the target that is made of it."""
    target = read_assignment_input(document).assign().members
    members = [
        {**member, "target": {topic: list(each) for topic, each in target[member["id"]].items()}}
        for member in document["members"]
    ]
    return {**document, "members": members}


def works(size: int) -> dict[str, Callable[[], object]]:
    """Return what is timed, by name."""
    first = group(size)
    settled = assigned(first)
    newcomer = {"id": "member-new", "topics": list(TOPICS), "target": {}}
    inputs = {
        "all join": first,
        "nothing changes": settled,
        "one more joins": {**settled, "members": [*settled["members"], newcomer]},
        "one leaves": {**settled, "members": settled["members"][1:]},
        "all join, heterogeneous": group(size, is_heterogeneous=True),
    }
    line = json.dumps(settled)
    found: dict[str, Callable[[], object]] = {YARDSTICK: lambda: json.loads(line)}
    for name, document in inputs.items():
        for order in (AssignmentOrder.SORTED, AssignmentOrder.JAVA):
            found[f"{name}, {order.value}"] = _assigning(read_assignment_input(document), order)
    return found


def _assigning(given: AssignmentInput, order: AssignmentOrder) -> Callable[[], object]:
    return lambda: given.assign(order)


def milliseconds(work: Callable[[], object], rounds: int) -> float:
    """Return the least CPU time of *work*. [ms]"""
    taken = []
    for _ in range(rounds):
        begin = process_time()
        work()
        taken.append(process_time() - begin)
    return min(taken) * 1e3


def report(rounds: int = ROUNDS) -> Iterator[str]:
    """Yield the lines of a table."""
    measured = {size: {name: milliseconds(work, rounds) for name, work in works(size).items()} for size in SIZES}
    rows = [(name, *(cell for size in SIZES for cell in _cells(measured[size], name))) for name in measured[SIZES[0]]]
    headings = (heading for size in SIZES for heading in (f"{size} × {size}, ms", "ratio"))
    yield from table(("a target assignment, members × partitions", *headings), rows)


def _cells(measured: dict[str, float], name: str) -> tuple[str, str]:
    return f"{measured[name]:.2f}", f"{measured[name] / measured[YARDSTICK]:.1f}"


if __name__ == "__main__":
    print("\n".join(report()))  # noqa: T201 - what it is for
