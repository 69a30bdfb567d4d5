"""Explanations of records: what happened to them, and why they are or are not deliverable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sharestate import AcknowledgementBatch, AcquiredRecords, Cause, RecordState, StateBatch
from sharestate.explain import Explanation, Happening, Outlook, PartitionLife, Reason, StoredReason, explain_record
from sharestate.explain.miscounts import QUIRKS
from sharestate.explain.sentences import CAUSE_SENTENCES, HAPPENING_SENTENCES, REASONS
from sharestate.history import AppendedBatch, Event
from tests.support.explanations import reasons_of, what_of
from tests.support.recorded_histories import KEY, LACKS, exchanges, history_of, recorded_runs

VECTORS = Path(__file__).parents[2] / "data" / "vectors"

REFUSED_STATES = {"ex-4.1-a", "v22-13-init-acquired"}
"""Kafka leaves half of a state that it could not read; the library keeps nothing of it (rule 24.2)."""

CRASHES = {"ex-19.B7", "ex-19.B7-timeout"}
"""Kafka's advance throws; that of the library does not (rule 24.2, B7)."""

RECORDED = [
    path
    for folder in ("found", "section19", "section22")
    for path in sorted((VECTORS / folder).glob("*.jsonl"))
    if '"raised"' not in path.read_text() and path.stem not in REFUSED_STATES | CRASHES
]


Ranges = Iterable[tuple[int, int]]


class Story:
    """A small history, of which the outcome is stated by the rules; times in seconds."""

    def __init__(self, *, start: int = 0, state: Iterable[tuple[int, int, int, int]] = (), **config: int | str) -> None:
        """Begin with settings, of which the limit is 2 deliveries and a lock 10 s, and with a state that is read."""
        self.events: list[Event] = []
        settings = {"delivery_count_limit": 2, "record_lock_duration_ms": 10_000, "profile": "kafka-4.4", **config}
        self.add("config", 0, settings)
        self.lead(0, start, state)

    def add(
        self,
        kind: str,
        at_s: float,
        request: dict[str, Any] | None = None,
        response: dict[str, Any] | None = None,
        member: str | None = None,
    ) -> None:
        """Add an event."""
        at_us = int(at_s * 10**6)
        seq = len(self.events)
        self.events.append(Event.of(KEY, seq, kind, at_us=at_us, member_id=member, request=request, response=response))

    def lead(self, at_s: float, start: int, state: Iterable[tuple[int, int, int, int]] = (), epoch: int = 1) -> None:
        """Have a leader read a state."""
        batches = tuple(StateBatch(*batch) for batch in state)
        read = {"state_epoch": 1, "start_offset": start, "state_batches": batches}
        self.add("initialize", at_s, {"leader_epoch": epoch}, read)

    def log(self, *batches: AppendedBatch) -> None:
        """Append to the log."""
        self.add("log", 0, {"batches": batches})

    def fetch(
        self,
        at_s: float,
        member: str,
        batches: Iterable[tuple[int, int]],
        acquired: Iterable[tuple[int, int, int]] = (),
    ) -> None:
        """Have a member fetch *batches* of the log."""
        read = tuple(AppendedBatch(*batch) for batch in batches)
        request = {"fetch_offset": read[0].first_offset, "batches": read}
        self.add("fetch", at_s, request, {"acquired": tuple(AcquiredRecords(*each) for each in acquired)}, member)

    def acknowledge(  # noqa: PLR0913 - what an acknowledgement says
        self, at_s: float, member: str, first: int, last: int, type_: int, error: str | None = None
    ) -> None:
        """Have a member acknowledge a range."""
        request = {"batches": (AcknowledgementBatch(first, last, (type_,)),)}
        self.add("acknowledge", at_s, request, {} if error is None else {"error": error}, member)

    def write(self, at_s: float, start: int, count: int, *batches: tuple[int, int, int, int], error: str = "") -> None:
        """Answer a write."""
        request = {
            "start_offset": start,
            "delivery_complete_count": count,
            "state_epoch": 1,
            "leader_epoch": 1,
            "state_batches": tuple(StateBatch(*batch) for batch in batches),
        }
        self.add("write", at_s, request, {"error": error} if error else {})

    def wait(self, at_s: float) -> None:
        """Let time pass."""
        self.add("config", at_s, {})

    def explain(self, offset: int, lacks: Iterable[str] = ()) -> Explanation:
        """Explain the record at *offset*."""
        return explain_record(self.events, KEY, offset, lacks=LACKS | frozenset(lacks))


