"""The replay of one share partition's history."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate import (
    KAFKA_4_3,
    KAFKA_4_4,
    AcknowledgementBatch,
    AcquiredRecords,
    Snapshot,
    StateBatch,
)
from sharestate.errors import MalformedInputError
from sharestate.history import OUTPUTS, AppendedBatch, Event, HistoryOrderError, OutputRow, Replay
from tests.support.replayed_life import KEY, LOCK_MS, NOTHING, Life


def differences(rows: list[OutputRow]) -> list[tuple[Any, ...]]:
    """Return the values of the differences among *rows*."""
    return [row.values for row in rows if row.kind == "difference"]


# ---- the order of events


@pytest.mark.parametrize(("seq", "text"), [(0, "again"), (3, "missing")])
def test_an_event_that_is_not_the_next_one_is_refused(seq: int, text: str) -> None:
    """A repeated and a missing event are refused, and change nothing."""
    life = Life()
    life.fetch(1, 0, 4)
    before = life.replay.state()

    with pytest.raises(HistoryOrderError, match=text) as caught:
        life.replay.apply(Event.of(KEY, seq, "close"))

    assert (caught.value.seq, caught.value.expected) == (seq, 2)
    assert life.replay.state() == before


def test_a_key_opens_with_its_first_event() -> None:
    """A replay that begins in the middle of a history is refused: another one has the beginning."""
    with pytest.raises(HistoryOrderError, match="the beginning is missing"):
        Replay(KEY).apply(Event.of(KEY, 5, "close"))


def test_before_the_first_event_nothing_has_happened() -> None:
    """The rows of the end say so: they come after no event, and have no time."""
    assert Replay(KEY).finish() == [OutputRow(KEY, -1, None, "metric", ("writes_unanswered", 0))]


def test_a_history_lacks_kinds_of_events() -> None:
    """What is none is named, beside those that there are."""
    with pytest.raises(
        MalformedInputError, match=r"expected some of config, .*, unknown, .* got reads, writes$"
    ) as caught:
        Replay(KEY, lacks=frozenset({"writes", "expire", "reads"}))

    assert caught.value.field == "lacks"


def test_an_event_of_another_share_partition_is_refused() -> None:
    """A replay takes the events of one share partition."""
    with pytest.raises(MalformedInputError, match="expected an event of g-"):
        Replay(KEY).apply(Event.of(("h", *KEY[1:]), 0, "close"))


def test_time_does_not_go_back() -> None:
    """An event whose time is before the one ahead of it happens at the time of that one."""
    life = Life()
    life.fetch(50, 0, 4)
    life.fetch(20, 5, 9)
    life.fetch(0, 10, 14)

    assert [row.at_us for row in life.rows if row.kind == "acquisition"] == [50_000, 50_000, 50_000]
    assert life.metrics()["records_acquired"] == 15


# ---- locks, writes and their outcomes


def test_locks_expire_before_the_event_after_their_deadline() -> None:
    """A lock that is due expires with a write of its own, at the first instant at which it is due."""
    life = Life()
    life.fetch(0, 0, 4)

    assert life.fetch(LOCK_MS, 5, 5) == [("acquisition", 5, 5, "m1", 1)]
    rows = life.add("config", LOCK_MS + 500, {})

    assert rows == [("write", 0, 0, 0, 0, 7, ((0, 4, 0, 1),))]
    assert life.rows[-1].at_us == (LOCK_MS + 1) * 1000
    assert life.metrics()["locks_expired"] == 1


def test_locks_do_not_expire_before_an_answer_that_is_there() -> None:
    """A write's answer takes effect before locks that were due by then, unless it answers the write of one of them."""
    life = Life()
    life.fetch(0, 0, 4)
    life.fetch(0, 5, 9)
    life.acknowledge(1, 0, 4, 1)
    late = LOCK_MS + 1

    assert life.write(late, (0, 4, 2, 1), complete=5) == []
    assert life.write(late, (5, 9, 0, 1), start=5) == [("write", 1, 5, 0, 0, 7, ((5, 9, 0, 1),))]
    assert differences(life.rows) == []


