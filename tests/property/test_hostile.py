"""Whatever a caller passes is taken, or refused with a typed error that names it; then nothing has changed."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

import pytest
from attrs import evolve
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from sharestate import (
    EARLIEST,
    KAFKA_4_3,
    LATEST,
    PROFILES,
    AbortedTransaction,
    AcknowledgementBatch,
    AcknowledgeType,
    AcquireMode,
    AutoOffsetReset,
    BrokerWritePolicy,
    ControlType,
    ErrorCode,
    FetchedRecords,
    InvalidRecordStateError,
    InvariantError,
    IsolationLevel,
    Lifecycle,
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
    SplitLimitError,
    StateBatch,
    TimeReversedError,
    UnknownWriteError,
    WriteShareGroupState,
)
from sharestate.conversation import BadRequestError, Conversation
from sharestate.testing.mix import WILD
from sharestate.testing.operations import converse
from sharestate.testing.strategies import sequences
from sharestate.testing.world import Request, Response, Steps

MAX: Final = 2**63 - 1
KEY: Final = SharePartitionKey(group_id="g", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)
FETCHED: Final = FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, 9)])

every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
every_broker = pytest.mark.parametrize(
    "profile",
    [profile for profile in PROFILES.values() if isinstance(profile.write_policy, BrokerWritePolicy)],
    ids=lambda profile: profile.name,
)


def opened(**arguments: Any) -> SharePartition:  # noqa: ANN401 - what a constructor takes
    """Return a share partition that is active and empty."""
    partition = SharePartition(KEY, **arguments)
    partition.initialize()
    partition.read_succeeded(PersistedState())
    return partition


def busy() -> SharePartition:
    """Return a share partition with a split batch, a whole one, a write in flight, records to be had, and a past."""
    partition = opened()
    partition.acquire("m1", evolve(FETCHED, batches=[RecordBatch(0, 4), RecordBatch(5, 9)]), now_ms=50, batch_size=5)
    (write,) = partition.acknowledge("m1", [AcknowledgementBatch(3, 4, (2,))], now_ms=60).writes
    partition.write_succeeded(write.number)
    partition.acknowledge("m1", [AcknowledgementBatch(0, 1, (1,))], now_ms=70)
    return partition


BUSY: Final = busy().snapshot()


def again() -> SharePartition:
    """Return it once more."""
    return SharePartition.restore(BUSY)


# ---- arguments of the wrong kind

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
    st.sampled_from([KEY, KAFKA_4_3, FETCHED, ShareConfig(), LATEST, BUSY, PersistedState(), RecordBatch(0, 9)]),
    st.sampled_from([StateBatch(0, 4, RecordState.AVAILABLE, 1), RecordState.ACQUIRED, AcquireMode.RECORD_LIMIT]),
    st.sampled_from([AcknowledgementBatch(0, 4, (1,)), IsolationLevel.READ_COMMITTED, ControlType.ABORT, Quirk.B6]),
)
"""Values of all kinds, the library's own among them."""

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
        {"snapshot": (BUSY, a(Snapshot)), "profile": (KAFKA_4_3, a(Profile))},
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
@given(junk=JUNK)
def test_an_argument_of_the_wrong_kind_is_refused_by_name(name: str, argument: str, junk: object) -> None:
    """Wrong types, True for a number, fractions, numbers out of range: the error names the argument."""
    call = CALLS[name]
    assume(not call.arguments[argument][1](junk))
    partition = again()

    with pytest.raises(MalformedInputError) as refused:
        call.junk(partition, argument, junk)
    assert (refused.value.field or "").partition("[")[0] == argument
    assert str(refused.value)
    assert partition.snapshot() == BUSY


@given(junk=JUNK)
def test_what_is_no_text_is_no_snapshot(junk: object) -> None:
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
    """Return the end of an initialisation with *inside* the persisted state."""
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
@given(junk=JUNK)
@example(junk=True)
@example(junk=2**63)
@example(junk=-(2**63) - 1)
@example(junk=math.nan)
def test_what_is_wrong_inside_a_value_is_refused_by_name(path: str, junk: object) -> None:
    """Whether the value refuses it or the command that is given the value: the error names it, and nothing changes."""
    build, valid = INSIDE[path]
    assume(not valid(junk))
    partition = again()

    with pytest.raises(MalformedInputError) as refused:
        build(junk)(partition)
    assert (refused.value.field or "").startswith(path.partition(".")[0])
    assert partition.snapshot() == BUSY


