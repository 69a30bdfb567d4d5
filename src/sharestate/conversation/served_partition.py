"""
One share partition of a conversation, with all that the core leaves to its caller.

That is a clock, a persister, a dead-letter queue, a log that knows offsets, and a fetch lock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from types import MappingProxyType
from typing import Any, ClassVar, Final

from attrs import evolve

from sharestate.conversation import requests
from sharestate.conversation.answers import Held, NoFuture, ReadMeaning, Thrown
from sharestate.conversation.grammar import DEFAULT_CONFIG
from sharestate.conversation.scripted_answers import ScriptedAnswers
from sharestate.conversation.to_json import KEY, acquired_json, error_json, state_json, status_json
from sharestate.errors import AlreadyInitializedError, ErrorCode, ExternalError, MalformedInputError, ShareStateError
from sharestate.json_checks import MAX_INT64
from sharestate.json_lines import Json
from sharestate.leader.answers import Loaded
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.share_partition import SharePartition
from sharestate.values.config import ShareConfig
from sharestate.values.effects import Effects
from sharestate.values.profiles import Profile, Quirk
from sharestate.values.requests import PersistedState

SERVED_SPLIT_LIMIT: Final = 2**12
"""The split limit of a conversation's share partitions: small, because its lines may come from anywhere. [records]"""

BATCHES_SPLIT: Final = 16
"""The number of batches of the largest size that may be split at the same time. [batches]"""


_COST_OF_SHOWN: Final = 16
"""What it costs to show an item of a batch, runs of records or what is true of all, beside its characters."""

NO_GROUP_CONFIG: Final[Mapping[str, Any]] = MappingProxyType({"dlq_topic": ""})
"""What a group without a configuration of its own has not, even if the share partition was opened with it."""


def share_config(settings: Mapping[str, Any], profile: Profile) -> ShareConfig:
    """
    Return the config that *settings*, as ``open`` and ``configure`` name them, stand for under *profile*.

    The dead-letter queue is on if the group names a topic and the cluster supports queues
    (SharePartition.isDLQEnabledForGroup, Kafka 4.4.0). A release without queues ignores both settings.
    """
    others = dict(settings)
    topic, is_supported = others.pop("dlq_topic", ""), others.pop("dlq_supported", True)
    is_on = profile.has_dead_letter_queue and bool(topic) and is_supported
    return evolve(DEFAULT_CONFIG, **others, dead_letter_queue=is_on)


def unsupported(request: requests.RequestLine) -> Json:
    """Return the result of a *request* that this implementation does not support."""
    return {"unsupported": request.op}


