"""The state of a replay between two events, as one value and as JSON: where a later replay goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from attrs import define, evolve, fields, frozen

from sharestate.errors import MalformedInputError, SnapshotError
from sharestate.history.columns import ERRORS, ISOLATION_LEVELS, KINDS, STATE_BATCHES
from sharestate.history.events import check_of, json_of
from sharestate.history.known_log import KnownLog, read_known_log
from sharestate.json_checks import (
    Check,
    Field,
    an_object,
    boolean,
    integer,
    list_of,
    nullable,
    one_of,
    record,
    row,
    text,
    version,
)
from sharestate.json_lines import Json, read_json, write_json
from sharestate.values.config import ShareConfig
from sharestate.values.fetched_records import IsolationLevel
from sharestate.values.offset_reset import read_auto_offset_reset
from sharestate.values.profiles import ALL_PROFILES, Profile
from sharestate.values.requests import StateBatch, StateRun, WriteShareGroupState, runs_of
from sharestate.values.snapshot import Snapshot

REPLAY_STATE_VERSION: Final = 2
"""The version of the JSON form."""


_MARK: Final = "sharestate_replay"

_SETTINGS: Final = ("delivery_count_limit", "max_record_locks", "record_lock_duration_ms", "renew_acknowledge_enable")

WriteContent = tuple[int, int, int, int, Sequence[StateBatch]]
"""Start offset, delivery complete count, state epoch, leader epoch and state batches of a write."""


def content_of(write: WriteShareGroupState) -> WriteContent:
    """Return what of a write its event has: all but key and number."""
    return write[2:]


def are_same_batches(one: Sequence[StateBatch], other: Sequence[StateBatch]) -> bool:
    """Return whether two writes have the same state batches, column by column: no batch is made for that."""
    if type(one) is type(other) is tuple:  # nearly always, and of one batch
        return one == other
    runs, others = runs_of(one), runs_of(other)
    if len(runs) == len(others) == 1:
        return list(map(tuple, runs[0])) == list(map(tuple, others[0]))
    return all(
        list(chain.from_iterable(run[at] for run in runs)) == list(chain.from_iterable(run[at] for run in others))
        for at in range(len(StateRun._fields))
    )


def are_same(observed: WriteContent, computed: WriteContent, *, is_head_late: bool) -> bool:
    """Return whether two writes say the same, but for start offset and complete count if these were read late."""
    head = slice(2, 4) if is_head_late else slice(4)
    return observed[head] == computed[head] and are_same_batches(observed[4], computed[4])


def find_write(pending: Mapping[int, WriteShareGroupState], content: WriteContent) -> int | None:
    """Return the number of the oldest of the *pending* writes with *content*; None if there is none."""
    head, batches = content[:4], content[4]
    for number, write in pending.items():
        if write[2:6] == head and are_same_batches(write[6], batches):
            return number
    return None


def content_in(request: Mapping[str, Any]) -> WriteContent:
    """Return the content of a ``write`` event by its request."""
    return (
        request["start_offset"],
        request["delivery_complete_count"],
        request["state_epoch"],
        request["leader_epoch"],
        request["state_batches"],
    )


def content_json(content: WriteContent) -> Json:
    """Return *content* as JSON for people."""
    start_offset, count, state_epoch, leader_epoch, batches = content
    return {
        "start_offset": start_offset,
        "delivery_complete_count": count,
        "state_epoch": state_epoch,
        "leader_epoch": leader_epoch,
        "state_batches": json_of(STATE_BATCHES, batches),
    }


@define
class Settings:
    """What ``config`` events set."""

    profile: Profile
    """The rules from the next initialization on."""

    config: ShareConfig
    """The group's settings; the dead-letter queue is on only under a profile that has one."""

    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    """The group's isolation level."""

    leader_epoch: int = 0
    """The leader's epoch from the next initialization on."""

    def change(self, request: Mapping[str, Any]) -> None:
        """
        Apply the fields of a ``config`` event.

        Raises:
            MalformedInputError: A field is not what it has to be; nothing was changed.
        """
        changes: dict[str, Any] = {name: request[name] for name in _SETTINGS if name in request}
        if "auto_offset_reset" in request:
            changes["auto_offset_reset"] = read_auto_offset_reset(
                request["auto_offset_reset"], "request.auto_offset_reset"
            )
        if "dlq_topic" in request:
            changes["dead_letter_queue"] = bool(request["dlq_topic"])
        config = evolve(self.config, **changes)
        profile = ALL_PROFILES[request["profile"]] if "profile" in request else self.profile
        isolation = ISOLATION_LEVELS[request["isolation"]] if "isolation" in request else self.isolation
        self.config, self.profile, self.isolation = config, profile, isolation
        self.leader_epoch = request.get("leader_epoch", self.leader_epoch)

    @property
    def effective(self) -> ShareConfig:
        """The settings as a share partition under the profile takes them."""
        has_queue = self.config.dead_letter_queue and self.profile.has_dead_letter_queue
        return (
            self.config if has_queue == self.config.dead_letter_queue else evolve(self.config, dead_letter_queue=False)
        )


class Loss(NamedTuple):
    """
    Why nothing is known of a share partition.

    Attributes:
        verdict: The verdict of the check of the broker's log.
        reason: Its reason, in words; None without one.
        how_long: ``until_read`` or ``for_good``.
        at_us: From when on; None if that is not known. [µs since 1970]
    """

    verdict: str
    reason: str | None
    how_long: str
    at_us: int | None


