"""
Everything about a share partition, as one frozen value.

A snapshot is what can be copied, compared, hashed, pickled and written down; a share partition is what can be changed.
Two share partitions with equal snapshots behave alike whatever is done to them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from attrs import asdict, fields, frozen

from sharestate.input_errors import MalformedInputError, SnapshotError
from sharestate.json_checks import Check, Field, boolean, integer, list_of, nullable, one_of, record, row, text, version
from sharestate.json_lines import Json, read_json, write_json
from sharestate.values.checks import expect
from sharestate.values.config import ShareConfig
from sharestate.values.dead_letters import DeadLetter, DeadLetterCause
from sharestate.values.offset_reset import AutoOffsetReset, OffsetReset
from sharestate.values.profiles import Amendment, BrokerWritePolicy, KipWritePolicy, Profile, Quirk, WritePolicy
from sharestate.values.records import RecordState, SharePartitionKey
from sharestate.values.requests import StateBatch

SNAPSHOT_VERSION: Final = 5
"""
The version of the JSON form that is written. Read too: 1, without write policies; 2, without quirk B17; 3, without
dead-letter queues; 4, without the quirks F4 to F7.
"""


class CellRow(NamedTuple):
    """
    The state of some records; rows are referred to by their position.

    Attributes:
        state: The state; that after the pending transition if there is one.
        delivery_count: Their deliveries so far. [deliveries]
        member_id: Their owner; empty for none.
        lock: The creation number of their acquisition lock.
        write: The number of the pending write that carries their last transition.
        rollback: The row to restore if that write fails; None if they were archived meanwhile.
        lock_expired: Whether the lock has expired while the write was pending.
    """

    state: RecordState
    delivery_count: int
    member_id: str
    lock: int | None
    write: int | None
    rollback: int | None
    lock_expired: bool


class RunRow(NamedTuple):
    """
    Neighboring records that share a cell.

    Attributes:
        size: The number of records; 1 for a whole batch. [cells]
        cell: The position of their cell's row.
    """

    size: int
    cell: int


class BatchRow(NamedTuple):
    """
    An in-flight batch.

    Attributes:
        first_offset: Its first offset.
        last_offset: Its last offset, included.
        is_split: Whether it is kept record by record.
        runs: Its cells, in the order of their offsets.
    """

    first_offset: int
    last_offset: int
    is_split: bool
    runs: tuple[RunRow, ...]


class LockRow(NamedTuple):
    """
    An acquisition lock.

    Attributes:
        creation: Its number: locks with equal deadlines expire in this order.
        deadline_ms: The last instant at which it holds. [ms]
    """

    creation: int
    deadline_ms: int


class RangeRow(NamedTuple):
    """
    A range of a batch that a write carries, perhaps with others between.

    Attributes:
        first_offset: The first offset.
        last_offset: The last offset, included.
    """

    first_offset: int
    last_offset: int


class WriteRow(NamedTuple):
    """
    A pending write.

    Attributes:
        number: Its number.
        delivery_count_limit: The limit in force as its change began; None if the change is final, whatever the outcome.
            [deliveries]
        ranges: The records that wait for it.
        dead_letters: What goes to the dead-letter queue once it has succeeded; if the change is final, once it is
            answered.
        wakes: Whether its answer wakes fetches, though the change is final.
    """

    number: int
    delivery_count_limit: int | None
    ranges: tuple[RangeRow, ...]
    dead_letters: tuple[DeadLetter, ...] = ()
    wakes: bool = False


class DeadLetterRow(NamedTuple):
    """
    Records that the dead-letter queue was given and has not answered.

    Attributes:
        number: The number of the request.
        dead_letter: The records.
    """

    number: int
    dead_letter: DeadLetter


class KipWriteRow(NamedTuple):
    """
    A pending write in the memory of the KIP's write policy.

    Attributes:
        number: The write's number.
        start_offset: Its start offset; -1 if it leaves the persisted one as it is.
        end_offset: Once it is confirmed, what it says lies before this offset.
        expired: The records of which it says that their locks have expired, as they were before, in ascending order.
    """

    number: int
    start_offset: int
    end_offset: int
    expired: tuple[StateBatch, ...]


class KipMemoryRow(NamedTuple):
    """
    The memory of the KIP's write policy.

    Attributes:
        stored_start: The highest start offset that may be persisted; -1 until one is for sure.
        durable_end: Nothing at or after this offset is persisted for sure.
        pending: The pending writes, by number.
    """

    stored_start: int
    durable_end: int
    pending: tuple[KipWriteRow, ...]


@frozen(kw_only=True)
class Snapshot:
    """
    A share partition at one instant: frozen, hashable, complete.

    >>> from sharestate import SharePartition, SharePartitionKey, Snapshot
    >>> partition = SharePartition(SharePartitionKey(group_id="g", topic_id="t", partition=0))
    >>> Snapshot.from_json(partition.snapshot().to_json()) == partition.snapshot()
    True

    Attributes:
        profile: The rules that it follows.
        key: The share partition.
        leader_epoch: The leader's epoch.
        config: The settings in force.
        split_limit: The largest batch that is split. [records]
        lifecycle: The name of its Lifecycle.
        is_read_pending: Whether the persisted state was asked for and has not come.
        state_epoch: The epoch that was read with the state.
        start_offset: The SPSO.
        end_offset: The SPEO.
        delivery_complete_count: The number of in-flight records that count as complete. [records]
        find_next: Whether the next fetch has to look for something cached.
        gap_window: The offsets whose gaps between batches may hold records.
        now_ms: The last ``now_ms`` of a command. [ms]
        next_write: The number of the next write.
        next_lock: The creation number of the next lock.
        locks: The locks that cells refer to, by creation number.
        writes: The pending writes, by number.
        cells: The states of the cached records; a row stands after the one that it rolls back to.
        batches: The in-flight batches, in ascending order.
        next_dead_letter: The number of the next request to the dead-letter queue.
        dead_letters: The records that the dead-letter queue has not answered for, by number.
        kip_memory: The memory of the KIP's write policy, if the profile follows it.
    """

    profile: Profile
    key: SharePartitionKey
    leader_epoch: int
    config: ShareConfig
    split_limit: int
    lifecycle: str
    is_read_pending: bool
    state_epoch: int
    start_offset: int
    end_offset: int
    delivery_complete_count: int
    find_next: bool
    gap_window: RangeRow | None
    now_ms: int
    next_write: int
    next_lock: int
    locks: tuple[LockRow, ...]
    writes: tuple[WriteRow, ...]
    cells: tuple[CellRow, ...]
    batches: tuple[BatchRow, ...]
    next_dead_letter: int = 0
    dead_letters: tuple[DeadLetterRow, ...] = ()
    kip_memory: KipMemoryRow | None = None

    def to_json(self) -> str:
        """Return the snapshot as JSON, on one line; equal snapshots give equal text."""
        written = {name: getattr(self, name) for name in _FIELDS}
        for name, write in _WRITERS.items():
            written[name] = write(written[name])
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


_FIELDS: Final = tuple(field.name for field in fields(Snapshot))
"""The names of its fields, in the order in which they are written."""


def _write_profile(profile: Profile) -> Json:
    return {
        "name": profile.name,
        "quirks": sorted(profile.quirks),
        "configurable": sorted(profile.configurable),
        "has_dead_letter_queue": profile.has_dead_letter_queue,
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
"""The JSON of fields for which JSON has no form of its own."""


# ---- reading

_COUNT: Final = integer(0)
_INTEGER: Final = integer()
_RANGE: Final = row(_INTEGER, _INTEGER, make=RangeRow)
_STATES: Final = one_of({str(int(state)): state for state in RecordState})


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
    return _STATES(str(_COUNT(value, path)), path)


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
    dead_letter_queue=boolean,
)

_DEAD_LETTER: Final = row(
    _COUNT, _COUNT, _INTEGER, one_of({cause.value: cause for cause in DeadLetterCause}), make=DeadLetter
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
    sharestate_snapshot=version(1, 2, 3, 4, SNAPSHOT_VERSION),
    profile=_object(
        _read_profile,
        name=text,
        quirks=list_of(one_of({quirk.value: quirk for quirk in Quirk})),
        configurable=list_of(one_of({field.name: field.name for field in fields(ShareConfig)})),
        has_dead_letter_queue=boolean,
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
    writes=list_of(row(_COUNT, nullable(_COUNT), list_of(_RANGE), list_of(_DEAD_LETTER), boolean, make=WriteRow)),
    cells=list_of(_CELL),
    batches=list_of(row(_INTEGER, _INTEGER, boolean, list_of(row(integer(1), _COUNT, make=RunRow)), make=BatchRow)),
    next_dead_letter=_COUNT,
    dead_letters=list_of(row(_COUNT, _DEAD_LETTER, make=DeadLetterRow)),
    kip_memory=nullable(row(_OFFSET_OR_NONE, _OFFSET_OR_NONE, list_of(_KIP_WRITE), make=KipMemoryRow)),
)


_QUIRKS_SINCE_5: Final = (
    Quirk.STALLS_AFTER_LOG_START,
    Quirk.STALLS_IN_GAP_BELOW_START,
    Quirk.STALLS_AFTER_COMPACTION,
    Quirk.STALLS_AFTER_ABORT,
)
_QUIRKS_OF_3: Final = frozenset(Quirk) - {*_QUIRKS_SINCE_5, Quirk.ARCHIVES_UNCOUNTED}
_QUIRKS_OF_2: Final = _QUIRKS_OF_3 - {Quirk.WAITS_AT_WINDOW_END}


def _of_this_version(value: Json) -> Json:
    """Return a snapshot of an earlier version as this version has it. Others stay as they are."""
    version_ = value.get("sharestate_snapshot") if isinstance(value, dict) else None
    if not isinstance(value, dict) or type(version_) is not int or not 0 < version_ < SNAPSHOT_VERSION:
        return value
    for change in (_of_version_2, _of_version_3, _of_version_4, _of_version_5)[version_ - 1 :]:
        value = change(value)
    return value


def _of_version_2(value: Mapping[str, Json]) -> dict[str, Json]:
    """Return a snapshot of version 1 as version 2 has it: every policy was that of brokers."""
    value = _added(value, {"kip_memory": None}, "", 2)
    rules = {"write_policy": None, "expires_per_call": False, "advances_after_failed_expiry": True}
    return _with_added(value, "profile", rules, 2)


def _of_version_3(value: Mapping[str, Json]) -> dict[str, Json]:
    """Return a snapshot of version 2 as version 3 has it: profiles with every quirk of then have that of now too."""
    return _with_quirks(value, [Quirk.WAITS_AT_WINDOW_END], _QUIRKS_OF_2, 3)


def _of_version_4(value: Mapping[str, Json]) -> dict[str, Json]:
    """Return a snapshot of version 3 as version 4 has it: there were no dead-letter queues."""
    _quirks_without(value, [Quirk.ARCHIVES_UNCOUNTED], 4)
    value = _added(value, {"next_dead_letter": 0, "dead_letters": []}, "", 4)
    value = _with_added(value, "profile", {"has_dead_letter_queue": False}, 4)
    value = _with_added(value, "config", {"dead_letter_queue": False}, 4)
    rows = value.get("writes")
    if not isinstance(rows, list):
        return value
    return {**value, "writes": [[*row, [], False] if isinstance(row, list) else row for row in rows]}


def _of_version_5(value: Mapping[str, Json]) -> dict[str, Json]:
    """Return a snapshot of version 4 as version 5 has it: as for version 3, releases had more bugs than were known."""
    return _with_quirks(value, _QUIRKS_SINCE_5, _QUIRKS_OF_3, 5)


def _with_quirks(
    value: Mapping[str, Json], added: Sequence[Quirk], known: Collection[Quirk], since: int
) -> dict[str, Json]:
    """Return *value* with quirks that were found for version *since*, if its profile has all that were *known*."""
    profile, quirks = _quirks_without(value, added, since)
    if all(quirk in quirks for quirk in known):
        profile = {**profile, "quirks": [*quirks, *(quirk.value for quirk in added)]}
    return {**value, "profile": profile or value.get("profile")}


def _quirks_without(
    value: Mapping[str, Json], unknown: Collection[Quirk], since: int
) -> tuple[dict[str, Json], list[Json]]:
    """Return the profile and its quirks, of which *unknown* were none before version *since*; nothing if malformed."""
    profile = value.get("profile")
    quirks = profile.get("quirks") if isinstance(profile, dict) else None
    if not isinstance(profile, dict) or not isinstance(quirks, list):
        return {}, []
    for index, quirk in enumerate(quirks):
        if quirk in unknown:
            message = f"unknown before version {since}"
            raise MalformedInputError(message, f"profile.quirks[{index}]")
    return profile, quirks


def _with_added(value: Mapping[str, Json], name: str, added: Mapping[str, Json], since: int) -> dict[str, Json]:
    members = value.get(name)
    return {**value, name: _added(members, added, f"{name}.", since) if isinstance(members, dict) else members}


def _added(members: Mapping[str, Json], added: Mapping[str, Json], path: str, since: int) -> dict[str, Json]:
    for name in members.keys() & added:
        message = f"unknown before version {since}"
        raise MalformedInputError(message, f"{path}{name}")
    return {**members, **added}