# ---- beside Kafka's recorded conversations


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_records_stand_where_they_stood_at_kafka(path: Path) -> None:
    """State, delivery count, owner and deadline are those of Kafka's class at the end of the conversation."""
    events = history_of(path)
    state = exchanges(path)[-1][1]["state"]

    for first, last, (name, count, member, deadline_ms, _) in recorded_runs(state):
        for offset in {first, last}:
            explanation = explain_record(events, KEY, offset, lacks=LACKS)
            standing = explanation.standing
            until_us = None if deadline_ms is None else deadline_ms * 1000

            assert standing[:4] == (RecordState[name], count, member, until_us)
            assert (explanation.differences, explanation.start_offset) == (0, state["start_offset"])


@pytest.mark.parametrize(
    ("name", "reason", "offset"),
    [
        ("found/found-stall-in-a-full-window", Reason.STALLED_IN_WINDOW, 15),
        ("found/found-stall-after-the-log-start", Reason.STALLED_BELOW_LOG_START, 15),
        ("found/found-stall-after-compaction", Reason.STALLED_COMPACTED, 15),
        ("found/found-stall-after-an-aborted-transaction", Reason.STALLED_ABORTED, 11),
    ],
)
def test_a_stall_of_a_full_share_partition_is_named(name: str, reason: Reason, offset: int) -> None:
    """Where Kafka has said that nothing can be acquired, the next record has the stall by its name."""
    path = VECTORS / f"{name}.jsonl"
    refused = [response["result"] for request, response in exchanges(path) if request["op"] == "can_acquire"]
    explanation = explain_record(history_of(path), KEY, offset, lacks=LACKS)

    assert refused[-1] is False
    assert reasons_of(explanation) == [Reason.NO_ROOM, reason]
    assert explanation.standing.verdict is Outlook.STALLED
    assert [finding.reason for finding in explanation.start_findings] == [reason]


def test_a_stall_in_a_gap_below_the_log_start_is_named() -> None:
    """Kafka's next fetch offset is below the log start: no record is reached, whatever room there is (F5)."""
    path = VECTORS / "found/found-stall-in-a-gap-below-the-log-start.jsonl"
    events = [event for event in history_of(path) if event.request != {"offset": 15}]  # that is the end of the stall

    explanation = explain_record(events, KEY, 20, lacks=LACKS)

    assert (explanation.start_offset, explanation.standing.verdict) == (14, Outlook.STALLED)
    assert reasons_of(explanation) == [Reason.NEW, Reason.STALLED_GAP_BELOW_LOG_START]
    assert explanation.standing.findings[1].facts["next_offset"] == 0


def test_a_lock_that_expires_during_a_write_that_fails_is_bug_b15() -> None:
    """Kafka archives the records in memory only: the life says so, with the write and its error."""
    explanation = explain_record(history_of(VECTORS / "section19/ex-19.B15.jsonl"), KEY, 3, lacks=LACKS)
    accepted, expired, failed = explanation.moments[-3:]

    assert what_of(explanation) == [
        *("acquired", "lock expired", "confirmed", "acquired", "accepted", "lock expired", "rolled back")
    ]
    assert accepted.text == "m1 accepted it: ACKNOWLEDGED, to be persisted by write 1."
    assert expired.text == "Its lock expired while a write of it was pending: that matters only if the write fails."
    assert failed.text.startswith("Write 1 failed (coordinator_not_available) after its lock had expired")
    assert failed.text.endswith("in the leader's memory only (B15).")


def test_terminal_records_at_the_end_of_the_gap_window_are_bug_b17() -> None:
    """The SPSO waits for something beyond the window, for which there is room."""
    path = VECTORS / "section19/ex-19.B17.jsonl"
    waits = {
        finding.reason
        for count in range(1, len(history_of(path)) + 1)
        for finding in explain_record(history_of(path)[:count], KEY, 29, lacks=LACKS).start_findings
    }

    assert Reason.WAITS_AT_WINDOW_END in waits