def test_a_failed_write_rolls_back() -> None:
    """After a failed write the records are their member's again, whose answer has the error."""
    life = Life()
    life.fetch(0, 0, 4)
    life.acknowledge(1, 0, 4, 1, error="coordinator_not_available")

    life.write(2, (0, 4, 2, 1), complete=5, error="not_coordinator")

    assert differences(life.rows) == []
    assert life.acknowledge(3, 0, 4, 2) == [("write", 1, 0, 0, 0, 7, ((0, 4, 0, 1),))]


def test_a_write_without_an_answer_is_counted() -> None:
    """Until it has one."""
    life = Life()
    life.fetch(0, 0, 4)
    life.acknowledge(1, 0, 4, 1)

    assert life.metrics()["writes_unanswered"] == 1
    life.write(2, (0, 4, 2, 1), complete=5)
    assert life.metrics()["writes_unanswered"] == 0


def test_an_answer_that_does_not_fit_the_outcome_is_a_difference() -> None:
    """A member that was answered success, though its write has failed, is a difference."""
    life = Life()
    life.fetch(0, 0, 4)
    life.acknowledge(1, 0, 4, 1)

    life.write(2, (0, 4, 2, 1), complete=5, error="not_coordinator")

    assert differences(life.rows) == [("acknowledge", '{"error":null}', '{"error":"coordinator_not_available"}')]


def test_a_write_that_was_not_computed_is_a_difference() -> None:
    """A write with another head answers the one with the same batches; one that nothing resembles answers none."""
    life = Life()
    life.fetch(0, 0, 4)
    life.acknowledge(1, 0, 4, 2)

    life.write(2, (0, 4, 0, 1), start=3)
    life.write(2, (0, 4, 2, 1))

    (name, observed, computed), (_, _, nothing) = differences(life.rows)
    assert name == "write"
    assert observed.startswith('{"start_offset":3,')
    assert computed.startswith('{"start_offset":0,')
    assert nothing == "null"
    metrics = life.metrics()
    assert (metrics["writes"], metrics["differences"], metrics["writes_unanswered"]) == (1, 2, 0)


def test_writes_succeed_at_once_where_none_were_logged() -> None:
    """In a history that lacks writes the SPSO advances with the acknowledgement."""
    life = Life(lacks=frozenset({"write"}))
    life.fetch(0, 0, 4)
    life.acknowledge(1, 0, 4, 1)

    assert life.replay.partition is not None
    assert life.replay.partition.start_offset == 5


def test_an_error_implies_a_failed_write_where_none_were_logged() -> None:
    """In a history that lacks writes, an answer with an error that is no refusal says that the write has failed."""
    life = Life(lacks=frozenset({"write"}))
    life.fetch(0, 0, 4)
    life.acknowledge(1, 0, 4, 1, error="coordinator_not_available")

    assert differences(life.rows) == []
    assert life.metrics()["writes_failed"] == 1


# ---- fetches and acknowledgements


def test_what_was_acquired_otherwise_is_a_difference() -> None:
    """An acquisition with other ranges than the answer's is a difference with both sides."""
    life = Life()

    life.add(
        "fetch",
        0,
        {"fetch_offset": 0, "batches": (AppendedBatch(0, 4),)},
        {"acquired": (AcquiredRecords(0, 3, 1),)},
    )

    assert differences(life.rows) == [("fetch", '{"acquired":[[0,3,1]]}', '{"acquired":[[0,4,1]]}')]


def test_an_error_without_a_reason_is_a_difference() -> None:
    """A member that holds nothing has nothing that could fail as it leaves."""
    life = Life()

    life.add("close", 1, None, {"error": "unknown_server_error"})

    assert differences(life.rows) == [("close", '{"error":"unknown_server_error"}', '{"error":null}')]


def test_a_refusal_is_compared() -> None:
    """An acknowledgement that is refused is answered with its error; success is a difference."""
    life = Life()
    life.fetch(0, 0, 4)

    life.acknowledge(1, 5, 9, 1, error="invalid_request")
    assert differences(life.rows) == []

    life.acknowledge(1, 5, 9, 1)
    assert differences(life.rows) == [("acknowledge", '{"error":null}', '{"error":"invalid_request"}')]


