"""
One share partition of a conversation: the core with a clock, a persister, a log that knows offsets, and a fetch lock.

Everything that the core leaves to its surroundings is here, so that the protocol's requests can be answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final

from attrs import evolve

from sharestate.conversation import requests
from sharestate.conversation.configs import DEFAULT_CONFIG
from sharestate.conversation.loading import Loading
from sharestate.conversation.meanings import Held, NoFuture, Thrown
from sharestate.conversation.rendering import KEY, acquired_json, error_json, state_json, status_json
from sharestate.conversation.writes import Writes
from sharestate.error_codes import ErrorCode
from sharestate.errors import AlreadyInitializedError, ForeignError, MalformedInputError, ShareStateError
from sharestate.json_checks import MAX_INT64
from sharestate.json_lines import Json
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.partition import SharePartition
from sharestate.values.effects import Effects
from sharestate.values.profiles import Profile, Quirk
from sharestate.values.requests import PersistedState


def unsupported(request: requests.Request) -> Json:
    """Return the result of a request that asks for what this implementation does not have."""
    return {"unsupported": request.op}


class Session:
    """A share partition that answers the requests of a conversation."""

    def __init__(self, opening: requests.Open, profile: Profile) -> None:
        """Make the share partition that *opening* asks for, under the rules of *profile*."""
        self._opened_config = evolve(DEFAULT_CONFIG, **opening.config)
        self._partition = SharePartition(
            KEY, leader_epoch=opening.leader_epoch, profile=profile, config=self._opened_config
        )
        self._events: list[Json] = []
        self._writes = Writes(self._partition, self._events)
        self._loading = Loading(self._partition, self._events)
        self._now_ms = 0
        self._futures = 0
        self._fetch_lock: str | None = None
        _REACH[opening.lifecycle](self._partition)

    def run(self, request: requests.Request) -> Json:
        """
        Carry out *request*, and return the response.

        Raises:
            MalformedInputError: Nothing is held that the request would complete, or a value is out of the core's range;
                nothing was changed.
        """
        if not request.is_supported:
            return self.response(unsupported(request), quiet=request.quiet)
        self._writes.take(request.answers)
        result = self._carry_out(request.command)
        if self._writes.has_failed and not self._partition.profile.has(Quirk.B15):
            self._expire()
        return self.response(result, quiet=request.quiet)

    def response(self, result: Json, *, quiet: bool) -> Json:
        """Return the response with *result* and what happened on the way to it; without the state if *quiet*."""
        events = self._events.copy()
        self._events.clear()
        state = None if quiet else state_json(self._partition, self._fetch_lock)
        return {"result": result, "events": events, "state": state}

    def _carry_out(self, command: requests.Command) -> Json:
        try:
            return self._HANDLERS[type(command)](self, command)
        except MalformedInputError:
            raise
        except ShareStateError as error:
            return {"raised": error_json(error)}

    def _expire(self) -> None:
        """Handle the lapsed locks one by one: each write is answered before the next lock (spec 24.5)."""
        while (effects := self._partition.expire_next(now_ms=self._now_ms)) is not None:
            self._writes.carry_out(effects)

    def _future(self, status: Json) -> Json:
        future = self._futures
        self._futures += 1
        return {"future": future, "status": status}

    def _future_of(self, command: Callable[[], Effects]) -> Json:
        """Return the future of a *command* that is settled by its write, or by refusing it."""
        try:
            effects = command()
        except ShareStateError as error:
            return self._future(error_json(error))
        return self._future(self._writes.carry_out(effects, self._futures))

    # ---- commands

    def _initialize(self, command: requests.Initialize) -> Json:
        self._loading.table = command.lookup
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
                raise ForeignError(None, ErrorCode.UNKNOWN_SERVER_ERROR, "NullPointerException")
            case Held():
                self._loading.held_for = self._futures
                return self._future("pending")
            case meaning:
                effects = self._loading.finish(meaning, now_ms=self._now_ms)
        self._writes.carry_out(effects)
        return self._future(status_json(effects))

    def _complete_read(self, command: requests.CompleteRead) -> None:
        future = self._loading.held_for
        if future is None:
            message = "no read is held"
            raise MalformedInputError(message, "write")
        self._loading.held_for = None
        self._loading.table = command.lookup or self._loading.table
        effects = self._loading.finish(command.answer.meaning, now_ms=self._now_ms)
        self._events.append(["future", future, status_json(effects)])
        self._writes.carry_out(effects)

    def _complete_write(self, command: requests.CompleteWrite) -> None:
        if not self._writes.is_held(command.write):
            message = f"no write {command.write} is held"
            raise MalformedInputError(message, "write")
        self._writes.complete(command.write, command.answer.meaning)

    def _acquire(self, command: requests.Acquire) -> Json:
        effects = self._partition.acquire(
            command.member,
            command.fetched,
            now_ms=self._now_ms,
            max_records=command.max_records,
            batch_size=command.batch_size,
            mode=command.mode,
        )
        self._writes.carry_out(effects)
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
        self._writes.carry_out(self._partition.advance_log_start(command.offset))

    def _fence(self, _command: requests.Fence) -> None:
        self._writes.carry_out(self._partition.fence())

    def _configure(self, command: requests.Configure) -> None:
        config = evolve(self._opened_config, **(command.config or {}))
        self._writes.carry_out(self._partition.configure(config))

    def _advance(self, command: requests.Advance) -> None:
        if command.ms > MAX_INT64 - self._now_ms:
            message = "the clock ends at 2^63-1 ms"
            raise MalformedInputError(message, "ms")
        self._now_ms += command.ms
        self._expire()

    def _lock_fetch(self, command: requests.LockFetch) -> bool:
        if self._partition.lifecycle is not Lifecycle.ACTIVE or self._fetch_lock is not None:
            return False
        self._fetch_lock = command.id
        return True

    def _unlock_fetch(self, _command: requests.UnlockFetch) -> None:
        self._fetch_lock = None  # whoever asks: of a stranger Kafka only takes note (SharePartition.releaseFetchLock)

    def _set_default_answer(self, command: requests.DefaultAnswer) -> None:
        self._writes.default = command.answer

    def _set_lookup(self, command: requests.Lookup) -> None:
        self._loading.table = command.lookup

    def _timers(self, _command: requests.Timers) -> int:
        return self._partition.lock_count()

    def _state(self, _command: requests.State) -> None:
        """Do nothing: the response shows the state anyway."""

    _HANDLERS: ClassVar[Mapping[type[requests.Command], Callable[[Session, Any], Json]]] = MappingProxyType(
        {
            requests.Initialize: _initialize,
            requests.CompleteRead: _complete_read,
            requests.CompleteWrite: _complete_write,
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
            requests.Lookup: _set_lookup,
            requests.Timers: _timers,
            requests.State: _state,
        }
    )
    """What to do for each command; ``Open`` makes a session, and ``FireLock`` is not supported."""


def _stay(_partition: SharePartition) -> None:
    """Leave it as it is made."""


def _initializing(partition: SharePartition) -> None:
    partition.initialize()


def _active(partition: SharePartition) -> None:
    partition.initialize()
    partition.read_succeeded(PersistedState())


def _failed(partition: SharePartition) -> None:
    partition.initialize()
    partition.read_failed(ErrorCode.UNKNOWN_SERVER_ERROR)


def _fenced(partition: SharePartition) -> None:
    partition.fence()


_REACH: Final[Mapping[Lifecycle, Callable[[SharePartition], None]]] = MappingProxyType(
    {
        Lifecycle.EMPTY: _stay,
        Lifecycle.INITIALIZING: _initializing,
        Lifecycle.ACTIVE: _active,
        Lifecycle.FAILED: _failed,
        Lifecycle.FENCED: _fenced,
    }
)
"""The commands that lead to each state."""