def test_a_stall_at_a_record_below_the_log_start_is_bug_f8() -> None:
    """A fetch has split a log batch that begins below the SPSO: what it left there is out of range for every fetch."""
    story = Story()
    story.log(AppendedBatch(0, 9), AppendedBatch(10, 11), AppendedBatch(12, 19))
    story.fetch(1, "m1", [(0, 9)], [(0, 9, 1)])
    story.add("log_start", 2, {"offset": 15})
    request = {"fetch_offset": 15, "batches": (AppendedBatch(12, 19),), "mode": "record_limit", "max_records": 1}
    story.add("fetch", 3, request, {"acquired": (AcquiredRecords(12, 12, 1),)}, "m2")
    story.wait(30)
    explained = [story.explain(offset, lacks=["write"]) for offset in (13, 16, 20)]
    (finding,) = explained[0].start_findings

    assert [each.differences for each in explained] == [0, 0, 0]
    assert [each.standing.verdict for each in explained] == [Outlook.STALLED] * 2 + [Outlook.LATER]
    assert finding.text == (
        "Stalled by a bug of Kafka (F8): the record that is fetched next, 13, lies below the log start, 15, where "
        "every fetch is out of range; and the SPSO, 15, is not below it, so that nothing moves. It ends when another "
        "leader takes over, or after the last member has left the group; for a while also when the log start passes "
        "all that is in flight."
    )


# ---- lives that the rules state


def test_a_life_in_plain_words() -> None:
    """Each change has its time, who has made it, and what it has led to, up to the limit."""
    story = Story()
    story.log(AppendedBatch(0, 9))
    story.fetch(1, "m1", [(0, 9)], [(0, 9, 1)])
    story.fetch(20, "m2", [(0, 9)], [(0, 9, 2)])
    story.acknowledge(21, "m2", 0, 9, 2)

    explanation = story.explain(3, lacks=["write"])

    lines = [line for line in explanation.lines() if line.startswith("1970")]
    assert [line[:38].split() for line in lines] == [
        ["1970-01-01T00:00:00.000Z"],
        ["1970-01-01T00:00:01.000Z", "+1", "s"],
        ["1970-01-01T00:00:11.001Z", "+10.001", "s"],
        ["1970-01-01T00:00:11.001Z", "+0", "s"],
        ["1970-01-01T00:00:20.000Z", "+8.999", "s"],
        ["1970-01-01T00:00:21.000Z", "+1", "s"],
        ["1970-01-01T00:00:21.000Z", "+0", "s"],
        ["1970-01-01T00:00:21.000Z", "+0", "s"],
    ]
    assert [line[40:] for line in lines] == [
        "The log has it, in the batch 0-9.",
        "m1 acquired it: delivery 1 of 2, locked until 1970-01-01T00:00:11.000Z (10 s later).",
        "The lock of m1 expired: AVAILABLE, to be persisted by write 0.",
        "Write 0 succeeded: AVAILABLE is persisted.",
        "m2 acquired it: delivery 2 of 2, locked until 1970-01-01T00:00:30.000Z (10 s later).",
        "m2 released it after delivery 2 of 2, the last one: ARCHIVED, to be persisted by write 1.",
        "Write 1 succeeded: ARCHIVED is persisted.",
        "The SPSO passed it, and is 10: it was ARCHIVED.",
    ]
    assert explanation.lines()[:2] == [
        (
            "Deliverable at the last event, 1970-01-01T00:00:21.000Z: never: ARCHIVED at the limit after 2 deliveries, "
            "1 lost to an expired lock of m1, 1 released by m2."
        ),
        "  The SPSO is 10, and has passed it.",
    ]


@pytest.mark.parametrize(("at_s", "how"), [(15, "The lock of m1 expired"), (9, "The share session of m1 closed")])
def test_how_the_last_delivery_was_lost(at_s: int, how: str) -> None:
    """A session that closes after the deadline finds a lock that has expired before (rule 24.5)."""
    story = Story(delivery_count_limit=1)
    story.fetch(1, "m1", [(0, 0)], [(0, 0, 1)])
    story.add("close", at_s, member="m1")

    (moment,) = (each for each in story.explain(0).moments if each.what is Cause.ARCHIVED_AT_LIMIT)

    assert moment.facts["lost_by"] == how


def test_a_refused_acknowledgement_is_part_of_the_life() -> None:
    """It changes nothing, and says who has tried what."""
    story = Story()
    story.fetch(1, "m1", [(0, 9)], [(0, 9, 1)])
    story.acknowledge(2, "m2", 0, 4, 1, "invalid_record_state")

    assert what_of(story.explain(4)) == ["acquired", "acknowledgement refused"]
    assert story.explain(4).moments[-1].text == ("m2 acknowledged it (ACCEPT), and was refused: invalid_record_state.")
    assert what_of(story.explain(5)) == ["acquired"]


