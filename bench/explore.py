"""
What an exploration costs beside the commands that it gives: ``python -m bench.explore [STATES]``.

Bytecodes for each state that is looked at, which depend on the version of Python only: in all, in commands of the share
partition, and in snapshots and copies of it; the rest is what may follow, what must hold and what states are known by.
Beside them is the ratio of all to the commands alone.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from attrs import frozen

from bench.bytecodes import executed_by
from bench.tables import table
from sharestate import KAFKA_4_4, RecordBatch
from sharestate.testing.explore import Bounds, Configuration, explore

_STATES: Final = 200
"""The states that are looked at, or a few more: counting is slow. [states]"""

_LOG: Final = (RecordBatch(0, 0), RecordBatch(1, 2))

GROUPS: Final[Mapping[str, Configuration]] = MappingProxyType(
    {
        "a write that fails": Configuration(log=_LOG, members=2, failures=1),
        "and another leader": Configuration(log=_LOG, members=2, failures=1, failovers=1),
        "and a log start": Configuration(log=_LOG, members=2, failures=1, failovers=1, log_starts=1),
    }
)
"""Share groups of three records and two members."""

_CORE: Final = "partition."
_COPIES: Final = ("partition.snapshots.", "partition.copies.")
_JUDGED: Final = ("partition.invariants.", "partition.views.")
"""What judges a share partition, or shows what is in it: an exploration's, and no part of a command."""


@frozen
class StateCost:
    """What looking at a state costs, on the average."""

    all: float
    """All that is executed. [bytecodes]"""

    commands: float
    """What commands of the share partition execute. [bytecodes]"""

    copies: float
    """What snapshots of it execute, and copies. [bytecodes]"""

    @property
    def ratio(self) -> float:
        """All beside the commands alone."""
        return self.all / self.commands


def cost(configuration: Configuration, states: int) -> StateCost:
    """Return what looking at a state of such a group costs, when so many have been found."""
    expanded = []

    def run() -> None:
        expanded.append(explore(configuration, KAFKA_4_4.healed, bounds=Bounds(states=states)).expanded)

    run()  # what is executed only the first time is no part of what it costs
    counted: Counter[str] = Counter()
    for name, count in executed_by(run).items():
        counted[_kind(name)] += count
    return StateCost(
        counted.total() / expanded[-1], counted["commands"] / expanded[-1], counted["copies"] / expanded[-1]
    )


def _kind(name: str) -> str:
    if name.startswith(_COPIES):
        return "copies"
    return "commands" if name.startswith(_CORE) and not name.startswith(_JUDGED) else "rest"


def report(states: int) -> Iterator[str]:
    """Yield the lines of a table."""
    rows = []
    for name, configuration in GROUPS.items():
        of = cost(configuration, states)
        rows.append((name, f"{of.all:,.0f}", f"{of.commands:,.0f}", f"{of.copies:,.0f}", f"{of.ratio:.1f}"))
    yield from table(("bytecodes for each state", "all", "commands", "snapshots, copies", "x commands"), rows)


def main() -> None:
    """Print the table."""
    states = int(sys.argv[1]) if len(sys.argv) > 1 else _STATES
    sys.stdout.writelines(f"{line}\n" for line in report(states))


if __name__ == "__main__":
    main()