# ---- numbers out of all proportion

OFFSETS: Final = st.one_of(
    st.integers(0, 40),
    st.integers(2**31 - 3, 2**31 + 3),
    st.integers(MAX - 40, MAX),
    st.sampled_from([-MAX - 1, -(2**31), -2, -1]),
    st.integers(-MAX - 1, MAX),
)
RECORDS: Final = OFFSETS.map(lambda offset: min(offset, MAX - 1))
SIZES: Final = st.one_of(st.integers(1, 12), st.sampled_from([65, 1000, 2**20, 2**31, 2**31 + 1, 2**62, MAX, MAX + 1]))
COUNTS: Final = st.one_of(st.integers(0, 12), st.sampled_from([2**31, MAX]))
TIMES: Final = st.one_of(st.integers(0, 90_000), st.sampled_from([-1, 2**62, MAX]))
MEMBERS: Final = st.sampled_from(["m1", "m2", ""])
TYPES: Final = st.lists(st.sampled_from([1, 2, 3, 0, 4, 5, -1, MAX]), max_size=6).map(tuple)


@st.composite
def logs(draw: st.DrawFn) -> FetchedRecords:
    """Draw what a fetch could have answered, as far as the types say."""
    batches: list[RecordBatch] = []
    first = draw(OFFSETS)
    for size in draw(st.lists(SIZES, max_size=4)):
        last = first + size - 1
        if first >= 0 and last < MAX:
            producer = draw(st.sampled_from([-1, 1]))
            control = draw(st.sampled_from([None, None, None, *ControlType]))
            batches.append(RecordBatch(first, last, producer, producer > 0, control))
        first = last + 1 + draw(st.sampled_from([0, 0, 1, 2**31]))
    return FetchedRecords(
        fetch_offset=max(0, draw(OFFSETS)),
        batches=batches,
        aborted_transactions=draw(
            st.lists(st.builds(AbortedTransaction, st.sampled_from([1, 2]), OFFSETS), max_size=2)
        ),
        isolation=draw(st.sampled_from(IsolationLevel)),
    )


STATES: Final = st.builds(
    PersistedState,
    start_offset=OFFSETS.map(lambda offset: max(-1, offset)),
    state_epoch=COUNTS,
    state_batches=st.lists(
        st.builds(StateBatch, RECORDS, RECORDS, st.integers(-1, 5), st.sampled_from([0, 1, 2, 4, 5, 2**15 - 1])),
        max_size=3,
    ),
)
CONFIGS: Final = st.builds(
    ShareConfig, max_record_locks=COUNTS, delivery_count_limit=COUNTS, record_lock_duration_ms=COUNTS
)


