"""What an observer gets: each thing that happens to a leader's share partition, as a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from attrs import frozen

from sharestate.errors import DeadLetterFailedError
from sharestate.leader.answers import ReadAnswer, WriteAnswer
from sharestate.partition.lifecycle import Lifecycle
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.config import ShareConfig
from sharestate.values.dead_letters import DeadLetterRequest
from sharestate.values.effects import Effects
from sharestate.values.fetched_records import FetchedRecords
from sharestate.values.profiles import Profile
from sharestate.values.records import AcquireMode, SharePartitionKey
from sharestate.values.requests import WriteShareGroupState

# ---- commands, with their arguments


@frozen
class Started:
    """``Leader.start`` has sent the read of the persisted state, under this profile and config."""

    profile: Profile
    config: ShareConfig


@frozen
class Configured:
    """``Leader.configure``: the profile says which settings of it change now."""

    config: ShareConfig


@frozen
class Acquired:
    """
    ``Leader.acquire``: a member has fetched, and ``effects.acquired`` is what it has acquired.

    Attributes:
        member_id: The member.
        fetched: What it has fetched.
        max_records: The most records that it wanted.
        batch_size: The size of new batches.
        mode: Whether there may be more records than that.
        is_untold: Whether the member does not learn of them, because Kafka's acquire throws there (B8).
    """

    member_id: str
    fetched: FetchedRecords
    max_records: int
    batch_size: int
    mode: AcquireMode
    is_untold: bool = False


@frozen
class Acknowledged:
    """``Leader.acknowledge``; its outcome is that of the write in ``effects``, if there is one."""

    member_id: str
    batches: tuple[AcknowledgementBatch, ...]


@frozen
class Released:
    """``Leader.release``; its outcome is that of the write in ``effects``, if there is one."""

    member_id: str


@frozen
class LogStartAdvanced:
    """``Leader.advance_log_start``."""

    offset: int


@frozen
class FindNextCleared:
    """``Leader.can_acquire`` or ``next_fetch_offset`` has found no record to deliver again."""


@frozen
class Fenced:
    """``Leader.fence`` or ``close``, or a write has failed because another leader has taken over."""


# ---- answers, and time


@frozen
class StateRead:
    """
    The persister has answered the read; ``effects.error`` says why the share partition is not ACTIVE.

    Attributes:
        leader_epoch: The leader's epoch.
        answer: The answer.
        reset_offset: Where to start, if none is persisted and ``reset_offset`` has found it; else None.
        lifecycle: The lifecycle state after it: a share partition that was fenced meanwhile stays FENCED.
    """

    leader_epoch: int
    answer: ReadAnswer
    reset_offset: int | None
    lifecycle: Lifecycle


@frozen
class WriteAnswered:
    """
    The persister has answered a write; ``effects.error`` is the error for the member.

    Attributes:
        write: The write.
        answer: The answer.
        has_stayed: Whether the SPSO has stayed where it is because Kafka's advance throws there (B7).
    """

    write: WriteShareGroupState
    answer: WriteAnswer
    has_stayed: bool = False


@frozen
class DeadLetterAnswered:
    """The dead-letter queue has answered; ``error`` is None if the dead letters were written."""

    request: DeadLetterRequest
    error: DeadLetterFailedError | None


@frozen
class LockExpired:
    """An acquisition lock has expired, or all that were due, if the profile handles them in one call."""


LeaderEvent: TypeAlias = (
    Started
    | Configured
    | Acquired
    | Acknowledged
    | Released
    | LogStartAdvanced
    | FindNextCleared
    | Fenced
    | StateRead
    | WriteAnswered
    | DeadLetterAnswered
    | LockExpired
)
"""Something that has happened."""


class Observation(NamedTuple):
    """
    Something that has happened to a share partition.

    Attributes:
        key: The share partition.
        at_ms: The ``now_ms`` of the command; of an answer, that of the last command that began before. [ms]
        event: What has happened.
        effects: What the share partition returned. Of a command that it refused, ``error`` is the refusal.
    """

    key: SharePartitionKey
    at_ms: int
    event: LeaderEvent
    effects: Effects


Observer: TypeAlias = Callable[[tuple[Observation, ...]], object]
"""Takes what has happened, in order."""
