"""Several brokers: who leads, whose log is missing, and whose clock disagrees."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharestate.broker_log import LogImport, TopicLogs
from sharestate.history import Event
from tests.support.broker_logs import RUN
from tests.support.logged_requests import FIRST, SECOND, TOPIC, GivenRequests, unknown
from tests.support.segments import keep_batches

BOTH = {1: FIRST, 2: SECOND}


def kinds(events: list[Event]) -> list[str]:
    """Return the kinds of events, settings left out."""
    return [event.kind for event in events if event.kind != "config"]


def moved(*, brokers: dict[int, str] | None = None) -> GivenRequests:
    """Return requests of a share partition that broker 1 leads first, then broker 2."""
    log = GivenRequests()
    log.metadata(brokers=brokers)
    log.read(by=1, epoch=3)
    log.fetch((0, 4, 1))
    log.acknowledge(0, 4)
    log.write((0, 4, 2, 1), by=1, epoch=3)
    log.read(by=2, epoch=4)
    log.fetch((5, 9, 1), broker=SECOND)
    return log


def test_a_read_says_who_leads_from_then_on() -> None:
    """The client id of a leader's requests for state has its node id."""
    initialized = [event.request for event in moved().imported() if event.kind == "initialize"]

    assert initialized == [{"leader_epoch": 3, "leader": 1}, {"leader_epoch": 4, "leader": 2}]


@pytest.mark.parametrize("client_id", ["a tool", "Persister-client-2147483648"])
def test_a_client_that_is_no_persister_leads_nothing(client_id: str) -> None:
    """Of a read by another client it is not known who leads; node ids have 32 bits."""
    log = moved()
    log.read(by=1, epoch=5)
    log._requests[-1] = log._requests[-1]._replace(client_id=client_id)  # noqa: SLF001

    assert [event.request for event in log.imported() if event.kind == "initialize"][-1] == {"leader_epoch": 5}


def test_what_a_former_leader_answers_is_left_out() -> None:
    """It refuses what it is asked, and its writes are fenced: both say nothing of the life that goes on elsewhere."""
    log = moved(brokers=BOTH)
    logged = len(list(log))
    log.acknowledge(0, 4, broker=FIRST, error=3)
    log.fetch(broker=FIRST, epoch=1, error=6)
    log.fetch(broker=FIRST, epoch=2)
    log.write((5, 9, 0, 1), by=1, epoch=3, error=74)

    assert [event for event in log.imported() if (event.source_line or 0) > logged] == []


def test_the_fetch_for_which_the_next_leader_reads_the_state_is_its_own() -> None:
    """It arrives before the read, waits for it, and may archive records without acquiring any."""
    log = GivenRequests()
    log.metadata(brokers=BOTH)
    log.read(by=1, epoch=3)
    log.fetch((0, 4, 1))
    log.fetch(broker=SECOND, waits_us=12_000)
    log.read(by=2, epoch=4)

    assert kinds(log.imported()) == ["initialize", "fetch", "fetch", "initialize", "disconnect", "disconnect"]


def test_sessions_of_brokers_are_not_the_same() -> None:
    """A member has a session with each broker, and a connection to one does not end that to the other."""
    log = GivenRequests()
    log.metadata(brokers=BOTH)
    log.read(by=1)
    log.fetch((0, 4, 1))
    log.fetch(broker=SECOND, topic_id="YW5vdGhlciB0b3BpYyEhIQ")
    log.fetch((5, 9, 1), epoch=1)

    first = [event for event in log.imported() if event.topic_id == TOPIC]

    assert kinds(first) == ["initialize", "fetch", "fetch", "disconnect"]
    assert [(event.request or {})["partitions"] for event in first if event.kind == "fetch"] == [1, 1]


def test_a_connection_that_is_lost_when_the_leader_moves_is_lost_in_the_older_life() -> None:
    """That it is silent is noticed later; it stands at the time of its last request."""
    log = moved(brokers=BOTH)
    log.fetch((10, 14, 1), broker=SECOND, epoch=1, at_ms=60_000)

    lost = [event.at_us for event in log.imported() if event.kind == "disconnect"]

    requests = list(log)
    assert lost == [requests[3].end_us, requests[6].end_us, requests[7].end_us]


def test_a_life_led_by_a_broker_whose_log_is_missing_is_not_known(tmp_path: Path) -> None:
    """The reason names the broker, and from when to when it led."""
    log = moved(brokers=BOTH)
    log.read(by=3, epoch=5)
    log.read(by=1, epoch=6)
    log.fetch((10, 14, 1), epoch=1)
    log.metadata(brokers={**BOTH, 3: "10.0.0.3:9092"})
    keep_batches(RUN / "segments" / "s1-0", tmp_path / "t-0")

    assert unknown(log.imported()) == {
        TOPIC: ["broker 3 led from 2026-11-22T04:35:43.080Z to 2026-11-22T04:35:43.090Z, and its log is missing"]
    }


