"""
Scripts at brokers: ``python -m tests.lockstep record|replay|compare|run``.

``record HOST:PORT FILE --seed 7 --steps 500`` writes a script with the answers of the broker;
``replay HOST:PORT SCRIPT FILE`` takes the same steps elsewhere; ``compare FILE FILE`` shows where the answers differ.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path
from typing import Final

from tests.lockstep.author import Author
from tests.lockstep.compare import differences, told
from tests.lockstep.runner import Runner
from tests.lockstep.steps import Taken, read, write

SHOWN: Final = 3
"""How many differences are shown in full."""


def record(address: str, seed: int, length: int) -> list[Taken]:
    """Write a script at a broker, and return its steps with the answers."""
    runner, author = Runner(address), Author(seed, length)
    taken: list[Taken] = []
    try:
        for step in author.script():
            taken.append(runner.take(step))
            author.learn(taken[-1])
    finally:
        runner.close()
    return taken


def replay(address: str, script: list[Taken]) -> list[Taken]:
    """Take the steps of a script at a broker, and return them with its answers."""
    runner = Runner(address)
    try:
        return [runner.take(each.step) for each in script]
    finally:
        runner.close()


def report(first: list[Taken], second: list[Taken], names: tuple[str, str]) -> int:
    """Say how many steps were answered alike, show the first ones that were not, and return how many these are."""
    found = list(differences(first, second))
    say(f"{len(first) - len(found)} of {len(first)} steps equal, {names[0]} and {names[1]}")
    if found:
        say(f"by API: {dict(Counter(each.first.step.api for each in found))}")
    for each in found[:SHOWN]:
        say(told(each, first, names))
    return len(found)


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Do what is asked for."""
    given = _given()
    if given.what == "record":
        write(given.file, record(given.address, given.seed, given.steps))
    elif given.what == "replay":
        write(given.file, replay(given.address, list(read(given.script))))
    else:
        first, second = list(read(given.first)), list(read(given.second))
        sys.exit(1 if report(first, second, (given.first.name, given.second.name)) else 0)


def _given() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.lockstep", description="Scripts at brokers.")
    what = parser.add_subparsers(dest="what", required=True)
    one = what.add_parser("record", help="write a script, with the answers of a broker")
    one.add_argument("address", metavar="HOST:PORT")
    one.add_argument("file", type=Path, metavar="FILE")
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--steps", type=int, default=500)
    one = what.add_parser("replay", help="take the steps of a script at another broker")
    one.add_argument("address", metavar="HOST:PORT")
    one.add_argument("script", type=Path, metavar="SCRIPT")
    one.add_argument("file", type=Path, metavar="FILE")
    one = what.add_parser("compare", help="compare the answers of two brokers")
    one.add_argument("first", type=Path, metavar="FILE")
    one.add_argument("second", type=Path, metavar="FILE")
    return parser.parse_args()


if __name__ == "__main__":
    main()