def test_a_dead_letter_says_where_it_went() -> None:
    """A rejected record is ARCHIVING until the queue, which is named, has answered (rule 21)."""
    story = Story(dlq_topic="orders-dlq")
    story.fetch(1, "m1", [(0, 0)], [(0, 0, 1)])
    story.acknowledge(2, "m1", 0, 0, 3)
    story.write(3, 0, 0, (0, 0, 3, 1))
    waiting = story.explain(0)
    story.add("dead_letter", 4, {"first": 0, "last": 0, "delivery_count": 1, "cause": "client_reject"}, {})
    answered = story.explain(0)

    assert reasons_of(waiting) == [Reason.ARCHIVING]
    assert waiting.moments[-1].text == "It was handed to the dead-letter queue in the topic orders-dlq (client_reject)."
    assert what_of(answered)[1:4] == ["rejected", "confirmed", "handed to the dead-letter queue"]
    assert "dead-lettered" in what_of(answered)


def test_a_read_that_fails_is_followed_by_the_one_that_does_not() -> None:
    """A leader that had no state has one later on, even if that says nothing of the record."""
    story = Story()
    story.add("initialize", 1, {"leader_epoch": 2}, {"error": "coordinator_not_available"})
    story.lead(2, 0, epoch=2)

    assert what_of(story.explain(3)) == ["state not read", "not read"]


def test_a_record_is_passed_once() -> None:
    """Leaders that read an SPSO above it change nothing for it."""
    story = Story()
    story.lead(1, 10, epoch=2)
    story.lead(2, 20, epoch=3)

    assert what_of(story.explain(3)) == ["read as passed"]


def test_the_log_says_which_transaction_a_record_is_of() -> None:
    """A record and a marker name the producer of their transaction."""
    story = Story()
    story.log(
        AppendedBatch(0, 4),
        AppendedBatch(5, 9, 1, transactional=True),
        AppendedBatch(10, 10, 1, transactional=True, control="commit"),
    )

    assert [story.explain(offset).moments[0].text for offset in (0, 5, 10)] == [
        "The log has it, in the batch 0-4.",
        "The log has it, in the batch 5-9, in a transaction of producer 1.",
        "The log has it, in the batch 10-10, the commit marker of producer 1.",
    ]


def test_a_new_leader_forgets_what_was_not_persisted() -> None:
    """An acquisition is not persisted: for the new leader the record was never delivered."""
    story = Story()
    story.log(AppendedBatch(0, 9))
    story.fetch(1, "m1", [(0, 9)], [(0, 9, 1)])
    story.lead(2, 0, epoch=2)

    explanation = story.explain(3)

    assert what_of(explanation) == ["appended", "acquired", "not read"]
    assert (reasons_of(explanation), explanation.standing.verdict) == ([Reason.NEW], Outlook.NOW)


# ---- each cause and each reason


Case = tuple[Explanation, Outlook, Reason]


def case(story: Story, offset: int, verdict: Outlook, reason: Reason, lacks: Iterable[str] = ()) -> Case:
    """Return a small history with the verdict and a reason that the rules give to a record of it."""
    return story.explain(offset, lacks), verdict, reason


