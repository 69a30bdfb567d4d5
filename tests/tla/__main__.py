"""
Larger models, and more random conversations, than ``make test-tla`` checks.

``python -m tests.tla models`` checks each in which a bug of Kafka is found without it, and some with more records and
faults; ``python -m tests.tla conversations --first 1000 --number 5000`` validates conversations of other seeds.
"""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from typing import Final

from attrs import evolve

from sharestate import KAFKA_4_3, KAFKA_4_4
from tests.tla.allowed import BUGS as QUIRKS
from tests.tla.allowed import random_conversations, refused
from tests.tla.models import BUGS, STALLS, Model, ShareCoordinatorModel, ShareGroupModel
from tests.tla.tlc import TlcError

MINUTES: Final = 60
"""When to give a model up. [min]"""

AT_ONCE: Final = 500
"""Conversations in one run of TLC, which has all of them in memory."""

_TWO_BATCHES: Final = ShareGroupModel(
    log="{<<0, 1>>, <<3, 3>>}", types='{"accept"}', limit=1, locks=2, failures=1, failovers=1, deletions=1
)

LARGER: Final[Mapping[str, Model]] = {
    "share group": _TWO_BATCHES,
    "share group, two writes": evolve(_TWO_BATCHES, log="{<<0, 0>>, <<2, 2>>}", writes=2),
    "one record, some day": ShareGroupModel(
        log="{<<0, 0>>}", judged=("AllIsDone", "LocksEnd"), failures=1, failovers=1, deletions=1, locks=1
    ),
    "share coordinator": ShareCoordinatorModel(records="0..2", leaders="1..3"),
    "share coordinator, a reversed batch": ShareCoordinatorModel(reversed=1),
}


def say(text: str) -> None:
    """Write a line at once, as the next one may take a while."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def models() -> Iterator[str]:
    """Check the larger models, and yield what does not hold."""
    healed = {f"{bug}, healed": each.model for bug, each in BUGS.items()}
    live = {f"{bug}, healed, some day": each.model for bug, each in STALLS.items()}
    for name, model in {**healed, **live, **LARGER}.items():
        before = getrusage(RUSAGE_CHILDREN).ru_utime
        with TemporaryDirectory() as directory:
            try:
                checked = model.check(Path(directory), MINUTES)
            except TlcError as error:
                yield f"{name}: not checked: {error}"
                continue
        seconds = getrusage(RUSAGE_CHILDREN).ru_utime - before
        say(f"{name}: {checked.distinct:,} states, depth {checked.depth}, {seconds:.0f} s of a processor")
        if checked.violated:
            yield f"{name}: {checked.violated} is violated\n{checked.output}"


def conversations(first: int, number: int) -> Iterator[str]:
    """Validate random conversations, and yield those that are not allowed."""
    for profile, bugs in ((KAFKA_4_3, QUIRKS), (KAFKA_4_3.healed, ()), (KAFKA_4_4, QUIRKS), (KAFKA_4_4.healed, ())):
        for begin in range(first, first + number, AT_ONCE):
            seeds = range(begin, min(begin + AT_ONCE, first + number))
            with TemporaryDirectory() as directory:
                asked = random_conversations(profile, seeds)
                found = refused(asked, Path(directory), bugs)
            say(f"{profile.name}, seeds from {begin}: {len(asked) - len(found)} of {len(asked)} allowed")
            yield from (f"{profile.name}, {each.name}, step {each.steps}: {each.refused}" for each in found)


def main() -> int:
    """Check what the command line names; return how the process ends."""
    parser = ArgumentParser(prog="python -m tests.tla", description=__doc__)
    parser.add_argument("what", choices=["models", "conversations"])
    parser.add_argument("--first", type=int, default=1000, help="the first seed")
    parser.add_argument("--number", type=int, default=1000, help="how many seeds")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that files are deleted; TLC ends anyway
    found = list(models() if asked.what == "models" else conversations(asked.first, asked.number))
    say("\n".join([*found, f"{len(found)} not as specified"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
