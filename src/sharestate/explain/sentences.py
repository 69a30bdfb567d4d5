"""
The sentences of an explanation, as tables: one for each cause of a change, and one for each reason why a record waits.

A sentence is a format string about "it", the record. Its fields are the facts that stand beside it in the JSON form.
A fact ``..._us`` is a time, which the sentence has without that ending, as an instant and how far off it is;
``{times:time}`` counts, as in "2 times"; and what stands in brackets is there only if its facts are.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sharestate.explain.words import sentence
from sharestate.values.effects import Cause


class Happening(StrEnum):
    """What may happen to a record besides the changes that have a ``Cause``."""

    APPENDED = "appended"
    """The log has it."""

    NOT_READ = "not read"
    """A leader has read the state without it."""

    READ_AS_PASSED = "read as passed"
    """A leader has read an SPSO that is above it."""

    STATE_NOT_READ = "state not read"
    """A leader could not read the state, or it is not known whether it could."""

    REFUSED = "acknowledgement refused"
    """A member's acknowledgement of it was refused."""

    HANDED_OVER = "handed to the dead-letter queue"
    """The dead-letter queue was given it."""

    ANSWERED = "answered"
    """A fetch was answered with it where the state is not known."""

    ACKNOWLEDGED = "acknowledged"
    """A member has acknowledged it where the state is not known, and was not refused."""

    FILTERED_OUT = "filtered out"
    """A fetch has read it with its batch, and not delivered it: its transaction was aborted."""

    NOT_PERSISTED = "not persisted"
    """A write of it has failed that carried what an expired lock has changed."""

    START_MOVED_BACK = "SPSO moved back"
    """The SPSO had passed it, and has moved back to it or before it."""

    FENCED = "fenced"
    """The leader has stopped acquiring: another one has taken over."""


class Outlook(StrEnum):
    """Whether a record is deliverable."""

    NOW = "now"
    """The next fetches may acquire it."""

    LATER = "later"
    """Something has to happen first, which is under way."""

    STALLED = "stalled"
    """Nothing that is under way will make it deliverable."""

    NEVER = "never"
    """It is not delivered again."""

    UNKNOWN = "unknown"
    """The history does not say enough."""


class Reason(StrEnum):
    """Why a record is deliverable or not, or why the SPSO stays where it is."""

    STATE_UNKNOWN = "state unknown"
    STATE_LOST = "state lost"
    NOT_ACTIVE = "not active"
    PASSED = "passed"
    ACKNOWLEDGED = "acknowledged"
    ARCHIVED = "archived"
    TERMINAL_PENDING = "terminal, write pending"
    ARCHIVING = "archiving"
    HELD = "held"
    LOCK_DUE = "lock due"
    LAST_DELIVERY_HELD = "held for the last time"
    WRITE_PENDING = "write pending"
    AVAILABLE = "available"
    AVAILABLE_BELOW_START = "available below the SPSO"
    THROTTLED = "throttled"
    BEHIND_THROTTLED = "behind throttled records"
    LAST_DELIVERY_ALONE = "last delivery alone"
    NOT_IN_LOG = "not in the log"
    BELOW_LOG_START = "below the log start"
    NOT_APPENDED = "not appended"
    TRANSACTION_OPEN = "transaction open"
    MARKER = "transaction marker"
    IN_GAP_WINDOW = "in the gap window"
    BETWEEN_BATCHES = "between batches"
    NEW = "new"
    NO_ROOM = "no room"
    NOTHING_IN_FLIGHT = "nothing in flight"
    START_WAITS = "SPSO waits"
    WAITS_AT_WINDOW_END = "B17"
    NATURAL_GAP = "B10"
    STALLED_AT_NATURAL_GAP = "B10, no room"
    STALLED_IN_WINDOW = "F1"
    STALLED_BELOW_LOG_START = "F4"
    STALLED_GAP_BELOW_LOG_START = "F5"
    STALLED_RECORD_BELOW_LOG_START = "F8"
    STALLED_COMPACTED = "F6"
    STALLED_ABORTED = "F7"
    COUNTED_BELOW_START = "B22"
    ARCHIVED_UNCOUNTED = "B23"
    COUNT_TAKEN_TWICE = "F2"
    ACQUIRE_THREW = "B8"
    ADVANCE_THREW = "B7"


