"""The life of one record, from the events of its share partition."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, Final, NamedTuple

from sharestate.explain.members import KnownMembers
from sharestate.explain.miscounts import miscounted_by
from sharestate.explain.outcomes import End, Lived, lived_after, outcome_in_words
from sharestate.explain.replayed import ReplayedPartition, has_expired
from sharestate.explain.sentences import (
    CAUSE_SENTENCES,
    HAPPENING_SENTENCES,
    SPECIAL_SENTENCES,
    Happening,
    Outlook,
    Reason,
    StatedReason,
)
from sharestate.explain.why_not_delivered import Standing
from sharestate.explain.words import counted, duration, instant, sentence
from sharestate.history.columns import AppendedBatch
from sharestate.history.events import Event
from sharestate.history.replay_budget import ReplayBudget
from sharestate.history.rows import OutputRow
from sharestate.json_lines import Json
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.checks import integer
from sharestate.values.config import ShareConfig
from sharestate.values.effects import Cause
from sharestate.values.profiles import LATEST, Profile
from sharestate.values.records import RecordState

EXPLANATION_VERSION: Final = 1
"""The version of the JSON form."""

_BEHIND: Final = frozenset({Cause.PASSED, Happening.READ_AS_PASSED})
"""What leaves the SPSO above the record; that the next leader reads the same is no news."""

_LOCKS: Final = frozenset({Cause.ACQUIRED, Cause.RENEWED})
_OUTCOMES_OF_WRITES: Final = frozenset({Cause.CONFIRMED, Cause.ROLLED_BACK})


class Moment(NamedTuple):
    """
    One thing that happened to a record.

    Attributes:
        seq: The event with which it happened.
        at_us: When it happened; None if no event had a time yet. [µs since 1970]
        what: The cause of the change, or what else it was.
        facts: What is known of it; the sentence is made of these.
        source: The file and the line that the event was read from; None if it was not read from a file.
    """

    seq: int
    at_us: int | None
    what: Cause | Happening
    facts: Mapping[str, Any]
    source: str | None = None

    @property
    def text(self) -> str:
        """The moment in plain words."""
        if isinstance(self.what, Happening):
            return sentence(HAPPENING_SENTENCES[self.what], self.facts, self.at_us)
        special = SPECIAL_SENTENCES.get((self.what, str(self.facts["state"])))
        return sentence(special or CAUSE_SENTENCES[self.what], self.facts, self.at_us)

    def to_json(self) -> dict[str, Any]:
        """Return the moment with its facts and its sentence; what is null is left out."""
        facts = {name: value for name, value in self.facts.items() if value is not None}
        at = {} if self.at_us is None else {"at_us": self.at_us, "at": instant(self.at_us)}
        source = {} if self.source is None else {"source": self.source}
        return {"seq": self.seq, **at, **source, "what": self.what.value, **facts, "text": self.text}


class Explanation(NamedTuple):
    """
    The life of a record, and where it stands after the last event.

    Attributes:
        key: The share partition: group id, topic id and partition.
        offset: The record.
        events: The number of events of the share partition. [events]
        at_us: The time of the last one, to which "now" refers; None if none had a time. [µs since 1970]
        start_offset: The SPSO; None if the state is not known.
        end_offset: The SPEO; None if the state is not known.
        moments: What happened to the record, in order.
        lived: How often it was delivered, how that has ended, and what has become of it.
        standing: Where it stands.
        start_findings: What keeps the SPSO where it is.
        differences: How much was observed and computed otherwise: what follows the first one is uncertain.
        first_difference: The event with the first difference; None without one.
        members: Who the members are.
        named: Those that are named.
    """

    key: tuple[str, str, int]
    offset: int
    events: int
    at_us: int | None
    start_offset: int | None
    end_offset: int | None
    moments: tuple[Moment, ...]
    lived: Lived
    standing: Standing
    start_findings: tuple[StatedReason, ...]
    differences: int
    first_difference: int | None
    members: KnownMembers
    named: tuple[str, ...]

    def __str__(self) -> str:
        """Return the explanation in plain words."""
        return "\n".join(self.lines())

    @property
    def verdict(self) -> str:
        """Whether it is deliverable, in words, with what has become of it if it is never delivered again."""
        became = outcome_in_words(self.lived, self.members.name)
        is_over = self.standing.verdict is Outlook.NEVER and became
        return f"{self.standing.verdict.value}: {became}" if is_over else self.standing.verdict.value

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON; what is null is left out."""
        group_id, topic_id, partition = self.key
        fields = {
            "explanation": EXPLANATION_VERSION,
            "group_id": group_id,
            "topic_id": topic_id,
            "partition": partition,
            "offset": self.offset,
            "events": self.events,
            "at_us": self.at_us,
            "start_offset": self.start_offset,
            "end_offset": self.end_offset,
            "differences": self.differences,
            "first_difference": self.first_difference,
            "life": [moment.to_json() for moment in self.moments],
            "now": self.standing.to_json(),
            "start": [finding.to_json() for finding in self.start_findings],
            "lived": self.lived.to_json(self.members.client_ids),
            "verdict": self.verdict,
            **self.members.to_json(self.named),
        }
        return {name: value for name, value in fields.items() if value is not None}

    def lines(self) -> list[str]:
        """Return the explanation in plain words, line by line: whether it is deliverable first, then its life."""
        at = "" if self.at_us is None else f", {instant(self.at_us)}"
        lines = [f"Deliverable at the last event{at}: {self.verdict}."]
        lines += [f"  {finding.text}" for finding in self.standing.findings]
        lines.append("")
        before_us = None
        for moment in self.moments:
            source = "" if moment.source is None else f" ({moment.source})"
            lines.append(f"{_when(moment.at_us, before_us)}  {moment.text}{source}")
            before_us = moment.at_us
        if not self.moments:
            lines.append("Nothing in the history is about it.")
        others = [finding for finding in self.start_findings if finding not in self.standing.findings]
        if self.start_offset is not None and others:
            lines += ["", f"The SPSO is {self.start_offset}, the SPEO {self.end_offset}. At the SPSO:"]
            lines += [f"  {finding.text}" for finding in others]
        if self.first_difference is not None:
            often = f"{counted(self.differences, 'time')} something was observed and computed otherwise"
            lines += ["", f"{often}, first at event {self.first_difference}: what follows that is uncertain."]
        members = self.members.lines(self.named)
        if members:
            lines += ["", "Members:", *(f"  {line}" for line in members)]
        return lines


