"""Arguments of the wrong kind are refused with a typed error that names them; then nothing has changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from sharestate import (
    KAFKA_4_3,
    AbortedTransaction,
    AcknowledgementBatch,
    AcknowledgeType,
    AcquireMode,
    AutoOffsetReset,
    ControlType,
    ErrorCode,
    FetchedRecords,
    IsolationLevel,
    MalformedInputError,
    OffsetReset,
    PersistedState,
    Profile,
    Quirk,
    RecordBatch,
    RecordState,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    ShareStateError,
    Snapshot,
    StateBatch,
    TimeReversedError,
    UnknownWriteError,
)
from tests.support.partitions import BUSY, FETCHED, KEY, MAX, again, opened

JUNK: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.lists(st.integers() | st.none(), max_size=3),
    st.tuples(st.integers(), st.text(max_size=3)),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.frozensets(st.integers(), max_size=2),
    st.sampled_from([object(), object, int, len, Ellipsis, NotImplemented, KeyError("x"), Decimal(1), timedelta(1)]),
    st.sampled_from(
        [KEY, KAFKA_4_3, FETCHED, ShareConfig(), AutoOffsetReset.latest(), BUSY, PersistedState(), RecordBatch(0, 9)]
    ),
    st.sampled_from([StateBatch(0, 4, RecordState.AVAILABLE, 1), RecordState.ACQUIRED, AcquireMode.RECORD_LIMIT]),
    st.sampled_from(
        [AcknowledgementBatch(0, 4, (1,)), IsolationLevel.READ_COMMITTED, ControlType.ABORT, Quirk.ACQUIRES_BELOW_START]
    ),
)
"""Values of all kinds, the library's own among them."""

SEVERAL: Final = st.lists(JUNK, min_size=14, max_size=14)
"""What an example tries, one after the other: to begin an example takes Hypothesis longer than to draw a few values."""