def calls(method: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    """Return a strategy for calls of *method*."""
    return st.tuples(st.just(method), st.fixed_dictionaries(arguments))


ANY_CALL: Final = st.one_of(
    calls(
        "acquire",
        member_id=MEMBERS,
        fetched=logs(),
        now_ms=TIMES,
        max_records=COUNTS,
        batch_size=SIZES,
        mode=st.sampled_from(AcquireMode),
    ),
    calls(
        "acknowledge",
        member_id=MEMBERS,
        batches=st.lists(st.builds(AcknowledgementBatch, OFFSETS, OFFSETS, TYPES), max_size=3),
        now_ms=TIMES,
    ),
    calls("release", member_id=MEMBERS, now_ms=TIMES),
    calls("advance_log_start", offset=OFFSETS),
    calls("expire_next", now_ms=TIMES),
    calls("write_succeeded", number=st.integers(0, 3)),
    calls("write_failed", number=st.integers(0, 3), error=OFFSETS),
    calls("configure", config=CONFIGS),
    calls("initialize"),
    calls("read_succeeded", state=STATES, reset_offset=st.none() | OFFSETS),
    calls("fence"),
    calls("next_fetch_offset"),
    calls("can_acquire"),
)


@every_profile
@given(sequence=st.lists(ANY_CALL, max_size=12), state=STATES)
def test_any_numbers_are_taken_or_refused(
    profile: Profile, sequence: list[tuple[str, dict[str, Any]]], state: PersistedState
) -> None:
    """
    Whatever the numbers are, each call is carried out or refused with a typed error.

    Offsets up to 2^63 - 1, records up to the one before it, any times. Refused for what it is given, a call changes
    nothing; and whatever has happened, the state does not contradict itself
    and can be written down and read back.
    """
    partition = SharePartition(KEY, profile=profile, split_limit=64)
    for method, arguments in [("initialize", {}), ("read_succeeded", {"state": state}), *sequence]:
        before = partition.snapshot()
        try:
            getattr(partition, method)(**arguments)
        except InvariantError:
            raise
        except ShareStateError as refused:
            if isinstance(refused, MalformedInputError):
                assert partition.snapshot() == before
            if isinstance(refused, SplitLimitError):
                assert evolve(partition.snapshot(), now_ms=before.now_ms) == before
        partition.check()
        after = partition.snapshot()
        assert SharePartition.restore(Snapshot.from_json(after.to_json()), profile=profile).snapshot() == after


@given(start=st.integers(-MAX - 1, -2))
def test_a_negative_start_is_not_taken_over(start: int) -> None:
    """No log starts below 0, and only -1 says that nothing is persisted: refused, or the initialisation fails."""
    partition = SharePartition(KEY)
    partition.initialize()
    try:
        error: object = partition.read_succeeded(PersistedState(start_offset=start)).error
    except ShareStateError as refused:
        error = refused

    assert isinstance(error, ShareStateError)
    assert partition.lifecycle is not Lifecycle.ACTIVE


@given(first=st.integers(0, 9), last=st.integers(0, 9), types_=TYPES)
def test_reversed_ranges_and_short_lists_change_nothing(first: int, last: int, types_: tuple[int, ...]) -> None:
    """They are malformed, so that not even batches are split before they are refused (spec 8.2 and 24.3)."""
    size = last - first + 1
    assume(size < 1 or not types_ or 1 < len(types_) < size)
    partition = again()
    entries = [AcknowledgementBatch(6, 7, (4,)), AcknowledgementBatch(first, last, types_)]

    with pytest.raises(ShareStateError) as refused:
        partition.acknowledge("m1", entries, now_ms=70)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
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


# ---- memory


def peak_of(action: Callable[[], object]) -> int:
    """Return how much memory *action* needs at its peak beyond what there was. [bytes]"""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


MB: Final = 2**20
"""A megabyte. [bytes]"""


def test_a_million_entries_are_refused_in_little_memory() -> None:
    """A million entries, of which the second says again what the first has said, need no more than a list of them."""
    partition = opened()
    partition.acquire("m1", FETCHED, now_ms=0)
    before = partition.snapshot()
    entries = [AcknowledgementBatch(0, 9, (1,))] * 1_000_000

    def acknowledge() -> None:
        with pytest.raises(InvalidRecordStateError):
            partition.acknowledge("m1", entries, now_ms=0)

    assert peak_of(acknowledge) < 32 * MB
    assert partition.snapshot() == before


def test_entries_below_the_start_are_skipped_in_little_memory() -> None:
    """Entries for records that are gone succeed without a write (spec 8.1.2), and leave nothing behind."""
    partition = opened()
    partition.advance_log_start(10)
    before = partition.snapshot()
    entries = [AcknowledgementBatch(0, 9, (1,))] * 100_000

    assert peak_of(lambda: partition.acknowledge("m1", entries, now_ms=0)) < 4 * MB
    assert partition.snapshot() == before


def test_many_entries_make_one_write_of_so_many() -> None:
    """Entries of one record each make one write, and memory grows with them and no faster."""
    size = 30_000
    partition = opened()
    partition.acquire("m1", FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, size - 1)]), now_ms=0)
    entries = [AcknowledgementBatch(offset, offset, (1,)) for offset in range(size)]
    writes: list[WriteShareGroupState] = []

    assert peak_of(lambda: writes.extend(partition.acknowledge("m1", entries, now_ms=0).writes)) < size * 400
    assert [len(write.state_batches) for write in writes] == [size]


