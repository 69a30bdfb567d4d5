"""What Kafka's share coordinator makes of brokers' state topics is still what ``tests/data`` has of it."""

from __future__ import annotations

import json
import os
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from sharestate.testing.search.command import CommandPeer
from tests.oracle.build import OracleUnavailableError
from tests.oracle.coordinator.search import DRIVER, oracle_of

DATA = Path(__file__).parents[1] / "data"
ROWS = [json.loads(line) for line in (DATA / "segments/rebuilt.jsonl").read_text().splitlines()]
DUMPS = {dump: list(rows) for dump, rows in groupby(ROWS, key=lambda row: row["dump"])}


def loaded(kafka: CommandPeer, dump: str, state_partition: int) -> dict[str, Any]:
    """Return the shard that Kafka has after it has loaded one partition of *dump*."""
    rows = map(json.loads, (DATA / dump).read_text().splitlines())
    fields = ("offset", "key", "value")
    records = [{name: row[name] for name in fields} for row in rows if row["statePartition"] == state_partition]
    kafka.ask([json.dumps({"op": "open", "partitions": 1, "topics": None})])
    kafka.response()
    kafka.ask([json.dumps({"op": "fold", "shard": 0, "records": records, "start": 0})])
    (shard,) = json.loads(kafka.response())["state"]
    return dict(shard)


@pytest.mark.oracle
@pytest.mark.parametrize("dump", DUMPS)
def test_kafka_loads_what_was_recorded(dump: str) -> None:
    """States, and what can be deleted, as the release has it whose broker has written the dump."""
    expected = DUMPS[dump]
    try:
        built = oracle_of(expected[0]["kafka"])
    except OracleUnavailableError as error:
        if "oracle" in os.environ.get("SHARESTATE_REQUIRE", "").split(","):
            raise
        pytest.skip(str(error))

    with CommandPeer(built.command(DRIVER)) as kafka:
        shards = [loaded(kafka, dump, row["state_partition"]) for row in expected]

    assert [(shard["redundant"], shard["keys"]) for shard in shards] == [
        (row["redundant"], row["keys"]) for row in expected
    ]
