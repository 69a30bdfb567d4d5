"""What the state topic alone says of a record: what was stored of it when, and where it stands for the next leader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sharestate.coordinator import StoredState
from sharestate.explain.sentences import UNSAID, Outlook, StatedReason, StoredReason, Unsaid
from sharestate.explain.words import counted, duration, instant, sentence
from sharestate.state_topic import RebuiltPartition, StateTopic, TopicRecord
from sharestate.state_topic.rebuild import begins_state
from sharestate.values.checks import integer
from sharestate.values.records import RecordState, SharePartitionKey, is_near_limit
from sharestate.values.requests import StateBatch

STORED_EXPLANATION_VERSION: Final = 1
"""The version of the JSON form."""


class StoredHappening(StrEnum):
    """What records of the state topic may do to a record of the log."""

    STARTED = "started"
    """The share partition was initialized, with the record before it, in it or behind it."""

    LEFT = "left"
    """What came before was deleted: this is the oldest record that the topic still has of the share partition."""

    STORED = "stored"
    """The record's state or delivery count was stored."""

    NOT_STORED = "not stored any more"
    """What was stored of it is gone, though the SPSO has not passed it."""

    PASSED = "passed"
    """The SPSO has passed it."""

    MOVED_BACK = "moved back"
    """The SPSO had passed it, and has moved back."""

    DELETED = "deleted"
    """A tombstone has ended the share partition."""


STORED_SENTENCES: Final[Mapping[StoredHappening, str]] = MappingProxyType(
    {
        StoredHappening.STARTED: "The state begins: state epoch {state_epoch}, SPSO {start_offset}.",
        StoredHappening.LEFT: "What is left begins here: state epoch {state_epoch}, SPSO {start_offset}.",
        StoredHappening.STORED: "It is {state}, delivery count {delivery_count}.",
        StoredHappening.NOT_STORED: "Nothing is stored of it any more; the SPSO is {start_offset}.",
        StoredHappening.PASSED: "The SPSO passed it, and is {start_offset}.",
        StoredHappening.MOVED_BACK: "The SPSO moved back to {start_offset}, before it or to it (B9b, F3).",
        StoredHappening.DELETED: "The state was deleted.",
    }
)
"""One sentence for each."""


