"""The page of the scripts that brokers and the test broker answer alike, from ``tests/data/lockstep``."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Final

from generate.data import DATA, read_rows
from generate.markdown import NOTICE, table

INTRODUCTION: Final = """\
Scripts drawn at random were written at brokers of Kafka, step by step: producers, transactions, members of several
groups, administrators, and requests of any version whose fields were drawn one by one. [The test
broker](test-broker.md) takes the same steps, with a clock that stands where the script lets no time pass, and every
answer has to be the same: each field, error and text, and the bytes of each record. `make test` takes the scripts that
are kept, `make lockstep KAFKA=4.3.1 SEED=7` writes another one."""

LEFT_OUT: Final = """\
## What is not compared

What a broker has in common with no other one:"""

SEVERAL: Final = "Only where a group has had one member, who gets all partitions:"

ANY_ORDER: Final = "Lists whose order is not compared:"

NOT_SERVED: Final = "What a broker lists, and the test broker has not:"

NOT_ASKED: Final = """\
## What Kafka leaves open

Where a broker of Kafka answers itself otherwise when a script is repeated, scripts leave out the question."""


def page() -> str:
    """Return the page."""
    parts = [
        NOTICE,
        "# Scripts beside brokers",
        INTRODUCTION,
        table(["Kafka", "script", "steps", "requests of"], _scripts()),
        LEFT_OUT,
        _fields("left_out"),
        SEVERAL,
        _fields("left_out_of_several"),
        ANY_ORDER,
        _fields("any_order"),
        NOT_SERVED,
        table(["", "why"], ([row["what"], row["reason"]] for row in _rows("not_served"))),
        NOT_ASKED,
        table(["left out of scripts", "as it is open"], ([row["what"], row["open"]] for row in _rows("not_asked"))),
    ]
    return "\n\n".join(parts) + "\n"


def _rows(field: str) -> list[dict[str, str]]:
    return read_rows("lockstep/open.json", "lockstep", field)


def _fields(field: str) -> str:
    rows = ([_api(row["api"]), f"`{row['field']}`", row["reason"]] for row in _rows(field))
    return table(["in answers to", "field", "why"], rows)


def _api(name: str) -> str:
    return "all" if name == "*" else f"`{name}`"


def _scripts() -> Iterator[list[str]]:
    for path in sorted((DATA / "lockstep").glob("*.jsonl.gz")):
        steps = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        release, _, name = path.name.removesuffix(".jsonl.gz").partition("-")
        yield [release, f"`{name}`", str(len(steps)), f"{len({step['api'] for step in steps if step['api']})} APIs"]
