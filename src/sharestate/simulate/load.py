"""
What a share group has to do, and with which settings: the input of a simulation.

A file is an object with the version of its form, and the settings that differ from the defaults:
``{"load": 1, "members": 4, "processing": {"kind": "exponential", "mean": 20}, "lock_duration_ms": 15000}``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self, get_args

import attrs
from attrs import field, frozen

from sharestate.errors import MalformedInputError, UnreadableFileError
from sharestate.json_checks import Check, Field, boolean, integer, one_of, record, version
from sharestate.json_lines import MAX_LINE, Json, brief, read_json
from sharestate.simulate.distributions import (
    LONGEST_MS,
    MOST_RECORDS,
    Arrival,
    Backlog,
    Constant,
    RecordedArrival,
    Times,
    amount,
    arrival_json,
    arrival_of,
    milliseconds,
    number_within,
    read_arrival,
    read_times,
    time_text,
    times_json,
    times_of,
)
from sharestate.values.checks import Validator, brief_repr, instance, number, refuse
from sharestate.values.config import ShareConfig
from sharestate.values.profiles import LATEST, PROFILES, Profile
from sharestate.values.records import AcquireMode

LOAD_VERSION: Final = 1
"""The version of the form of files that is written, and the only one that is read."""


class Acknowledging(Enum):
    """How members acknowledge what they have processed; they wait for the answer."""

    EACH_POLL = "poll"
    """All records of a fetch in one request, when the last one of them was processed."""

    EACH_RECORD = "record"
    """Each record in a request of its own."""


class _Kind(NamedTuple):
    """How the values of a setting are checked, read and written."""

    validator: Validator
    read_json: Check[Any]
    write_json: Callable[[Any], Json]
    read_text: Callable[[str], Any]
    write_text: Callable[[Any], str]


def _same(value: Any) -> Any:  # noqa: ANN401 - as it is
    return value


def _integer_of(text: str) -> int:
    try:
        return int(text.replace(",", "").replace("_", ""))
    except ValueError:
        message = f"expected a whole number such as 20 or 10,000, got {brief(text)}"
        raise ValueError(message) from None


def _whole_ms(text: str) -> int:
    ms = milliseconds(text)
    if ms != int(ms):
        message = f"expected whole milliseconds, got {brief(text)}"
        raise ValueError(message)
    return int(ms)


def _rate_of(text: str) -> float:
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        message = f"expected a rate such as 0.02 or 2%, got {brief(text)}"
        raise ValueError(message) from None


def _boolean_of(text: str) -> bool:
    if text not in {"true", "false"}:
        message = f"expected true or false, got {brief(text)}"
        raise ValueError(message)
    return text == "true"


def _count(low: int, high: int) -> _Kind:
    return _Kind(number(low, high), integer(low, high), _same, _integer_of, "{:,}".format)


def _whole_time(low: int = 0) -> _Kind:
    return _Kind(number(low, LONGEST_MS), integer(low, LONGEST_MS), _same, _whole_ms, time_text)


def _time(low: float = 0) -> _Kind:
    return _Kind(amount(low, LONGEST_MS), number_within(low, LONGEST_MS), _same, milliseconds, time_text)


def _one_of(values: type[Enum]) -> _Kind:
    by_name = {each.value: each for each in values}
    return _Kind(instance(values), one_of(by_name), _value, lambda text: _chosen(text, by_name), _value)


def _one_class_of(classes: tuple[type[Any], ...]) -> Validator:
    """Return what has attrs refuse a field that is an instance of none of *classes*."""

    def validate(_instance: object, attribute: Any, value: object) -> None:  # noqa: ANN401 - an attribute of attrs
        if not isinstance(value, classes):
            names = ", ".join(each.__name__ for each in classes)
            refuse(f"expected one of {names}, got {brief_repr(value)}", attribute.name)

    return validate


def _value(value: Enum) -> str:
    return str(value.value)


def _chosen(text: str, by_name: Mapping[str, Any]) -> Any:  # noqa: ANN401 - one of them
    if text not in by_name:
        message = f"expected one of {', '.join(by_name)}, got {brief(text)}"
        raise ValueError(message)
    return by_name[text]


_RATE: Final = _Kind(amount(0, 1), number_within(0, 1), _same, _rate_of, "{:.3g}".format)
_BOOLEAN: Final = _Kind(instance(bool), boolean, _same, _boolean_of, lambda value: "true" if value else "false")
_TIMES: Final = _Kind(_one_class_of(get_args(Times)), read_times, times_json, times_of, str)
_ARRIVAL: Final = _Kind(_one_class_of(get_args(Arrival)), read_arrival, arrival_json, arrival_of, str)
_PROFILE: Final = _Kind(
    instance(Profile), one_of(PROFILES), lambda profile: profile.name, lambda text: _chosen(text, PROFILES), str
)._replace(write_text=lambda profile: profile.name)


def _setting(default: Any, kind: _Kind, kafka: str = "") -> Any:  # noqa: ANN401 - a field of attrs
    return field(default=default, validator=kind.validator, metadata={"kind": kind, "kafka": kafka})


@frozen(kw_only=True)
class Load:
    """
    What a share group has to do, and with which settings.

    >>> from sharestate.simulate import Load
    >>> Load(members=4, lock_duration_ms=15_000).changed("lock=1min", "share.delivery.count.limit=3").to_json()
    {'load': 1, 'members': 4, 'lock_duration_ms': 60000, 'delivery_count_limit': 3}

    Attributes:
        records: How many records are produced; those of a recorded arrival if there is one. [records]
        partitions: How many partitions the topic has. Batches go to them in turns.
        arrival: How records arrive.
        producer_batch: How many records a batch of the log has. [records]
        members: How many members the group has. Kafka's assignor gives them the partitions, and that stays so.
        processing: How long a member takes to process a record.
        failure_rate: How many of the deliveries fail, and are released.
        reject_rate: How many of the deliveries are rejected.
        poison_rate: How many of the records fail whenever they are delivered, and are released.
        crash_rate: At how many of the deliveries the member crashes: its connection is lost, and what it holds
            is released.
        restart_ms: How long it takes until another member is there in its place. [ms]
        retry_backoff_ms: How long a member waits after a failure before it goes on. [ms]
        acknowledging: When members acknowledge.
        renew_interval_ms: How often a member renews the locks of what it has not acknowledged; 0 for never. [ms]
        poll_records: The most records of a fetch, ``max.poll.records``. [records]
        acquire_mode: Whether that is rounded up to whole batches of the log, ``share.acquire.mode``.
        max_wait_ms: The longest time for which a fetch waits for records, ``fetch.max.wait.ms``. [ms]
        request_ms: How long a request and its answer take on their way. [ms]
        state_write_ms: How long a write of state takes, and one to the dead-letter queue. [ms]
        lock_duration_ms: ``share.record.lock.duration.ms``. [ms]
        delivery_count_limit: ``share.delivery.count.limit``. [deliveries]
        max_record_locks: ``share.partition.max.record.locks``. [records]
        dead_letter_queue: Whether there is a dead-letter queue, ``errors.deadletterqueue.topic.name``.
        profile: The rules of a release of Kafka.

    Raises:
        MalformedInputError: A setting is of the wrong type, or out of range.
    """

    records: int = _setting(10_000, _count(1, MOST_RECORDS))
    partitions: int = _setting(1, _count(1, 1000))
    arrival: Arrival = _setting(Backlog(), _ARRIVAL)  # noqa: RUF009 - a field of attrs
    producer_batch: int = _setting(100, _count(1, 1_000_000))
    members: int = _setting(1, _count(1, 1000))
    processing: Times = _setting(Constant(10), _TIMES)  # noqa: RUF009 - a field of attrs
    failure_rate: float = _setting(0.0, _RATE)
    reject_rate: float = _setting(0.0, _RATE)
    poison_rate: float = _setting(0.0, _RATE)
    crash_rate: float = _setting(0.0, _RATE)
    restart_ms: int = _setting(5_000, _whole_time())
    retry_backoff_ms: int = _setting(0, _whole_time())
    acknowledging: Acknowledging = _setting(Acknowledging.EACH_POLL, _one_of(Acknowledging))  # noqa: RUF009 - a field of attrs
    renew_interval_ms: int = _setting(0, _whole_time())
    poll_records: int = _setting(500, _count(1, 1_000_000), "max.poll.records")
    acquire_mode: AcquireMode = _setting(AcquireMode.BATCH_OPTIMIZED, _one_of(AcquireMode), "share.acquire.mode")  # noqa: RUF009 - a field of attrs
    max_wait_ms: int = _setting(500, _whole_time(1), "fetch.max.wait.ms")
    request_ms: float = _setting(1, _time(0.01))
    state_write_ms: float = _setting(2, _time())
    lock_duration_ms: int = _setting(30_000, _whole_time(1), "share.record.lock.duration.ms")
    delivery_count_limit: int = _setting(5, _count(1, 1000), "share.delivery.count.limit")
    max_record_locks: int = _setting(2_000, _count(1, 1_000_000), "share.partition.max.record.locks")
    dead_letter_queue: bool = _setting(default=False, kind=_BOOLEAN)
    profile: Profile = _setting(LATEST, _PROFILE)  # noqa: RUF009 - a field of attrs

    def __attrs_post_init__(self) -> None:
        """Check what concerns several settings."""
        if self.failure_rate + self.reject_rate + self.crash_rate > 1:
            refuse("failure_rate, reject_rate and crash_rate are more than 1 together", "failure_rate")
        if self.dead_letter_queue and not self.profile.has_dead_letter_queue:
            refuse(f"{self.profile.name} has no dead-letter queue", "dead_letter_queue")
        if isinstance(self.arrival, RecordedArrival):
            partition = max(batch[1] for batch in self.arrival.batches)
            if partition >= self.partitions:
                refuse(f"a batch goes to partition {partition} of {self.partitions}", "arrival")

    @property
    def share_config(self) -> ShareConfig:
        """The settings of the group as share partitions have them."""
        return ShareConfig(
            max_record_locks=self.max_record_locks,
            delivery_count_limit=self.delivery_count_limit,
            record_lock_duration_ms=self.lock_duration_ms,
            dead_letter_queue=self.dead_letter_queue,
        )

    def changed(self, *changes: str) -> Load:
        """
        Return the load with settings changed, each as in ``lock=60s``.

        A setting is named as here, as Kafka names it, or by the beginning of its name if no other one begins so.

        Raises:
            MalformedInputError: A setting or its value is not known.
        """
        return attrs.evolve(self, **dict(map(read_change, changes)))

    def to_json(self) -> dict[str, Json]:
        """Return the form of a file: the version, and the settings that differ from the defaults."""
        values = {name: getattr(self, name) for name in SETTINGS}
        return {
            "load": LOAD_VERSION,
            **{
                name: _kind_of(name).write_json(value)
                for name, value in values.items()
                if value != SETTINGS[name].default
            },
        }

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """
        Return the load that *value* is the form of.

        Raises:
            MalformedInputError: It is of another version, or a setting is not known, of the wrong type or out of range.
        """
        return _read(value, "")  # type: ignore[no-any-return] # of this class

    @classmethod
    def read(cls, file: Path) -> Self:
        """
        Return the load in a file.

        Raises:
            UnreadableFileError: It cannot be read, or has another form; the error has the field.
        """
        try:
            with file.open(encoding="utf-8-sig", errors="surrogateescape") as stream:
                return cls.from_json(read_json(stream.read(MAX_LINE + 1)))
        except OSError as error:
            raise UnreadableFileError(error.strerror or str(error), str(file)) from error
        except MalformedInputError as error:
            raise UnreadableFileError(error.message, str(file), field=error.field or "") from error

    def write(self, file: Path) -> None:
        """
        Write the load to a file.

        Raises:
            OSError: It cannot be written.
        """
        file.write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")


SETTINGS: Final[Mapping[str, Any]] = MappingProxyType({each.name: each for each in attrs.fields(Load)})
"""The settings of a load, by their names: fields of attrs."""


def _kind_of(name: str) -> _Kind:
    kind: _Kind = SETTINGS[name].metadata["kind"]
    return kind


_fields: Final = {name: Field(_kind_of(name).read_json, each.default) for name, each in SETTINGS.items()}
_read: Final[Check[Any]] = record(
    {"load": Field(version(LOAD_VERSION)), **_fields},
    lambda load, **fields: Load(**fields),  # noqa: ARG005 - the version has been checked
)


def setting_name(name: str) -> str:
    """
    Return the setting that *name* means: its own name, Kafka's, or a beginning that no other one has.

    >>> setting_name("lock"), setting_name("max.poll.records"), setting_name("poll-records")
    ('lock_duration_ms', 'poll_records', 'poll_records')

    Raises:
        MalformedInputError: It means none, or several.
    """
    own = name.strip().replace("-", "_")
    found = [each for each, setting in SETTINGS.items() if own == each or (name and name == setting.metadata["kafka"])]
    found = found or [each for each in SETTINGS if own and each.startswith(own)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(found or SETTINGS)
    message = f"{'several settings begin so' if found else 'no such setting'}: {brief(name)}; one of {known}"
    raise MalformedInputError(message, "")


def read_value(name: str, text: str) -> Any:  # noqa: ANN401 - a value of the setting
    """
    Return the value of a setting that *text* says.

    >>> read_value("lock_duration_ms", "1min"), read_value("failure_rate", "2%")
    (60000, 0.02)

    Raises:
        MalformedInputError: It says none. Whether it is in range is found out when a load is made of it.
    """
    try:
        return _kind_of(name).read_text(text.strip())
    except ValueError as error:
        raise MalformedInputError(str(error), name) from error


def read_change(change: str) -> tuple[str, Any]:
    """
    Return the setting and the value of a change such as ``lock=60s``.

    Raises:
        MalformedInputError: A setting or its value is not known.
    """
    name, equals, text = change.partition("=")
    if not equals:
        message = f"expected SETTING=VALUE, got {brief(change)}"
        raise MalformedInputError(message, "")
    setting = setting_name(name)
    return setting, read_value(setting, text)


def setting_words(name: str) -> str:
    """
    Return what a setting is called: as Kafka calls it, or its own name.

    >>> setting_words("lock_duration_ms"), setting_words("members")
    ('share.record.lock.duration.ms', 'members')
    """
    return SETTINGS[name].metadata["kafka"] or name


def value_text(name: str, value: Any) -> str:  # noqa: ANN401 - a value of the setting
    """
    Return a value of a setting in words.

    >>> value_text("lock_duration_ms", 60_000), value_text("acknowledging", Acknowledging.EACH_POLL)
    ('60s', 'poll')
    """
    return _kind_of(name).write_text(value)


def settings_text(load: Load) -> str:
    """
    Return the settings of *load* that differ from the defaults in words, as the command line takes them.

    >>> from sharestate.simulate import Load, settings_text
    >>> settings_text(Load(members=4, lock_duration_ms=60_000))
    'members=4 lock_duration_ms=60s'
    """
    changed = [name for name, setting in SETTINGS.items() if getattr(load, name) != setting.default]
    return " ".join(f"{name}={value_text(name, getattr(load, name))}" for name in changed)
