"""What recorded clients write down: expected values are worked out by hand from what the client was given and did."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from sharestate.audit import FaultOperation
from sharestate.audit.recorder import Recorder, recorded, share_consumer
from tests.support.recorded_clients import (
    Clock,
    Consumer,
    Error,
    FailedError,
    Place,
    Producer,
    Record,
    consumer,
    is_complete,
    lines,
    producer,
)


def test_a_poll(tmp_path: Path, clock: Clock) -> None:
    """A poll is a fetch with ranges of the same topic, partition and count, in the order in which they came."""
    member = consumer(log := tmp_path / "log.jsonl")
    came = [
        *(Record(offset, part=1) for offset in (7, 8, 9)),
        *(Record(offset) for offset in (0, 1)),
        Record(2, count=2),
        Record(5, count=2),
        Record(4, count=2),
        Record(4, count=None),
        Record(0, of="bills"),
    ]
    member.answers = [lambda: came, list]

    clock.ms = 1010.5
    assert member.poll(1.0) == came
    member.close()

    assert lines(log)[0] == {
        "op": "fetch",
        "begin_ms": 1010.5,
        "end_ms": 1010.5,
        "partitions": [
            ["orders", 1, [[7, 9, 1]], 0],
            ["orders", 0, [[0, 1, 1], [2, 2, 2], [5, 5, 2], [4, 4, 2], [4, 4, None]], 0],
            ["bills", 0, [[0, 0, 1]], 0],
        ],
    }


def test_the_begin_of_a_fetch(tmp_path: Path, clock: Clock) -> None:
    """
    What a poll brings may have been acquired since the first poll after the last one that brought something.

    librdkafka goes on fetching after a poll that has brought nothing.
    """
    member = consumer(log := tmp_path / "log.jsonl")

    def after(ms: float, came: Iterable[Record]) -> Callable[[], Iterable[Record]]:
        def answer() -> Iterable[Record]:
            clock.ms += ms
            return came

        return answer

    member.answers = [after(300, ()), after(300, ()), after(100, [Record(0)]), after(50, [Record(1)]), list]
    for _ in range(3):
        member.poll(0.3)
    member.acknowledge_offset("orders", 0, 0)
    clock.ms += 1000
    member.poll(0.3)
    member.close()

    fetches = [
        (line["begin_ms"], line["end_ms"], bool(line.get("partitions"))) for line in lines(log) if line["op"] == "fetch"
    ]
    assert fetches == [(1000, 1600, False), (1000, 1700, True), (2700, 2750, True)]


def test_polls_that_bring_nothing(tmp_path: Path, clock: Clock) -> None:
    """They are one operation until that lasts a second, so that a loop of them does not fill the disk."""
    member = consumer(log := tmp_path / "log.jsonl")

    def nothing() -> Iterable[Record]:
        clock.ms += 400
        return ()

    member.answers = [nothing] * 4
    for _ in range(4):
        member.poll(0.4)
    member.close()

    assert [(line["begin_ms"], line["end_ms"]) for line in lines(log)] == [(1000, 2200), (2200, 2600), (2600, 2600)]


def acknowledgements(log: Path) -> list[tuple[Any, ...]]:
    """Return begin, end and partitions of all acknowledgements."""
    return [
        (line["begin_ms"], line["end_ms"], *line["partitions"]) for line in lines(log) if line["op"] == "acknowledge"
    ]


def test_explicit_acknowledgements(tmp_path: Path, clock: Clock) -> None:
    """They begin with the commit or the poll that sends them, and end when the callback says what came of them."""
    member = consumer(log := tmp_path / "log.jsonl")
    came = [Record(offset) for offset in range(6)] + [Record(0, part=1)]
    heard: list[Any] = []
    member.set_acknowledgement_commit_callback(lambda offsets, error: heard.append((offsets, error)))
    member.answers = [lambda: came]
    member.poll(1.0)
    for record, how in zip(came, (1, 1, 2, 3, 3, 1, 1), strict=True):
        member.acknowledge(record, how)
    member.acknowledge(came[1], 3)  # the last word counts
    with pytest.raises(ValueError):  # noqa: PT011 - the consumer's own
        member.acknowledge(Record(-1))

    def answer() -> Iterable[Record]:
        clock.ms = 2100
        member.callback({Place("orders", 0): {0, 1, 2, 3, 4, 5}}, None)
        member.callback({Place("orders", 1): {0}}, FailedError(Error(121)))
        return ()

    clock.ms = 2000
    member.answers = [answer]
    member.commit_sync()
    member.close()

    assert acknowledgements(log) == [
        (
            2000,
            2100,
            [
                "orders",
                0,
                [[0, 0, "accept"], [1, 1, "reject"], [2, 2, "release"], [3, 4, "reject"], [5, 5, "accept"]],
                0,
            ],
        ),
        (2000, 2100, ["orders", 1, [[0, 0, "accept"]], 121]),
    ]
    assert [set(offsets) for offsets, _ in heard] == [{Place("orders", 0)}, {Place("orders", 1)}]


def test_answers_to_some_and_to_none(tmp_path: Path, clock: Clock) -> None:
    """
    An answer may be to a part of what was sent, and to parts of several commits.

    librdkafka's own errors are no answers, and what is not answered when the consumer is closed never is.
    """
    member = consumer(log := tmp_path / "log.jsonl")
    for first in (0, 10, 20):
        came = [Record(offset) for offset in range(first, first + 3)]
        member.answers = [lambda came=came: came]
        member.poll(1.0)
        clock.ms = 2000 + first
        for record in came:
            member.acknowledge(record)
        member.commit_async()
    clock.ms = 3000
    member.callback({Place("orders", 0): {1, 10, 11, 12}}, None)
    member.callback({Place("orders", 0): {20, 21, 22}}, FailedError(Error(-195)))
    member.callback({Place("orders", 7): {1}}, None)  # of nothing that is known
    member.close()

    assert acknowledgements(log) == [
        (2000, 3000, ["orders", 0, [[1, 1, "accept"]], 0]),
        (2010, 3000, ["orders", 0, [[10, 12, "accept"]], 0]),
        (2020, None, ["orders", 0, [[20, 22, "accept"]], None]),
        (2000, None, ["orders", 0, [[0, 0, "accept"], [2, 2, "accept"]], None]),
    ]


def test_answers_that_never_come(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of too many acknowledgements that wait for an answer, the oldest count as unanswered."""
    monkeypatch.setattr(share_consumer, "MAX_UNANSWERED", 2)
    member = consumer(log := tmp_path / "log.jsonl")
    for offset in range(3):
        clock.ms = 1000 + offset
        member.acknowledge_offset("orders", 0, offset)
        member.commit_async()
    member.callback({Place("orders", 0): {0, 1, 2}}, None)
    member.close()

    assert acknowledgements(log) == [
        (1000, None, ["orders", 0, [[0, 0, "accept"]], None]),
        (1001, 1002, ["orders", 0, [[1, 1, "accept"]], 0]),
        (1002, 1002, ["orders", 0, [[2, 2, "accept"]], 0]),
    ]