def test_a_broker_is_known_by_what_members_got_from_it() -> None:
    """Its address in answers may be another one than that of its connections: who hands out records leads."""
    log = moved(brokers={1: "kafka-1:9092", 2: "kafka-2:9092"})
    log.read(by=1, epoch=5)

    assert unknown(log.imported()) == {}


def test_a_share_coordinator_whose_log_is_missing_is_named() -> None:
    """Nothing can be said of a share partition whose state is in the log of another broker."""
    log = GivenRequests()
    log.metadata(brokers=BOTH)
    log.fetch((0, 4, 1))

    assert unknown(log.imported())[TOPIC] == [
        "no log has its state; the log of its share coordinator is missing: there are none of brokers 2"
    ]


def test_a_share_coordinator_that_has_moved_is_noticed() -> None:
    """An acknowledgement that has succeeded has a write; if brokers' logs are missing it is in one of those."""
    log = GivenRequests()
    log.metadata(brokers=BOTH)
    log.read(by=1)
    log.fetch((0, 4, 1))
    log.acknowledge(0, 1)
    log.write((0, 1, 2, 1), by=1)
    log.acknowledge(2, 3)
    log.fetch((5, 9, 1), epoch=1, at_ms=5_000)
    log.acknowledge(4, 4)
    log._requests[-1] = log._requests[-1]._replace(taken_us=log._requests[-2].end_us)  # noqa: SLF001

    (reason,) = unknown(log.imported())[TOPIC]
    assert reason == (
        "no log has the write of what was acknowledged in 10.0.0.1:9092.log:6; the log of its share coordinator is"
        " missing: there are none of brokers 2"
    )


def test_a_write_that_a_coordinator_has_not_logged_before_it_moved_is_noticed() -> None:
    """A broker that stops has not logged its last requests; the next write goes to another one."""
    log = GivenRequests()
    log.metadata(brokers=BOTH)
    log.read(by=1, broker=SECOND)
    log.fetch((0, 4, 1))
    log.fetch((5, 9, 1), broker=SECOND, topic_id="YW5vdGhlciB0b3BpYyEhIQ")
    log.acknowledge(0, 1)
    log.write((2, 2, 2, 1), by=1, at_ms=5_000)

    (reason,) = unknown(log.imported())[TOPIC]
    assert reason == (
        "the share coordinator moved or stopped, and no log has what it wrote for the acknowledgement in"
        " 10.0.0.1:9092.log:5"
    )


def test_a_write_that_is_tried_again_counts_once() -> None:
    """A leader whose coordinator has moved tries up to five times; its share partition knows the last answer only."""
    log = GivenRequests()
    log.read(by=1)
    for error in (16, 3, 0):
        log.write((0, 4, 2, 1), by=1, error=error)
    for error in (14, 16, 3, 14, 15):
        log.write((5, 9, 2, 1), by=1, error=error)

    writes = [event for event in log.imported() if event.kind == "write"]

    assert [(event.source_line, event.response) for event in writes] == [
        (4, {}),
        (9, {"error": "coordinator_not_available"}),
    ]
    first, last = list(log)[1], list(log)[3]
    assert (writes[0].at_us, writes[0].request_no) == (first.at_us, first.correlation_id)  # it was issued before that
    assert writes[0].done_us == last.done_us


def test_writes_of_one_request_are_tried_again_each_by_itself() -> None:
    """
    They have one result, and timers of their own: the second may come again before the first.

    So does PersisterStateManager (Kafka 4.2.1, 4.2.2, 4.3.1 and 4.4.0). They were issued in the order of the request.
    """
    log = GivenRequests()
    log.read(by=1)
    log.write_together(((0, 4, 2, 1),), ((5, 9, 2, 1),), by=1, error=14)
    log.write((5, 9, 2, 1), by=1)
    log.write((0, 4, 2, 1), by=1)

    writes = [event for event in log.imported() if event.kind == "write"]

    together = list(log)[1]
    assert {(event.at_us, event.request_no) for event in writes} == {(together.at_us, together.correlation_id)}
    asked = [(event.request or {}, event.source_line) for event in writes]
    found = [(request["entry"], request["state_batches"][0][0], line) for request, line in asked]
    assert sorted(found) == [(0, 0, 4), (1, 5, 3)]


def test_what_a_leader_did_not_try_again_any_more_is_not_the_write_of_the_next_one() -> None:
    """It has another leader epoch, though it may say the same of the same records."""
    log = GivenRequests()
    log.read(by=1, epoch=3)
    log.write((0, 4, 2, 1), by=1, epoch=3, error=16)
    log.read(by=2, epoch=4)
    log.write((0, 4, 2, 1), by=2, epoch=4)

    (write,) = (event for event in log.imported() if event.kind == "write")

    assert write.at_us == list(log)[3].at_us


