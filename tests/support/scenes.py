"""
Scenes: a share partition with a clock and a persister, in a shorthand for logs, acknowledgements, writes and batches.

==================  ====================================================================================================
a log               ``[0-4][5-9]``; ``[0-4 p1]`` is part of producer 1's transaction and ``[9 p1 ABORT]`` its marker;
                    ``[0-4 p1 plain]`` was written by producer 1 outside any transaction
persisted batches   ``[10-14 st2][20-24 st0 dc3]``: state number and delivery count, which is 1 if it is left out
an acknowledgement  ``0-4:accept``, or ``0-2:accept,gap,release`` with one type for each offset; numbers do as well:
                    ``0-4:1,0,1,3,2``
a write             ``W(0; 0-4 st2 dc1, 7 st0 dc1; cc 5)``: start offset; state batches; delivery complete count
a dead letter       ``0: 5-9 x1 client_reject``: number; records; delivery count; cause
a batch             ``[0-9] ACQUIRED/1/m1``, and once it is split ``[0-9] split: 0-4 ACQUIRED/1/m1, 5-9 AVAILABLE/1/-``;
                    ``*`` is a write in flight, ``x`` an expired lock, ``t`` a record archived meanwhile
==================  ====================================================================================================
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sharestate import (
    KAFKA_4_3,
    AbortedTransaction,
    AcknowledgementBatch,
    AcknowledgeType,
    AcquiredRecords,
    AcquireMode,
    BatchView,
    ControlType,
    Effects,
    ErrorCode,
    FetchedRecords,
    IsolationLevel,
    PersistedState,
    Profile,
    RecordBatch,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    StateBatch,
    WriteShareGroupState,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KEY: Final = SharePartitionKey(group_id="g", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)
LEADER_EPOCH: Final = 7
STATE_EPOCH: Final = 3
LOCK_MS: Final = 10_000


class Scene:
    """One share partition, the caller's clock, and a persister that answers as a test says."""

    def __init__(  # noqa: PLR0913 - what tests vary
        self,
        *,
        profile: Profile = KAFKA_4_3,
        max_locks: int = 200,
        limit: int = 5,
        lock_ms: int = LOCK_MS,
        renew: bool = True,
        queue: bool = False,
        split_limit: int = 2**20,
        record_transitions: bool = False,
    ) -> None:
        """Set the scene: nothing is loaded yet, and the clock stands at 0; *queue* takes a profile that has one."""
        self.partition = SharePartition(
            KEY,
            leader_epoch=LEADER_EPOCH,
            profile=profile,
            config=ShareConfig(
                max_record_locks=max_locks,
                delivery_count_limit=limit,
                record_lock_duration_ms=lock_ms,
                renew_acknowledge_enable=renew,
                dead_letter_queue=queue,
            ),
            split_limit=split_limit,
            record_transitions=record_transitions,
        )
        self.now_ms = 0
        self.is_holding = False
        """Whether the persister keeps its answers back until ``succeed`` or ``fail`` is called."""
        self.failure: ErrorCode | None = None
        """The error with which the persister answers; None for success."""
        self.effects: list[Effects] = []
        """What every command and every outcome has led to."""

    # ---- commands

    def load(self, start: int = 0, batches: str = "") -> Scene:
        """Read the persisted state: the share partition is ACTIVE."""
        self.partition.initialize()
        assert self._remember(self.partition.read_succeeded(state(start, batches))).error is None
        return self

    def acquire(  # noqa: PLR0913 - what a fetch says
        self,
        member: str,
        fetch_offset: int,
        log_: str,
        *,
        most: int = 500,
        cut: int = 100,
        strict: bool = False,
        aborted: Sequence[tuple[int, int]] = (),
    ) -> tuple[AcquiredRecords, ...]:
        """Fetch, and return (first, last, delivery count) of what *member* acquires of it."""
        effects = self.partition.acquire(
            member,
            fetched(fetch_offset, log_, aborted),
            now_ms=self.now_ms,
            max_records=most,
            batch_size=cut,
            mode=AcquireMode.RECORD_LIMIT if strict else AcquireMode.BATCH_OPTIMIZED,
        )
        self._carry_out(effects)
        return effects.acquired

    def acknowledge(self, member: str, *ranges: str) -> tuple[str, ...]:
        """Acknowledge, and return the write."""
        return self._carry_out(
            self.partition.acknowledge(member, list(map(acknowledgement, ranges)), now_ms=self.now_ms)
        )

    def release(self, member: str) -> tuple[str, ...]:
        """Close the session of *member*, and return the write."""
        return self._carry_out(self.partition.release(member, now_ms=self.now_ms))

    def learn_log_start(self, offset: int) -> None:
        """Move the log start."""
        self._remember(self.partition.advance_log_start(offset))

    def wait(self, ms: int) -> tuple[str, ...]:
        """Let time pass and every expired lock be handled; return the writes."""
        self.now_ms += ms
        return tuple(write for writes in iter(self.expire, None) for write in writes)

    def expire(self) -> tuple[str, ...] | None:
        """Handle the next expired lock and return its writes; None if none has expired."""
        effects = self.partition.expire_next(now_ms=self.now_ms)
        return None if effects is None else self._carry_out(effects)

    def succeed(self, number: int) -> Effects:
        """Answer a write that was held."""
        return self._remember(self.partition.write_succeeded(number))

    def fail(self, number: int, error: ErrorCode) -> Effects:
        """Refuse a write that was held."""
        return self._remember(self.partition.write_failed(number, error))

    def dead_letter(self, number: int) -> tuple[str, ...]:
        """Let the dead-letter queue answer, and return the second write."""
        return self._carry_out(self.partition.dead_letter_answered(number))

    # ---- what can be seen

    @property
    def offsets(self) -> tuple[int, int]:
        """The SPSO and the SPEO."""
        return self.partition.start_offset, self.partition.end_offset

    @property
    def batches(self) -> list[str]:
        """The in-flight batches."""
        return list(map(shown, self.partition.batches()))

    @property
    def dead_letters(self) -> list[str]:
        """The requests to the dead-letter queue so far."""
        return [
            f"{letter.number}: {_span(letter.first_offset, letter.last_offset)} x{letter.delivery_count} {letter.cause}"
            for effects in self.effects
            for letter in effects.dead_letters
        ]

    @property
    def window(self) -> tuple[int, int] | None:
        """The gap window."""
        return self.partition.gap_window

    @property
    def deadlines(self) -> list[tuple[int, int, int]]:
        """The first offset, last offset and deadline of everything that has a lock."""
        merged: list[tuple[int, int, int]] = []
        for run in (run for batch in self.partition.batches() for run in batch.runs):
            deadline = run.lock_deadline_ms
            if deadline is None:
                continue
            if merged and merged[-1][1:] == (run.first_offset - 1, deadline):
                merged[-1] = (merged[-1][0], run.last_offset, deadline)
            else:
                merged.append((run.first_offset, run.last_offset, deadline))
        return merged

    # ---- the persister

    def _carry_out(self, effects: Effects) -> tuple[str, ...]:
        """Remember *effects*, answer the writes unless they are held, and return these."""
        self._remember(effects)
        for write in () if self.is_holding else effects.writes:
            if self.failure is None:
                self.succeed(write.number)
            else:
                self.fail(write.number, self.failure)
        return tuple(map(written, effects.writes))

    def _remember(self, effects: Effects) -> Effects:
        self.effects.append(effects)
        self.partition.check()
        return effects