few_examples: Final = settings(max_examples=settings().max_examples // 6)
"""So few have more values that are different, and not valid, than sixty of one value had for any argument."""

Valid = Callable[[object], bool]
"""Whether a value is what an argument may be."""


def a(*kinds: type) -> Valid:
    """Return whether a value is one of *kinds*."""
    return lambda value: isinstance(value, kinds)


def number(low: int = -MAX - 1, high: int = MAX) -> Valid:
    """Return whether a value is an integer within *low* .. *high*."""
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def either(*valid: Valid) -> Valid:
    """Return whether a value is what one of *valid* takes."""
    return lambda value: any(each(value) for each in valid)


def empty(value: object) -> bool:
    """Return whether a value can be gone through, and holds nothing."""
    return isinstance(value, Iterable) and not list(value)


class Call(NamedTuple):
    """A call with arguments that are taken."""

    run: Callable[..., object]
    """Does it; the share partition comes first."""

    arguments: Mapping[str, tuple[object, Valid]]
    """What is taken for each argument, and what else would be."""

    def junk(self, partition: SharePartition, argument: str, junk: object) -> object:
        """Do it with *junk* for one argument."""
        return self.run(partition, **{name: value for name, (value, _) in self.arguments.items()} | {argument: junk})


NOW: Final = {"now_ms": (100, number(low=70))}
MEMBER: Final = {"member_id": ("m1", a(str))}
FAILURE: Final = {
    "error": (ErrorCode.NOT_COORDINATOR, either(number(), a(ShareStateError))),
    "message": ("no", a(str, type(None))),
}
HELD: Final = next(row.number for row in BUSY.writes)


def reading(method: str) -> Callable[..., object]:
    """Return the call of *method* on a share partition that waits for its persisted state."""

    def run(_partition: SharePartition, **arguments: object) -> object:
        loading = SharePartition(KEY)
        loading.initialize()
        before = loading.snapshot()
        try:
            return getattr(loading, method)(**arguments)
        except ShareStateError:
            assert loading.snapshot() == before
            raise

    return run


CALLS: Final = {
    "acquire": Call(
        SharePartition.acquire,
        {
            **MEMBER,
            **NOW,
            "fetched": (FETCHED, a(FetchedRecords)),
            "max_records": (5, number()),
            "batch_size": (5, number(low=1)),
            "mode": (AcquireMode.BATCH_OPTIMIZED, a(AcquireMode)),
        },
    ),
    "acknowledge": Call(SharePartition.acknowledge, {**MEMBER, **NOW, "batches": ([(2, 2, (1,))], empty)}),
    "release": Call(SharePartition.release, {**MEMBER, **NOW}),
    "advance_log_start": Call(SharePartition.advance_log_start, {"offset": (1, number())}),
    "expire_next": Call(SharePartition.expire_next, NOW),
    "configure": Call(SharePartition.configure, {"config": (ShareConfig(), a(ShareConfig))}),
    "write_succeeded": Call(SharePartition.write_succeeded, {"number": (HELD, number())}),
    "write_failed": Call(SharePartition.write_failed, {"number": (HELD, number()), **FAILURE}),
    "lag": Call(SharePartition.lag, {"log_end_offset": (50, number())}),
    "read_failed": Call(reading("read_failed"), FAILURE),
    "read_succeeded": Call(
        reading("read_succeeded"),
        {
            "state": (PersistedState(start_offset=-1), a(PersistedState)),
            "reset_offset": (0, either(number(low=0), a(type(None)))),
        },
    ),
    "SharePartition": Call(
        lambda _, **arguments: SharePartition(**arguments),
        {
            "key": (KEY, a(SharePartitionKey)),
            "leader_epoch": (0, number()),
            "profile": (KAFKA_4_3, a(Profile)),
            "config": (None, a(ShareConfig, type(None))),
            "split_limit": (5, number(low=1)),
        },
    ),
    "restore": Call(
        lambda _, **arguments: SharePartition.restore(**arguments),
        {"snapshot": (BUSY, a(Snapshot)), "profile": (None, a(Profile, type(None)))},
    ),
}

ARGUMENTS: Final = [
    pytest.param(name, argument, id=f"{name} {argument}") for name, call in CALLS.items() for argument in call.arguments
]


@pytest.mark.parametrize("name", CALLS)
def test_the_calls_are_taken(name: str) -> None:
    """The calls below fail for nothing but what was put in."""
    call = CALLS[name]
    argument, (value, _) = next(iter(call.arguments.items()))

    call.junk(again(), argument, value)


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
@few_examples
@given(several=SEVERAL)
def test_an_argument_of_the_wrong_kind_is_refused_by_name(name: str, argument: str, several: list[object]) -> None:
    """Wrong types, True for a number, fractions, numbers out of range: the error names the argument."""
    call = CALLS[name]
    _, valid = call.arguments[argument]
    partition = again()

    for junk in several:
        if valid(junk):
            continue
        with pytest.raises(MalformedInputError) as refused:
            call.junk(partition, argument, junk)
        assert (refused.value.field or "").partition("[")[0] == argument
        assert str(refused.value)
        assert partition.snapshot() == BUSY


@given(junk=JUNK)
def test_a_snapshot_is_read_from_text_only(junk: object) -> None:
    """``Snapshot.from_json`` takes a text; anything else is refused with a typed error."""
    assume(not isinstance(junk, str))

    with pytest.raises(MalformedInputError):
        Snapshot.from_json(junk)  # type: ignore[arg-type]


# ---- values with something wrong inside


def fetched(**inside: Any) -> Callable[[SharePartition], object]:  # noqa: ANN401 - what a caller got wrong
    """Return an acquisition from a fetch with *inside*."""
    values: dict[str, Any] = {
        "fetch_offset": 3,
        "batches": [RecordBatch(3, 9, 1, is_transactional=True)],
        "aborted_transactions": [AbortedTransaction(1, 3)],
        "isolation": IsolationLevel.READ_COMMITTED,
    }
    return lambda partition: partition.acquire("m2", FetchedRecords(**values | inside), now_ms=100)


def persisted(**inside: Any) -> Callable[[SharePartition], object]:  # noqa: ANN401 - what a caller got wrong
    """Return the end of an initialization with *inside* the persisted state."""
    return lambda partition: CALLS["read_succeeded"].junk(partition, "state", PersistedState(**inside))


def acknowledged(batch: object) -> Callable[[SharePartition], object]:
    """Return an acknowledgement that ends with *batch*."""
    return lambda partition: partition.acknowledge("m1", [AcknowledgementBatch(2, 2, (1,)), batch], now_ms=100)  # type: ignore[list-item]


def configured(**inside: Any) -> Callable[[SharePartition], object]:  # noqa: ANN401 - what a caller got wrong
    """Return a change of settings with *inside*."""
    return lambda partition: partition.configure(ShareConfig(**inside))


def keyed(**inside: Any) -> Callable[[SharePartition], object]:  # noqa: ANN401 - what a caller got wrong
    """Return the making of a share partition whose key has *inside*."""
    values: dict[str, Any] = {"group_id": "g", "topic_id": "t", "partition": 0, **inside}
    return lambda _: SharePartition(SharePartitionKey(**values))


def ruled(**inside: Any) -> Callable[[SharePartition], object]:  # noqa: ANN401 - what a caller got wrong
    """Return the making of a share partition whose profile has *inside*."""
    return lambda _: opened(profile=Profile(**{"name": "mine"} | inside))


def types(value: object) -> bool:
    """Return whether *value* is a sequence of acknowledgement types, known or not."""
    return isinstance(value, Sequence) and all(type(kind) in {int, AcknowledgeType} for kind in value)


def named(*names: str) -> Valid:
    """Return whether a value can be gone through and has nothing but *names* in it."""
    return lambda value: isinstance(value, Iterable) and all(name in names for name in value)


class Inside(NamedTuple):
    """A value with something wrong inside."""

    build: Callable[[Any], Callable[[SharePartition], object]]
    """Puts junk inside, and returns what is done with it."""

    valid: Valid
    """What may stand there."""


BOOLEAN: Final = a(bool)
NOTHING: Final = a(type(None))
SETTINGS: Final = ("max_record_locks", "delivery_count_limit", "record_lock_duration_ms")

INSIDE: Final = {
    "fetch_offset": Inside(lambda junk: fetched(fetch_offset=junk), number()),
    "batches": Inside(lambda junk: fetched(batches=junk), empty),
    "batches[0]": Inside(lambda junk: fetched(batches=[junk]), a(RecordBatch)),
    "batches[0].first_offset": Inside(lambda junk: fetched(batches=[RecordBatch(junk, 9)]), number(0, 9)),
    "batches[0].last_offset": Inside(lambda junk: fetched(batches=[RecordBatch(3, junk)]), number(3, MAX - 1)),
    "batches[0].producer_id": Inside(lambda junk: fetched(batches=[RecordBatch(3, 9, junk, True)]), number()),  # noqa: FBT003
    "batches[0].is_transactional": Inside(lambda junk: fetched(batches=[RecordBatch(3, 9, 1, junk)]), BOOLEAN),
    "batches[0].control": Inside(
        lambda junk: fetched(batches=[RecordBatch(9, 9, 1, True, junk)]),  # noqa: FBT003
        either(NOTHING, a(ControlType)),
    ),
    "aborted_transactions": Inside(lambda junk: fetched(aborted_transactions=junk), empty),
    "aborted_transactions[0]": Inside(lambda junk: fetched(aborted_transactions=[junk]), a(AbortedTransaction)),
    "aborted_transactions[0].producer_id": Inside(
        lambda junk: fetched(aborted_transactions=[AbortedTransaction(junk, 3)]), number()
    ),
    "aborted_transactions[0].first_offset": Inside(
        lambda junk: fetched(aborted_transactions=[AbortedTransaction(1, junk)]), number()
    ),
    "isolation": Inside(lambda junk: fetched(isolation=junk), a(IsolationLevel)),
    "start_offset": Inside(lambda junk: persisted(start_offset=junk), number()),
    "state_epoch": Inside(lambda junk: persisted(state_epoch=junk), number()),
    "state_batches": Inside(lambda junk: persisted(state_batches=junk), empty),
    "state_batches[0]": Inside(lambda junk: persisted(state_batches=[junk]), a(StateBatch)),
    "state_batches[0].first_offset": Inside(
        lambda junk: persisted(state_batches=[StateBatch(junk, 4, RecordState.AVAILABLE, 1)]), number(high=MAX - 1)
    ),
    "state_batches[0].last_offset": Inside(
        lambda junk: persisted(state_batches=[StateBatch(0, junk, RecordState.AVAILABLE, 1)]), number(high=MAX - 1)
    ),
    "state_batches[0].state": Inside(
        lambda junk: persisted(state_batches=[StateBatch(0, 4, junk, 1)]), number(-128, 127)
    ),
    "state_batches[0].delivery_count": Inside(
        lambda junk: persisted(state_batches=[StateBatch(0, 4, RecordState.AVAILABLE, junk)]),
        number(-(2**15), 2**15 - 1),
    ),
    "batches[1]": Inside(acknowledged, a(AcknowledgementBatch)),
    "batches[1].first_offset": Inside(lambda junk: acknowledged(AcknowledgementBatch(junk, 4, (1,))), number()),
    "batches[1].last_offset": Inside(lambda junk: acknowledged(AcknowledgementBatch(2, junk, (1,))), number()),
    "batches[1].types": Inside(lambda junk: acknowledged(AcknowledgementBatch(2, 3, junk)), types),
    "batches[1].types[0]": Inside(
        lambda junk: acknowledged(AcknowledgementBatch(2, 2, (junk,))), lambda value: types((value,))
    ),
    "max_record_locks": Inside(lambda junk: configured(max_record_locks=junk), number(low=0)),
    "delivery_count_limit": Inside(lambda junk: configured(delivery_count_limit=junk), number(low=0)),
    "record_lock_duration_ms": Inside(lambda junk: configured(record_lock_duration_ms=junk), number(low=0)),
    "renew_acknowledge_enable": Inside(lambda junk: configured(renew_acknowledge_enable=junk), BOOLEAN),
    "auto_offset_reset": Inside(lambda junk: configured(auto_offset_reset=junk), a(AutoOffsetReset)),
    "strategy": Inside(lambda junk: configured(auto_offset_reset=AutoOffsetReset(junk)), a(OffsetReset)),
    "duration": Inside(
        lambda junk: configured(auto_offset_reset=AutoOffsetReset(OffsetReset.BY_DURATION, junk)), a(timedelta)
    ),
    "group_id": Inside(lambda junk: keyed(group_id=junk), a(str)),
    "topic_id": Inside(lambda junk: keyed(topic_id=junk), a(str)),
    "partition": Inside(lambda junk: keyed(partition=junk), number(low=0)),
    "name": Inside(lambda junk: ruled(name=junk), a(str)),
    "quirks": Inside(lambda junk: ruled(quirks=junk), named(*Quirk)),
    "configurable": Inside(
        lambda junk: ruled(configurable=junk), named(*SETTINGS, "renew_acknowledge_enable", "auto_offset_reset")
    ),
}


@pytest.mark.parametrize("path", INSIDE)
@few_examples
@given(several=SEVERAL)
@example(several=[True, 2**63, -(2**63) - 1, math.nan])
def test_a_wrong_field_of_a_value_is_refused_by_name(path: str, several: list[object]) -> None:
    """Whether the value refuses it or the command that is given the value: the error names it, and nothing changes."""
    build, valid = INSIDE[path]
    partition = again()

    for junk in several:
        if valid(junk):
            continue
        with pytest.raises(MalformedInputError) as refused:
            build(junk)(partition)
        assert (refused.value.field or "").startswith(path.partition(".")[0])
        assert partition.snapshot() == BUSY


@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if "now_ms" in call.arguments])
@given(now_ms=st.integers(0, 69))
def test_time_does_not_run_backwards(name: str, now_ms: int) -> None:
    """An instant before one that was told already is refused, and nothing changes."""
    partition = again()

    with pytest.raises(TimeReversedError) as refused:
        CALLS[name].junk(partition, "now_ms", now_ms)
    assert refused.value.field == "now_ms"
    assert partition.snapshot() == BUSY


@given(numbers=st.integers(HELD + 1, MAX) | st.integers(-MAX - 1, HELD - 1))
def test_unknown_writes_are_refused(numbers: int) -> None:
    """An outcome for a write that was never issued, or is settled, changes nothing."""
    for name in ("write_succeeded", "write_failed"):
        partition = again()
        with pytest.raises(UnknownWriteError, match=str(numbers)) as refused:
            CALLS[name].junk(partition, "number", numbers)
        assert refused.value.number == numbers
        assert partition.snapshot() == BUSY


def test_every_setting_is_looked_at() -> None:
    """The settings with something wrong inside are those that there are."""
    assert {name for name in INSIDE if hasattr(ShareConfig(auto_offset_reset=AutoOffsetReset.earliest()), name)} == {
        *SETTINGS,
        "renew_acknowledge_enable",
        "auto_offset_reset",
    }
