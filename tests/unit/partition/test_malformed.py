"""Arguments that no broker could be given: refused with a typed error that names them, and nothing changes."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from sharestate import (
    AcknowledgementBatch,
    ErrorCode,
    FetchedRecords,
    InvalidRequestError,
    MalformedInputError,
    PersistedState,
    RecordBatch,
    SharePartition,
    SharePartitionKey,
    ShareStateError,
    Snapshot,
    StateBatch,
)
from tests.support.scenes import KEY, Scene, fetched, state


def held() -> Scene:
    """Return a scene in which m1 holds 0-4 and 5-9."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    return scene


def started() -> SharePartition:
    """Return a share partition that waits for what it reads."""
    partition = Scene().partition
    partition.initialize()
    return partition


@pytest.mark.parametrize(
    "types", [pytest.param((True,), id="a switch"), pytest.param((1, 1), id="too few"), pytest.param((), id="none")]
)
def test_types_that_two_entries_have_in_common_are_looked_at(types: tuple[int, ...]) -> None:
    """What is wrong with them is wrong in both, and the first one is named."""
    scene = held()

    with pytest.raises((InvalidRequestError, MalformedInputError)) as refused:
        scene.partition.acknowledge(
            "m1", [AcknowledgementBatch(0, 4, types), AcknowledgementBatch(5, 9, types)], now_ms=0
        )
    assert "0-4" in str(refused.value) or "batches[0]" in str(refused.value)
    assert scene.batches == ["[0-4] ACQUIRED/1/m1", "[5-9] ACQUIRED/1/m1"]


def test_one_type_that_two_entries_have_in_common_does_for_both() -> None:
    """A range that is reversed is refused all the same."""
    scene, accept = held(), (1,)

    with pytest.raises(InvalidRequestError, match="reversed: 9-5"):
        scene.partition.acknowledge(
            "m1", [AcknowledgementBatch(0, 4, accept), AcknowledgementBatch(9, 5, accept)], now_ms=0
        )
    both = [AcknowledgementBatch(0, 4, accept), AcknowledgementBatch(5, 9, accept)]
    (write,) = scene.partition.acknowledge("m1", both, now_ms=0).writes
    assert write.state_batches == (StateBatch(0, 4, 2, 1), StateBatch(5, 9, 2, 1))


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param((5, 9), id="no types"),
        pytest.param(5, id="no batch"),
        pytest.param(None, id="nothing"),
        pytest.param(("5", "9", (1,)), id="offsets that are text"),
        pytest.param((5.0, 9.0, (1,)), id="offsets that are floats"),
        pytest.param((5, 9, None), id="types that are nothing"),
        pytest.param((5, 9, 1), id="a type that is not in a list"),
        pytest.param((5, 9, ("x",)), id="a type that is text"),
        pytest.param((5, 9, (None,)), id="a type that is nothing"),
        pytest.param((5, 9, ([],)), id="a type that is a list"),
        pytest.param((5, 9, (1.0,)), id="a type that is a float"),
        pytest.param((5, 9, (True,)), id="a type that is a switch"),
        pytest.param((2**63, 2**63, (1,)), id="offsets that the wire cannot carry"),
        pytest.param((5, 9, {1}), id="types without an order"),
        pytest.param((5, 9, {1: 1}), id="types by number"),
        pytest.param((5, 9, iter((1,))), id="types that can be read once"),
    ],
)
@pytest.mark.parametrize("before", [[], [AcknowledgementBatch(0, 4, (1,))]], ids=["alone", "after another"])
def test_a_malformed_acknowledgement_changes_nothing(batch: Any, before: list[AcknowledgementBatch]) -> None:  # noqa: ANN401 - what a caller got wrong
    """It is refused with a typed error before the entries before it have changed anything (rule 24.3)."""
    scene = held()

    with pytest.raises((InvalidRequestError, MalformedInputError)):
        scene.partition.acknowledge("m1", [*before, batch], now_ms=0)
    assert scene.batches == ["[0-4] ACQUIRED/1/m1", "[5-9] ACQUIRED/1/m1"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("member_id", None),
        ("member_id", 5),
        ("now_ms", None),
        ("now_ms", "0"),
        ("now_ms", 1.5),
        ("now_ms", True),
        ("max_records", None),
        ("max_records", 1.5),
        ("max_records", 2**63),
        ("max_records", -(2**63) - 1),
        ("batch_size", None),
        ("batch_size", 0),
        ("batch_size", 2**63),
        ("mode", "record_limit"),
    ],
)
def test_a_malformed_acquisition_changes_nothing(field: str, value: object) -> None:
    """Each argument has to be of its type; it is named, and nothing is acquired."""
    scene = Scene().load()
    arguments: dict[str, Any] = {"member_id": "m1", "now_ms": 0, "batch_size": 1, field: value}

    with pytest.raises(MalformedInputError) as refused:
        scene.partition.acquire(fetched=fetched(0, "[0-4][5-9]"), **arguments)
    assert refused.value.field == field
    assert scene.batches == []


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param((10, 14, 0), id="no count"),
        pytest.param(("10", 14, 0, 1), id="an offset that is text"),
        pytest.param((10, 2**63, 0, 1), id="an offset that the wire cannot carry"),
        pytest.param((10, 14, 0, "1"), id="a count that is text"),
    ],
)
def test_a_malformed_state_batch_changes_nothing(batch: Any) -> None:  # noqa: ANN401 - what a caller got wrong
    """It is refused with a typed error, or fails the initialization with one; nothing is cached."""
    scene = Scene()
    scene.partition.initialize()
    good = StateBatch(0, 4, 0, 1)
    try:
        error = scene.partition.read_succeeded(PersistedState(state_batches=[good, batch])).error
    except ShareStateError as refused:
        error = refused

    assert error is not None
    assert scene.batches == []


