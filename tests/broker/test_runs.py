"""Runs of brokers that are kept are complete: what clients by hand noted is what the request logs say."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from tests.broker.conftest import skipping
from tests.broker.runs import make

pytestmark = pytest.mark.broker

Delivery: TypeAlias = tuple[str, int, str, int, int, int]
"""Who, in which epoch of a session, a partition, and a range with its delivery count."""

FETCH: Final = "SHARE_FETCH"


def test_a_run_of_a_broker_is_complete(tmp_path: Path) -> None:
    """Its log begins after its groups were configured, and their configs are as Kafka's own tool says them."""
    with skipping():
        made = make("settings-before", tmp_path, "4.3.1", seed=1, seconds=5)

    described = (made.place / "group-config.txt").read_text()
    (log,) = logs(made.place)
    assert made.run.failures == []
    assert "Dynamic configs for group kb are:\n" in described
    assert "\n  share.delivery.count.limit=3 sensitive=false" in described
    assert not [each for each in log if "share.delivery.count.limit" in json.dumps(each["request"])]
    assert set(noted(made.place)) == set(logged(log))
    assert set(logged(log))


def test_a_run_of_three_brokers_is_complete(tmp_path: Path) -> None:
    """Each of them has a log, whose deliveries are together what the members noted; leaders are elected."""
    with skipping():
        made = make("three", tmp_path, "4.4.0", seed=1, seconds=12)

    each = list(logs(made.place))
    names = {path.name for path in made.place.glob("broker*/segments/m?-?")}
    leaders = [at for at, log in enumerate(each) if any(logged(log))]
    assert made.run.failures == []
    assert names == {"m1-0", "m1-1", "m2-0"}
    assert (len(each), len(leaders) > 1) == (3, True)
    assert made.run.counts["preferred leaders elected"] == 2
    assert set(noted(made.place)) - {delivery for log in each for delivery in logged(log)} == set()
    assert set(noted(made.place))


def logs(place: Path) -> Iterator[list[Any]]:
    """Yield the requests that each broker of a run has logged."""
    for path in sorted(place.rglob("request.log.gz")):
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        yield [json.loads(line.partition(" Completed request:")[2]) for line in lines]


def name_of(request: Any) -> str:  # noqa: ANN401 - JSON
    """Return what kind of request one is."""
    return str(request["requestHeader"]["requestApiKeyName"])


def logged(log: Iterable[Any]) -> Iterator[Delivery]:
    """Yield what members by hand were given, as a broker has logged it."""
    for line in log:
        if name_of(line) == FETCH and line["requestHeader"]["clientId"].startswith("raw-"):
            who = line["request"]["memberId"], line["request"]["shareSessionEpoch"]
            for topic in line["response"]["responses"]:
                for part in topic["partitions"]:
                    name = f"{topic['topicId']}:{part['partitionIndex']}"
                    for each in part["acquiredRecords"]:
                        yield *who, name, each["firstOffset"], each["lastOffset"], each["deliveryCount"]


def noted(place: Path) -> Iterator[Delivery]:
    """Yield what members by hand were given, as they noted it; a broker that stops may not log what it answers."""
    with gzip.open(place / "clients.jsonl.gz", "rt") as lines:
        notes = [json.loads(line) for line in lines]
    begins = [note["at"] for note in notes if note["what"] == "stops"]
    ends = [note["at"] for note in notes if note["what"] == "stopped"]
    for note in notes:
        if note["what"] != "fetch":
            continue
        if not any(note["at"] > begin and note["sent"] < end for begin, end in zip(begins, ends, strict=True)):
            for name, part in note.get("partitions", {}).items():
                for first, last, count in part["acquired"]:
                    yield note["member"], note["session_epoch"], name, first, last, count