class StoredMoment(NamedTuple):
    """
    One thing that the state topic says of a record.

    Attributes:
        offset: The offset of the record of the state topic; None if it is not known.
        at_us: Its timestamp; None if it is not known. [µs since 1970]
        what: What has happened.
        facts: What is known of it; the sentence is made of these.
    """

    offset: int | None
    at_us: int | None
    what: StoredHappening
    facts: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The moment in plain words."""
        return sentence(STORED_SENTENCES[self.what], self.facts, self.at_us)

    def to_json(self) -> dict[str, Any]:
        """Return the moment with its facts and its sentence; what is null is left out."""
        fields = {"state_offset": self.offset, "at_us": self.at_us, "what": self.what.value, **self.facts}
        return {name: value for name, value in fields.items() if value is not None} | {"text": self.text}


class StoredExplanation(NamedTuple):
    """
    What the state topic says of a share partition, and of one record of it.

    Attributes:
        rebuilt: The share partition as it is stored.
        offset: The record; that at the SPSO if none was asked for.
        moments: What the topic has said of it, in order.
        findings: Where it stands for a leader that would read the state now.
        near_limit: The ranges of records that have one delivery left, or none.
        log_end_offset: The offset after the last record of the log; None if it is not known.
    """

    rebuilt: RebuiltPartition
    offset: int
    moments: tuple[StoredMoment, ...]
    findings: tuple[StatedReason, ...]
    near_limit: tuple[StateBatch, ...]
    log_end_offset: int | None

    @property
    def verdict(self) -> Outlook:
        """Whether a leader that would read the state now could deliver it."""
        return self.findings[0].verdict or Outlook.UNKNOWN

    @property
    def unsaid(self) -> tuple[Unsaid, ...]:
        """What the topic does not say."""
        return tuple(each for each in Unsaid if each is not Unsaid.LOG or self.log_end_offset is None)

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON; what is null is left out."""
        end = self.log_end_offset
        fields = {
            "stored_explanation": STORED_EXPLANATION_VERSION,
            **self.rebuilt.to_json(),
            "log_end_offset": end,
            "lag": None if end is None else self.rebuilt.lag(end),
            "offset": self.offset,
            "deliverable": self.verdict.value,
            "life": [moment.to_json() for moment in self.moments],
            "reasons": [finding.to_json() for finding in self.findings],
            "near_limit": [list(batch) for batch in self.near_limit],
            "unsaid": [each.value for each in self.unsaid],
        }
        return {name: value for name, value in fields.items() if value is not None}

    def unsaid_lines(self) -> list[str]:
        """Return what the topic does not say in plain words, line by line."""
        return ["The state topic does not say:", *(f"  {UNSAID[each]}" for each in self.unsaid)]

    def lines(self, most: int = 10) -> list[str]:
        """Return what the topic says in plain words, line by line, with *most* of the ranges near the limit."""
        lines = list(self._facts())
        before_us = None
        if self.moments:
            lines += ["", f"Record {self.offset}, as it was stored:"]
        for moment in self.moments:
            at = "-" if moment.at_us is None else instant(moment.at_us)
            known = moment.at_us is not None and before_us is not None
            since = f"+{duration(max(0, moment.at_us - before_us))}" if known else ""  # type: ignore[operator]
            lines.append(f"{at:<24}  {since:>12}  {moment.text}")
            before_us = moment.at_us
        lines += [
            "",
            f"Record {self.offset}, deliverable to a leader that would read this state: {self.verdict.value}.",
        ]
        lines += [f"  {finding.text}" for finding in self.findings]
        if self.near_limit:
            lines += ["", "Near the delivery count limit:"]
            lines += [f"  {first}-{last}, delivery count {count}" for first, last, _, count in self.near_limit[:most]]
        if len(self.near_limit) > most:
            lines.append(f"  and {len(self.near_limit) - most} more")
        return lines

    def _facts(self) -> Iterator[str]:
        state, rebuilt = self.rebuilt.state, self.rebuilt
        yield f"SPSO {state.start_offset}, state epoch {state.state_epoch}, leader epoch {state.leader_epoch}."
        if rebuilt.terminal_count:
            yield f"Waiting until the SPSO passes them: {counted(rebuilt.terminal_count, 'terminal record')}."
        if rebuilt.start_timestamp_ms is not None:
            before = "before " if rebuilt.is_since_before else ""
            since = f"{before}{instant(rebuilt.start_timestamp_ms * 1000)}"
            later = counted(rebuilt.change_count, "record")
            older = ", and older records were deleted" if rebuilt.is_since_before else ""
            yield f"The SPSO has been there since {since}; {later} of the topic since then have left it there{older}."
        if self.log_end_offset is not None:
            yield f"The log ends at {self.log_end_offset}, the lag is {rebuilt.lag(self.log_end_offset)}."


class StoredLife:
    """
    The life of one record, as far as records of the state topic say it.

    Complexity:
        O(b) for each of them, b the stored batches.
    """

    def __init__(self, offset: int) -> None:
        """
        Begin before the first record of the share partition.

        Raises:
            MalformedInputError: *offset* is no offset.
        """
        self._offset = integer(offset, "offset", 0)
        self._state: StoredState | None = None
        self._moments: list[StoredMoment] = []

    @property
    def moments(self) -> tuple[StoredMoment, ...]:
        """What the topic has said so far, in order."""
        return tuple(self._moments)

    def apply(self, logged: TopicRecord, state: StoredState | None) -> None:
        """Take the next record of the share partition, and what is stored after it; None if it was deleted."""
        before, self._state = self._state, state
        if state is None:
            if before is not None:
                self._add(logged, StoredHappening.DELETED, {})
            return
        start = {"start_offset": state.start_offset}
        if before is None or before.state_epoch != state.state_epoch:
            is_first = before is not None or begins_state(logged.decode())
            what = StoredHappening.STARTED if is_first else StoredHappening.LEFT
            self._add(logged, what, {"state_epoch": state.state_epoch, **start})
            before = None
        had_passed = before is not None and self._offset < before.start_offset
        if self._offset < state.start_offset:
            if before is not None and not had_passed:
                self._add(logged, StoredHappening.PASSED, start)
            return
        if had_passed:
            self._add(logged, StoredHappening.MOVED_BACK, start)
        was, now = None if before is None else stored_batch(before, self._offset), stored_batch(state, self._offset)
        if now is not None and (was is None or was[2:] != now[2:]):
            facts = {"state": _named(now.delivery_state), "delivery_count": now.delivery_count}
            self._add(logged, StoredHappening.STORED, facts)
        elif was is not None and now is None:
            self._add(logged, StoredHappening.NOT_STORED, start)

    def _add(self, logged: TopicRecord, what: StoredHappening, facts: dict[str, Any]) -> None:
        at_us = None if logged.timestamp_ms is None else logged.timestamp_ms * 1000
        self._moments.append(StoredMoment(logged.offset, at_us, what, facts))