@pytest.mark.parametrize("offset", [-2, "0", 1.5, True])
def test_a_malformed_reset_offset_changes_nothing(offset: Any) -> None:  # noqa: ANN401 - what a caller got wrong
    """The offset that the caller looked up is an offset."""
    scene = Scene()
    scene.partition.initialize()

    with pytest.raises(MalformedInputError):
        scene.partition.read_succeeded(state(-1, ""), reset_offset=offset)
    assert scene.offsets == (0, 0)


@pytest.mark.parametrize("offset", ["20", 20.0, None])
def test_a_malformed_log_start_changes_nothing(offset: Any) -> None:  # noqa: ANN401 - what a caller got wrong
    """The log starts at an offset."""
    scene = Scene().load()

    with pytest.raises(MalformedInputError):
        scene.partition.advance_log_start(offset)
    assert scene.offsets == (0, 0)


def test_acknowledgements_that_are_none_change_nothing() -> None:
    """The batches of a request are a collection."""
    scene = held()
    nothing: Any = None

    with pytest.raises(MalformedInputError) as refused:
        scene.partition.acknowledge("m1", nothing, now_ms=0)
    assert refused.value.field == "batches"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(lambda partition: partition.acknowledge(None, [], now_ms=0), id="acknowledge"),
        pytest.param(lambda partition: partition.release(5, now_ms=0), id="release"),
        pytest.param(lambda partition: partition.acquire("m1", None, now_ms=0), id="acquire"),
        pytest.param(lambda partition: partition.configure(None), id="configure"),
        pytest.param(lambda partition: partition.write_succeeded(number=True), id="write_succeeded"),
        pytest.param(lambda partition: partition.write_succeeded(0, advances=None), id="advances"),
        pytest.param(lambda partition: partition.write_failed(0, "error"), id="write_failed"),
    ],
)
def test_every_command_names_what_is_wrong(command: Callable[[SharePartition], object]) -> None:
    """An argument of the wrong type is refused by any command, and named."""
    scene = held()
    before = scene.partition.snapshot()

    with pytest.raises(MalformedInputError) as refused:
        command(scene.partition)
    assert refused.value.field
    assert scene.partition.snapshot() == before


@pytest.mark.parametrize("command", ["read_failed", "write_failed"])
def test_none_is_no_error(command: str) -> None:
    """The code of success is refused as that of a failure."""
    scene = held()
    numbers = () if command == "read_failed" else (0,)

    with pytest.raises(MalformedInputError, match="got NONE") as refused:
        getattr(scene.partition, command)(*numbers, ErrorCode.NONE)
    assert refused.value.field == "error"


def test_a_batch_of_all_offsets_is_taken() -> None:
    """The largest batch is acquired, released and accepted like any other; the SPSO follows."""
    scene = Scene().load()
    last = 2**63 - 2

    assert scene.acquire("m1", 0, f"[0-{last}]") == ((0, last, 1),)
    assert scene.release("m1") == (f"W(0; 0-{last} st0 dc1; cc 0)",)
    assert scene.acquire("m1", 0, f"[0-{last}]") == ((0, last, 2),)
    assert scene.acknowledge("m1", f"0-{last}:1") == (f"W(0; 0-{last} st2 dc2; cc {last + 1})",)
    assert scene.offsets == (last + 1, last + 1)
    assert Snapshot.from_json(scene.partition.snapshot().to_json()) == scene.partition.snapshot()


