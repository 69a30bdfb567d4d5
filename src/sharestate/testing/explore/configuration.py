"""What is explored: a small log, a group, and how much may go wrong; as JSON, with a version."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from attrs import field, fields, frozen

from sharestate.input_errors import MalformedInputError
from sharestate.json_checks import Check, Field, boolean, integer, list_of, one_of, record, row, version
from sharestate.json_lines import Json, read_json, write_json
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.checks import refuse
from sharestate.values.config import ShareConfig
from sharestate.values.fetched_records import IsolationLevel
from sharestate.values.records import NO_PRODUCER_ID, AcquireMode, ControlType, RecordBatch, RecordState
from sharestate.values.requests import PersistedState, StateBatch
from sharestate.values.transaction_index import TransactionIndex

CONFIGURATION_VERSION: Final = 1
"""The version of the JSON form that is written and read."""

MOST_OFFSETS: Final = 64
"""The most offsets that a log may have: beyond a handful nobody explores all there is. [offsets]"""

MOST_AT_ONCE: Final = 8
"""The most members, writes under way, sizes of fetches, and mishaps of a kind."""

LOCK_DURATION_MS: Final = 3_600_000
"""The duration of acquisition locks, the longest that brokers allow; only the order of deadlines matters. [ms]"""


def _log(log: tuple[RecordBatch, ...]) -> tuple[RecordBatch, ...]:
    try:
        TransactionIndex(log)  # refuses what is no log
    except MalformedInputError as error:
        raise MalformedInputError(error.message, f"log{(error.field or '').removeprefix('batches')}") from error
    if not log or log[-1].last_offset >= MOST_OFFSETS:
        refuse(f"expected batches of offsets below {MOST_OFFSETS}, at least one", "log")
    return tuple(log)


def _expect_a_few(values: tuple[Any, ...], name: str) -> None:
    """Refuse none, as a group without them does nothing, what is there twice, and more events than have a number."""
    if not 0 < len(values) <= MOST_AT_ONCE or len(set(values)) < len(values):
        refuse(f"expected 1 to {MOST_AT_ONCE} different values, got {len(values)}", name)


@frozen(kw_only=True)
class Configuration:
    """
    A share group and its surroundings, small enough to look at all that can become of it.

    A mishap happens at most as often as its field says: without a bound nothing would ever end.

    Attributes:
        log: The record batches of the log, from offset 0 on; an offset in none of them was never there.
        isolation: The group's isolation level; with *switches* 1 only once it was switched to it.
        members: The number of members, all alike.
        types: The ways in which members acknowledge.
        max_records: The sizes of fetches that members send. [records]
        mode: How strict these are.
        delivery_count_limit: The most deliveries of a record. [deliveries]
        max_record_locks: The number of records in flight at which no more are acquired. [records]
        dead_letter_queue: Whether the group has one, which needs a profile that has.
        stored: What the share coordinator has in the beginning.
        writes: The most writes that wait for an answer at the same time.
        failures: The number of writes that may fail.
        failovers: How often another leader may take over.
        log_starts: How often the log start may move.
        compactions: The number of batches that may be compacted away.
        switches: 1 if the group reads everything until its isolation level is set.

    Raises:
        MalformedInputError: A field is out of bounds.

    >>> Configuration.from_json(Configuration(log=(RecordBatch(0, 1),)).to_json()).log
    (RecordBatch(first_offset=0, last_offset=1, producer_id=-1, is_transactional=False, control=None),)
    """

    log: tuple[RecordBatch, ...] = field(converter=_log)
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    members: int = 1
    types: tuple[AcknowledgeType, ...] = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE)
    max_records: tuple[int, ...] = (500,)
    mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED
    delivery_count_limit: int = 2
    max_record_locks: int = 3
    dead_letter_queue: bool = False
    stored: PersistedState = field(factory=PersistedState)
    writes: int = 1
    failures: int = 0
    failovers: int = 0
    log_starts: int = 0
    compactions: int = 0
    switches: int = 0

    def __attrs_post_init__(self) -> None:
        """Refuse what is too much, or nothing."""
        for name, (low, high) in _BOUNDS.items():
            if not low <= getattr(self, name) <= high:
                refuse(f"expected {low} to {high}", name)
        for name in ("types", "max_records"):
            _expect_a_few(getattr(self, name), name)
        if self.stored.start_offset < 0:
            refuse("expected a start offset, as after an initialization", "stored")
        for index, (first, last, state, count) in enumerate(self.stored.state_batches):
            if last > self.log[-1].last_offset:
                refuse(f"expected offsets of the log, got {first}-{last}", f"stored.state_batches[{index}]")
            if state == RecordState.AVAILABLE and count >= self.delivery_count_limit:
                limit = f"fewer deliveries than delivery_count_limit, {self.delivery_count_limit}"
                refuse(f"expected {limit}, of an available record, got {count}", f"stored.state_batches[{index}]")

    @property
    def share_config(self) -> ShareConfig:
        """The settings of the group."""
        return ShareConfig(
            max_record_locks=self.max_record_locks,
            delivery_count_limit=self.delivery_count_limit,
            record_lock_duration_ms=LOCK_DURATION_MS,
            dead_letter_queue=self.dead_letter_queue,
        )

    def to_json(self, *, is_brief: bool = False) -> str:
        """Return the configuration as JSON, on one line; if *is_brief*, without the fields that are as by default."""
        values = {each.name: getattr(self, each.name) for each in fields(type(self))}
        if is_brief:
            usual = Configuration(log=self.log)
            values = {name: value for name, value in values.items() if name == "log" or value != getattr(usual, name)}
        written = {name: _WRITERS[name](value) if name in _WRITERS else value for name, value in values.items()}
        return write_json({"sharestate_exploration": CONFIGURATION_VERSION, **written})

    @classmethod
    def from_json(cls, text: str) -> Configuration:
        """
        Read what ``to_json`` wrote, or somebody by hand: only ``log`` and the version are required.

        Raises:
            MalformedInputError: It is no configuration, or one of another version; ``field`` names what was wrong.
        """
        return _CONFIGURATION(read_json(text), "")


_NUMBERS: Final[Mapping[str, int]] = MappingProxyType(
    dict.fromkeys(("writes", "failures", "failovers", "log_starts", "compactions"), MOST_AT_ONCE)
)

_BOUNDS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        **{name: (0, high) for name, high in _NUMBERS.items()},
        "writes": (1, MOST_AT_ONCE),
        "members": (1, MOST_AT_ONCE),
        "switches": (0, 1),
        "delivery_count_limit": (1, 10),
        "max_record_locks": (1, 2 * MOST_OFFSETS),
    }
)
"""The bounds of each number, both included."""


def log_batch_json(batch: RecordBatch) -> Json:
    """Return *batch* as the line protocol has it."""
    attributes: dict[str, Json] = {}
    if batch.producer_id != NO_PRODUCER_ID:
        attributes["producer_id"] = batch.producer_id
    if batch.is_transactional:
        attributes["transactional"] = True
    if batch.control is not None:
        attributes["control"] = batch.control.value
    return [batch.first_offset, batch.last_offset, *([attributes] if attributes else [])]


def stored_json(stored: PersistedState) -> Json:
    """Return *stored* as the line protocol has it in the answer to a read."""
    batches = [[first, last, int(state), count] for first, last, state, count in stored.state_batches]
    return {"start_offset": stored.start_offset, "state_batches": batches}


_WRITERS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "log": lambda log: [log_batch_json(batch) for batch in log],
        "isolation": lambda isolation: isolation.value,
        "types": lambda types: [each.name.lower() for each in types],
        "max_records": list,
        "mode": lambda mode: mode.value,
        "stored": stored_json,
    }
)

_OFFSET: Final = integer(0, MOST_OFFSETS)


def _log_batch(first: int, last: int, attributes: tuple[int, bool, ControlType | None] | None = None) -> RecordBatch:
    producer_id, is_transactional, control = attributes or (NO_PRODUCER_ID, False, None)
    return RecordBatch(first, last, producer_id, is_transactional or control is not None, control)


_LOG: Final = list_of(
    row(
        _OFFSET,
        _OFFSET,
        record(
            {
                "producer_id": Field(integer(0), default=NO_PRODUCER_ID),
                "transactional": Field(boolean, default=False),
                "control": Field(one_of({each.value: each for each in ControlType}), default=None),
            },
            lambda producer_id, transactional, control: (producer_id, transactional, control),
        ),
        make=_log_batch,
        required=2,
    )
)

stored_check: Final[Check[PersistedState]] = record(
    {
        "start_offset": Field(_OFFSET, default=0),
        "state_batches": Field(
            list_of(row(_OFFSET, _OFFSET, integer(0, 4), integer(0, 100), make=StateBatch)), default=()
        ),
    },
    PersistedState,
)
"""The check for what ``stored_json`` returns."""

_CHECKS: Final[Mapping[str, Check[Any]]] = MappingProxyType(
    {
        "log": _LOG,
        "isolation": one_of({each.value: each for each in IsolationLevel}),
        "types": list_of(one_of({each.name.lower(): each for each in AcknowledgeType})),
        "max_records": list_of(integer(1, 500)),
        "mode": one_of({each.value: each for each in AcquireMode}),
        "dead_letter_queue": boolean,
        "stored": stored_check,
        **{name: integer(*bounds) for name, bounds in _BOUNDS.items()},
    }
)


def _configuration(sharestate_exploration: int, **values: Any) -> Configuration:  # noqa: ANN401, ARG001 - of the checks; the version was checked
    return Configuration(**{name: value for name, value in values.items() if value is not None})


_CONFIGURATION: Final = record(
    {
        "sharestate_exploration": Field(version(CONFIGURATION_VERSION)),
        **{name: Field(check) if name == "log" else Field(check, default=None) for name, check in _CHECKS.items()},
    },
    _configuration,
)