# ---- a batch of 2^31 records (spec 24.5)

VAST: Final = RecordBatch(0, 2**31 - 1)


def vast(**arguments: Any) -> SharePartition:  # noqa: ANN401 - what a constructor takes
    """Return a share partition in which m1 holds one batch of 2^31 records."""
    partition = opened(config=ShareConfig(max_record_locks=MAX), **arguments)
    partition.acquire("m1", FetchedRecords(fetch_offset=0, batches=[VAST]), now_ms=0)
    return partition


@every_profile
@settings(max_examples=20)
@given(first=st.integers(0, 2**31 - 1), types_=TYPES, is_first=st.booleans())
@example(first=0, types_=(1, 2), is_first=False)
def test_what_would_split_a_vast_batch_is_refused(
    profile: Profile, first: int, types_: tuple[int, ...], *, is_first: bool
) -> None:
    """A part of it, or a list of types for its beginning, is refused before anything changes, in no memory at all."""
    partition = vast(profile=profile)
    before = partition.snapshot()
    assume(types_ and set(types_) <= {0, 1, 2, 3, 4})
    last = first + len(types_) - 1
    assume(last < VAST.last_offset)
    part, whole = AcknowledgementBatch(first, last, types_), AcknowledgementBatch(*VAST[:2], (4,))

    def acknowledge() -> None:
        with pytest.raises(SplitLimitError) as refused:
            partition.acknowledge("m1", [part, whole] if is_first else [whole, part], now_ms=0)
        assert (refused.value.first_offset, refused.value.last_offset) == VAST[:2]

    assert peak_of(acknowledge) < MB
    assert partition.snapshot() == before


@every_profile
def test_a_part_of_a_vast_batch_is_not_acquired(profile: Profile) -> None:
    """Redelivering a part would split it: refused, nothing changed; redelivered whole it may be."""
    partition = vast(profile=profile)
    partition.write_succeeded(partition.release("m1", now_ms=0).writes[0].number)
    before = partition.snapshot()

    with pytest.raises(SplitLimitError):
        partition.acquire("m2", FetchedRecords(fetch_offset=3, batches=[RecordBatch(3, 9)]), now_ms=0)
    assert partition.snapshot() == before
    whole = partition.acquire("m2", FetchedRecords(fetch_offset=0, batches=[VAST]), now_ms=0)
    assert whole.acquired == ((0, 2**31 - 1, 2),)


@every_profile
def test_a_strict_limit_does_not_split_a_vast_batch(profile: Profile) -> None:
    """To cache it with a few records acquired would split it: refused, nothing changed."""
    partition = opened(profile=profile)
    before = partition.snapshot()

    with pytest.raises(SplitLimitError):
        partition.acquire(
            "m1",
            FetchedRecords(fetch_offset=0, batches=[VAST]),
            now_ms=0,
            max_records=5,
            mode=AcquireMode.RECORD_LIMIT,
        )
    assert partition.snapshot() == before


@every_profile
def test_a_refused_acquisition_skips_no_gap(profile: Profile) -> None:
    """Not even the SPSO moves past a natural gap (quirk B10 healed) when the acquisition is refused after all."""
    partition = SharePartition(KEY, profile=profile, split_limit=4)
    partition.initialize()
    stored = [StateBatch(20, 29, RecordState.AVAILABLE, 1)]
    partition.read_succeeded(PersistedState(start_offset=10, state_batches=stored))
    before = partition.snapshot()

    with pytest.raises(SplitLimitError):
        partition.acquire("m1", FetchedRecords(fetch_offset=10, batches=[RecordBatch(25, 27)]), now_ms=0)
    assert partition.snapshot() == before