CAUSE_SENTENCES: Final[Mapping[Cause, str]] = MappingProxyType(
    {
        Cause.READ: "The leader read the state, in which it is {state}, delivery count {delivery_count}.",
        Cause.CACHED: "It came with a log batch of which the member wanted only a part: {state}, not delivered yet.",
        Cause.ACQUIRED: "{member} acquired it: delivery {delivery_count} of {limit}, locked until {locked_until}.",
        Cause.ACCEPTED: "{member} accepted it: {state}[, to be persisted by write {write}].",
        Cause.RELEASED: "{member} released it: {state}[, to be persisted by write {write}].",
        Cause.REJECTED: "{member} rejected it, as nobody can process it: {state}[, to be persisted by write {write}].",
        Cause.GAP: "{member} reported that there is no such record (GAP): {state}[, to be persisted by write {write}].",
        Cause.RENEWED: "{member} renewed its lock: locked until {locked_until}.",
        Cause.LOCK_EXPIRED: "The lock of {member} expired: {state}[, to be persisted by write {write}].",
        Cause.SESSION_CLOSED: "The share session of {member} closed: {state}[, to be persisted by write {write}].",
        Cause.ARCHIVED_AT_LIMIT: (
            "{lost_by} after delivery {delivery_count} of {limit}, the last one: {state}"
            "[, to be persisted by write {write}]."
        ),
        Cause.ABORTED: (
            "Its transaction was aborted, and the group reads committed records only: {state}"
            "[, and it counts as complete though the SPSO has passed it ({bug})]."
        ),
        Cause.COMPACTED_AWAY: "A fetch showed that the log no longer has it: {state}.",
        Cause.BELOW_LOG_START: "The log start moved past it: {state}.",
        Cause.CONFIRMED: "Write {write} succeeded: {state} is persisted.",
        Cause.ROLLED_BACK: "Write {write} failed ({error}): {state} again, delivery count {delivery_count}.",
        Cause.THROTTLED: (
            "{member} fetched and did not get it ({times:time}): records that keep failing are delivered a few at a "
            "time, and it has to wait."
        ),
        Cause.PASSED: "The SPSO passed it, and is {start_offset}: it was {state}.",
        Cause.DEAD_LETTERED: (
            "The dead-letter queue has answered[ ({error})]: {state}[, to be persisted by write {write}]."
        ),
    }
)
"""One sentence for each cause."""

SPECIAL_SENTENCES: Final[Mapping[tuple[Cause, str], str]] = MappingProxyType(
    {
        (Cause.ROLLED_BACK, "ACQUIRED"): (
            "Write {write} failed ({error}): {member} holds it as before, locked until {locked_until}."
        ),
        (Cause.ROLLED_BACK, "AVAILABLE"): (
            "Write {write} failed ({error}) after its lock had expired: AVAILABLE, in the leader's memory only (B15)."
        ),
        (Cause.ROLLED_BACK, "ARCHIVED"): (
            "Write {write} failed ({error}) after its lock had expired at the delivery limit: ARCHIVED, in the "
            "leader's memory only (B15)[, past the dead-letter queue and uncounted ({bug})]."
        ),
        (Cause.LOCK_EXPIRED, "ACKNOWLEDGED"): (
            "Its lock expired while a write of it was pending: that matters only if the write fails."
        ),
        (Cause.LOCK_EXPIRED, "ARCHIVED"): (
            "Its lock expired while a write of it was pending: that matters only if the write fails."
        ),
        (Cause.LOCK_EXPIRED, "ARCHIVING"): (
            "Its lock expired while a write of it was pending: that matters only if the write fails."
        ),
    }
)
"""The sentences for a cause where the state after it makes another one necessary."""

