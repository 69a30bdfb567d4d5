"""
What a record of the state topic costs to read, decode and replay: ``python -m bench.state_topic``.

The records are those of a broker. Each figure is CPU time for a record, the least of several rounds; beside it is its
ratio to what ``json.loads`` takes for a record's line, because machines differ and other work runs on them.
"""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Final

from bench.tables import table
from sharestate.json_lines import write_json
from sharestate.state_topic import StateTopic, StateTopicFile, decoded_form, state_topic_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEGMENTS: Final = Path(__file__).parents[1] / "tests" / "data" / "segments"
DUMP: Final = SEGMENTS / "state.jsonl"
ROUNDS: Final = 20
YARDSTICK: Final = "json.loads of its line"


def works() -> dict[str, Callable[[], object]]:
    """Return what is timed, by name: each handles every record of the dump once."""
    lines = DUMP.read_text().splitlines()
    records = list(StateTopicFile(DUMP))
    return {
        YARDSTICK: lambda: [json.loads(line) for line in lines],
        "read it from JSON lines": lambda: list(StateTopicFile(DUMP)),
        "read it from segments": lambda: [list(file) for file in state_topic_files(SEGMENTS)],
        "decode it": lambda: [record.decode() for record in records],
        "read it from segments, decode it": lambda: [
            record.decode() for file in state_topic_files(SEGMENTS) for record in file
        ],
        "read it from JSON lines, decode it, write it as JSON": lambda: [
            write_json(decoded_form(record.decode())) for record in StateTopicFile(DUMP)
        ],
        "read it from segments, decode and replay it": lambda: StateTopic().read(state_topic_files(SEGMENTS)),
    }


def microseconds(work: Callable[[], object], rounds: int) -> float:
    """Return the least CPU time of *work* for a record. [µs]"""
    taken = []
    for _ in range(rounds):
        begin = process_time()
        work()
        taken.append(process_time() - begin)
    return min(taken) / len(DUMP.read_bytes().splitlines()) * 1e6


def report(rounds: int = ROUNDS) -> Iterator[str]:
    """Yield the lines of a table."""
    measured = {name: microseconds(work, rounds) for name, work in works().items()}
    unit = measured[YARDSTICK]
    rows = [(name, f"{each:.1f}", f"{each / unit:.1f}") for name, each in measured.items()]
    yield from table(("a record of the state topic", "µs; seconds for a million", "ratio"), rows)


if __name__ == "__main__":
    print("\n".join(report()))  # noqa: T201 - what it is for