def members() -> Iterator[Case]:
    """Yield cases of what members do, and of leaders."""
    held = Story()
    held.fetch(1, "m1", [(0, 9)], [(0, 9, 1)])
    yield case(held, 3, Outlook.LATER, Reason.HELD)
    yield case(held, 12, Outlook.NOW, Reason.NEW)  # rule 6: there is room
    held.acknowledge(2, "m1", 0, 4, 4)
    yield case(held, 3, Outlook.LATER, Reason.HELD)
    held.acknowledge(3, "m1", 0, 4, 2)
    yield case(held, 3, Outlook.LATER, Reason.WRITE_PENDING)
    held.write(4, 0, 0, *((offset, offset, 0, 1) for offset in range(5)))
    yield case(held, 3, Outlook.NOW, Reason.AVAILABLE)
    held.acknowledge(5, "m1", 5, 9, 1)
    yield case(held, 7, Outlook.LATER, Reason.TERMINAL_PENDING)
    held.write(6, 0, 5, *((offset, offset, 2, 1) for offset in range(5, 10)))
    held.fetch(7, "m2", [(0, 4)], [(0, 4, 2)])
    yield case(held, 3, Outlook.LATER, Reason.LAST_DELIVERY_HELD)
    held.add("fence", 8)
    yield case(held, 3, Outlook.STALLED, Reason.NOT_ACTIVE)

    gone = Story(delivery_count_limit=5)
    gone.fetch(1, "m1", [(0, 9)], [(0, 9, 1)])
    gone.acknowledge(2, "m1", 0, 0, 0)
    gone.acknowledge(2, "m1", 1, 1, 3)
    gone.add("close", 3, member="m1")
    yield case(gone, 0, Outlook.NEVER, Reason.ARCHIVED, ["write"])
    yield case(gone, 1, Outlook.NEVER, Reason.ARCHIVED, ["write"])
    gone.add("log_start", 4, {"offset": 4})
    yield case(gone, 3, Outlook.NEVER, Reason.ARCHIVED, ["write"])
    gone.add("log_start", 5, {"offset": 30})
    yield case(gone, 25, Outlook.NEVER, Reason.PASSED, ["write"])

    unread = Story()
    unread.add("initialize", 1, {"leader_epoch": 2}, {"error": "fenced_leader_epoch"})
    yield case(unread, 0, Outlook.STALLED, Reason.NOT_ACTIVE)
    unread.add("initialize", 2, {"leader_epoch": 3})
    yield case(unread, 0, Outlook.UNKNOWN, Reason.STATE_LOST)
    unread.events = unread.events[:1]
    yield case(unread, 0, Outlook.UNKNOWN, Reason.STATE_UNKNOWN)
    unread.lead(3, 7, epoch=4)
    yield case(unread, 0, Outlook.NEVER, Reason.PASSED)


def logs() -> Iterator[Case]:
    """Yield cases of what the log has, and of a lock that is due."""
    due = Story()
    due.fetch(1, "m1", [(0, 9)], [(0, 9, 1)])
    due.acknowledge(2, "m1", 0, 4, 1)
    due.write(20, 0, 5, *((offset, offset, 2, 1) for offset in range(5)))  # before a write no more locks expire
    yield case(due, 7, Outlook.LATER, Reason.LOCK_DUE)

    log = Story(isolation="read_committed")
    log.log(AppendedBatch(0, 4), AppendedBatch(5, 9, 1, transactional=True))
    yield case(log, 12, Outlook.LATER, Reason.NOT_APPENDED)
    yield case(log, 7, Outlook.LATER, Reason.TRANSACTION_OPEN)
    log.log(AppendedBatch(10, 10, 1, transactional=True, control="commit"), AppendedBatch(20, 24))
    yield case(log, 7, Outlook.NOW, Reason.NEW)
    yield case(log, 10, Outlook.NOW, Reason.MARKER)
    yield case(log, 15, Outlook.NEVER, Reason.NOT_IN_LOG)
    log.add("log_start", 1, {"offset": 5})
    yield case(log, 2, Outlook.NEVER, Reason.PASSED)
    log.lead(2, 0, epoch=2)
    yield case(log, 2, Outlook.NEVER, Reason.BELOW_LOG_START)


def windows() -> Iterator[Case]:
    """Yield cases of gaps and of a full window."""
    gaps = Story(state=[(5, 14, 2, 1)], max_record_locks=100)
    yield case(gaps, 2, Outlook.NOW, Reason.IN_GAP_WINDOW)  # rule 4.4

    apart = Story(max_record_locks=10)
    apart.fetch(1, "m1", [(0, 4)], [(0, 4, 1)])
    apart.fetch(1, "m1", [(8, 9)], [(8, 9, 1)])
    yield case(apart, 6, Outlook.NEVER, Reason.BETWEEN_BATCHES)  # rule 7.9
    yield case(apart, 10, Outlook.LATER, Reason.NO_ROOM)  # 0-9 are in flight, the gap included (rule 6)

    below = Story()
    below.fetch(1, "m1", [(0, 9)], [(0, 9, 1)])
    below.acknowledge(2, "m1", 0, 9, 1, "coordinator_not_available")
    below.add("log_start", 3, {"offset": 20})
    below.wait(15)
    below.write(16, 0, 10, (0, 9, 2, 1), error="coordinator_not_available")  # rule 1.5, B15
    yield case(below, 4, Outlook.NOW, Reason.AVAILABLE_BELOW_START)


