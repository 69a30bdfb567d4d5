"""What events mean to the share partition of a replay: times, verdicts, dead letters, and what fetches have read."""

from __future__ import annotations

from typing import Any, Final

import pytest

from sharestate import AcknowledgementBatch, AcquiredRecords, StateBatch
from sharestate.errors import MalformedInputError
from sharestate.history import OUTPUTS, AppendedBatch, Event, OutputRow, Replay
from sharestate.history.rows import DEFAULT_OUTPUTS
from sharestate.json_lines import read_json
from tests.support.replayed_life import CONFIG, KEY, LOCK_MS, NOTHING

EVERYTHING: Final = frozenset(OUTPUTS)
FETCH: Final = {"fetch_offset": 0, "batches": (AppendedBatch(0, 4),)}
REJECT: Final = {"batches": (AcknowledgementBatch(0, 0, (3,)),)}
LETTER: Final = {"first": 0, "last": 0, "delivery_count": 1, "cause": "client_reject"}


class History:
    """A history of a member's requests that is replayed as it is made, of a release with dead-letter queues."""

    def __init__(self, *lacks: str, outputs: frozenset[str] = EVERYTHING, **read: Any) -> None:  # noqa: ANN401 - its fields
        """Begin with the state that was *read*, in which nothing is in flight unless it says so."""
        self.replay = Replay(KEY, config=CONFIG, lacks=frozenset(lacks), outputs=outputs)
        self.rows: list[OutputRow] = []
        self.add("config", 0, {"dlq_topic": "dlq"})
        self.add("initialize", 0, {"leader_epoch": 7}, NOTHING | read)

    def add(
        self, kind: str, at_ms: int, request: dict[str, Any] | None = None, response: dict[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
        """Replay the next event; return kind and values of its rows but those of transitions and of the SPSO."""
        seq, at_us = self.replay.seq + 1, at_ms * 1000
        event = Event.of(KEY, seq, kind, at_us=at_us, member_id="m1", request=request, response=response)
        rows = self.replay.apply(event)
        self.rows += rows
        return [(row.kind, *row.values) for row in rows if row.kind not in {"transition", "start_offset"}]

    def write(self, at_ms: int, *batches: tuple[int, int, int, int], complete: int = 0) -> list[tuple[Any, ...]]:
        """Answer a write."""
        request = {"start_offset": 0, "delivery_complete_count": complete, "state_epoch": 0, "leader_epoch": 7}
        return self.add("write", at_ms, request | {"state_batches": tuple(StateBatch(*each) for each in batches)}, {})

    def transitions(self) -> list[tuple[Any, ...]]:
        """Return first and last offset, the cause, and the states before and after, of all transitions."""
        values = [row.values for row in self.rows if row.kind == "transition"]
        return [(first, last, cause, before, after) for first, last, _, _, cause, before, after, _ in values]

    def metrics(self) -> dict[str, int]:
        """Return the counts."""
        return {row.values[0]: row.values[1] for row in self.replay.finish() if row.kind == "metric"}


# ---- times


@pytest.mark.parametrize(
    ("kind", "request_"),
    [
        ("fetch", {"read_to": -1}),
        ("config", {"delivery_count_limit": 5}),
        ("config", None),
        ("log", {"batches": (AppendedBatch(0, 4),)}),
        ("log_start", {"offset": 0}),
    ],
)
def test_locks_end_by_the_times_of_commands(kind: str, request_: dict[str, Any] | None) -> None:
    """Other events say nothing of a leader's clock, nor does a fetch that has read nothing: it came to no acquire."""
    history = History()
    history.add("fetch", 0, FETCH)
    history.add(kind, 5_000, request_)

    assert history.add("expire", LOCK_MS) == [("difference", "expire", '{"now_ms":1000}', '{"due_ms":1001}')]
    assert history.add("expire", LOCK_MS + 1) == [("write", 0, 0, 0, 0, 7, ((0, 4, 0, 1),))]
    assert (history.metrics()["locks_expired"], history.metrics()["differences"]) == (1, 1)


@pytest.mark.parametrize(("at_ms", "shown_ms"), [(LOCK_MS, LOCK_MS), (LOCK_MS + 1, 0), (LOCK_MS + 5, 0)])
def test_a_snapshot_has_no_lock_that_is_due(at_ms: int, shown_ms: int) -> None:
    """It has the time of the last event, unless a lock should have ended by then: then that of the last command."""
    history = History()
    history.add("fetch", 0, FETCH)
    history.add("config", at_ms, {})

    snapshot = history.replay.snapshot()
    assert snapshot is not None
    assert snapshot.now_ms == shown_ms


# ---- what an event has to say


@pytest.mark.parametrize(
    ("kind", "request_", "field"),
    [
        ("log", {}, "batches"),
        ("log_start", {}, "offset"),
        ("acknowledge", {}, "batches"),
        ("verdict", {}, "verdict"),
        ("config", {"profile": "kafka-1.0"}, "kafka-1.0"),
        ("fetch", {**FETCH, "mode": "at_random"}, "at_random"),
        ("write", {"start_offset": 0}, "delivery_complete_count"),
        ("dead_letter", {**LETTER, "cause": "boredom"}, "boredom"),
    ],
)
def test_what_is_missing_or_has_no_such_name_is_named(kind: str, request_: dict[str, Any], field: str) -> None:
    """An event that was made by hand is refused, and counts as none."""
    history = History()

    with pytest.raises(MalformedInputError, match="missing, or an unknown name") as caught:
        history.add(kind, 1, request_)

    assert caught.value.field == field
    assert history.replay.seq == 1


# ---- fetches


def test_what_other_partitions_gave_is_not_acquired_again() -> None:
    """The limit of records is that of a fetch as a whole: four are left of ten, and each batch is taken whole."""
    history = History()
    batches = {"fetch_offset": 0, "batches": (AppendedBatch(0, 4), AppendedBatch(5, 9))}

    assert history.add("fetch", 0, {**batches, "max_records": 10, "acquired_by_others": 6}) == [
        ("acquisition", 0, 4, "m1", 1)
    ]


@pytest.mark.parametrize(
    ("locks", "request_", "is_known"),
    [(5, {}, True), (9, {"max_records": 0}, True), (9, {"max_bytes": 0}, True), (9, {"max_records": 1}, False)],
    ids=["no room", "no records", "no bytes", "a record"],
)
def test_a_fetch_that_can_read_nothing_needs_no_log(locks: int, request_: dict[str, Any], is_known: bool) -> None:  # noqa: FBT001 - a parameter
    """Where the log was not recorded, the share partition is known as long as nothing can have been read of it."""
    history = History("log", "expire")
    history.add("config", 0, {"max_record_locks": locks})
    history.add("initialize", 0, {"leader_epoch": 7}, NOTHING)
    history.add("fetch", 0, FETCH)

    assert history.add("fetch", 1, request_) == []

    assert (history.replay.partition is not None) == is_known
    assert history.metrics().get("events_unchecked", 0) == (not is_known)


def test_a_fetch_from_below_the_log_start_learns_of_it() -> None:
    """It reads nothing; that the log start has moved was not told to the share partition before."""
    history = History("expire")
    history.add("log", 0, {"batches": (AppendedBatch(0, 4), AppendedBatch(5, 9))})
    moved = Event.of(KEY, 3, "log_start", at_us=0, request={"offset": 5})._replace(inferred=True)
    assert history.replay.apply(moved) == []
    partition = history.replay.partition
    assert partition is not None
    assert partition.start_offset == 0

    assert history.add("fetch", 1, {}, {"acquired": ()}) == []
    assert partition.start_offset == 5
    assert history.add("fetch", 2, {}, {"acquired": (AcquiredRecords(5, 9, 1),)}) == [("acquisition", 5, 9, "m1", 1)]


def test_a_state_has_of_the_log_what_is_still_to_be_read() -> None:
    """What the share partition has passed is forgotten as it fetches."""
    history = History("write", "expire")
    history.add("log", 0, {"batches": (AppendedBatch(0, 4), AppendedBatch(5, 9))})
    history.add("fetch", 0, {"max_records": 1})
    history.add("acknowledge", 1, {"batches": (AcknowledgementBatch(0, 4, (1,)),)})
    history.add("fetch", 2, {"max_records": 1})

    log = read_json(history.replay.state())["log"]

    assert log["begin"] == 5
    assert [batch[:2] for batch in log["batches"]] == [[5, 9]]


# ---- acknowledgements


def test_locks_that_were_renewed_before_a_refusal_have_rows() -> None:
    """They stay renewed, though the acknowledgement is refused for records that come later."""
    history = History()
    history.add("fetch", 0, FETCH)
    batches = (AcknowledgementBatch(0, 4, (4,)), AcknowledgementBatch(7, 9, (1,)))

    assert history.add("acknowledge", 1, {"batches": batches}, {"error": "invalid_request"}) == []
    assert history.transitions() == [(0, 4, "acquired", None, 1), (0, 4, "renewed", 1, 1)]


# ---- leaders


def test_a_leader_answers_for_its_own_writes_only() -> None:
    """What the one before it has answered to a member is not compared with the outcome of another's write."""
    history = History()
    history.add("fetch", 0, FETCH)
    history.add("acknowledge", 1, {"batches": (AcknowledgementBatch(0, 4, (2,)),)}, {"error": "not_coordinator"})
    history.add("initialize", 2, {"leader_epoch": 7}, NOTHING)
    history.add("fetch", 2, FETCH)
    history.add("close", 3)

    assert history.write(4, (0, 4, 0, 1)) == []
    assert history.metrics()["writes_unanswered"] == 1


def test_records_that_were_on_their_way_to_the_queue_are_handed_over_again() -> None:
    """A state says that they were, and how often they were delivered; the cause follows from that (rule 21.4)."""
    batches = (StateBatch(0, 0, 3, 1), StateBatch(1, 1, 3, 2))
    history = History(state_batches=batches)

    rows = [(row.kind, *row.values) for row in history.rows if row.kind == "dead_letter"]
    assert rows == [
        ("dead_letter", 0, 0, 1, "client_reject"),
        ("dead_letter", 1, 1, 2, "delivery_count_exceeded"),
    ]
    assert history.transitions() == [(0, 0, "read", None, 3), (1, 1, "read", None, 3)]
    assert history.add("dead_letter", 1, LETTER)[0][:3] == ("write", 0, 0)


def test_an_answer_of_the_queue_to_the_leader_before_is_none_to_this_one() -> None:
    """A leader that has read no record on its way to the queue waits for none."""
    history = History()
    history.add("fetch", 0, {"fetch_offset": 0, "batches": (AppendedBatch(0, 0),)})
    history.add("acknowledge", 1, REJECT)
    assert history.write(2, (0, 0, 3, 1)) == [("dead_letter", 0, 0, 1, "client_reject")]
    history.add("initialize", 3, {"leader_epoch": 7}, NOTHING)

    ((kind, name, _, computed),) = history.add("dead_letter", 4, LETTER)
    assert (kind, name, computed) == ("difference", "dead_letter", "null")


# ---- dead letters


def test_the_queue_is_given_records_where_no_transitions_are_asked_for() -> None:
    """A replay that lists no transitions hands over, writes and counts the same."""
    listed, others = History(), History(outputs=DEFAULT_OUTPUTS)
    for history in (listed, others):
        history.add("fetch", 0, {"fetch_offset": 0, "batches": (AppendedBatch(0, 0),)})
        history.add("acknowledge", 1, REJECT)
        assert history.write(2, (0, 0, 3, 1)) == [("dead_letter", 0, 0, 1, "client_reject")]
        assert history.add("dead_letter", 3, LETTER) == [("write", 1, 0, 1, 0, 7, ((0, 0, 4, 1),))]

    assert [row for row in listed.rows if row.kind != "transition"] == others.rows
    assert listed.metrics() == others.metrics()


def test_a_lock_expires_before_the_answer_of_the_queue_to_it() -> None:
    """A history that has answers of the queue alone shows by them that locks have ended."""
    history = History("expire", "write", state_batches=(StateBatch(0, 0, 0, 1),))
    request = {"fetch_offset": 0, "batches": (AppendedBatch(0, 0),)}
    history.add("fetch", 0, request, {"acquired": (AcquiredRecords(0, 0, 2),)})

    rows = history.add("dead_letter", 2 * LOCK_MS, LETTER | {"delivery_count": 2, "cause": "delivery_count_exceeded"})

    assert [kind for kind, *_ in rows] == ["write", "dead_letter", "write"]
    assert history.metrics()["locks_expired"] == 1


def test_an_answer_of_the_queue_ends_no_lock_that_it_does_not_need() -> None:
    """What it answers is there: records that another request holds by then are not looked at."""
    history = History("expire", "write", state_batches=(StateBatch(0, 0, 3, 1),))
    history.add("fetch", 0, {"fetch_offset": 1, "batches": (AppendedBatch(1, 4),)})

    assert [kind for kind, *_ in history.add("dead_letter", 2 * LOCK_MS, LETTER)] == ["write"]
    assert history.metrics().get("locks_expired", 0) == 0