def test_the_answer_says_how_long_locks_are() -> None:
    """The duration of locks in an answer is in force from that fetch on."""
    life = Life()
    read = {"fetch_offset": 0, "batches": (AppendedBatch(0, 4),)}
    life.add("fetch", 0, read, {"acquired": (AcquiredRecords(0, 4, 1),), "lock_ms": 5})

    assert life.add("config", 6, {})[0][0] == "write"


@pytest.mark.parametrize("kind", ["close", "disconnect"])
def test_a_closed_session_releases(kind: str) -> None:
    """A close and a lost connection release what the member holds."""
    life = Life()
    life.fetch(0, 0, 4)

    assert life.add(kind, 1) == [("write", 0, 0, 0, 0, 7, ((0, 4, 0, 1),))]


def test_a_fetch_reads_the_log_that_is_known() -> None:
    """A fetch without batches reads whole batches from its offset on, as many as fit, but at least one."""
    life = Life()
    life.add("log", 0, {"batches": (AppendedBatch(0, 4, bytes=100), AppendedBatch(5, 9, bytes=100))})
    life.add("log", 0, {"batches": (AppendedBatch(10, 14, bytes=100),)})

    assert life.add("fetch", 1, {"max_bytes": 200}) == [("acquisition", 0, 9, "m1", 1)]
    assert life.add("fetch", 1, {"max_bytes": 10}) == [("acquisition", 10, 14, "m1", 1)]
    assert life.add("fetch", 1, {"max_bytes": 10}) == []


def test_a_fetch_of_no_bytes_reads_nothing() -> None:
    """There may be records."""
    life = Life()
    life.add("log", 0, {"batches": (AppendedBatch(0, 4),)})

    assert life.add("fetch", 1, {"max_bytes": 0}) == []
    assert life.add("fetch", 1, {"max_bytes": 1}) == [("acquisition", 0, 4, "m1", 1)]


def test_a_fetch_may_have_read_no_more_than_the_first_offset() -> None:
    """An answer says up to where: 0 is a record, and below that is none."""
    life = Life()
    life.add("log", 0, {"batches": (AppendedBatch(0, 0), AppendedBatch(1, 4))})

    assert life.add("fetch", 1, {"fetch_offset": 0, "read_to": -1}, {"acquired": ()}) == []
    acquired = {"acquired": (AcquiredRecords(0, 0, 1),)}
    assert life.add("fetch", 2, {"fetch_offset": 0, "read_to": 0}, acquired) == [("acquisition", 0, 0, "m1", 1)]


def test_a_committed_read_ends_at_the_last_stable_offset() -> None:
    """With read_committed nothing is read of an open transaction, and an aborted one is archived, not acquired."""
    life = Life(is_read=False)
    life.add("config", 0, {"isolation": "read_committed"})
    life.add("initialize", 0, {"leader_epoch": 7}, NOTHING)
    life.add("log", 0, {"batches": (AppendedBatch(0, 4, producer_id=9, transactional=True),)})

    assert life.add("fetch", 1, {}, {"acquired": ()}) == []

    life.add("log", 2, {"batches": (AppendedBatch(5, 5, producer_id=9, control="abort"),)})
    life.add("fetch", 3, {}, {"acquired": (AcquiredRecords(5, 5, 1),)})
    assert differences(life.rows) == []


def test_the_log_start_moves() -> None:
    """Records below the log start are archived, and a fetch below it reads nothing but learns of it."""
    life = Life()
    life.fetch(0, 0, 4)

    life.add("log_start", 1, {"offset": 3})

    assert life.replay.partition is not None
    assert life.replay.partition.start_offset == 3


# ---- a share partition's life