# ---- the shorthand


def _bracketed(text: str) -> Iterator[tuple[int, int, list[str]]]:
    for inside in re.findall(r"\[(.*?)\]", text):
        span, *words = inside.split()
        first, _, last = span.partition("-")
        yield int(first), int(last or first), words


def log(text: str) -> list[RecordBatch]:
    """
    Read a log.

    >>> [tuple(batch[:4]) for batch in log("[0-4][5-9 p1]")]
    [(0, 4, -1, False), (5, 9, 1, True)]
    """
    batches = []
    for first, last, words in _bracketed(text):
        producer = int(words[0].removeprefix("p")) if words else -1
        control = ControlType(words[1]) if words[1:] and words[1] != "plain" else None
        batches.append(RecordBatch(first, last, producer, bool(words) and "plain" not in words, control))
    return batches


def persisted(text: str) -> list[StateBatch]:
    """
    Read persisted state batches.

    >>> [tuple(batch) for batch in persisted("[10-14 st2][20-24 st0 dc3]")]
    [(10, 14, 2, 1), (20, 24, 0, 3)]
    """
    return [
        StateBatch(first, last, int(words[0].removeprefix("st")), int([*words, "dc1"][1].removeprefix("dc")))
        for first, last, words in _bracketed(text)
    ]


def state(start: int, batches: str, *, epoch: int = STATE_EPOCH) -> PersistedState:
    """Return what the persister knows."""
    return PersistedState(start_offset=start, state_epoch=epoch, state_batches=persisted(batches))


def fetched(fetch_offset: int, log_: str, aborted: Sequence[tuple[int, int]] = ()) -> FetchedRecords:
    """Return what a fetch answered; it reads committed records only if it lists *aborted* transactions."""
    return FetchedRecords(
        fetch_offset=fetch_offset,
        batches=log(log_),
        aborted_transactions=[AbortedTransaction(*transaction) for transaction in aborted],
        isolation=IsolationLevel.READ_COMMITTED if aborted else IsolationLevel.READ_UNCOMMITTED,
    )


def acknowledgement(text: str) -> AcknowledgementBatch:
    """
    Read an acknowledgement.

    >>> tuple(acknowledgement("0-2:accept,3,1"))
    (0, 2, (1, 3, 1))
    """
    span, _, words = text.partition(":")
    first, _, last = span.partition("-")
    types = [int(AcknowledgeType[word.upper()] if word.isalpha() else word) for word in words.split(",") if word]
    return AcknowledgementBatch(int(first), int(last or first), tuple(types))


def _span(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}-{last}"


def written(write: WriteShareGroupState) -> str:
    """Write down what is persisted."""
    batches = ", ".join(
        f"{_span(first, last)} st{state} dc{count}" for first, last, state, count in write.state_batches
    )
    return f"W({write.start_offset}; {batches}; cc {write.delivery_complete_count})"


def shown(batch: BatchView) -> str:
    """Write down a batch; neighbors in it that look alike are shown as one."""
    runs: list[tuple[int, int, str]] = []
    for run in batch.runs:
        marks = "*" * run.has_pending_write + "x" * run.lock_expired + "t" * run.is_archived_meanwhile
        looks = f"{run.state.name}/{run.delivery_count}/{run.member_id or '-'}{marks}"
        if runs and runs[-1][2] == looks:
            runs[-1] = (runs[-1][0], run.last_offset, looks)
        else:
            runs.append((run.first_offset, run.last_offset, looks))
    span = f"[{_span(batch.first_offset, batch.last_offset)}]"
    if not batch.is_split:
        return f"{span} {runs[0][2]}"
    return f"{span} split: " + ", ".join(f"{_span(first, last)} {looks}" for first, last, looks in runs)
