"""Files of operations that cost a lot to audit, unless that is bounded: a generator of lines for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Final

from sharestate.json_lines import Json

SIZE: Final = 1_000_000
"""About how long each of them is. [bytes]"""

SETTINGS: Final = MappingProxyType(
    {
        "op": "settings",
        "at_ms": 0,
        "group": "g",
        "record_lock_duration_ms": 1000,
        "delivery_count_limit": 5,
        "max_record_locks": 2000,
        "isolation_level": "read_committed",
        "auto_offset_reset": "earliest",
    }
)

Line = dict[str, Json]


def _fetch(begin_ms: float, *partitions: Json, group: str = "g", **more: Json) -> Line:
    return {
        "op": "fetch",
        "begin_ms": begin_ms,
        "end_ms": begin_ms + 1,
        "group": group,
        "partitions": [*partitions],
    } | more


def clocks() -> Iterator[Line]:
    """Yield clients with a clock of its own each."""
    for number in count():
        yield _fetch(number, ["t", 0, [[0, 9, 1]]], client=f"c{number}")


def silent_partitions() -> Iterator[Line]:
    """Yield many groups that read a topic, and then its many partitions."""
    for number in range(6000):
        yield _fetch(0, ["t", 0, [[0, 0]]], group=f"{number}")
    for number in count():
        yield {
            "op": "produce",
            "begin_ms": 0,
            "end_ms": 1,
            "topic": "t",
            "partition": number,
            "first_offset": 0,
            "last_offset": 0,
        }


def faults() -> Iterator[Line]:
    """Yield many faults, and many partitions."""
    for _ in range(8000):
        yield {"op": "fault", "begin_ms": 0, "end_ms": 1, "what": "a", "topic": "z"}
    for number in count():
        yield _fetch(number, *(["t", each, [[0, 0]]] for each in range(number * 500, number * 500 + 500)))


def settings() -> Iterator[Line]:
    """Yield a setting that changes all the time, and records that need it."""
    for number in range(3500):
        yield {"op": "settings", "at_ms": number, "group": "g", "record_lock_duration_ms": 1000 + number % 7}
    for number in count():
        for count_ in (1, 2):
            yield _fetch(2 * number + 1000 * count_, ["t", 0, [[number, number, count_]]])


def groups() -> Iterator[Line]:
    """Yield groups without end, and transactions."""
    for number in count():
        yield {"op": "settings", "at_ms": 0, "group": f"{number}", "record_lock_duration_ms": 1}
        yield {"op": "end_transaction", "begin_ms": 0, "end_ms": 1, "transaction": "t", "committed": True}
        yield _fetch(number, ["t", 0, [[0, 0]]], group=f"{number}")


def overlaps(partitions: int, records: int) -> Iterator[Line]:
    """Yield operations that all overlap, on many records each."""
    yield dict(SETTINGS)
    for number in range(16):
        for ranges, more in (([], {"op": "fetch"}), (["release"], {"op": "acknowledge"})):
            each = [[2 * record, 2 * record, *ranges] for record in range(records)]
            codes = [0] if ranges else []
            yield {
                "begin_ms": 0,
                "end_ms": 1000,
                "group": "g",
                "client": f"c{number % 7}",
                "partitions": [["t", partition, each, *codes] for partition in range(partitions)],
            } | more


def stairs() -> Iterator[Line]:
    """Yield ranges each of which begins and ends one record later, so that each record has a life of its own."""
    yield dict(SETTINGS)
    for number in range(200):
        ranges: Json = [[number + 200 * each, number + 200 * each + 199] for each in range(600)]
        yield _fetch(10_000 * number, ["t", 0, ranges])


def written(yielded: Callable[[], Iterator[Line]]) -> Callable[[Path], None]:
    """Return what writes lines to a file, until it is long enough."""

    def write(path: Path) -> None:
        with path.open("w") as file:
            file.write('{"sharestate_operations":1,"client":"c"}\n')
            for line in yielded():
                text = json.dumps(line, separators=(",", ":"))
                if file.tell() + len(text) > SIZE:
                    return
                file.write(f"{text}\n")

    return write


OPERATIONS: Final = MappingProxyType(
    {
        "operations, many clocks": written(clocks),
        "operations, silent partitions": written(silent_partitions),
        "operations, many faults": written(faults),
        "operations, settings that change": written(settings),
        "operations, many groups": written(groups),
        "operations, all at once": written(lambda: overlaps(1, 2_000)),
        "operations, all at once in many partitions": written(lambda: overlaps(300, 8)),
        "operations, a life for each record": written(stairs),
    }
)
"""What writes them, by name."""