def _when(at_us: int | None, before_us: int | None) -> str:
    """Return an instant, and how long after the one before it was, in two columns."""
    if at_us is None:
        return f"{'-':<24}  {'':>12}"
    since = "" if before_us is None else f"+{duration(max(0, at_us - before_us))}"
    return f"{instant(at_us):<24}  {since:>12}"


def explain_record(  # noqa: PLR0913 - as ``Replay``
    events: Iterable[Event],
    key: tuple[str, str, int],
    offset: int,
    *,
    profile: Profile = LATEST,
    config: ShareConfig | None = None,
    lacks: frozenset[str] = frozenset(),
) -> Explanation:
    """
    Explain what happened to a record, and why it is or is not deliverable after the last event.

    Args:
        events: The events of a history; those of other share partitions are skipped.
        key: The share partition: group id, topic id and partition.
        offset: The record.
        profile: The rules until a ``config`` event names others.
        config: The group's settings until ``config`` events change them; Kafka's defaults if None.
        lacks: The kinds that the history lacks, as its header names them.

    Raises:
        HistoryOrderError: An event is missing, or was there already.
        MalformedInputError: An event or *offset* is malformed.

    Complexity:
        That of a replay of the share partition with its transitions.
    """
    life = RecordLife(key, offset, profile=profile, config=config, lacks=lacks)
    for event in events:
        if event[:3] == key:
            life.apply(event)
    return life.explanation()