def test_a_missing_write_is_no_excuse_if_all_logs_are_there() -> None:
    """A log that was falsified is not taken for one of several."""
    log = GivenRequests()
    log.metadata(brokers={1: FIRST})
    log.read(by=1)
    log.fetch((0, 4, 1))
    log.acknowledge(0, 1)
    log.fetch((5, 9, 1), epoch=1, at_ms=5_000)
    log.acknowledge(2, 3)

    assert unknown(log.imported()) == {}


@pytest.mark.parametrize("skew_ms", [-5_000, 5_000])
def test_clocks_that_disagree_are_measured(skew_ms: int) -> None:
    """A write lies between two fetches of its records; how far it seems to lie outside is said."""
    log = GivenRequests()
    log.metadata(brokers=BOTH)
    for count in range(1, 4):
        log.fetch((0, 4, count), epoch=count - 1, at_ms=10_000 + count * 100)
        log.write((0, 4, 0, count), by=1, broker=SECOND, at_ms=10_050 + count * 100 + skew_ms)
    log._requests.sort(key=lambda request: request.taken_us)  # noqa: SLF001
    imported = LogImport(log, TopicLogs())

    reasons = unknown(list(imported))[TOPIC]

    (offset,) = imported.clock_offsets()
    assert (offset.broker, offset.other) == (FIRST, SECOND)
    assert abs(offset.us + skew_ms * 1000) <= 60_000
    assert any("clocks of brokers disagree: 10.0.0.1:9092 is " in reason for reason in reasons)


def test_clocks_that_agree_are_not_spoken_of() -> None:
    """A write that is logged 25 ms late is within what each line may be."""
    log = GivenRequests()
    log.metadata(brokers=BOTH)
    log.read(by=1, broker=SECOND)
    for count in range(1, 4):
        log.fetch((0, 4, count), epoch=count - 1, at_ms=10_000 + count * 30)
        log.write((0, 4, 0, count), by=1, broker=SECOND, at_ms=10_010 + count * 30 + 25)
    imported = LogImport(log, TopicLogs())

    assert unknown(list(imported)) == {}
    assert imported.clock_offsets() == []


def test_a_write_that_is_late_is_no_clock_that_is_ahead() -> None:
    """Nobody waits for the write of an expired lock: other writes show that the clocks agree."""
    log = GivenRequests()
    log.metadata(brokers=BOTH)
    log.read(by=1, broker=SECOND)
    log.fetch((0, 4, 1), at_ms=1_000)
    log.write((0, 4, 2, 1), by=1, broker=SECOND, at_ms=1_010)
    log.fetch((5, 9, 1), epoch=1, at_ms=1_100)
    log.fetch((5, 9, 2), epoch=2, at_ms=2_100)
    log.write((5, 9, 0, 1), by=1, broker=SECOND, at_ms=2_400)

    assert unknown(log.imported()) == {}


def test_what_a_refused_fetch_has_acknowledged_counts() -> None:
    """A broker that throws in a fetch, as its topic is gone, has acknowledged before; what it acquired nobody knows."""
    log = GivenRequests()
    log.fetch((0, 4, 1))
    log.fetch(epoch=1, refused=-1)
    request = log._requests[-1].request  # noqa: SLF001
    batch = {"firstOffset": 0, "lastOffset": 4, "acknowledgeTypes": [1]}
    request["topics"][0]["partitions"][0]["acknowledgementBatches"] = [batch]
    log._requests[-1].response["responses"] = []  # noqa: SLF001
    log.fetch(epoch=2, refused=123)

    events = [event for event in log.imported() if event.source_line == 2]

    assert [(event.kind, event.response) for event in events] == [("acknowledge", None), ("fetch", None)]


def test_the_segments_are_those_of_the_leader(tmp_path: Path) -> None:
    """Of equally large directories the leader's is read; of others the one that has most, in whatever order given."""
    for node_id, begin in ((1, 0), (2, 0), (3, 33)):
        directory = tmp_path / str(node_id)
        keep_batches(RUN / "segments" / "s1-0", directory / "t-0", begin=begin)
        (directory / "t-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC}")
        (directory / "meta.properties").write_text(f"#\nnode.id={node_id}\nversion=1\n")
    directories = [tmp_path / name for name in ("3", "2", "1")]

    for leader, chosen in ((1, "1"), (2, "2"), (3, "2"), (None, "2")):
        log = TopicLogs(directories).of(TOPIC, 0, leader=leader)
        assert log is not None
        assert log._directory == tmp_path / chosen / "t-0"  # noqa: SLF001