HAPPENING_SENTENCES: Final[Mapping[Happening, str]] = MappingProxyType(
    {
        Happening.APPENDED: (
            "The log has it, in the batch {first_offset}-{last_offset}"
            "[, the {control} marker of producer {producer_id}][, in a transaction of producer {transaction_of}]."
        ),
        Happening.NOT_READ: (
            "The leader (epoch {leader_epoch}) read the state, SPSO {start_offset}, without it: "
            "what was not persisted of it is forgotten."
        ),
        Happening.READ_AS_PASSED: (
            "The leader (epoch {leader_epoch}) read the state: the SPSO is {start_offset}, and has passed it."
        ),
        Happening.STATE_NOT_READ: "The leader (epoch {leader_epoch}) has no state: {error}.",
        Happening.REFUSED: "{member} acknowledged it ({type}), and was refused: {error}.",
        Happening.HANDED_OVER: "It was handed to the dead-letter queue[ in the topic {dlq_topic}] ({cause}).",
        Happening.ANSWERED: "{member} was answered with it: delivery {delivery_count}; that was not checked.",
        Happening.ACKNOWLEDGED: "{member} acknowledged it ({type}), and was not refused; that was not checked.",
        Happening.FILTERED_OUT: (
            "It was read with its batch, and filtered out as aborted[: {never} delivered] ({state}"
            "[, and it counts as complete though the SPSO has passed it ({bug})])."
        ),
        Happening.NOT_PERSISTED: "Write {write} failed ({error}): {state} in the leader's memory only.",
        Happening.START_MOVED_BACK: "The SPSO moved back from {from_offset} to {start_offset} (B9b).",
        Happening.FENCED: "The leader was fenced: it acquires nothing any more.",
    }
)
"""One sentence for each other thing that happens."""


class Meaning(NamedTuple):
    """
    What a reason means.

    Attributes:
        verdict: Whether the record is deliverable; None for what only adds to another reason.
        sentence: The sentence.
    """

    verdict: Outlook | None
    sentence: str


