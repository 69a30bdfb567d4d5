"""
Scripts at brokers: ``python -m tests.lockstep run --kafka 4.3.1 --seed 7``.

``run`` writes a script at a broker of Kafka, and takes the same steps at ours; with ``--itself`` it takes them at a
second broker of Kafka, too. ``record HOST:PORT FILE`` writes a script with the answers of any broker,
``replay HOST:PORT SCRIPT FILE`` takes the same steps elsewhere, and ``compare FILE FILE`` shows where answers differ.
"""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.broker.kafka_broker import KafkaBroker
from tests.lockstep.author import Author
from tests.lockstep.compare import differences, line_of, told
from tests.lockstep.runner import Runner, TooSlowError
from tests.lockstep.standing import PROFILES, standing_runner
from tests.lockstep.steps import SETTINGS, Step, Taken, read, write

SHOWN: Final = 3
"""How many differences are shown in full."""


def record(runner: Runner, seed: int, length: int) -> list[Taken]:
    """Write a script at a broker, and return its steps with the answers."""
    author = Author(seed, length)
    return _take(runner, author.script(), author.learn)


def replay(runner: Runner, script: list[Taken]) -> list[Taken]:
    """Take the steps of a script at a broker, and return them with its answers."""
    return _take(runner, (each.step for each in script), lambda _: None)


def _take(runner: Runner, steps: Iterator[Step], learn: Callable[[Taken], None]) -> list[Taken]:
    """Take steps one by one, up to the first round that takes too long; the runner's connections are closed then."""
    taken: list[Taken] = []
    try:
        for step in steps:
            taken.append(runner.take(step))
            learn(taken[-1])
    except TooSlowError as error:
        say(f"{error}: the script ends before this round; the step before: {line_of(taken[-1])}")
        return [each for each in taken if each.step.round < step.round]
    finally:
        runner.close()
    return taken


def report(first: list[Taken], second: list[Taken], names: tuple[str, str]) -> int:
    """Say how many steps were answered alike, show the first ones that were not, and return how many these are."""
    found = list(differences(first, second))
    count = min(len(first), len(second))
    say(f"{count - len(found)} of {count} steps equal, {names[0]} and {names[1]}")
    if found:
        say(f"by API: {dict(Counter(each.first.step.api for each in found))}")
    for each in found[:SHOWN]:
        say(told(each, first, names))
    return len(found)


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@contextmanager
def kafka(release: str) -> Iterator[Runner]:
    """Start a broker of Kafka, and yield what takes steps there."""
    with TemporaryDirectory(prefix="lockstep-") as home:
        broker = KafkaBroker(release, Path(home), SETTINGS)
        broker.start()
        try:
            yield Runner(broker.address)
        finally:
            broker.stop()


def ours(release: str) -> AbstractContextManager[Runner]:
    """Start a broker of ours by the rules of a release, and yield what takes steps there."""
    return standing_runner(PROFILES[release])


def run(release: str, seeds: Iterable[int], length: int, place: Path, *, itself: bool) -> int:
    """Write a script of each seed at Kafka, take its steps at ours, and return how many were answered otherwise."""
    place.mkdir(parents=True, exist_ok=True)
    others = {"itself": kafka, "ours": ours} if itself else {"ours": ours}
    different = 0
    for seed in seeds:
        with kafka(release) as runner:
            script = record(runner, seed, length)
        write(place / f"{release}-{seed}-kafka.jsonl", script)
        for who, start in others.items():
            with start(release) as runner:
                taken = replay(runner, script)
            write(place / f"{release}-{seed}-{who}.jsonl", taken)
            say(f"seed {seed}:")
            count = report(script, taken, ("Kafka", who))
            different += count if who == "ours" else 0
    return different


def main() -> None:
    """Do what is asked for."""
    given = _given()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that brokers are stopped
    if given.what == "run":
        seeds = range(given.seed, given.seed + given.seeds)
        sys.exit(1 if run(given.kafka, seeds, given.steps, given.outdir, itself=given.itself) else 0)
    elif given.what == "record":
        write(given.file, record(Runner(given.address), given.seed, given.steps))
    elif given.what == "replay":
        write(given.file, replay(Runner(given.address), read(given.script)))
    else:
        first, second = read(given.first), read(given.second)
        sys.exit(1 if report(first, second, (given.first.name, given.second.name)) else 0)


def _given() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.lockstep", description="Scripts at brokers.")
    what = parser.add_subparsers(dest="what", required=True)
    one = what.add_parser("run", help="write scripts at Kafka, and take their steps at ours")
    one.add_argument("--kafka", default="4.3.1", choices=PROFILES)
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--seeds", type=int, default=1, help="how many scripts, of seeds that follow one another")
    one.add_argument("--steps", type=int, default=500)
    one.add_argument("--itself", action="store_true", help="take them at another broker of Kafka, too")
    one.add_argument("--outdir", type=Path, default=Path("build/lockstep"))
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