def failures() -> Iterator[Case]:
    """Yield cases of records that keep failing, and of a natural gap."""
    failing = Story(delivery_count_limit=5)
    for delivery, last in ((1, 9), (2, 9), (3, 9)):
        failing.fetch(20 * delivery, "m1", [(0, 9)], [(0, last, delivery)])
    failing.wait(90)
    yield case(failing, 0, Outlook.NOW, Reason.THROTTLED, ["write"])  # rule 20.3: from three deliveries on
    yield case(failing, 8, Outlook.NOW, Reason.BEHIND_THROTTLED, ["write"])
    failing.fetch(100, "m1", [(0, 9)], [(0, 4, 4)])
    failing.wait(120)
    yield case(failing, 0, Outlook.NOW, Reason.LAST_DELIVERY_ALONE, ["write"])

    gap = Story(start=10, state=[(10, 14, 2, 1), (20, 24, 2, 1)], max_record_locks=15)
    gap.add("fetch", 1, {"fetch_offset": 15, "batches": (AppendedBatch(25, 29),)}, {"acquired": ((25, 29, 1),)}, "m1")
    yield case(gap, 30, Outlook.LATER, Reason.NATURAL_GAP)  # 15-19 are in no batch, and the window is over
    gap.acknowledge(3, "m1", 25, 29, 1)
    yield case(gap, 30, Outlook.STALLED, Reason.STALLED_AT_NATURAL_GAP, ["write"])


def cases() -> list[Case]:
    """Return all cases."""
    return [*members(), *logs(), *windows(), *failures()]


def test_reasons_are_those_of_the_rules() -> None:
    """The first reason decides, and has the verdict; what adds to it comes after."""
    for explanation, verdict, reason in cases():
        assert explanation.standing.verdict is verdict, explanation.lines()
        assert reason in reasons_of(explanation)
        assert explanation.differences == 0


def test_every_cause_reason_and_happening_has_a_sentence() -> None:
    """The tables are complete: none is forgotten when one is added."""
    assert set(CAUSE_SENTENCES) == set(Cause)
    assert set(HAPPENING_SENTENCES) == set(Happening)
    assert set(REASONS) == set(Reason)


def test_every_sentence_is_made_by_some_history() -> None:
    """No cause, reason or happening is out of reach, and each has the facts that its sentence needs."""
    made = [explanation for explanation, _, _ in cases()]
    made += [
        explain_record(history_of(path), KEY, offset, lacks=LACKS)
        for path in RECORDED
        for offset in {
            offset for _, state in exchanges(path) for run in recorded_runs(state["state"]) for offset in run[:2]
        }
    ]
    queue = Story(dlq_topic="dead")
    queue.fetch(1, "m1", [(0, 0)], [(0, 0, 1)])
    queue.acknowledge(2, "m1", 0, 0, 3)
    made += [queue.explain(0, lacks=["write", "dead_letter"]), queue.explain(0, lacks=["write"])]
    refused = Story()
    refused.acknowledge(1, "m1", 0, 0, 1, "invalid_record_state")
    made.append(refused.explain(0))
    forgotten = Story()
    forgotten.log(AppendedBatch(0, 9))
    forgotten.fetch(1, "m1", [(0, 9)], [(0, 9, 1)])
    forgotten.lead(2, 0, epoch=2)
    made.append(forgotten.explain(0))
    unknown = Story()
    unknown.add("initialize", 1, {"leader_epoch": 2})
    unknown.fetch(2, "m1", [(0, 9)], [(0, 9, 3)])
    unknown.acknowledge(3, "m1", 0, 9, 1)
    made.append(unknown.explain(0))
    unwritten = Story()
    unwritten.fetch(1, "m1", [(0, 9)], [(0, 9, 1)])
    unwritten.wait(12)
    unwritten.write(13, 0, 0, (0, 9, 0, 1), error="coordinator_not_available")
    made.append(unwritten.explain(0))
    assert made[-1].moments[-1].text == (
        "Write 0 failed (coordinator_not_available): AVAILABLE in the leader's memory only."
    )
    happened = {moment.what for each in made for moment in each.moments}
    reasons = {finding.reason for each in made for finding in (*each.standing.findings, *each.start_findings)}

    assert all(each.lines() and each.to_json() for each in made)
    assert (set(Cause) | set(Happening)) - happened == set()
    elsewhere = {Reason.WAITS_AT_WINDOW_END}  # tested above
    elsewhere |= {
        Reason.ACQUIRE_THREW,
        Reason.ADVANCE_THREW,
    }  # only brokers show them: test_broker_log.py
    assert set(Reason) - reasons == elsewhere | set(QUIRKS)  # the latter in test_miscounts.py


