"""
Everything about a share partition, as one frozen value.

A snapshot is what can be copied, compared, hashed, pickled and written down; a share partition is what can be changed.
Two share partitions with equal snapshots cannot be told apart by anything that is done to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

from attrs import asdict, fields, frozen

from sharestate.errors import MalformedInputError, SnapshotError
from sharestate.json_checks import Check, Field, boolean, integer, list_of, nullable, one_of, record, row, text, version
from sharestate.json_lines import Json, read_json, write_json
from sharestate.values.checks import expect
from sharestate.values.config import AutoOffsetReset, OffsetReset, ShareConfig
from sharestate.values.keys import SharePartitionKey
from sharestate.values.profiles import Profile, Quirk
from sharestate.values.records import RecordState
from sharestate.values.requests import StateBatch
from sharestate.values.snapshot_rows import (
    BatchRow,
    CellRow,
    KipMemoryRow,
    KipWriteRow,
    LockRow,
    RangeRow,
    RunRow,
    WriteRow,
)
from sharestate.values.write_policies import Amendment, BrokerWritePolicy, KipWritePolicy, WritePolicy

SNAPSHOT_VERSION: Final = 2
"""The version of the JSON form that is written; version 1, which knew no write policies, is read too, and no other."""


@frozen(kw_only=True)
class Snapshot:
    """
    A share partition at one instant: frozen, hashable, complete.

    >>> from sharestate import SharePartition, SharePartitionKey, Snapshot
    >>> partition = SharePartition(SharePartitionKey(group_id="g", topic_id="t", partition=0))
    >>> Snapshot.from_json(partition.snapshot().to_json()) == partition.snapshot()
    True
    """

    profile: Profile
    """Whose rules it follows."""

    key: SharePartitionKey
    """Which share partition."""

    leader_epoch: int
    """The leader's epoch."""

    config: ShareConfig
    """The settings in force."""

    split_limit: int
    """The largest batch that is split. [records]"""

    lifecycle: str
    """How far it has come: the name of a Lifecycle."""

    is_read_pending: bool
    """Whether the persisted state was asked for and has not come."""

    state_epoch: int
    """The epoch that was read with the state."""

    start_offset: int
    """The SPSO."""

    end_offset: int
    """The SPEO."""

    delivery_complete_count: int
    """How many cached records count as complete. [records]"""

    find_next: bool
    """Whether the next fetch has to look for something cached."""

    gap_window: RangeRow | None
    """Where gaps between batches may hold records."""

    now_ms: int
    """The last instant that a command was told of. [ms]"""

    next_write: int
    """The number of the next write."""

    next_lock: int
    """The creation number of the next lock."""

    locks: tuple[LockRow, ...]
    """The locks that cells refer to, by creation number."""

    writes: tuple[WriteRow, ...]
    """The writes that were not answered yet, by number."""

    cells: tuple[CellRow, ...]
    """What is true of the cached records; a row stands after the one that it goes back to."""

    batches: tuple[BatchRow, ...]
    """The in-flight batches, in ascending order."""

    kip_memory: KipMemoryRow | None = None
    """What the KIP's write policy remembers, if the profile follows it."""

    def to_json(self) -> str:
        """Return the snapshot as JSON, on one line; equal snapshots give equal text."""
        values = {field.name: getattr(self, field.name) for field in fields(type(self))}
        written = {name: _WRITERS[name](value) if name in _WRITERS else value for name, value in values.items()}
        return write_json({"sharestate_snapshot": SNAPSHOT_VERSION, **written})

    @classmethod
    def from_json(cls, line: str) -> Snapshot:
        """
        Read what ``to_json`` wrote.

        Raises:
            SnapshotError: It is no snapshot, or one of another version; ``field`` names what was wrong.
        """
        try:
            snapshot: Snapshot = _SNAPSHOT(_of_this_version(read_json(expect(line, str, ""))), "")
        except MalformedInputError as error:
            raise SnapshotError(error.message, error.field) from error
        return snapshot


def _write_profile(profile: Profile) -> Json:
    return {
        "name": profile.name,
        "quirks": sorted(profile.quirks),
        "configurable": sorted(profile.configurable),
        "write_policy": _write_policy(profile.write_policy),
        "expires_per_call": profile.expires_per_call,
        "advances_after_failed_expiry": profile.advances_after_failed_expiry,
    }


def _write_policy(policy: WritePolicy) -> Json:
    if isinstance(policy, BrokerWritePolicy):
        return None
    return {
        "amendments": sorted(policy.amendments),
        "bound": policy.bound,
        "has_short_form": policy.has_short_form,
    }


def _write_config(config: ShareConfig) -> Json:
    reset = config.auto_offset_reset
    duration = None if reset.duration is None else reset.duration // timedelta(microseconds=1)
    return {
        **asdict(config, recurse=False),
        "auto_offset_reset": {"strategy": reset.strategy.value, "duration_us": duration},
    }


_WRITERS: Final[Mapping[str, Callable[[Any], Json]]] = MappingProxyType(
    {"profile": _write_profile, "config": _write_config, "key": asdict}
)
"""How the fields are written that JSON has no form for."""


# ---- reading

_COUNT: Final = integer(0)
_INTEGER: Final = integer()
_RANGE: Final = row(_INTEGER, _INTEGER, make=RangeRow)


