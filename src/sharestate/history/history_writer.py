"""An observer of leaders that writes their histories, so that any program that embeds the library can make them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from sharestate.errors import ErrorCode, ShareStateError
from sharestate.history.columns import ERROR_NAMES, ReadBatches
from sharestate.history.events import Event
from sharestate.leader import observed
from sharestate.leader.answers import Loaded, ReadAnswer, Refused, WriteAnswer, Written
from sharestate.leader.observed import Observation
from sharestate.partition.lifecycle import Lifecycle
from sharestate.values.checks import a_callable
from sharestate.values.config import ShareConfig
from sharestate.values.dead_letters import DeadLetterRequest
from sharestate.values.effects import Effects
from sharestate.values.fetched_records import IsolationLevel
from sharestate.values.requests import WriteShareGroupState

_SETTINGS: Final = ("max_record_locks", "delivery_count_limit", "record_lock_duration_ms", "renew_acknowledge_enable")

_Key: TypeAlias = tuple[str, str, int]
_Fields: TypeAlias = dict[str, Any] | None
_Row: TypeAlias = tuple[str, str | None, _Fields, _Fields]
"""The kind, the member, the request and the response of an event."""


class HistoryWriter:
    """
    An observer of leaders that writes what happens as a history.

    The history is in causal order. It has every config, read, fetch, acknowledgement, close, expired lock, outcome, log
    start, fence and dead letter, and replays without differences to the same share partition. Reads of the log are in
    the fetches; there are no ``log`` events.

    One writer serves any number of share partitions, and one leader of each after the other. A leader has it from its
    ``start`` on: a history begins with the read of the state.

    Args:
        write: Takes the next events, such as the ``write`` of ``create_history``; called at the end of a command.
        epoch_us: The Unix time at which the leaders' ``now_ms`` is 0. [µs since 1970]
        next_seq: The number of the next event of each share partition that has events elsewhere, such as those that the
            leader before wrote in another process.

    >>> from sharestate import (
    ...     AcknowledgementBatch,
    ...     FetchedRecords,
    ...     InMemoryPersister,
    ...     Leader,
    ...     RecordBatch,
    ...     SharePartition,
    ...     SharePartitionKey,
    ... )
    >>> from sharestate.persister import InitializeStateParameters, PartitionStateData
    >>> persister = InMemoryPersister()
    >>> begin = InitializeStateParameters.of("g", "t", PartitionStateData(partition=0, start_offset=0))
    >>> future = persister.initialize_state(begin)
    >>> partition = SharePartition(SharePartitionKey(group_id="g", topic_id="t", partition=0))
    >>> events = []
    >>> leader = Leader(partition, persister, reset_offset=lambda _: 0, observer=HistoryWriter(events.extend))
    >>> leader.start(now_ms=0).result()
    >>> acquired = leader.acquire("m1", FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, 4)]), now_ms=1)
    >>> leader.acknowledge("m1", [AcknowledgementBatch(0, 4, (1,))], now_ms=2).result()
    >>> [(event.seq, event.kind, event.at_us) for event in events]
    [(0, 'config', 0), (1, 'initialize', 0), (2, 'fetch', 1000), (3, 'acknowledge', 2000), (4, 'write', 2000)]
    """

    def __init__(
        self,
        write: Callable[[list[Event]], object],
        *,
        epoch_us: int = 0,
        next_seq: Mapping[_Key, int] = MappingProxyType({}),
    ) -> None:
        """Make one that has written nothing."""
        self._write = a_callable(write, "write")
        self._epoch_us = epoch_us
        self._next_seq = dict(next_seq)
        self._isolation: dict[_Key, IsolationLevel] = {}

    @property
    def next_seq(self) -> dict[_Key, int]:
        """The number of the next event of each share partition."""
        return dict(self._next_seq)

    def __call__(self, observations: tuple[Observation, ...]) -> None:
        """Write *observations*."""
        errors = {
            event.write.number: effects.error
            for _, _, event, effects in observations
            if isinstance(event, observed.WriteAnswered)
        }
        self._write([event for each in observations for event in self._events(each, errors)])

    def _events(self, observation: Observation, errors: Mapping[int, ShareStateError | None]) -> Iterator[Event]:
        share = observation.key
        key = (share.group_id, share.topic_id, share.partition)
        for kind, member_id, request, response in self._rows(key, observation, errors):
            seq = self._next_seq.get(key, 0)
            self._next_seq[key] = seq + 1
            at_us = self._epoch_us + 1000 * observation.at_ms
            yield Event.of(key, seq, kind, at_us=at_us, member_id=member_id, request=request, response=response)

    def _rows(  # noqa: C901, PLR0912 - a table: a case for each thing that happens
        self, key: _Key, observation: Observation, errors: Mapping[int, ShareStateError | None]
    ) -> Iterator[_Row]:
        """Yield the events of *observation*; *errors* are those of the writes that were answered with it."""
        effects = observation.effects
        match observation.event:
            case observed.Started(profile, config):
                self._isolation[key] = IsolationLevel.READ_UNCOMMITTED
                settings = {"isolation": IsolationLevel.READ_UNCOMMITTED.value, "profile": profile.name}
                yield "config", None, _settings(config) | settings, None
            case observed.Configured(config):
                yield "config", None, _settings(config), None
            case observed.StateRead() as read:
                yield "initialize", None, *_initialization(read, effects)
                if read.lifecycle is Lifecycle.FENCED:  # a replay makes a new share partition, which is not
                    yield "fence", None, None, None
            case observed.Acquired(member_id, fetched) as fetch:
                if fetched.isolation is not self._isolation.get(key):
                    self._isolation[key] = fetched.isolation
                    yield "config", None, {"isolation": fetched.isolation.value}, None
                if fetch.is_untold:
                    yield "fetch", member_id, _fetch(fetch) | {"defect": "B8"}, {"error": "unknown_server_error"}
                else:
                    yield "fetch", member_id, _fetch(fetch), _failure(effects.error) or {"acquired": effects.acquired}
            case observed.Acknowledged(member_id, batches):
                yield "acknowledge", member_id, {"batches": batches}, _outcome(effects, errors)
            case observed.Released(member_id):
                yield "close", member_id, None, _outcome(effects, errors)
            case observed.LogStartAdvanced(offset):
                yield "log_start", None, {"offset": offset}, None
            case observed.FindNextCleared():
                yield "fetch", None, {"max_records": 0}, None
            case observed.Fenced():
                yield "fence", None, None, None
            case observed.LockExpired():
                yield "expire", None, None, None
            case observed.WriteAnswered(write, answer, has_stayed):
                defect = {"defect": "B7"} if has_stayed else {}
                yield "write", None, _write(write) | defect, _answered(answer)
            case observed.DeadLetterAnswered(request, error):
                yield "dead_letter", None, _dead_letter(request), _failure(error)


# ---- requests


def _settings(config: ShareConfig) -> dict[str, Any]:
    return {
        **{name: getattr(config, name) for name in _SETTINGS},
        "auto_offset_reset": str(config.auto_offset_reset),
        "dlq_topic": "dlq" if config.dead_letter_queue else "",
    }


def _fetch(event: observed.Acquired) -> dict[str, Any]:
    return {
        "max_records": event.max_records,
        "batch_size": event.batch_size,
        "mode": event.mode.value,
        "fetch_offset": event.fetched.fetch_offset,
        "batches": ReadBatches(event.fetched.batches),
        "aborted": event.fetched.aborted_transactions,
    }


def _write(write: WriteShareGroupState) -> dict[str, Any]:
    return {
        "start_offset": write.start_offset,
        "delivery_complete_count": write.delivery_complete_count,
        "state_epoch": write.state_epoch,
        "leader_epoch": write.leader_epoch,
        "state_batches": tuple(write.state_batches),
    }


def _dead_letter(request: DeadLetterRequest) -> dict[str, Any]:
    return {
        "first": request.first_offset,
        "last": request.last_offset,
        "delivery_count": request.delivery_count,
        "cause": request.cause.value,
    }


# ---- responses


def _initialization(read: observed.StateRead, effects: Effects) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the request and the response of *read*; one from which nothing could be taken over has failed."""
    request = {"leader_epoch": read.leader_epoch}
    if read.lifecycle is Lifecycle.FENCED:  # whatever was read
        return request, _failure(effects.error)
    if not isinstance(read.answer, Loaded) or (read.answer.state.start_offset < 0 and read.reset_offset is None):
        return request, _answered(read.answer)
    state = read.answer.state
    return {**request, "reset_offset": read.reset_offset}, {
        "state_epoch": state.state_epoch,
        "start_offset": state.start_offset,
        "state_batches": state.state_batches,
    }


def _answered(answer: ReadAnswer | WriteAnswer) -> dict[str, Any]:
    """Return the response for *answer*, from which nothing is taken over."""
    if isinstance(answer, Written):
        return {}
    return _error(answer.code if isinstance(answer, Refused) else ErrorCode.UNKNOWN_SERVER_ERROR)


def _outcome(effects: Effects, errors: Mapping[int, ShareStateError | None]) -> dict[str, Any] | None:
    """Return the response to a member's command; None as long as its write is not answered."""
    error = effects.error
    for write in effects.writes:
        if write.number not in errors:
            return None
        error = errors[write.number]
    return _failure(error)


def _failure(error: ShareStateError | None) -> dict[str, Any]:
    return {} if error is None else _error(error.code)


def _error(code: int) -> dict[str, Any]:
    return {"error": ERROR_NAMES.get(code, "unknown_server_error")}
