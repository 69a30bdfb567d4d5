"""What recorded producers write down: expected values are worked out by hand from what they did."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from tests.support.recorded_clients import Clock, Error, FailedError, Record, is_complete, lines, producer


def test_produced_records(tmp_path: Path, clock: Clock) -> None:
    """
    Records of a partition are ranges of offsets, and begin before the call that reports them, by their latency.

    What has an error may be in the log or not, unless a broker has said so or librdkafka has not sent it.
    """
    maker = producer(log := tmp_path / "log.jsonl", record_id=lambda message: message.key().decode())
    told: list[Record] = []
    maker.reports = [
        Record(0, took_s=0.25),
        Record(0, part=1),
        Record(1, took_s=0.5),
        Record(3, took_s=0.125),
        Record(-1001, wrong=Error(-192)),
        Record(-1001, wrong=Error(-192)),
        Record(-1001, wrong=Error(10)),
        Record(-1001, part=-1, wrong=Error(-190)),
        Record(-1001, wrong=Error(-152)),
    ]
    for number in range(9):
        more = {"on_delivery": lambda _, message: told.append(message)} if number < 2 else {}
        maker.produce("orders", b"v", partition=0, **more)
    maker.produce("orders", callback=lambda _, message: told.append(message))
    maker.reports.append(Record(-1, wrong=None))  # without acks there is no offset
    clock.ms = 2000
    assert maker.poll(0) == 10
    maker.close()

    common = {"op": "produce", "end_ms": 2000, "topic": "orders", "partition": 0}
    unknown = {**common, "begin_ms": 2000, "end_ms": None, "ids": ["k-1001"]}
    assert lines(log) == [
        {**common, "begin_ms": 1500, "first_offset": 0, "last_offset": 1, "ids": ["k0", "k1"]},
        {**common, "begin_ms": 2000, "partition": 1, "first_offset": 0, "last_offset": 0, "ids": ["k0"]},
        {**common, "begin_ms": 1875, "first_offset": 3, "last_offset": 3, "ids": ["k3"]},
        {**unknown, "count": 2, "ids": ["k-1001", "k-1001"]},
        {**unknown, "end_ms": 2000, "count": 1, "code": 10},
        {**unknown, "count": 1, "ids": ["k-1"]},
    ]
    assert [message.at for message in told] == [0, 0, -1]


@pytest.mark.usefixtures("clock")
def test_transactions(tmp_path: Path) -> None:
    """A transaction has a name, and its end a result; what librdkafka has no answer to has no end."""
    maker = producer(log := tmp_path / "log.jsonl")
    maker.begin_transaction()
    maker.produce("orders")
    maker.reports = [Record(5)]
    maker.commit_transaction()
    maker.begin_transaction()
    for number in (-185, 47):
        maker.failure = FailedError(Error(number))
        with pytest.raises(FailedError):
            maker.commit_transaction(1.0)
    maker.failure = FailedError()
    with pytest.raises(FailedError):
        maker.abort_transaction()
    maker.failure = None
    maker.abort_transaction()
    maker.close()

    assert lines(log)[0]["transaction"] == "tx/1"
    ends = [{n: v for n, v in line.items() if n not in {"op", "begin_ms"}} for line in lines(log)[1:]]
    assert ends == [
        {"end_ms": 1000, "transaction": "tx/1", "committed": True},
        {"end_ms": None, "transaction": "tx/2", "committed": True},
        {"end_ms": 1000, "transaction": "tx/2", "committed": True, "code": 47},
        {"end_ms": None, "transaction": "tx/2", "committed": False},
        {"end_ms": 1000, "transaction": "tx/2", "committed": False},
    ]


@pytest.mark.usefixtures("quick_collections")
def test_what_a_producer_cannot_say(tmp_path: Path) -> None:
    """The header says that something is missing: records with callbacks of a batch, or that were never reported."""
    for number, (message, should_be) in enumerate(
        (({"value": b"v", "callback": print}, False), ({"value": b"v"}, True))
    ):
        maker = producer(log := tmp_path / f"{number}.jsonl")
        maker.produce_batch("orders", [message])
        maker.close()
        assert is_complete(log) is should_be

    for left in (0, 1):
        maker = producer(log := tmp_path / f"left-{left}.jsonl")
        maker.left = left
        maker.produce("orders")
        maker.reports = [Record(0)]
        maker.flush()
        del maker
        gc.collect()
        assert is_complete(log) is (left == 0)
