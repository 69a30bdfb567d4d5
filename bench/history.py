"""
What the replay of a history costs beside the share partition's own commands: ``python -m bench.history``.

The commands are those that the replay gives, with their arguments made before. Each figure is CPU time for an event,
the median of rounds by turns; beside it is its ratio to the commands alone, because machines differ and other work runs
on them. ``python -m bench.history WORK TIMES`` does one of the works so often: for valgrind, which counts instructions.
"""

from __future__ import annotations

import sys
from collections import deque
from itertools import chain
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from bench.clock import cpu_time
from bench.tables import table
from sharestate import SharePartition
from sharestate.history import Event, ReplaySettings, interpret
from sharestate.history.arrow import EventDecoder, encode_events
from sharestate.history.arrow_replay import replay_batches
from sharestate.history.replay import Replay
from sharestate.history.synthetic import life

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EVENTS: Final = 20_000
ROUNDS: Final = 7
BATCH_ROWS: Final = 10_000
YARDSTICK: Final = "the share partition's own commands"
NOTHING: Final = ReplaySettings(outputs=frozenset())


class Noted:
    """A share partition that notes its commands."""

    made: list[Noted]
    """All that were made."""

    def __init__(self, *args: Any, **keywords: Any) -> None:  # noqa: ANN401 - those of a share partition
        """Make the share partition."""
        self.made.append(self)
        self.making = args, keywords
        self.partition = SharePartition(*args, **keywords)
        self.commands: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute
        """Return an attribute of the share partition, or a function that notes a command."""
        found = getattr(self.partition, name)
        if not callable(found) or name == "next_deadline_ms":
            return found

        def note(*args: Any, **keywords: Any) -> Any:  # noqa: ANN401 - any command
            self.commands.append((name, args, keywords))
            return found(*args, **keywords)

        return note

    def repeated(self) -> Iterator[tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]]:
        """Yield the commands for a new share partition."""
        args, keywords = self.making
        partition = SharePartition(*args, **keywords)
        for name, positional, named in self.commands:
            yield getattr(partition, name), positional, named


def noted(events: list[Event]) -> list[Noted]:
    """Return the share partitions of a replay of *events*, with their commands."""
    Noted.made = []
    interpret.SharePartition = Noted  # type: ignore[assignment,attr-defined] # it stands in for the class
    try:
        fold(events)
    finally:
        interpret.SharePartition = SharePartition  # type: ignore[attr-defined]
    return Noted.made


def fold(events: list[Event]) -> None:
    """Replay *events* without rows."""
    folded = Replay(events[0].key, outputs=frozenset())
    for event in events:
        folded.apply(event)


def run(commands: list[tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]]) -> None:
    """Give *commands*."""
    for command, args, keywords in commands:
        command(*args, **keywords)


def works(size: int = EVENTS) -> dict[str, Callable[[], Callable[[], object]]]:
    """Return what is timed, by name: functions that prepare it, and return it."""
    events = life(1, size)
    batches = [encode_events(events[at : at + BATCH_ROWS]) for at in range(0, size, BATCH_ROWS)]
    partitions = noted(events)

    def commands() -> Callable[[], object]:
        prepared = [command for each in partitions for command in each.repeated()]
        return lambda: run(prepared)

    return {
        YARDSTICK: commands,
        "decode record batches": lambda: lambda: deque(chain.from_iterable(map(EventDecoder().decode, batches)), 0),
        "fold events": lambda: lambda: fold(events),
        "decode and fold": lambda: lambda: deque(replay_batches(batches, NOTHING), 0),
        "decode, fold and make record batches of rows": lambda: lambda: deque(replay_batches(batches), 0),
    }


def measured(size: int, rounds: int) -> dict[str, list[float]]:
    """Return the CPU times of each work for an event, in rounds by turns. [µs]"""
    prepared = works(size)
    times: dict[str, list[float]] = {name: [] for name in prepared}
    for _ in range(rounds):
        for name, prepare in prepared.items():
            times[name].append(cpu_time([prepare()]) / size * 1e6)
    return times


def report(size: int = EVENTS, rounds: int = ROUNDS) -> Iterator[str]:
    """Yield the lines of a table."""
    times = measured(size, rounds)
    rows = []
    for name, each in times.items():
        ratio = median(one / unit for one, unit in zip(each, times[YARDSTICK], strict=True))
        rows.append((name, f"{median(each):.1f}", f"{ratio:.2f}"))
    yield from table(("an event of a history", "µs; seconds for a million", "ratio"), rows)


def main(arguments: list[str]) -> None:
    """Print the table, or do one work so often as *arguments* say."""
    if not arguments:
        print("\n".join(report()))  # noqa: T201 - what it is for
        return
    name, times = arguments
    prepare = list(works(2000).values())[int(name)]
    for _ in range(int(times)):
        prepare()()


if __name__ == "__main__":
    main(sys.argv[1:])
