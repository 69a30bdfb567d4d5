"""
Reports on brokers: ``python -m tests.conformance.reporting [NAME ...]``.

It starts each broker, carries the scripts out there, and keeps what became of them in ``tests/data/conformance``, from
which `docs/conformance-reports.md` is made.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from types import MappingProxyType
from typing import Any, Final

from sharestate import KAFKA_4_4
from sharestate.conformance import Conformance, read_scripts
from sharestate.conformance.brokers import conform_cluster
from sharestate.json_lines import write_json
from tests.conformance.targets import kafka, kfake, mock, ours

DATA: Final = Path(__file__).parents[1] / "data/conformance"

LATEST: Final = "4.4.0"

BROKERS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "kafka-4.2.1": ("Kafka 4.2.1", "4.2.1"),
        "kafka-4.2.2": ("Kafka 4.2.2", "4.2.2"),
        "kafka-4.3.1": ("Kafka 4.3.1", "4.3.1"),
        "kafka-4.4.0": ("Kafka 4.4.0", "4.4.0"),
        "test-broker": ("`sharestate broker`", LATEST),
        "kfake": ("kfake of franz-go, 2026-09-18", LATEST),
        "mock": ("the mock cluster of librdkafka 2.16.0", LATEST),
    }
)
"""What each broker is, and the release that it is compared with."""


@contextmanager
def started(name: str, home: Path) -> Iterator[tuple[str, Callable[[float], None]]]:
    """Start a broker, and yield its address, and what lets time pass there."""
    if name == "test-broker":
        with ours(KAFKA_4_4) as running:
            yield running
        return
    others = {"kfake": lambda: kfake(home), "mock": mock}
    with others.get(name, lambda: kafka(BROKERS[name][1], home))() as address:
        yield address, sleep


def reported(name: str) -> dict[str, Any]:
    """Return the report on a broker."""
    _, release = BROKERS[name]
    with tempfile.TemporaryDirectory() as home, started(name, Path(home)) as (address, lets_pass):
        found = conform_cluster(address, read_scripts(), release, sleep=lets_pass)
    return kept(name, found)


def kept(name: str, found: Conformance) -> dict[str, Any]:
    """Return what a report keeps: all of JSON but headings, which `docs/rules.md` has."""
    report: Any = json.loads(write_json(found.to_json()))
    for rule in report["rules"]:
        del rule["about"]
    return {"broker": BROKERS[name][0], **report}


def main() -> None:
    """Write reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BROKERS))
    for name in parser.parse_args().names or BROKERS:
        report = reported(name)
        (DATA / f"{name}.json").write_text(f"{json.dumps(report, indent=1)}\n")
        print(name, report["verdict"], flush=True)  # noqa: T201 - progress


if __name__ == "__main__":
    main()