def _object(make: Any, **checks: Check[Any]) -> Check[Any]:  # noqa: ANN401 - a class, or a function that makes one
    """Return the check for an object with exactly these members, whose class may refuse them for reasons of its own."""
    read: Check[dict[str, Any]] = record({name: Field(check) for name, check in checks.items()}, dict)

    def check(value: Json, path: str) -> Any:  # noqa: ANN401 - what *make* makes
        unknown = sorted(value.keys() - checks) if isinstance(value, dict) else []
        if unknown:
            message = "unknown"
            raise MalformedInputError(message, f"{path}.{unknown[0]}" if path else unknown[0])
        members = read(value, path)
        try:
            return make(**members)
        except MalformedInputError as error:
            raise MalformedInputError(error.message, path) from error

    return check


def _read_state(value: Json, path: str) -> RecordState:
    return RecordState(one_of({str(int(state)): state for state in RecordState})(str(_COUNT(value, path)), path))


def _read_profile(quirks: tuple[Quirk, ...], configurable: tuple[str, ...], **rules: Any) -> Profile:  # noqa: ANN401 - as they are
    return Profile(quirks=frozenset(quirks), configurable=frozenset(configurable), **rules)


def _read_reset(strategy: OffsetReset, duration_us: int | None) -> AutoOffsetReset:
    return AutoOffsetReset(strategy, None if duration_us is None else timedelta(microseconds=duration_us))


def _read_snapshot(sharestate_snapshot: int, **values: Any) -> Snapshot:  # noqa: ANN401, ARG001 - the version was checked
    return Snapshot(**values)


_CONFIG: Final = _object(
    ShareConfig,
    max_record_locks=_COUNT,
    delivery_count_limit=_COUNT,
    record_lock_duration_ms=_COUNT,
    renew_acknowledge_enable=boolean,
    auto_offset_reset=_object(
        _read_reset,
        strategy=one_of({strategy.value: strategy for strategy in OffsetReset}),
        duration_us=nullable(integer(0, timedelta.max // timedelta(microseconds=1))),
    ),
)

_CELL: Final = row(
    _read_state, _INTEGER, text, nullable(_COUNT), nullable(_COUNT), nullable(_COUNT), boolean, make=CellRow
)

_KIP_POLICY: Final = _object(
    KipWritePolicy,
    amendments=list_of(one_of({amendment.value: amendment for amendment in Amendment})),
    bound=nullable(integer(1)),
    has_short_form=boolean,
)


def _read_policy(value: Json, path: str) -> WritePolicy:
    policy: WritePolicy = BrokerWritePolicy() if value is None else _KIP_POLICY(value, path)
    return policy


_OFFSET_OR_NONE: Final = integer(-1)

_KIP_WRITE: Final = row(
    _COUNT,
    _OFFSET_OR_NONE,
    _COUNT,
    list_of(row(_COUNT, _COUNT, _read_state, _INTEGER, make=StateBatch)),
    make=KipWriteRow,
)

_SNAPSHOT: Final = _object(
    _read_snapshot,
    sharestate_snapshot=version(1, SNAPSHOT_VERSION),
    profile=_object(
        _read_profile,
        name=text,
        quirks=list_of(one_of({quirk.value: quirk for quirk in Quirk})),
        configurable=list_of(one_of({field.name: field.name for field in fields(ShareConfig)})),
        write_policy=_read_policy,
        expires_per_call=boolean,
        advances_after_failed_expiry=boolean,
    ),
    key=_object(SharePartitionKey, group_id=text, topic_id=text, partition=integer(0, 2**31 - 1)),
    leader_epoch=_INTEGER,
    config=_CONFIG,
    split_limit=integer(1),
    lifecycle=text,
    is_read_pending=boolean,
    state_epoch=_INTEGER,
    start_offset=_COUNT,
    end_offset=_COUNT,
    delivery_complete_count=_INTEGER,
    find_next=boolean,
    gap_window=nullable(_RANGE),
    now_ms=_COUNT,
    next_write=_COUNT,
    next_lock=_COUNT,
    locks=list_of(row(_COUNT, _INTEGER, make=LockRow)),
    writes=list_of(row(_COUNT, nullable(_COUNT), list_of(_RANGE), make=WriteRow)),
    cells=list_of(_CELL),
    batches=list_of(row(_INTEGER, _INTEGER, boolean, list_of(row(integer(1), _COUNT, make=RunRow)), make=BatchRow)),
    kip_memory=nullable(row(_OFFSET_OR_NONE, _OFFSET_OR_NONE, list_of(_KIP_WRITE), make=KipMemoryRow)),
)


def _of_this_version(value: Json) -> Json:
    """Return a snapshot of version 1 as version 2 has it: every policy was that of brokers. Others stay as they are."""
    version_ = value.get("sharestate_snapshot") if isinstance(value, dict) else None
    if not isinstance(value, dict) or type(version_) is not int or version_ != 1:
        return value
    value = _added(value, {"kip_memory": None}, "")
    rules = {"write_policy": None, "expires_per_call": False, "advances_after_failed_expiry": True}
    profile = value.get("profile")
    return {**value, "profile": _added(profile, rules, "profile.") if isinstance(profile, dict) else profile}


def _added(members: Mapping[str, Json], added: Mapping[str, Json], path: str) -> dict[str, Json]:
    for name in members.keys() & added:
        message = "unknown in version 1"
        raise MalformedInputError(message, f"{path}{name}")
    return {**members, **added}
