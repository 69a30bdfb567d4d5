"""The records that a fetch returned: which are accepted, and which are refused."""

from typing import Any

import pytest
from attrs.exceptions import FrozenInstanceError

from sharestate import (
    AbortedTransaction,
    AcknowledgeType,
    ControlType,
    FetchedRecords,
    IsolationLevel,
    MalformedInputError,
    RecordBatch,
)


class NumpyScalar:
    """What compares with a tuple element by element, as numpy's numbers do, so that the outcome is no truth."""

    __hash__ = None  # type: ignore[assignment] # as that of arrays

    def __eq__(self, other: object) -> Any:  # noqa: ANN401 - no bool
        """Return no bool."""
        return self

    def __bool__(self) -> bool:
        """Refuse to be one."""
        message = "The truth value of an empty array is ambiguous."
        raise ValueError(message)


def test_a_fetch_is_plain_unless_it_says_otherwise() -> None:
    """Without more a fetch reads uncommitted records and lists no aborted transactions."""
    fetched = FetchedRecords(fetch_offset=0, batches=[])

    assert fetched.aborted_transactions == ()
    assert fetched.isolation is IsolationLevel.READ_UNCOMMITTED


def test_the_parts_of_a_fetch_may_come_in_any_iterable() -> None:
    """Lists, tuples and generators are taken alike, and kept as tuples."""
    batches = [
        RecordBatch(0, 4),
        RecordBatch(5, 9, 1, is_transactional=True),
        RecordBatch(10, 10, 1, control=ControlType.ABORT),
    ]
    aborted = [AbortedTransaction(1, 5)]
    fetches = {
        FetchedRecords(fetch_offset=0, batches=batches, aborted_transactions=aborted),
        FetchedRecords(fetch_offset=0, batches=tuple(batches), aborted_transactions=tuple(aborted)),
        FetchedRecords(fetch_offset=0, batches=iter(batches), aborted_transactions=iter(aborted)),
    }

    assert len(fetches) == 1
    assert fetches.pop().batches == tuple(batches)


def test_a_fetch_is_frozen() -> None:
    """What a fetch brought does not change."""
    fetched = FetchedRecords(fetch_offset=0, batches=[])

    with pytest.raises(FrozenInstanceError):
        fetched.fetch_offset = 1  # type: ignore[misc]


def test_a_number_may_be_of_a_kind_of_its_own() -> None:
    """An offset that is an enumeration's member is a number all the same."""
    batch = RecordBatch(AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, control=ControlType.COMMIT)

    assert FetchedRecords(fetch_offset=0, batches=[batch]).batches == (batch,)


@pytest.mark.parametrize(
    ("batch", "field"),
    [
        (RecordBatch("0", 4), "first_offset"),  # type: ignore[arg-type]
        (RecordBatch(0, last_offset=True), "last_offset"),
        (RecordBatch(0, 4, None), "producer_id"),  # type: ignore[arg-type]
        (RecordBatch(0, 4, 1, is_transactional=1), "is_transactional"),  # type: ignore[arg-type]
        (RecordBatch(0, 0, 1, control="ABORT"), "control"),  # type: ignore[arg-type]
    ],
)
def test_a_malformed_record_batch_is_refused(batch: RecordBatch, field: str) -> None:
    """The error names the batch and its field."""
    with pytest.raises(MalformedInputError) as refused:
        FetchedRecords(fetch_offset=0, batches=[batch])
    assert refused.value.field == f"batches[0].{field}"


def test_a_fetch_may_have_holes() -> None:
    """Log batches need not touch, nor begin at the fetch offset."""
    assert len(FetchedRecords(fetch_offset=3, batches=[RecordBatch(5, 9), RecordBatch(20, 20)]).batches) == 2


@pytest.mark.parametrize(
    ("spans", "field"),
    [
        pytest.param([(4, 0)], "batches[0]", id="reversed"),
        pytest.param([(0, 4), (4, 9)], "batches[1]", id="overlapping"),
        pytest.param([(5, 9), (0, 4)], "batches[1]", id="descending"),
        pytest.param([(0, 4), (0, 4)], "batches[1]", id="twice"),
        pytest.param([(-1, 4)], "batches[0]", id="below nothing"),
        pytest.param([(0, 4), (5, 2**63 - 1)], "batches[1]", id="past the largest offset"),
    ],
)
def test_log_batches_ascend(spans: list[tuple[int, int]], field: str) -> None:
    """Batches that overlap, descend or leave the range of offsets are refused, and the wrong one is named."""
    with pytest.raises(MalformedInputError, match=r"ascend without overlap|within 0\.\.") as refused:
        FetchedRecords(fetch_offset=0, batches=[RecordBatch(*span) for span in spans])
    assert (refused.value.field or "").startswith(field)


def test_the_largest_offset_is_taken() -> None:
    """A log may be fetched from the last offset that the wire can carry, and have records up to the one before it."""
    fetched = FetchedRecords(fetch_offset=2**63 - 1, batches=[RecordBatch(2**63 - 2, 2**63 - 2)])

    assert (fetched.fetch_offset, fetched.batches[0].last_offset) == (2**63 - 1, 2**63 - 2)


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(("0", "4"), id="text"),
        pytest.param((0.0, 4.0), id="floats"),
        pytest.param((None, 4), id="nothing"),
        pytest.param((0,), id="one offset"),
        pytest.param((0, 4), id="a plain pair"),
        pytest.param((0, 4, "1", True, None), id="a producer that is text"),
        pytest.param((0, 4, 1, True, "ABORT"), id="a control type that is text"),
    ],
)
def test_a_malformed_log_batch_is_named(batch: Any) -> None:  # noqa: ANN401 - what a caller got wrong
    """A batch of the wrong shape or types is refused when the fetch is made, not when it is used."""
    with pytest.raises(MalformedInputError) as refused:
        FetchedRecords(fetch_offset=0, batches=[batch])
    assert (refused.value.field or "").startswith("batches[0]")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("fetch_offset", "0"),
        ("fetch_offset", -1),
        ("fetch_offset", None),
        ("batches", None),
        ("aborted_transactions", [(1, None)]),
        ("aborted_transactions", [5]),
        ("aborted_transactions", NumpyScalar()),
        ("isolation", "read_committed"),
    ],
)
def test_a_malformed_fetch_names_the_field(field: str, value: object) -> None:
    """Every part of a fetch has to be of its type, and is named if it is not."""
    arguments: dict[str, Any] = {"fetch_offset": 0, "batches": [], field: value}

    with pytest.raises(MalformedInputError) as refused:
        FetchedRecords(**arguments)
    assert (refused.value.field or "").startswith(field)


def test_isolation_levels_have_kafkas_names() -> None:
    """Isolation levels are named as in Kafka's configuration."""
    assert [level.value for level in IsolationLevel] == ["read_uncommitted", "read_committed"]
