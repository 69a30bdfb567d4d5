"""
The bugs of Kafka that are ready to report, tried on its releases: ``python -m tests.kafka_bugs [--kafka RELEASE] ...``.

The exit status is 0 if each release has the bugs that ``tests/data/kafka-bugs.json`` says, 1 if not, and 2 if a release
or the tests cannot be built or run.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Mapping

from tests.kafka_bugs.junit import Result, bugs_of, disagreements, releases, run
from tests.oracle.build import OracleError


def told(results: Mapping[str, Mapping[str, Result]]) -> str:
    """Return what came out, as a table: a line for each bug, a column for each release."""
    rows = [["bug", *results]]
    rows += [[bug["id"], *(each[bug["id"]].outcome for each in results.values())] for bug in bugs_of()]
    return "\n".join("".join(f"{cell:<11}" for cell in row).rstrip() for row in rows) + "\n"


def main() -> None:
    """Run the tests of bugs on each release, and print what came out."""
    parser = ArgumentParser(prog="python -m tests.kafka_bugs", description="Try Kafka's bugs on its releases.")
    parser.add_argument("--kafka", action="append", metavar="RELEASE", help="a release; every known one unless given")
    names = parser.parse_args().kafka or releases()
    try:
        results = {kafka: run(kafka, say=lambda text: _say(f"== {text}")) for kafka in names}
    except OracleError as error:
        _say(f"kafka bugs: {error}")
        sys.exit(2)
    sys.stdout.write(told(results))
    wrong = [f"Kafka {kafka}, {each}" for kafka, found in results.items() for each in disagreements(kafka, found)]
    for each in wrong:
        _say(each)
    sys.exit(1 if wrong else 0)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    main()