REASONS: Final[Mapping[Reason, Meaning]] = MappingProxyType(
    {
        Reason.STATE_UNKNOWN: Meaning(
            Outlook.UNKNOWN, "The share partition's state is not known: the history does not say what was read."
        ),
        Reason.STATE_LOST: Meaning(
            Outlook.UNKNOWN,
            "The state is not known from {lost} on: {why}.[ It is known again {again}.]",
        ),
        Reason.NOT_ACTIVE: Meaning(
            Outlook.STALLED, "The share partition is {lifecycle}: it delivers nothing until a leader reads the state."
        ),
        Reason.PASSED: Meaning(Outlook.NEVER, "The SPSO is {start_offset}, and has passed it."),
        Reason.ACKNOWLEDGED: Meaning(Outlook.NEVER, "It is ACKNOWLEDGED."),
        Reason.ARCHIVED: Meaning(Outlook.NEVER, "It is ARCHIVED ({cause})."),
        Reason.TERMINAL_PENDING: Meaning(
            Outlook.LATER, "It is {state}, and the write of that is pending: only if it fails is it delivered again."
        ),
        Reason.ARCHIVING: Meaning(Outlook.NEVER, "It is ARCHIVING: on its way to the dead-letter queue."),
        Reason.HELD: Meaning(Outlook.LATER, "{member} holds it, locked until {locked_until}."),
        Reason.LOCK_DUE: Meaning(Outlook.LATER, "The lock of {member} was due at {locked_until}, and expires next."),
        Reason.LAST_DELIVERY_HELD: Meaning(
            None, "This is delivery {delivery_count} of {limit}: unless it is accepted, it is archived."
        ),
        Reason.WRITE_PENDING: Meaning(
            Outlook.LATER, "It is AVAILABLE, and the write of that is pending: nobody acquires it before the answer."
        ),
        Reason.AVAILABLE: Meaning(
            Outlook.NOW, "It is AVAILABLE, delivery count {delivery_count}: the next fetch begins at {next_offset}."
        ),
        Reason.AVAILABLE_BELOW_START: Meaning(
            Outlook.NOW,
            "It is AVAILABLE though the SPSO, {start_offset}, is above it: it is delivered if a fetch returns it (B6).",
        ),
        Reason.THROTTLED: Meaning(
            None,
            "It was delivered {delivery_count:time}: from delivery {threshold} on, fewer and fewer records come at "
            "once, now {piece:record} at most.",
        ),
        Reason.BEHIND_THROTTLED: Meaning(
            None, "Record {offset} before it was delivered {delivery_count:time}: what comes after that one waits."
        ),
        Reason.LAST_DELIVERY_ALONE: Meaning(
            None, "Its next delivery, {delivery_count} of {limit}, is its last one, and of this record alone."
        ),
        Reason.NOT_IN_LOG: Meaning(Outlook.NEVER, "The log has no record at this offset."),
        Reason.BELOW_LOG_START: Meaning(Outlook.NEVER, "The log starts at {log_start_offset}."),
        Reason.NOT_APPENDED: Meaning(Outlook.LATER, "The log ends at {log_end_offset}: it is not written yet."),
        Reason.TRANSACTION_OPEN: Meaning(
            Outlook.LATER,
            "The group reads committed records only, and a transaction that began at {last_stable_offset} is open.",
        ),
        Reason.MARKER: Meaning(None, "It is the marker of a transaction: members acquire it, and clients skip it."),
        Reason.IN_GAP_WINDOW: Meaning(
            Outlook.NOW,
            "The leader before may have delivered it, and has persisted nothing of it: it is fetched again in the "
            "gap window, {first_offset}-{last_offset}; the next fetch begins at {next_offset}.",
        ),
        Reason.BETWEEN_BATCHES: Meaning(
            Outlook.NEVER,
            "It lies between batches that are in flight, and no gap window is active: this leader does not fetch it.",
        ),
        Reason.NEW: Meaning(
            Outlook.NOW,
            "It was never acquired: the next fetch begins at {next_offset}, and there is room for {room:record} more.",
        ),
        Reason.NO_ROOM: Meaning(
            Outlook.LATER,
            "There is no room for it: {in_flight:offset} in flight, {start_offset}-{end_offset}, where "
            "share.partition.max.record.locks is {max_record_locks}. Nothing beyond is acquired before the SPSO moves.",
        ),
        Reason.NOTHING_IN_FLIGHT: Meaning(None, "Nothing is in flight."),
        Reason.START_WAITS: Meaning(
            None, "Record {start_offset} is {state}: the SPSO passes it with the next write's answer or expired lock."
        ),
        Reason.WAITS_AT_WINDOW_END: Meaning(
            None,
            "Terminal records in the gap window, {first_offset}-{last_offset}, wait until something beyond it is "
            "acquired (B17).",
        ),
        Reason.NATURAL_GAP: Meaning(
            None, "No batch covers offset {start_offset}, which the log does not have: the SPSO waits before it (B10)."
        ),
        Reason.STALLED_AT_NATURAL_GAP: Meaning(
            Outlook.STALLED,
            "Stalled by a bug of Kafka (B10): the log has no record {start_offset}, and no batch covers it, so the "
            "SPSO stays before it, and nothing is left in flight that would move it. It ends when the log start moves "
            "past the gap, or another leader takes over.",
        ),
        Reason.STALLED_IN_WINDOW: Meaning(
            Outlook.STALLED,
            "Stalled by a bug of Kafka (F1): no fetch is served any more, whatever members do. This leader has fetched "
            "again what the one before had not persisted: the gap window, up to {last_offset}. All that is in flight "
            "is ACKNOWLEDGED or ARCHIVED by now, but Kafka ends that window, and moves the SPSO past it, only when it "
            "acquires a record beyond it; and there is no room for one: {in_flight:offset} in flight where "
            "share.partition.max.record.locks is {max_record_locks}. It ends when that setting of the group is raised "
            "above {in_flight}, when another leader takes over, or when the last member has left the group.",
        ),
        Reason.STALLED_BELOW_LOG_START: Meaning(
            Outlook.STALLED,
            "Stalled by a bug of Kafka (F4): the log start has passed the last records that were not terminal, and "
            "Kafka moves the SPSO only with a write or an expired lock, of which none is left. {in_flight:offset} in "
            "flight leave no room for more. It ends when share.partition.max.record.locks of the group, "
            "{max_record_locks}, is raised above {in_flight}.",
        ),
        Reason.STALLED_GAP_BELOW_LOG_START: Meaning(
            Outlook.STALLED,
            "Stalled by a bug of Kafka (F5): the log start, {start_offset}, has moved into the gap that is fetched "
            "next, at {next_offset}, where every fetch is out of range. It ends when the log start has passed "
            "{last_offset}.",
        ),
        Reason.STALLED_RECORD_BELOW_LOG_START: Meaning(
            Outlook.STALLED,
            "Stalled by a bug of Kafka (F8): the record that is fetched next, {next_offset}, lies below the log start, "
            "{log_start_offset}, where every fetch is out of range; and the SPSO, {start_offset}, is not below it, so "
            "that nothing moves. It ends when another leader takes over, or after the last member has left the group; "
            "for a while also when the log start passes all that is in flight.",
        ),
        Reason.STALLED_COMPACTED: Meaning(
            Outlook.STALLED,
            "Stalled by a bug of Kafka (F6): the last records that were not terminal were compacted away, and Kafka "
            "moves the SPSO only with a write or an expired lock, of which none is left. {in_flight:offset} in flight "
            "leave no room for more. It ends when share.partition.max.record.locks of the group, {max_record_locks}, "
            "is raised above {in_flight}.",
        ),
        Reason.STALLED_ABORTED: Meaning(
            Outlook.STALLED,
            "Stalled by a bug of Kafka (F7): the records in flight are those of an aborted transaction, which members "
            "never get, and Kafka moves the SPSO only with a write or an expired lock, of which none is left. "
            "{in_flight:offset} in flight leave no room for more. It ends when share.partition.max.record.locks of the "
            "group, {max_record_locks}, is raised above {in_flight}.",
        ),
        Reason.COUNTED_BELOW_START: Meaning(
            None,
            "The delivery complete count is {count} where it should be {terminal}, and so the lag that Kafka shows is "
            "wrong: records of an aborted transaction were archived below the SPSO, and counted (B22).",
        ),
        Reason.ARCHIVED_UNCOUNTED: Meaning(
            None,
            "The delivery complete count is {count} where it should be {terminal}, and so the lag that Kafka shows is "
            "wrong: records on their way to the dead-letter queue were archived without being counted (B23).",
        ),
        Reason.COUNT_TAKEN_TWICE: Meaning(
            None,
            "The delivery complete count is {count} where it should be {terminal}, and so the lag that Kafka shows is "
            "wrong: the SPSO has moved back, and records that it passed were taken off the count twice (F2).",
        ),
        Reason.ACQUIRE_THREW: Meaning(
            None,
            "A bug of Kafka has shown (B8): {times:time}, first at {first}, a fetch has failed because an aborted log "
            "batch began before the first batch in flight. What it had acquired stayed locked.",
        ),
        Reason.ADVANCE_THREW: Meaning(
            None,
            "A bug of Kafka has shown (B7): {times:time}, first at {first}, the SPSO has not moved because it lay past "
            "a split batch.",
        ),
    }
)
"""The meaning of each reason."""