class Unhashable(str):
    """A string that cannot be put into a set."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]


def test_a_string_of_a_subclass_is_taken_as_a_string() -> None:
    """A member and a group may be named by any kind of string; only its text is kept."""
    key = SharePartitionKey(group_id=Unhashable("g"), topic_id=Unhashable("t"), partition=0)
    scene = held()

    assert hash(key) == hash(SharePartitionKey(group_id="g", topic_id="t", partition=0))
    assert scene.release(Unhashable("m1")) == ("W(0; 0-4 st0 dc1, 5-9 st0 dc1; cc 0)",)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: FetchedRecords(fetch_offset=0, batches=[tuple.__new__(RecordBatch, (0, 9))]), "batches[0]"),
        (lambda: PersistedState(state_batches=[tuple.__new__(StateBatch, (0, 9))]), "state_batches[0]"),
    ],
)
def test_a_named_tuple_that_lacks_fields_is_refused(make: Callable[[], object], field: str) -> None:
    """A named tuple that was made as a plain one is refused where it is used, and named."""
    with pytest.raises(MalformedInputError) as refused:
        make()
    assert refused.value.field == field


@pytest.mark.parametrize("batch", [(5.0, 9, (1,)), (5, 9.0, (1,)), (5, True, (1,)), (True, 9, (1,))])
def test_either_offset_of_an_acknowledgement_may_be_malformed(batch: Any) -> None:  # noqa: ANN401 - what a caller got wrong
    """A float or a switch is no offset, whatever the other one is."""
    scene = held()

    with pytest.raises(MalformedInputError, match="_offset: expected an integer within"):
        scene.partition.acknowledge("m1", [batch], now_ms=0)


def test_types_by_number_are_no_sequence() -> None:
    """Though the number 0 has one."""
    entry: Any = (0, 4, {0: 1})

    with pytest.raises(MalformedInputError, match="expected a sequence of types"):
        held().partition.acknowledge("m1", [entry], now_ms=0)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: SharePartition(KEY, profile=cast("Any", "KAFKA_4_3")), "profile"),
        (lambda: SharePartition(KEY, split_limit=0), "split_limit"),
        (lambda: SharePartition.restore(cast("Any", "snapshot")), "snapshot"),
        (lambda: SharePartition.restore(Scene().partition.snapshot(), max_records=-1), "max_records"),
        (lambda: Scene().load().partition.acquire("m1", fetched(0, "[0-4]"), now_ms=0, batch_size=0), "batch_size"),
        (lambda: started().read_succeeded(cast("Any", (0, 0))), "state"),
        (lambda: started().read_succeeded(state(-1, ""), reset_offset=-1), "reset_offset"),
    ],
)
def test_what_makes_no_share_partition_is_named(make: Callable[[], object], field: str) -> None:
    """Whatever is wrong with it, its type or its bounds."""
    with pytest.raises(MalformedInputError) as refused:
        make()
    assert refused.value.field == field


def test_the_least_numbers_are_taken() -> None:
    """One record in a batch, and in what may be split; no records in what a snapshot may have."""
    assert SharePartition(KEY, split_limit=1).lifecycle == Scene().partition.lifecycle
    assert SharePartition.restore(Scene().partition.snapshot(), max_records=0).batches() == ()
    with pytest.raises(MalformedInputError, match=r"batch_size: expected an integer within 1\.\."):
        Scene().load().partition.acquire("m1", fetched(0, "[0-4]"), now_ms=0, batch_size=0)


def test_the_same_time_may_be_of_a_class_of_its_own() -> None:
    """A clock may count in a subclass of int."""

    class Milliseconds(int):
        """A time."""

    scene = held()
    acquired = [scene.partition.acquire("m1", fetched(10, "[10-14]"), now_ms=Milliseconds(5)) for _ in range(2)]

    assert [effects.acquired for effects in acquired] == [((10, 14, 1),), ()]


@pytest.mark.parametrize("number", [1.0, True])
def test_a_malformed_number_of_a_write_that_is_pending_changes_nothing(number: Any) -> None:  # noqa: ANN401 - what a caller got wrong
    """It equals that of a write, and is none."""
    scene = held()
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")
    scene.acknowledge("m1", "5-9:accept")
    before = scene.partition.snapshot()

    with pytest.raises(MalformedInputError, match="number"):
        scene.partition.write_succeeded(number)
    assert scene.partition.snapshot() == before
