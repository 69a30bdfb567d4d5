"""
What a simulation costs beside the commands of its share partitions: ``python -m bench.simulate [RECORDS]``.

CPU seconds of three loads of 100,000 records, and how much of that is spent in commands of ``SharePartition``.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Final

from sharestate.partition import share_partition
from sharestate.simulate import Acknowledging, Exponential, Load, Poisson, simulate

_RECORDS: Final = 100_000
_COMMANDS: Final = (
    "acknowledge",
    "acquire",
    "can_acquire",
    "expire_next",
    "next_deadline_ms",
    "next_fetch_offset",
    "release",
    "write_succeeded",
)
"""What a simulation asks of a share partition."""


def loads(records: int) -> Mapping[str, Load]:
    """Return loads of so many records."""
    return {
        "a request for each poll": Load(records=records),
        "a request for each record": Load(records=records, acknowledging=Acknowledging.EACH_RECORD),
        "failures and crashes": Load(
            records=records,
            members=10,
            partitions=3,
            arrival=Poisson(500),
            processing=Exponential(10),
            failure_rate=0.05,
            crash_rate=0.001,
        ),
    }


def in_commands(load: Load) -> float:
    """Return the part of the time of a simulation that is spent in commands, as a profile has it."""
    profile = cProfile.Profile()
    profile.runcall(simulate, load)
    statistics = pstats.Stats(profile)
    rows: Mapping[tuple[str, int, str], tuple[int, int, float, float, object]] = statistics.stats  # type: ignore[attr-defined] # it has them
    spent = sum(
        row[3] for (file, _, name), row in rows.items() if file == share_partition.__file__ and name in _COMMANDS
    )
    total: float = statistics.total_tt  # type: ignore[attr-defined] # likewise
    return spent / total


def report(records: int) -> Iterator[str]:
    """Yield the lines of a table."""
    yield f"{'load':28}{'CPU s':>8}{'µs a delivery':>15}{'in commands':>13}"
    for name, load in loads(records).items():
        begin_s = time.process_time()
        result = simulate(load)
        took_s = time.process_time() - begin_s
        part = in_commands(load)
        yield f"{name:28}{took_s:>8.2f}{took_s / result.deliveries * 10**6:>15.2f}{part:>13.0%}"


def main() -> None:
    """Print the table."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else _RECORDS
    sys.stdout.writelines(f"{line}\n" for line in report(records))


if __name__ == "__main__":
    main()