class StoredReason(StrEnum):
    """Where a record stands by the state topic alone: to a leader that would read the state now."""

    NEVER_STARTED = "never started"
    PASSED = "passed, as stored"
    AVAILABLE = "available, as stored"
    LAST_DELIVERY = "last delivery, as stored"
    ACKNOWLEDGED = "acknowledged, as stored"
    ARCHIVED = "archived, as stored"
    ARCHIVING = "archiving, as stored"
    UNREADABLE = "unreadable, as stored"
    BETWEEN = "between what is stored"
    BEYOND = "beyond what is stored"
    NOT_APPENDED = "not appended, as the cluster says"


class Unsaid(StrEnum):
    """What the state topic does not say."""

    HOLDER = "holder"
    CAUSE = "cause"
    PENDING = "pending"
    WINDOW = "window"
    PAST = "past"
    LOG = "log"


STORED_REASONS: Final[Mapping[StoredReason, Meaning]] = MappingProxyType(
    {
        StoredReason.NEVER_STARTED: Meaning(
            Outlook.UNKNOWN, "No SPSO is stored yet: a leader begins where share.auto.offset.reset says."
        ),
        StoredReason.PASSED: Meaning(Outlook.NEVER, "The stored SPSO is {start_offset}, and has passed it."),
        StoredReason.AVAILABLE: Meaning(
            Outlook.NOW,
            "It is stored as AVAILABLE, delivery count {delivery_count}: a leader that reads that delivers it, and the "
            "leader of now may have delivered it again already.",
        ),
        StoredReason.LAST_DELIVERY: Meaning(
            None, "It was delivered {delivery_count:time} where the limit is {limit}: at most one delivery is left."
        ),
        StoredReason.ACKNOWLEDGED: Meaning(
            Outlook.NEVER, "It is stored as ACKNOWLEDGED, and waits until the SPSO, {start_offset}, passes it."
        ),
        StoredReason.ARCHIVED: Meaning(
            Outlook.NEVER, "It is stored as ARCHIVED, and waits until the SPSO, {start_offset}, passes it."
        ),
        StoredReason.ARCHIVING: Meaning(
            Outlook.NEVER, "It is stored as ARCHIVING: on its way to the dead-letter queue (KIP-1191)."
        ),
        StoredReason.UNREADABLE: Meaning(
            Outlook.STALLED, "It is stored in state {state}, with which no leader can read what is stored."
        ),
        StoredReason.BETWEEN: Meaning(
            Outlook.NOW,
            "Nothing is stored of it, but of records behind it: it was never delivered, or is held for the first time, "
            "or the log has no such record. A leader that reads the state fetches it again, in the gap window.",
        ),
        StoredReason.BEYOND: Meaning(
            Outlook.NOW,
            "It lies beyond all that is stored: it was never delivered, or is held for the first time. A leader that "
            "reads the state delivers it when it gets there.",
        ),
        StoredReason.NOT_APPENDED: Meaning(
            Outlook.LATER, "The log ends at {log_end_offset}: it is not written yet, or not replicated."
        ),
    }
)
"""The meaning of each reason that the state topic gives."""