@frozen(kw_only=True)
class ReplayState:
    """The state of a replay."""

    key: tuple[str, str, int]
    """The share partition."""

    seq: int
    """The last event."""

    at_us: int | None
    """The time; None if no event had one. [µs since 1970]"""

    now_ms: int
    """The time of the last command that takes one. [ms]"""

    lost: Loss | None
    """Why nothing is known by now; None if that is no verdict."""

    lacks: frozenset[str]
    """The kinds that the history lacks."""

    profile: Profile
    """The rules from the next initialization on."""

    config: ShareConfig
    """The group's settings."""

    isolation: IsolationLevel
    """The group's isolation level."""

    leader_epoch: int
    """The leader's epoch from the next initialization on."""

    log: KnownLog
    """What is known of the log."""

    snapshot: Snapshot | None
    """The share partition; None if its state is not known."""

    pending: dict[int, WriteContent]
    """The contents of its pending writes by their numbers."""

    abandoned: tuple[WriteContent, ...]
    """The writes of the leader before this one that were pending as it was replaced."""

    expected: dict[int, tuple[str, str | None]]
    """The kind and the answered error of the events whose writes are pending, by the numbers of the writes."""

    counts: dict[str, int]
    """The counts so far."""

    def to_json(self) -> str:
        """Return the state in one line."""
        config = {field.name: getattr(self.config, field.name) for field in fields(ShareConfig)}
        return write_json(
            {
                _MARK: REPLAY_STATE_VERSION,
                "key": list(self.key),
                "seq": self.seq,
                "at_us": self.at_us,
                "now_ms": self.now_ms,
                "lost": None if self.lost is None else list(self.lost),
                "lacks": sorted(self.lacks),
                "profile": self.profile.name,
                "config": {**config, "auto_offset_reset": str(self.config.auto_offset_reset)},
                "isolation": self.isolation.value,
                "leader_epoch": self.leader_epoch,
                "log": self.log.to_json(),
                "snapshot": None if self.snapshot is None else self.snapshot.to_json(),
                "pending": [[number, *_row_of(content)] for number, content in self.pending.items()],
                "abandoned": [_row_of(content) for content in self.abandoned],
                "expected": [[number, *expected] for number, expected in self.expected.items()],
                "counts": dict(sorted(self.counts.items())),
            }
        )

    @staticmethod
    def from_json(line: str) -> ReplayState:
        """
        Read what ``to_json`` has written.

        Raises:
            SnapshotError: It is malformed, or of a version that is not known; ``field`` says where.
        """
        try:
            return _read(read_json(line), "")
        except SnapshotError:
            raise
        except MalformedInputError as error:
            raise SnapshotError(error.message, error.field) from error


def _row_of(content: WriteContent) -> list[Json]:
    *numbers, batches = content
    return [*numbers, json_of(STATE_BATCHES, batches)]


_INTEGER: Final = integer()
_CONTENT: Final = (_INTEGER, _INTEGER, _INTEGER, _INTEGER, check_of(STATE_BATCHES))


def _numbered(*values: Any) -> tuple[int, tuple[Any, ...]]:  # noqa: ANN401 - a number and a row
    return values[0], values[1:]


def _tuple(*values: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a row
    return values


def _counts(value: Json, path: str) -> dict[str, int]:
    return {name: integer(0)(count, f"{path}.{name}") for name, count in an_object(value, path).items()}


def _snapshot(value: Json, path: str) -> Snapshot:
    try:
        return Snapshot.from_json(text(value, path))
    except MalformedInputError as error:
        raise MalformedInputError(error.message, f"{path}.{error.field}" if error.field else path) from error


def _config(**settings: Any) -> ShareConfig:  # noqa: ANN401 - its fields
    return ShareConfig(**settings)


def _state(*, pending: Any, expected: Any, key: Any, lacks: Any, **others: Any) -> ReplayState:  # noqa: ANN401 - its fields
    del others[_MARK]
    return ReplayState(pending=dict(pending), expected=dict(expected), key=key, lacks=frozenset(lacks), **others)


def _names(names: Mapping[str, Any]) -> Check[str]:
    return one_of({name: name for name in names})


_number: Final = Field(integer(0))
_read: Final[Check[ReplayState]] = record(
    {
        _MARK: Field(version(REPLAY_STATE_VERSION)),
        "key": Field(row(text, text, integer(0, 2**31 - 1), make=_tuple)),
        "seq": Field(integer(-1)),
        "at_us": Field(nullable(_INTEGER)),
        "now_ms": Field(integer(0)),
        "lost": Field(nullable(row(text, nullable(text), text, nullable(_INTEGER), make=Loss))),
        "lacks": Field(list_of(_names(KINDS))),
        "profile": Field(one_of(ALL_PROFILES)),
        "config": Field(
            record(
                {
                    "max_record_locks": _number,
                    "delivery_count_limit": _number,
                    "record_lock_duration_ms": _number,
                    "renew_acknowledge_enable": Field(boolean),
                    "auto_offset_reset": Field(read_auto_offset_reset),
                    "dead_letter_queue": Field(boolean),
                },
                _config,
            )
        ),
        "isolation": Field(one_of(ISOLATION_LEVELS)),
        "leader_epoch": Field(_INTEGER),
        "log": Field(read_known_log),
        "snapshot": Field(nullable(_snapshot)),
        "pending": Field(list_of(row(_INTEGER, *_CONTENT, make=_numbered))),
        "abandoned": Field(list_of(row(*_CONTENT, make=_tuple))),
        "expected": Field(list_of(row(_INTEGER, _names(KINDS), nullable(_names(ERRORS)), make=_numbered))),
        "counts": Field(_counts),
    },
    _state,
)
