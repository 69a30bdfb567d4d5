"""
Recording of scripts at brokers of Kafka: ``python -m tests.conformance.recording``.

It starts a broker of each release, carries the scripts out, and writes what the library has: the answers, and for which
releases they hold.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import sharestate
from generate.citations import headings
from sharestate.conformance.brokers.asking import PREFIX
from sharestate.conformance.brokers.cluster import ClusterUnderTest
from sharestate.conformance.brokers.script_run import ScriptRun
from tests.conformance.authored import SCRIPTS, UNASKED
from tests.conformance.steps import Script
from tests.conformance.targets import kafka

FILE: Final = Path(sharestate.__file__).parent / "conformance/scripts.jsonl.gz"

RELEASES: Final = ("4.2.1", "4.2.2", "4.3.1", "4.4.0")


def answers(script: Script, address: str, number: int) -> list[list[Any]]:
    """Return the steps of a script, each with what a broker answers."""
    with closing(ClusterUnderTest(address)) as cluster:
        run = ScriptRun(cluster, address, f"{PREFIX}-record-{number}-{script.name}", time.sleep)
        exchanges = [[step, run.answer(step)] for step in script.steps]
        run.end()
    return exchanges


def recorded(releases: tuple[str, ...]) -> Iterator[tuple[str, str, list[list[Any]]]]:
    """Yield a script's name, a release, and its answers, twice the same."""
    for release in releases:
        with tempfile.TemporaryDirectory() as home, kafka(release, Path(home)) as address:
            for script in SCRIPTS:
                if release >= script.since:
                    first, second = (answers(script, address, number) for number in range(2))
                    if first != second:
                        raise AssertionError(script.name, release, first, second)
                    print(release, script.name, flush=True)  # noqa: T201 - progress
                    yield script.name, release, first


def lines(found: Mapping[str, Mapping[str, list[list[Any]]]]) -> Iterator[str]:
    """Yield the lines of the file: releases that answer alike share one, whose name says if they are old."""
    rules = [[number, text] for number, text in headings().items()]
    header = {"scripts": 1, "license": "Apache-2.0", "releases": [*RELEASES], "rules": rules}
    yield json.dumps({**header, "unasked": [*UNASKED.items()]})
    for script in SCRIPTS:
        alike: dict[str, list[str]] = {}
        for release, exchanges in found[script.name].items():
            alike.setdefault(json.dumps(exchanges, separators=(",", ":")), []).append(release)
        for text, releases in alike.items():
            line = {
                "name": script.name if RELEASES[-1] in releases else f"{script.name}-{releases[-1]}",
                "source": f"brokers of Kafka {', '.join(releases)}",
                "releases": releases,
                "rules": [*script.rules],
                "accident": None,
                "shows": script.shows,
                "exchanges": json.loads(text),
            }
            yield json.dumps(line, separators=(",", ":"))


def main() -> None:
    """Record all scripts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", nargs="*", default=RELEASES)
    parser.add_argument("--file", type=Path, default=FILE)
    arguments = parser.parse_args()
    found: dict[str, dict[str, list[list[Any]]]] = {script.name: {} for script in SCRIPTS}
    for name, release, exchanges in recorded(tuple(arguments.kafka)):
        found[name][release] = exchanges
    text = "".join(f"{line}\n" for line in lines(found))
    arguments.file.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