class ServedPartition:
    """
    A share partition that answers the requests of a conversation.

    Attributes:
        cost: What its requests have cost beside their responses. [characters]
    """

    def __init__(self, opening: requests.Open, profile: Profile, *, split_limit: int = SERVED_SPLIT_LIMIT) -> None:
        """Open the share partition of *opening* under *profile*; larger batches than *split_limit* are not split."""
        self._opened_with = dict(opening.config)
        self._partition = SharePartition(
            KEY,
            leader_epoch=opening.leader_epoch,
            profile=profile,
            config=share_config(opening.config, profile),
            split_limit=split_limit,
        )
        self._split_limit = split_limit
        self.cost = 0
        self._records = 0
        """At least as many records as are in flight in batches that can be split."""
        self._events: list[Json] = []
        self._answers = ScriptedAnswers(self._partition, self._events)
        self._now_ms = 0
        self._futures = 0
        self._fetch_lock: str | None = None
        _REACH[opening.lifecycle](self._partition)

    def run(self, request: requests.RequestLine) -> Json:
        """
        Return the response to *request*.

        Raises:
            MalformedInputError: The write or read to complete is not held, or a value is out of the core's range;
                nothing was changed.
        """
        if not request.is_supported:
            return self.response(unsupported(request), quiet=request.quiet)
        self._answers.script(request.answers, request.dead_letter_answers)
        result = self._carry_out(request.command)
        if self._answers.has_failed and not self._partition.profile.has(Quirk.EXPIRES_IN_MEMORY_ONLY):
            self._expire()
        return self.response(result, quiet=request.quiet)

    def response(self, result: Json, *, quiet: bool) -> Json:
        """Return the response with *result*, the events since the last one and, unless *quiet*, the state."""
        events = self._events.copy()
        self._events.clear()
        state = None if quiet else state_json(self._partition, self._fetch_lock)
        self.cost += self._partition.splittable_count()  # any request may look at all of them
        if state is not None:
            self.cost += _COST_OF_SHOWN * sum(len(batch[2]) for batch in state["batches"])
        return {"result": result, "events": events, "state": state}

    def _carry_out(self, command: requests.Command) -> Json:
        try:
            return self._HANDLERS[type(command)](self, command)
        except MalformedInputError:
            raise
        except ShareStateError as error:
            return {"raised": error_json(error)}

    def _expire(self) -> None:
        """Handle the expired locks one by one: each write is answered before the next lock (rule 24.5)."""
        while (effects := self._partition.expire_next(now_ms=self._now_ms)) is not None:
            self._answers.carry_out(effects)

    def _expect_room(self, first_offset: int, last_offset: int, sizes: Sequence[int], field: str) -> None:
        """
        Refuse new batches of *sizes* within the offsets if too many records could be split afterwards.

        A line, and the response to it, would cost as much as all of them.
        """
        limit = self._split_limit * BATCHES_SPLIT
        records = sum(min(size, limit) for size in sizes)
        # Looking at all batches for each request would be quadratic: an estimate that is too high does until it fails.
        if self._records + records > limit:
            in_flight = self._partition.batches()
            held = [batch.last_offset - batch.first_offset + 1 for batch in in_flight]
            self._records = sum(size if size <= self._split_limit else 1 for size in held)
            # Batches in flight may cut a larger one into pieces that can be split.
            cuts = sum(batch.last_offset >= first_offset and batch.first_offset <= last_offset for batch in in_flight)
            records = sum(min(size, self._split_limit * (cuts + 1)) for size in sizes)
            if self._records + records > limit:
                message = f"more than {limit} records would be in flight in batches that can be split"
                raise MalformedInputError(message, field)
        self._records += records

    def _expect_room_to_load(self, meaning: ReadMeaning) -> None:
        """Refuse a persisted state with too many records, as ``_expect_room`` does."""
        if isinstance(meaning, Loaded) and meaning.state.state_batches:
            sizes = [max(1, last - first + 1) for first, last, *_ in meaning.state.state_batches]
            self._expect_room(0, MAX_INT64, sizes, "answer")

    def _future(self, status: Json) -> Json:
        future = self._futures
        self._futures += 1
        return {"future": future, "status": status}

    def _future_of(self, command: Callable[[], Effects]) -> Json:
        """Return the future of a *command*: its write completes it, or its refusal."""
        try:
            effects = command()
        except ShareStateError as error:
            return self._future(error_json(error))
        return self._future(self._answers.carry_out(effects, self._futures))

    # ---- commands

    def _initialize(self, command: requests.Initialize) -> Json:
        self._expect_room_to_load(command.answer.meaning)
        self._answers.table = command.lookup
        try:
            self._partition.initialize()
        except AlreadyInitializedError:
            return self._future("ok")
        except ShareStateError as error:
            return self._future(error_json(error))
        self._events.append(["read", command.answer.as_given])
        match command.answer.meaning:
            case Thrown(cause):
                raise cause
            case NoFuture():
                raise ExternalError(None, ErrorCode.UNKNOWN_SERVER_ERROR, "NullPointerException")
            case Held():
                self._answers.held_read = self._futures
                return self._future("pending")
            case meaning:
                effects = self._answers.answer_read(meaning, now_ms=self._now_ms)
        self._answers.carry_out(effects)
        return self._future(status_json(effects))

    def _complete_read(self, command: requests.CompleteRead) -> None:
        future = self._answers.held_read
        if future is None:
            message = "no read is held"
            raise MalformedInputError(message, "write")
        self._expect_room_to_load(command.answer.meaning)
        self._answers.held_read = None
        self._answers.table = command.lookup or self._answers.table
        effects = self._answers.answer_read(command.answer.meaning, now_ms=self._now_ms)
        self._events.append(["future", future, status_json(effects)])
        self._answers.carry_out(effects)

    def _complete_write(self, command: requests.CompleteWrite) -> None:
        if not self._answers.is_held(command.write):
            message = f"no write {command.write} is held"
            raise MalformedInputError(message, "write")
        self._answers.complete_write(command.write, command.answer.meaning)

    def _complete_dead_letter(self, command: requests.CompleteDeadLetter) -> None:
        if not self._answers.holds_dead_letter(command.number):
            message = f"nothing is held by the dead-letter queue as {command.number}"
            raise MalformedInputError(message, "dlq")
        self._answers.complete_dead_letter(command.number)

    def _acquire(self, command: requests.Acquire) -> Json:
        if batches := command.fetched.batches:
            sizes = [batch.last_offset - batch.first_offset + 1 for batch in batches]
            self._expect_room(batches[0].first_offset, batches[-1].last_offset, sizes, "batches")
        effects = command.call(self._partition.acquire, now_ms=self._now_ms)
        self._answers.carry_out(effects)
        return acquired_json(effects)

    def _acknowledge(self, command: requests.Acknowledge) -> Json:
        return self._future_of(
            lambda: self._partition.acknowledge(command.member, command.batches, now_ms=self._now_ms)
        )

    def _release(self, command: requests.Release) -> Json:
        return self._future_of(lambda: self._partition.release(command.member, now_ms=self._now_ms))

    def _next_fetch_offset(self, _command: requests.NextFetchOffset) -> int:
        return self._partition.next_fetch_offset()

    def _can_acquire(self, _command: requests.CanAcquire) -> bool:
        return self._partition.can_acquire()

    def _log_start(self, command: requests.LogStart) -> None:
        self._answers.carry_out(self._partition.advance_log_start(command.offset))

    def _fence(self, _command: requests.Fence) -> None:
        self._answers.carry_out(self._partition.fence())

    def _configure(self, command: requests.Configure) -> None:
        group = NO_GROUP_CONFIG if command.config is None else command.config
        config = share_config({**self._opened_with, **group}, self._partition.profile)
        self._answers.carry_out(self._partition.configure(config))

    def _advance(self, command: requests.Advance) -> None:
        if command.ms > MAX_INT64 - self._now_ms:
            message = "the clock ends at 2^63-1 ms"
            raise MalformedInputError(message, "ms")
        self._now_ms += command.ms
        self._expire()

    def _lock_fetch(self, command: requests.LockFetch) -> bool:
        # rule 6
        if self._partition.lifecycle is not Lifecycle.ACTIVE or self._fetch_lock is not None:
            return False
        self._fetch_lock = command.id
        return True

    def _unlock_fetch(self, _command: requests.UnlockFetch) -> None:
        self._fetch_lock = None  # rule 6: whoever asks, Kafka only logs another id

    def _set_default_answer(self, command: requests.DefaultAnswer) -> None:
        self._answers.default = command.answer

    def _set_default_dead_letter_answer(self, command: requests.DefaultDeadLetterAnswer) -> None:
        self._answers.default_for_dead_letters = command.answer

    def _set_lookup(self, command: requests.Lookup) -> None:
        self._answers.table = command.lookup

    def _timers(self, _command: requests.Timers) -> int:
        return self._partition.lock_count()

    def _state(self, _command: requests.State) -> None:
        """Do nothing: the response shows the state anyway."""

    _HANDLERS: ClassVar[Mapping[type[requests.Command], Callable[[ServedPartition, Any], Json]]] = MappingProxyType(
        {
            requests.Initialize: _initialize,
            requests.CompleteRead: _complete_read,
            requests.CompleteWrite: _complete_write,
            requests.CompleteDeadLetter: _complete_dead_letter,
            requests.Acquire: _acquire,
            requests.Acknowledge: _acknowledge,
            requests.Release: _release,
            requests.NextFetchOffset: _next_fetch_offset,
            requests.CanAcquire: _can_acquire,
            requests.LogStart: _log_start,
            requests.Fence: _fence,
            requests.Configure: _configure,
            requests.Advance: _advance,
            requests.LockFetch: _lock_fetch,
            requests.UnlockFetch: _unlock_fetch,
            requests.DefaultAnswer: _set_default_answer,
            requests.DefaultDeadLetterAnswer: _set_default_dead_letter_answer,
            requests.Lookup: _set_lookup,
            requests.Timers: _timers,
            requests.State: _state,
        }
    )
    """The handler of each command; ``Open`` makes a served partition, and ``ExpireLock`` is not supported."""


def _empty(_partition: SharePartition) -> None:
    """Do nothing: a new share partition is EMPTY."""


def _active(partition: SharePartition) -> None:
    partition.initialize()
    partition.read_succeeded(PersistedState())


def _failed(partition: SharePartition) -> None:
    partition.initialize()
    partition.read_failed(ErrorCode.UNKNOWN_SERVER_ERROR)


_REACH: Final[Mapping[Lifecycle, Callable[[SharePartition], object]]] = MappingProxyType(
    {
        Lifecycle.EMPTY: _empty,
        Lifecycle.INITIALIZING: methodcaller("initialize"),
        Lifecycle.ACTIVE: _active,
        Lifecycle.FAILED: _failed,
        Lifecycle.FENCED: methodcaller("fence"),
    }
)
"""The commands that lead to each lifecycle state."""