def test_implicit_acknowledgements(tmp_path: Path, clock: Clock) -> None:
    """The next poll or commit accepts what the last poll has brought, and closing accepts nothing (librdkafka 2.16)."""
    member = consumer(log := tmp_path / "log.jsonl", **{"share.acknowledgement.mode": "implicit"})
    member.answers = [lambda: [Record(0), Record(1, count=2)], lambda: [Record(2)], list]
    member.poll(1.0)
    clock.ms = 1500
    member.poll(1.0)
    member.callback({Place("orders", 0): {0, 1}}, None)
    clock.ms = 1600
    member.close()

    (line,) = (line for line in lines(log) if line["op"] == "acknowledge")
    assert line == {
        "op": "acknowledge",
        "begin_ms": 1500,
        "end_ms": 1500,
        "partitions": [["orders", 0, [[0, 0, "accept"], [1, 1, "accept"]], 0]],
        "implicit": True,
    }
    assert lines(log)[-1] == {"op": "close", "begin_ms": 1600, "end_ms": 1600}


def test_what_ends_a_session(tmp_path: Path, clock: Clock) -> None:
    """
    Leaving the group, polling too seldom, and a lost connection release what a member holds.

    A connection may have been lost since the poll before the one that says so.
    """
    errors: list[Error] = []
    member = consumer(log := tmp_path / "log.jsonl", error_cb=errors.append, **{"max.poll.interval.ms": 5000})
    member.answers = [list, list]
    member.poll(0)
    clock.ms = 6001
    member.poll(0)
    clock.ms = 6100
    member.config["error_cb"](Error(-195))
    member.config["error_cb"](Error(29))  # a broker's answer, which ends no session
    clock.ms = 6200
    member.unsubscribe()
    clock.ms = 6300
    member.close()

    closes = [(line["begin_ms"], line["end_ms"]) for line in lines(log) if line["op"] == "close"]
    assert closes == [(6000, 6001), (1000, 6100), (6200, 6200), (6300, 6300)]
    assert errors == [Error(-195), Error(29)]


def test_a_callback_that_is_none(tmp_path: Path) -> None:
    """What the consumer refuses as a callback it refuses when it is recorded, and goes on recording."""
    member = consumer(tmp_path / "log.jsonl")
    before = member.callback

    with pytest.raises(TypeError):
        member.set_acknowledgement_commit_callback(7)
    member.set_acknowledgement_commit_callback(None)

    assert member.callback == before


# ---- the file