def stored_batch(state: StoredState, offset: int) -> StateBatch | None:
    """Return the batch of *state* that has *offset*; None if none has."""
    return next((batch for batch in state.state_batches if batch.first_offset <= offset <= batch.last_offset), None)


def _named(state: int) -> str:
    """Return the name of a state; the number itself where no record has it."""
    return RecordState(state).name if state in list(RecordState) else str(state)


def stored_lives(
    topic: StateTopic,
    records: Iterable[TopicRecord],
    offset: int | None,
    is_wanted: Callable[[SharePartitionKey], bool],
) -> dict[SharePartitionKey, StoredLife]:
    """
    Add *records* to *topic*, and return the life of the record at *offset* of each share partition that is wanted.

    Args:
        topic: The topic, to which nothing was added yet.
        records: The records of the state topic, those of each of its partitions in order.
        offset: The offset of a record of the log; there are no lives if it is None.
        is_wanted: Whether a share partition is.

    Raises:
        UnreadableFileError: A record is not of this topic, or its offset does not ascend.
        MalformedInputError: *offset* is no offset.
    """
    lives: dict[SharePartitionKey, StoredLife] = {}
    for logged in records:
        record = topic.add(logged)
        if record is not None and offset is not None and is_wanted(record.key):
            life = lives.get(record.key) or lives.setdefault(record.key, StoredLife(offset))
            life.apply(logged, topic.partitions[logged.state_partition].shard.states.get(record.key))
    return lives


def explain_stored(
    rebuilt: RebuiltPartition,
    life: StoredLife | None = None,
    offset: int | None = None,
    *,
    delivery_count_limit: int = 5,
    log_end_offset: int | None = None,
) -> StoredExplanation:
    """
    Explain where a record stands by what the state topic has stored.

    Args:
        rebuilt: The share partition as the topic has it.
        life: What the topic has said of the record; None for nothing.
        offset: The record; that at the SPSO if None.
        delivery_count_limit: The group's. [deliveries]
        log_end_offset: The offset after the last record of the log; None if it is not known.

    Raises:
        MalformedInputError: *offset* is no offset.
    """
    state = rebuilt.state
    offset = max(state.start_offset, 0) if offset is None else integer(offset, "offset", 0)
    near = tuple(
        batch
        for batch in state.state_batches
        if is_near_limit(batch.delivery_state, batch.delivery_count, delivery_count_limit)
    )
    findings = tuple(_findings(state, offset, delivery_count_limit, log_end_offset))
    return StoredExplanation(rebuilt, offset, () if life is None else life.moments, findings, near, log_end_offset)


_OF_STATE: Final[Mapping[int, StoredReason]] = MappingProxyType(
    {
        RecordState.AVAILABLE: StoredReason.AVAILABLE,
        RecordState.ACKNOWLEDGED: StoredReason.ACKNOWLEDGED,
        RecordState.ARCHIVED: StoredReason.ARCHIVED,
        RecordState.ARCHIVING: StoredReason.ARCHIVING,
    }
)


def _findings(state: StoredState, offset: int, limit: int, log_end: int | None) -> Iterator[StatedReason]:
    start = {"start_offset": state.start_offset}
    batch = stored_batch(state, offset)
    if state.start_offset < 0:
        yield StatedReason(StoredReason.NEVER_STARTED, {}, None)
    elif offset < state.start_offset:
        yield StatedReason(StoredReason.PASSED, start, None)
    elif batch is not None:
        count = {"delivery_count": batch.delivery_count}
        reason = _OF_STATE.get(batch.delivery_state, StoredReason.UNREADABLE)
        yield StatedReason(reason, {**start, **count, "state": _named(batch.delivery_state)}, None)
        if is_near_limit(batch.delivery_state, batch.delivery_count, limit):
            yield StatedReason(StoredReason.LAST_DELIVERY, {**count, "limit": limit}, None)
    elif log_end is not None and offset >= log_end:
        yield StatedReason(StoredReason.NOT_APPENDED, {"log_end_offset": log_end}, None)
    elif state.state_batches and offset < state.state_batches[-1].last_offset:
        yield StatedReason(StoredReason.BETWEEN, {}, None)
    else:
        yield StatedReason(StoredReason.BEYOND, {}, None)