UNSAID: Final[Mapping[Unsaid, str]] = MappingProxyType(
    {
        Unsaid.HOLDER: "who holds records, and until when: acquisitions are in the leader's memory only",
        Unsaid.CAUSE: "why records are ARCHIVED: rejected, delivered too often, or gone from the log",
        Unsaid.PENDING: "what the leader has changed and could not write yet",
        Unsaid.WINDOW: "whether fetches are served: how much may be in flight, and gap windows, are the leader's",
        Unsaid.PAST: "what was before the first record that the topic still has: brokers delete it",
        Unsaid.LOG: "where the log ends, which a live cluster says",
    }
)
"""One phrase for each; most of it is in a broker's request log."""


_RULES: Final[Mapping[Reason | StoredReason, Meaning]] = MappingProxyType(
    dict([*REASONS.items(), *STORED_REASONS.items()])
)


class StatedReason(NamedTuple):
    """
    One reason, with the facts of its sentence.

    Attributes:
        reason: The reason.
        facts: The facts; those that end in ``_us`` are times. [µs since 1970]
        at_us: The instant from which the sentence counts times; None if it is not known. [µs since 1970]
    """

    reason: Reason | StoredReason
    facts: Mapping[str, Any]
    at_us: int | None

    @property
    def text(self) -> str:
        """The sentence."""
        return sentence(_RULES[self.reason].sentence, self.facts, self.at_us)

    @property
    def verdict(self) -> Outlook | None:
        """Whether the record is deliverable; None for what only adds to another reason."""
        return _RULES[self.reason].verdict

    def to_json(self) -> dict[str, Any]:
        """Return the reason with its facts and its sentence."""
        return {"reason": self.reason.value, **self.facts, "text": self.text}