@every_broker
@pytest.mark.parametrize("leave", ["expiry", "release"])
@pytest.mark.parametrize(("start", "state"), [(5, RecordState.AVAILABLE), (2**31, RecordState.ARCHIVED)])
def test_a_vast_batch_is_given_back_whole(profile: Profile, leave: str, start: int, state: RecordState) -> None:
    """Expiry and release treat it whole: ARCHIVED only if its last offset lies below the SPSO."""
    partition = vast(profile=profile)
    partition.advance_log_start(start)

    effects = partition.release("m1", now_ms=0) if leave == "release" else partition.expire_next(now_ms=30_001)
    assert effects is not None
    assert effects.writes[0].state_batches == ((0, 2**31 - 1, state, 1),)
    partition.check()


@every_profile
def test_a_vast_batch_is_archived_only_as_a_whole(profile: Profile) -> None:
    """The log start leaves it until it is wholly below."""
    partition = vast(profile=profile)
    partition.write_succeeded(partition.release("m1", now_ms=0).writes[0].number)
    states = []
    for start in (5, 2**31 - 1, 2**31):
        partition.advance_log_start(start)
        partition.check()
        states += [run.cell.state for batch in partition.batches() for run in batch.runs]

    assert states == [RecordState.AVAILABLE, RecordState.AVAILABLE, RecordState.ARCHIVED]


@every_profile
def test_aborted_records_of_a_vast_batch_stay_acquired(profile: Profile) -> None:
    """They are dropped from the result; the cells stay acquired."""
    partition = opened(profile=profile)
    middle = RecordBatch(5, 9, 1, is_transactional=True)
    fetched_ = FetchedRecords(
        fetch_offset=0,
        batches=[RecordBatch(0, 4), middle, RecordBatch(10, 2**31 - 1)],
        aborted_transactions=[AbortedTransaction(1, 5)],
        isolation=IsolationLevel.READ_COMMITTED,
    )

    effects = partition.acquire("m1", fetched_, now_ms=0, max_records=2**31, batch_size=2**31)
    assert effects.acquired == ((0, 4, 1), (10, 2**31 - 1, 1))
    (batch,) = partition.batches()
    assert [(batch.is_split, run.cell.state) for run in batch.runs] == [(False, RecordState.ACQUIRED)]


# ---- a conversation with bad lines in between

BAD_LINES: Final = st.one_of(
    st.sampled_from(
        [
            "{",
            "[]",
            "null",
            '{"op":"acknowledge","member":"m1","batches":[[0,9,[1.0]]]}',
            '{"op":"acquire","member":"m1","batch_size":0,"max_records":5,"fetch_offset":0,"batches":[[0,9]]}',
            '{"op":"advance","ms":-1}',
            '{"op":"complete","write":99,"answer":"ok"}',
            '{"op":"log_start","offset":9223372036854775808}',
            '{"op":"initialize","answer":{"start_offset":-2}}',
            '{"op":"release","member":"m1","answers":["ok","never"]}',
        ]
    ),
    st.text(max_size=9).filter(lambda line: not line.isdigit()),
)


@every_profile
@given(sequence=sequences(WILD), lines=st.lists(BAD_LINES, min_size=1, max_size=5))
def test_bad_lines_do_not_disturb_a_conversation(profile: Profile, sequence: Steps[None], lines: list[str]) -> None:
    """Lines that are refused take no id and no answer, and leave no trace: the other answers are the same."""
    plain, disturbed = Conversation(profile), Conversation(profile)

    def answer(request: Request) -> Response:
        for line in lines:
            with pytest.raises(BadRequestError):
                disturbed.answer_line(line, 1)
        expected: Response = plain.answer(deepcopy(request), 1)
        assert disturbed.answer(deepcopy(request), 1) == expected
        return expected

    for _ in converse(sequence, answer):
        pass


def test_every_setting_is_looked_at() -> None:
    """The settings with something wrong inside are those that there are."""
    assert {name for name in INSIDE if hasattr(ShareConfig(auto_offset_reset=EARLIEST), name)} == {
        *SETTINGS,
        "renew_acknowledge_enable",
        "auto_offset_reset",
    }