class RecordLife:
    """
    The life of one record, event by event; ``explain_record`` for a history that is there as a whole.

    Raises:
        MalformedInputError: An argument is malformed.
    """

    def __init__(  # noqa: PLR0913 - as ``Replay``
        self,
        key: tuple[str, str, int],
        offset: int,
        *,
        profile: Profile = LATEST,
        config: ShareConfig | None = None,
        lacks: frozenset[str] = frozenset(),
        budget: ReplayBudget | None = None,
    ) -> None:
        """Begin before the first event of the share partition *key*."""
        self._offset = integer(offset, "offset", 0)
        self._replayed = ReplayedPartition(key, offset, profile=profile, config=config, lacks=lacks, budget=budget)
        self._moments: list[Moment] = []
        self._members: dict[str, None] = {}
        self._cause: Cause | None = None
        self._owner = ""
        self._locked_until_us: int | None = None
        self._is_in_flight = False
        self._is_unread = False
        self._queue: str | None = None
        self._lived = Lived()
        self._is_passed = False
        self._written: dict[int, str] = {}

    def apply(self, event: Event) -> None:
        """
        Apply the next event of the share partition.

        Raises:
            HistoryOrderError: *event* is not the next one, or is of another share partition; nothing was changed.
            MalformedInputError: A field of it is not what it has to be; ``field`` says which.
        """
        partition = self._replayed.partition
        start_before = None if partition is None else partition.start_offset
        known, known_batch, was_lost = len(self._moments), self._replayed.log.batch, self._replayed.lost is not None
        rows = self._replayed.apply(event)
        if event.kind == "config" and event.request:
            self._queue = event.request.get("dlq_topic", self._queue)
        appended = self._replayed.log.batch
        if event.kind == "log" and known_batch is None and appended is not None:
            self._add(event, Happening.APPENDED, _batch_facts(appended))
        was_in_flight, how = self._is_in_flight, End.UNKNOWN if was_lost else End.NEW_LEADER
        about = {"transition", "dead_letter"}
        own = [row for row in rows if row.kind in about and row.values[0] <= self._offset <= row.values[1]]
        causes = {row.values[4] for row in own if row.kind == "transition"}
        is_filtered = {Cause.ACQUIRED, Cause.ABORTED} <= causes
        answered = self._answered(event, own)
        for row in own:
            self._note_answered(event, answered)
            self._take_row(event, row, how, is_filtered=is_filtered)
        self._note_answered(event, answered)
        if event.kind == "initialize":
            self._take_over(event, how, was_in_flight=was_in_flight, was_read=len(self._moments) > known)
        elif event.kind == "fence" and partition is not None:
            self._add(event, Happening.FENCED, {})
        elif event.kind == "acknowledge" and len(self._moments) == known:
            self._look_for_acknowledgement(event)
        elif event.kind == "fetch" and self._replayed.partition is None:
            self._look_for_answer(event)
        self._look_for_move_back(event, start_before)

    def explanation(self) -> Explanation:
        """Return the life so far, and where the record stands after the last event."""
        replayed = self._replayed
        present, partition = replayed.present(), replayed.partition
        return Explanation(
            replayed.key,
            self._offset,
            replayed.events,
            replayed.at_us,
            None if partition is None else partition.start_offset,
            None if partition is None else partition.end_offset,
            tuple(self._moments),
            self._lived,
            present.standing(self._offset, replayed.log, self._cause),
            present.start_findings(),
            replayed.differences,
            replayed.first_difference,
            replayed.members,
            tuple(self._members),
        )

    # ---- what events say themselves

    def _take_over(self, event: Event, how: End, *, was_in_flight: bool, was_read: bool) -> None:
        """Note what a new leader has read of the record; *was_read* says that it was in the state."""
        partition, request = self._replayed.partition, event.request or {}
        facts: dict[str, Json] = {"leader_epoch": request.get("leader_epoch", "not known")}
        if partition is None or event.response is None or "error" in event.response:
            error = (event.response or {}).get("error", "the answer is not known")
            self._add(event, Happening.STATE_NOT_READ, {**facts, "error": error})
            self._is_in_flight, self._is_unread = False, True
            return
        was_unread, self._is_unread = self._is_unread, False
        self._written.clear()
        if was_read:
            return
        self._is_in_flight = False
        facts["start_offset"] = partition.start_offset
        if self._offset >= partition.start_offset:
            self._lived = self._lived.moved_back() if self._is_passed else self._lived.lost(how)
        self._is_passed = self._offset < partition.start_offset
        if self._is_passed:
            if not (self._moments and self._moments[-1].what in _BEHIND):
                self._add(event, Happening.READ_AS_PASSED, facts)
        elif was_in_flight or was_unread:
            self._add(event, Happening.NOT_READ, facts)

    def _look_for_answer(self, event: Event) -> None:
        for first, last, count in (event.response or {}).get("acquired", ()):
            if first <= self._offset <= last:
                self._add(event, Happening.ANSWERED, {**self._member(event.member_id or ""), "delivery_count": count})

    def _look_for_acknowledgement(self, event: Event) -> None:
        """Note an acknowledgement that the replay says nothing of: it was refused, or the state is not known."""
        error = (event.response or {}).get("error")
        if event.response is None or (error is None and self._replayed.partition is not None):
            return
        for first, last, types in (event.request or {})["batches"]:
            at = self._offset - first if len(types) > 1 else 0
            if first <= self._offset <= last and at < len(types):  # one with too few types is refused, too
                type_ = types[at]
                name = AcknowledgeType(type_).name if type_ in list(AcknowledgeType) else str(type_)
                facts = {**self._member(event.member_id or ""), "type": name, "error": error}
                self._add(event, Happening.ACKNOWLEDGED if error is None else Happening.REFUSED, facts)

    def _look_for_move_back(self, event: Event, start_before: int | None) -> None:
        partition = self._replayed.partition
        if partition is None or start_before is None or event.kind == "initialize":
            return
        if partition.start_offset <= self._offset < start_before:
            facts = {"from_offset": start_before, "start_offset": partition.start_offset}
            self._add(event, Happening.START_MOVED_BACK, facts)

    # ---- what the replay says

    def _take_row(self, event: Event, row: OutputRow, how: End, *, is_filtered: bool) -> None:
        if row.kind == "dead_letter":
            self._lived = self._lived._replace(is_dead_letter=True)
            facts = {"dlq_topic": self._queue, "cause": row.values[3]}
            self._add(event, Happening.HANDED_OVER, facts, row.at_us)
            return
        cause = Cause(row.values[4])
        if cause is Cause.ACQUIRED and self._is_passed:
            self._lived = self._lived.moved_back()
        if cause is Cause.READ:
            self._lived = self._lived.read(row, how)
        elif not (is_filtered and cause is Cause.ACQUIRED):
            self._lived = lived_after(self._lived, event, row)
        self._is_passed = cause is Cause.PASSED or (self._is_passed and cause not in {Cause.READ, Cause.ACQUIRED})
        self._take_transition(event, row, cause, is_filtered=is_filtered)

    def _take_transition(self, event: Event, row: OutputRow, cause: Cause, *, is_filtered: bool) -> None:
        _, _, member_id, count, _, before, after, write = row.values
        self._is_in_flight = after is not None
        if cause is Cause.THROTTLED:
            self._add_throttled(event, row)
            return
        if cause in _LOCKS:
            self._owner, self._locked_until_us = member_id, self._deadline_from(row.at_us)
        state = RecordState(before if after is None else after).name
        if is_filtered and cause is Cause.ACQUIRED:
            return
        if is_filtered and cause is Cause.ABORTED:
            facts = self._facts(event, row, cause, state, count, write)
            never = None if self._lived.all_deliveries else "never"
            self._add(event, Happening.FILTERED_OUT, {**facts, "never": never}, row.at_us)
        else:
            self._add(event, cause, self._facts(event, row, cause, state, count, write), row.at_us)
        self._note_write(cause, state, write)
        if cause not in {Cause.CONFIRMED, Cause.PASSED} or self._cause is None:
            self._cause = cause

    def _note_write(self, cause: Cause, state: str, write: int | None) -> None:
        if write is None:
            return
        if cause in _OUTCOMES_OF_WRITES:
            self._written.pop(write, None)
        else:
            self._written[write] = state

    def _answered(self, event: Event, rows: list[OutputRow]) -> Container[int]:
        """Return the writes of the record that an event has answered without a change of it: those of expired locks."""
        partition = self._replayed.partition
        if partition is None or not (rows or (self._written and event.kind == "write")):
            return ()
        under_way = {write.number for write in partition.snapshot().writes}
        own = {row.values[7]: row.values[4] for row in rows if row.kind == "transition"}
        return {
            number
            for number in self._written.keys() | own.keys()
            if number is not None and number not in under_way and own.get(number) not in _OUTCOMES_OF_WRITES
        }

    def _note_answered(self, event: Event, answered: Container[int]) -> None:
        error = (event.response or {}).get("error")
        for number in [number for number in self._written if number in answered]:
            facts = {"write": number, "state": self._written.pop(number), "error": error}
            at_us = None if event.kind == "write" else self._moments[-1].at_us  # no event says so: it was done at once
            self._add(event, Cause.CONFIRMED if error is None else Happening.NOT_PERSISTED, facts, at_us)

    def _facts(  # noqa: PLR0913 - the columns of a row
        self, event: Event, row: OutputRow, cause: Cause, state: str, count: int, write: int | None
    ) -> dict[str, Any]:
        """Return the facts of the sentence of *cause*."""
        partition = self._replayed.partition
        facts: dict[str, Json] = {"state": state, "delivery_count": count, "write": write}
        error = (event.response or {}).get("error")
        if cause is not Cause.READ:
            facts |= self._member(self._owner)
        if cause in _LOCKS | {Cause.ROLLED_BACK}:
            facts["locked_until_us"] = self._locked_until_us
        if partition is not None:
            facts |= {"limit": partition.config.delivery_count_limit, "start_offset": partition.start_offset}
        if cause is Cause.ARCHIVED_AT_LIMIT:
            facts["lost_by"] = self._lost_by(event, row)
        elif (bug := self._miscounted_by(row)) is not None:
            facts["bug"] = bug.value
        if cause is Cause.ROLLED_BACK:
            facts["error"] = "its error is not known" if error is None else error
        elif cause is Cause.DEAD_LETTERED:
            facts["error"] = error
        return facts

    def _miscounted_by(self, row: OutputRow) -> Reason | None:
        partition = self._replayed.partition
        bug = None if partition is None else miscounted_by(row, partition)
        if partition is None or (row.values[4] == Cause.ABORTED and self._offset >= partition.start_offset):
            return None
        return bug

    def _deadline_from(self, at_us: int | None) -> int | None:
        """Return until when the record is locked that was acquired, or whose lock was renewed, at *at_us*."""
        partition = self._replayed.partition
        if partition is None or at_us is None:
            return None
        runs = (run for batch in partition.batches() for run in batch.runs)
        deadline_ms = next((run.lock_deadline_ms for run in runs if self._offset <= run.last_offset), None)
        if deadline_ms is None:  # the same request has acknowledged it
            deadline_ms = at_us // 1000 + partition.config.record_lock_duration_ms
        return deadline_ms * 1000

    def _lost_by(self, event: Event, row: OutputRow) -> str:
        """Return how a record left its owner that was archived at the limit instead of being available again."""
        owner = self._replayed.members.name(self._owner)
        if has_expired(event, row, self._owner):
            return f"The lock of {owner} expired"
        return f"{owner} released it" if event.kind == "acknowledge" else f"The share session of {owner} closed"

    def _add_throttled(self, event: Event, row: OutputRow) -> None:
        """Note that the record was held back; fetches that do so one after the other make one moment."""
        facts: dict[str, Json] = {**self._member(event.member_id or ""), "state": "AVAILABLE", "times": 1}
        last = self._moments[-1] if self._moments else None
        if last is None or last.what is not Cause.THROTTLED:
            self._add(event, Cause.THROTTLED, facts, row.at_us)
            return
        members = str(last.facts["member"]).split(", ")
        if facts["member"] not in members:
            members.append(str(facts["member"]))
        count: Any = last.facts["times"]
        self._moments[-1] = last._replace(facts={**facts, "member": ", ".join(members), "times": count + 1})

    def _member(self, member_id: str) -> dict[str, Json]:
        """Return the facts that name a member."""
        self._members[member_id] = None
        return {"member": self._replayed.members.name(member_id), "member_id": member_id}

    def _add(self, event: Event, what: Cause | Happening, facts: Mapping[str, Json], at_us: int | None = None) -> None:
        at_us = self._replayed.at_us if at_us is None else at_us
        self._moments.append(Moment(event.seq, at_us, what, facts, event.source))


def _batch_facts(batch: AppendedBatch) -> dict[str, Any]:
    return {
        "first_offset": batch.first_offset,
        "last_offset": batch.last_offset,
        "control": batch.control,
        "producer_id": None if batch.control is None else batch.producer_id,
        "transaction_of": batch.producer_id if batch.transactional and batch.control is None else None,
    }