def test_a_file_of_several_clients(tmp_path: Path) -> None:
    """Clients that share a recorder name themselves, and the file is complete when it is closed."""
    with Recorder(log := tmp_path / "log.jsonl") as recorder:
        recorded(Consumer, {"group.id": "g", "client.id": "a"}, recorder).close()
        producer(recorder).close()
        recorder.write(FaultOperation(begin_ms=1, end_ms=2, what="restart", client="test"))
        assert not is_complete(log)
    recorder.close()  # once more does no harm
    recorder.write(FaultOperation(begin_ms=3, end_ms=4, what="restart", client="test"))  # nor does this

    assert is_complete(log)
    close, fault = lines(log)
    assert close["client"].startswith("a@")
    assert fault["begin_ms"] == 1


def test_clients_that_are_contexts(tmp_path: Path) -> None:
    """A client is closed with its context, and with it the file that was made for it."""
    with consumer(log := tmp_path / "consumer.jsonl"), producer(other := tmp_path / "producer.jsonl"):
        assert not is_complete(log)

    assert is_complete(log)
    assert is_complete(other)


def test_a_file_that_grows_too_large(tmp_path: Path) -> None:
    """It has whole lines up to the bound, the header says that they are not all, and the client goes on."""
    with Recorder(log := tmp_path / "log.jsonl", max_bytes=400) as recorder:
        member = recorded(Consumer, {"group.id": "g"}, recorder)
        member.answers = [lambda: [Record(0)], lambda: [Record(1)], lambda: [Record(2)]]
        member.poll(1.0)
        with pytest.warns(RuntimeWarning, match="recorded no further: it has its largest size"):
            member.poll(1.0)
        assert member.poll(1.0)[0].at == 2

    assert log.stat().st_size <= 400
    assert not is_complete(log)
    assert len(lines(log)) == 1


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the file is a warning, and no error of the application's."""
    recorder = Recorder(tmp_path / "log.jsonl")

    class Full:
        closed = False
        name = "log.jsonl"

        def write(self, _: bytes) -> None:
            self.close()

        def close(self) -> None:
            message = "No space left on device"
            raise OSError(28, message)

    monkeypatch.setattr(recorder, "_file", Full())
    with pytest.warns(RuntimeWarning, match="No space left on device"):
        recorder.write(FaultOperation(begin_ms=1, end_ms=2, what="restart", client="test"))


def test_the_place_of_a_file(tmp_path: Path) -> None:
    """In a directory, each client has a file of its own name; a file that is there already is not touched."""
    for _ in range(2):
        recorded(Consumer, {"group.id": "g", "client.id": "a/b"}, tmp_path).close()
    log, _ = sorted(tmp_path.iterdir())

    assert log.name.startswith("a-b-")
    with pytest.raises(FileExistsError):
        Recorder(log)


def test_what_cannot_be_recorded(tmp_path: Path) -> None:
    """Only share consumers and producers can, and no file is made for anything else."""

    class Serializing(Producer):
        def produce(self, *arguments: Any) -> None:  # noqa: ANN401 - as above
            del arguments

    for kind in (dict, Serializing):
        with pytest.raises(TypeError, match=kind.__name__):
            recorded(kind, {}, tmp_path / "log.jsonl")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("quick_collections")
def test_a_consumer_that_is_dropped(tmp_path: Path, clock: Clock) -> None:
    """A consumer that is collected before it is closed has crashed, for all that others can see."""
    member = consumer(log := tmp_path / "log.jsonl")
    member.answers = [lambda: [Record(0)]]
    member.poll(1.0)
    member.acknowledge_offset("orders", 0, 0, 2)
    member.commit_async()
    clock.ms = 2000
    del member
    gc.collect()

    assert lines(log)[1:] == [
        {
            "op": "acknowledge",
            "begin_ms": 1000,
            "end_ms": None,
            "partitions": [["orders", 0, [[0, 0, "release"]], None]],
        },
        {"op": "crash", "at_ms": 2000},
    ]


END = """
import sys
from tests.support.recorded_clients import Consumer, Record
from sharestate.audit.recorder import recorded
member = recorded(Consumer, {"group.id": "g"}, sys.argv[1])
member.answers = [lambda: [Record(0)]]
member.poll(1.0)
"""


def test_the_end_of_the_process(tmp_path: Path) -> None:
    """A process that ends before it closes a consumer writes down all the same what was done, and that it ends."""
    log = tmp_path / "log.jsonl"
    subprocess.run([sys.executable, "-c", END, str(log)], check=True)

    assert [line["op"] for line in lines(log)] == ["fetch", "crash"]
    assert is_complete(log)


def test_operations_are_soon_on_disk(tmp_path: Path, clock: Clock) -> None:
    """What is older than a second is in the file when the next operation comes."""
    recorder = Recorder(log := tmp_path / "log.jsonl")
    fault = FaultOperation(begin_ms=1, end_ms=2, what="restart", client="test")
    recorder.write(fault)
    assert lines(log) == []
    clock.ms += 1000
    recorder.write(fault)

    assert len(lines(log)) == 2
    recorder.close()
