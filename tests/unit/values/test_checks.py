"""What the errors of wrong arguments say, and that the arguments themselves cannot break them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from sharestate import (
    AcknowledgementBatch,
    FetchedRecords,
    InvalidRequestError,
    MalformedInputError,
    RecordBatch,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
)
from sharestate.values.checks import brief_repr

KEY = SharePartitionKey(group_id="g", topic_id="t", partition=0)
INT64 = f"an integer within {-(2**63)}..{2**63 - 1}"
HUGE = 10**5000
"""An integer that Python refuses to write."""


def refusal(batches: Any) -> str:  # noqa: ANN401 - what a caller got wrong
    """Return the text of the error that acknowledging *batches* raises."""
    with pytest.raises(MalformedInputError) as refused:
        SharePartition(KEY).acknowledge("m1", batches, now_ms=0)
    return str(refused.value)


def test_the_text_begins_with_the_argument() -> None:
    """An error names the argument that was wrong in its text."""
    with pytest.raises(MalformedInputError) as refused:
        ShareConfig(delivery_count_limit=-1)
    assert str(refused.value) == f"delivery_count_limit: expected an integer within 0..{2**63 - 1}, got -1"


def test_a_profile_that_is_a_name_is_refused_with_what_to_pass() -> None:
    """A profile's name is no profile, and the message shows what is."""
    with pytest.raises(MalformedInputError) as refused:
        SharePartition(KEY, profile="kafka-4.3")  # type: ignore[arg-type]
    assert str(refused.value) == (
        "profile: expected Profile, such as KAFKA_4_4 or PROFILES['kafka-4.4'], got 'kafka-4.3'"
    )


@pytest.mark.parametrize(
    ("batches", "text"),
    [
        (
            AcknowledgementBatch(0, 4, ()),
            "batches: expected a list of AcknowledgementBatch, got one without a list: AcknowledgementBatch(0, 4, ())",
        ),
        (7, "batches: expected a list of AcknowledgementBatch, got 7"),
        ([7], "batches[0]: expected an AcknowledgementBatch, got 7"),
        ([("a", 4, (1,))], f"batches[0].first_offset: expected {INT64}, got 'a'"),
        ([(0, HUGE, (1,))], f"batches[0].last_offset: expected {INT64}, got an integer of 16610 bits"),
        (
            [(0, 4, 1)],
            "batches[0].acknowledge_types: expected a sequence of types, such as (AcknowledgeType.ACCEPT,), got 1",
        ),
        (
            [(0, 9, (1, 1, 1, 1, 1, 1, 1, "x", 1, 1))],
            "batches[0].acknowledge_types[7]: expected an acknowledge type, got 'x'",
        ),
    ],
    ids=["no list", "a number", "numbers", "text", "a huge offset", "no sequence", "a wrong type among others"],
)
def test_a_malformed_acknowledgement_names_the_part_that_is_wrong(batches: object, text: str) -> None:
    """The message leads to the very value that is wrong, and shows it."""
    assert refusal(batches) == text


def test_a_record_batch_without_its_list_is_refused_as_such() -> None:
    """A named tuple could be taken for a list of its fields."""
    with pytest.raises(MalformedInputError, match=r"^batches: expected a list of RecordBatch, got one without a list"):
        FetchedRecords(fetch_offset=0, batches=RecordBatch(0, 9))  # type: ignore[arg-type]


class Endless(Sequence[int]):
    """A sequence that says how long it is, and cannot be iterated over."""

    def __len__(self) -> int:
        """Return a length that no memory holds."""
        return 2**62

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as Sequence has it
        """Fail."""
        raise AssertionError

    def __iter__(self) -> Iterator[int]:
        """Fail."""
        raise AssertionError


@pytest.mark.parametrize(
    "types", [range(2**62), range(2**70), Endless(), range(2**20 + 1)], ids=["2^62", "2^70", "endless", "one too many"]
)
def test_the_number_of_types_is_bounded_before_they_are_looked_at(types: Sequence[int]) -> None:
    """However many types an argument promises, its refusal costs nothing."""
    text = refusal([AcknowledgementBatch(0, 2**62 - 1, types)])

    assert text.startswith("batches[0].acknowledge_types: expected at most 1048576 acknowledge types, got ")


def test_as_many_types_as_a_split_batch_may_have_are_taken() -> None:
    """2^20 types are within the bound; here they are one too few for the offsets."""
    with pytest.raises(InvalidRequestError, match="1048576 acknowledge types for the 1048577 offsets"):
        SharePartition(KEY).acknowledge("m1", [AcknowledgementBatch(0, 2**20, bytes(2**20))], now_ms=0)


def test_a_list_that_no_memory_holds_is_refused() -> None:
    """A range in the place of a list raises no MemoryError."""
    assert refusal(range(2**62)).startswith("batches: expected a list of AcknowledgementBatch, got range(")


@pytest.mark.parametrize("number", [HUGE, -HUGE], ids=["above", "below"])
def test_an_integer_of_any_size_is_refused(number: int) -> None:
    """An integer of more than 4,300 digits, which Python does not write, is out of range like any other."""
    with pytest.raises(MalformedInputError, match=r"^offset: expected .*, got an integer of 16610 bits"):
        SharePartition(KEY).advance_log_start(number)


class Mute:
    """A value whose own text fails."""

    def __repr__(self) -> str:
        """Fail."""
        raise OSError


class MuteNumber(int):
    """A number that cannot be looked at."""

    def bit_length(self) -> int:
        """Fail."""
        raise OSError


MuteNumber.__name__ = "int"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((0, HUGE, "x"), "(0, an integer of 16610 bits, 'x')"),
        (AcknowledgementBatch(0, HUGE, (1,)), "AcknowledgementBatch(0, an integer of 16610 bits, (1,))"),
        (MuteNumber(5), "an instance of int"),
    ],
    ids=["in a tuple", "in a named tuple", "a number of a class called int"],
)
def test_whatever_is_wrong_can_be_shown(value: object, text: str) -> None:
    """A text is made of any value, without an error of its own."""
    assert brief_repr(value) == text


def test_a_value_whose_text_fails_is_named_by_its_class() -> None:
    """A value that has no text is shown by its class."""
    assert brief_repr(Mute()).startswith("<Mute instance at ")