def test_nothing_is_checked_before_the_state_is_read() -> None:
    """Events before the first read are counted, and make no rows; the same after a read without an answer."""
    logged = Replay(KEY, outputs=frozenset(OUTPUTS))
    for seq, kind in enumerate(("expire", "log_start")):
        assert logged.apply(Event.of(KEY, seq, kind, at_us=0, request={"offset": 3} if seq else None)) == []
    assert ("events_unchecked", 2) in [row.values for row in logged.finish()]
    life = Life(is_read=False)
    read = {"fetch_offset": 0, "batches": (AppendedBatch(0, 4),)}
    for _ in range(2):
        assert life.add("fetch", 0, read, {"acquired": (AcquiredRecords(0, 4, 1),)}) == []
        life.add("initialize", 0, {"leader_epoch": 7})

    assert life.metrics()["events_unchecked"] == 4


@pytest.mark.parametrize(
    ("kind", "request_"),
    [
        ("acknowledge", {"batches": (AcknowledgementBatch(0, 4, (1,)),)}),
        ("close", None),
        ("disconnect", None),
        ("dead_letter", {"first": 0, "last": 0, "delivery_count": 1, "cause": "client_reject"}),
        ("expire", None),
        ("fence", None),
        ("fetch", {"fetch_offset": 0, "batches": (AppendedBatch(0, 4),)}),
        ("initialize", {"leader_epoch": 7}),
        ("log_start", {"offset": 3}),
        ("write", {"start_offset": 0, "delivery_complete_count": 0, "state_epoch": 0, "leader_epoch": 7}),
    ],
)
def test_what_cannot_be_checked_is_counted(kind: str, request_: dict[str, Any] | None) -> None:
    """Before the state was read nothing can be, whatever happens; it is counted as an event of its kind, too."""
    life = Life(is_read=False)
    if kind == "write":
        request_ = {**(request_ or {}), "state_batches": ()}

    assert [row for row in life.add(kind, 1, request_) if row[0] != "initialization"] == []

    assert life.metrics() == {"events_unchecked": 1, f"events.{kind}": 1, "writes_unanswered": 0}


def test_a_new_leader_has_nothing_in_flight() -> None:
    """What the one before had acquired was in no state that another leader knows of."""
    life = Life()
    life.fetch(0, 0, 4)
    life.add("initialize", 1, {"leader_epoch": 8}, NOTHING)
    life.fetch(2, 0, 4)

    acquired = [row.values for row in life.rows if row.kind == "transition" and row.values[4] == "acquired"]
    assert [(before, after) for *_, before, after, _ in acquired] == [(None, 1), (None, 1)]


def test_an_initialization_makes_a_new_share_partition() -> None:
    """The state that was read is what the next share partition begins with; the old one's writes change nothing."""
    life = Life()
    life.fetch(0, 0, 4)
    life.acknowledge(1, 0, 4, 2)
    read = {"state_epoch": 3, "start_offset": 0, "state_batches": (StateBatch(0, 9, 2, 1),)}

    life.add("initialize", 2, {"leader_epoch": 8}, read)
    life.write(3, (0, 4, 0, 1))

    assert life.replay.partition is not None
    assert (life.replay.partition.start_offset, life.replay.partition.leader_epoch) == (10, 8)
    assert differences(life.rows) == []
    assert life.metrics()["writes_unanswered"] == 1


def test_a_new_share_partition_has_a_row() -> None:
    """It names the leader's epoch, and the epoch and the SPSO of the state if that was read."""
    life = Life()
    read = {"state_epoch": 3, "start_offset": 5, "state_batches": ()}
    life.add("initialize", 2, {"leader_epoch": 8}, read)
    life.add("initialize", 3, {"leader_epoch": 9}, {"error": "fenced_leader_epoch"})
    life.add("initialize", 4, {"leader_epoch": 10})

    rows = [(row.at_us, row.values) for row in life.rows if row.kind == "initialization"]
    assert rows[1:] == [(2_000, (8, 3, 5)), (3_000, (9, None, None)), (4_000, (10, None, None))]