def test_what_holds_a_share_partition_up() -> None:
    """The overview has the SPSO's reason, the longest held records, those near the limit, and who loses records."""
    story = Story(delivery_count_limit=3)
    story.log(AppendedBatch(0, 29))
    story.fetch(1, "m1", [(0, 9)], [(0, 9, 1)])
    story.fetch(2, "m2", [(10, 19)], [(10, 19, 1)])
    story.fetch(11.5, "m2", [(0, 9)], [(0, 9, 2)])
    story.fetch(13, "m3", [(10, 19)], [(10, 19, 2)])
    story.acknowledge(14, "m3", 10, 14, 1)
    life = PartitionLife(KEY, lacks=LACKS | {"write"})
    for event in story.events:
        life.apply(event)
    overview = life.overview()

    assert (overview.start_offset, overview.end_offset, overview.log_end_offset, overview.lag) == (0, 19, 30, 25)
    assert (overview.in_flight, overview.room, overview.delivery_complete_count) == (20, 1980, 5)
    assert [finding.reason for finding in overview.start_findings] == [Reason.HELD]
    assert overview.start_since_us == 0
    assert [each[:5] for each in overview.held] == [(0, 9, "m2", 2, 11_500_000), (15, 19, "m3", 2, 13_000_000)]
    assert [each.locked_until_us for each in overview.held] == [21_500_000, 23_000_000]
    assert [each[:2] for each in overview.near_limit] == [(0, 9), (15, 19)]
    assert sorted(overview.expiries) == [("m1", 10), ("m2", 10)]
    assert overview.lines()[:6] == [
        "What happened to its records:",
        "  20 records delivered, 40 deliveries in all",
        "  20 records delivered more than once, up to 2 times: lock expired 20; m1 10, m2 10",
        "  5 records accepted: m3 5",
        "  15 records still held: m2 10, m3 5",
        "  15 records near the delivery count limit",
    ]


def test_locks_that_expire_at_the_limit_count_and_releases_do_not() -> None:
    """A member loses records to an expired lock, and gives them back itself when it releases them or leaves."""
    story = Story(delivery_count_limit=1)
    story.fetch(1, "m1", [(0, 9)], [(0, 9, 1)])
    story.acknowledge(2, "m1", 0, 4, 2)
    story.add("close", 20, member="m1")
    story.fetch(21, "m2", [(10, 19)], [(10, 19, 1)])
    story.add("close", 22, member="m2")
    life = PartitionLife(KEY, lacks=LACKS | {"write"})
    for event in story.events:
        life.apply(event)

    assert life.overview().expiries == (("m1", 5),)


def beyond(story: Story) -> tuple[int | None, list[Reason | StoredReason]]:
    """Return the first record beyond what is in flight, and why it is or is not deliverable."""
    life = PartitionLife(KEY, lacks=LACKS)
    for event in story.events:
        life.apply(event)
    overview = life.overview()
    return overview.new_offset, [finding.reason for finding in overview.new_findings]


def test_an_overview_says_why_nothing_new_comes() -> None:
    """The log may end there, a transaction may be open, or there may be no room; else the next fetch gets it."""
    story = Story(max_record_locks=10, isolation="read_committed")
    ended = beyond(story)
    story.log(AppendedBatch(0, 4))
    new = beyond(story)
    story.fetch(1, "m1", [(0, 4)], [(0, 4, 1)])
    all_held = beyond(story)
    story.log(AppendedBatch(5, 9, 1, transactional=True))
    is_open = beyond(story)
    story.log(AppendedBatch(10, 10, 1, transactional=True, control="commit"), AppendedBatch(11, 14))
    story.fetch(2, "m1", [(5, 9)], [(5, 9, 1)])

    assert ended == (0, [Reason.NEW])  # nothing is known of the log
    assert new == (0, [Reason.NEW])
    assert all_held == (5, [Reason.NOT_APPENDED])
    assert is_open == (5, [Reason.TRANSACTION_OPEN])
    assert beyond(story) == (10, [Reason.NO_ROOM])