def test_moves_of_the_spso_have_rows() -> None:
    """It moves with records that are done, with the log start, and to where a new share partition begins."""
    life = Life()
    life.fetch(1, 0, 9)
    life.acknowledge(2, 0, 3, 1)
    life.write(3, *((offset, offset, 2, 1) for offset in range(4)), complete=4)  # a part of a batch
    life.add("log_start", 5, {"offset": 6})
    life.add("initialize", 6, {"leader_epoch": 8}, {"state_epoch": 3, "start_offset": 2, "state_batches": ()})
    life.add("initialize", 7, {"leader_epoch": 9}, {"error": "fenced_leader_epoch"})

    rows = [(row.at_us, *row.values) for row in life.rows if row.kind == "start_offset"]
    assert rows == [(0, 0), (3_000, 4), (5_000, 6), (6_000, 2)]


def test_the_start_of_a_log_is_its_first_offset() -> None:
    """As long as nothing says otherwise."""
    life = Life(is_read=False)
    life.add("config", 0, {"auto_offset_reset": "earliest"})
    life.add("initialize", 0, {}, {**NOTHING, "start_offset": -1})

    assert life.replay.partition is not None
    assert life.replay.partition.start_offset == 0


@pytest.mark.parametrize(("reset", "start"), [("earliest", 2), ("latest", 10)])
def test_without_state_it_starts_where_the_config_says(reset: str, start: int) -> None:
    """With nothing persisted, earliest is the log start, and latest the log end, at that moment."""
    life = Life(is_read=False)
    life.add("config", 0, {"auto_offset_reset": reset})
    life.add("log", 0, {"batches": (AppendedBatch(0, 9),)})
    life.add("log_start", 0, {"offset": 2})
    life.add("initialize", 0, {}, {**NOTHING, "start_offset": -1})

    assert life.replay.partition is not None
    assert life.replay.partition.start_offset == start


def test_a_start_by_duration_has_to_be_known() -> None:
    """Where by_duration begins does not follow from a history: without it the event is refused."""
    life = Life(is_read=False)
    life.add("config", 0, {"auto_offset_reset": "by_duration:PT1H"})

    with pytest.raises(MalformedInputError, match="by_duration") as caught:
        life.add("initialize", 0, {}, {**NOTHING, "start_offset": -1})

    assert caught.value.field == "request.reset_offset"


def test_config_before_and_after_a_read() -> None:
    """Settings and profile are those of the share partition that is read next; some change while it runs."""
    life = Life(is_read=False)
    life.add("config", 0, {"profile": "kafka-4.2", "delivery_count_limit": 9, "leader_epoch": 4})
    life.add("initialize", 0, {}, NOTHING)
    life.add("config", 0, {"profile": "kafka-4.3", "delivery_count_limit": 3, "record_lock_duration_ms": 77})
    partition = life.replay.partition

    assert partition is not None
    assert (partition.profile.name, partition.leader_epoch) == ("kafka-4.2", 4)
    assert (partition.config.delivery_count_limit, partition.config.record_lock_duration_ms) == (9, 77)


@pytest.mark.parametrize("is_running", [False, True])
def test_a_dead_letter_is_answered(is_running: bool) -> None:  # noqa: FBT001 - a parameter
    """A rejected record goes to the queue after its write, and is archived with its answer."""
    life = Life(profile=KAFKA_4_4, is_read=is_running)
    life.add("config", 0, {"dlq_topic": "dlq"})
    if not is_running:
        life.add("initialize", 0, {"leader_epoch": 7}, NOTHING)
    life.fetch(0, 0, 0)
    life.acknowledge(1, 0, 0, 3)
    letter = {"first": 0, "last": 0, "delivery_count": 1, "cause": "client_reject"}

    rows = life.write(2, (0, 0, 3, 1), complete=0)
    assert rows == [("dead_letter", 0, 0, 1, "client_reject")]
    assert life.add("dead_letter", 3, letter)[0][0] == "write"
    assert life.add("dead_letter", 3, letter) == [
        ("difference", "dead_letter", '{"first":0,"last":0,"delivery_count":1,"cause":"client_reject"}', "null")
    ]


def test_a_queue_that_was_not_logged_answers_at_once() -> None:
    """The record is archived with the write of its rejection: another write follows, and nothing waits."""
    life = Life(profile=KAFKA_4_4, lacks=frozenset({"dead_letter"}))
    life.add("config", 0, {"dlq_topic": "dlq"})
    life.add("initialize", 0, {"leader_epoch": 7}, NOTHING)
    life.fetch(0, 0, 0)
    life.acknowledge(1, 0, 0, 3)

    rows = life.write(2, (0, 0, 3, 1), complete=0)

    assert [kind for kind, *_ in rows] == ["dead_letter", "write"]
    assert life.metrics()["dead_letters"] == 1


def test_a_release_without_a_dead_letter_queue_has_none() -> None:
    """Whatever the settings say, before the state is read or after that: what is rejected is archived at once."""
    life = Life(profile=KAFKA_4_3, is_read=False)
    life.add("config", 0, {"dlq_topic": "dlq"})
    life.add("initialize", 0, {"leader_epoch": 7}, NOTHING)
    life.add("config", 0, {"dlq_topic": "dlq", "delivery_count_limit": 3})
    life.fetch(0, 0, 4)

    assert life.acknowledge(1, 0, 4, 3) == [("write", 0, 0, 5, 0, 7, ((0, 4, 4, 1),))]


# ---- rows


def test_transitions_say_from_where_to_where() -> None:
    """A transition has the states before and after; null before a record is in flight, and after it was passed."""
    life = Life()
    life.fetch(0, 0, 4)
    life.acknowledge(1, 0, 4, 1)
    life.write(2, (0, 4, 2, 1), complete=5)

    assert [
        (first, last, cause, before, after)
        for first, last, _, _, cause, before, after, _ in (row.values for row in life.rows if row.kind == "transition")
    ] == [
        (0, 4, "acquired", None, 1),
        (0, 4, "accepted", 1, 2),
        (0, 4, "confirmed", 2, 2),
        (0, 4, "passed", 2, None),
    ]


def test_only_the_outputs_that_are_asked_for_are_made() -> None:
    """A replay without outputs makes no rows."""
    replay = Replay(KEY, outputs=frozenset())
    rows = replay.apply(Event.of(KEY, 0, "initialize", at_us=0, response=NOTHING))
    rows += replay.finish()

    assert rows == []


def test_the_snapshot_is_the_share_partition_at_the_end() -> None:
    """The row of the snapshot has the share partition as the replay leaves it."""
    life = Life()
    life.fetch(0, 0, 4)
    (row,) = (row for row in life.replay.finish() if row.kind == "snapshot")

    assert life.replay.partition is not None
    assert Snapshot.from_json(row.values[0]) == life.replay.partition.snapshot()


@pytest.mark.parametrize(
    ("batches", "version", "is_renew"),
    [
        ([(3, 4, (1,)), (0, 1, (1,))], 2, None),
        ([(0, 4, ())], 2, None),
        ([(0, 4, (1, 1))], 2, None),
        ([(0, 4, (5,))], 2, None),
        ([(0, 4, (4,))], 1, True),
        ([(0, 4, (4,))], 2, None),
    ],
)
def test_a_broker_refuses_what_no_share_partition_sees(
    batches: list[tuple[int, int, tuple[int, ...]]],
    version: int,
    is_renew: bool | None,  # noqa: FBT001 - a parameter
) -> None:
    """What KafkaApis does not let pass is answered with invalid_request, and changes nothing (broker log, 3.5)."""
    life = Life()
    life.fetch(0, 0, 4)
    before = life.replay.snapshot()
    request = {"batches": tuple(AcknowledgementBatch(*each) for each in batches), "version": version}
    if is_renew is not None:
        request["is_renew"] = is_renew

    assert life.add("acknowledge", 0, request, {"error": "invalid_request"}) == []
    assert life.add("acknowledge", 0, request, {})[0][:2] == ("difference", "acknowledge")
    assert life.replay.snapshot() == before


def test_a_broker_lets_a_request_pass_that_renews() -> None:
    """A renewal that says so reaches the share partition, and moves the lock."""
    life = Life()
    life.fetch(0, 0, 4)
    batches = (AcknowledgementBatch(0, 4, (4,)),)

    assert life.add("acknowledge", LOCK_MS - 1, {"batches": batches, "version": 2, "is_renew": True}, {}) == []
    assert life.add("config", LOCK_MS + 1, {}) == []
