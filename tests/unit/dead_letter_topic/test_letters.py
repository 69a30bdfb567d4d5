"""Dead letters, read: those of brokers as they were written, and what is none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sharestate import DeadLetterCause
from sharestate.dead_letter_topic import LETTER_COLUMNS, LetterKind, LoggedLetter, QueuedLetter, read_letter
from tests.support.dead_letter_topics import BROKER, Planted, headers_of, logged
from tests.support.segments import records

REJECTED, EXCEEDED = DeadLetterCause.CLIENT_REJECT, DeadLetterCause.DELIVERY_COUNT_EXCEEDED

WRITTEN = {
    "dlq.orders-0.log": [("g1", "orders", 0, offset, 1, REJECTED) for offset in (0, 1, 5)],
    "dlq.copy-0.log": [("g2", "orders", 0, offset, 2, EXCEEDED) for offset in range(6)],
    "dlq.two-0.log": [
        *(("g4", "three", 0, offset, 1, REJECTED) for offset in range(2)),
        ("g5", "three", 2, 0, 1, REJECTED),
    ],
    "dlq.resume-0.log": [("g7", "resume", 0, offset, 1, REJECTED) for offset in range(3)]
    + [("g7", "resume", 0, 3, 4, EXCEEDED)],
}
"""What members did, and what the groups' limits made of it, by the topic that the broker wrote."""

Headers = tuple[tuple[str, bytes | None], ...]


def read(file: str) -> list[QueuedLetter]:
    """Return the letters of a segment, which a reader of the tests has decoded."""
    return [
        read_letter(
            LoggedLetter(
                0, each.offset, each.timestamp, each.key, None if each.value is None else len(each.value), each.headers
            )
        )
        for each in records(BROKER / file)
    ]


def fields(letter: QueuedLetter) -> tuple[object, ...]:
    """Return what a letter says of its record."""
    return (letter.group_id, letter.topic, letter.partition, letter.offset, letter.delivery_count, letter.cause)


@pytest.mark.parametrize("file", WRITTEN)
def test_letters_of_a_broker_say_what_was_done(file: str) -> None:
    """Group, topic, partition, offset, delivery count and cause of each."""
    letters = read(file)

    assert [fields(letter) for letter in letters] == WRITTEN[file]
    assert {letter.kind for letter in letters} == {LetterKind.LETTER}


def test_key_and_size_are_those_of_what_was_copied() -> None:
    """A letter that copies nothing has its headers only."""
    copied, bare = read("dlq.copy-0.log")[1], read("dlq.orders-0.log")[1]
    texts = ("orders", "0", "1", "g2", "2", "Offset delivery count exceeded the threshold.")
    names = ("topic", "partition", "offset", "group", "delivery.count", "message")
    headers = sum(len(f"__dlq.errors.{name}{text}") for name, text in zip(names, texts, strict=True))

    assert (copied.key, copied.is_copied, copied.size) == (b"k1", True, headers + len("k1" + "v1v1v1"))
    assert (bare.key, bare.is_copied) == (None, False)


def test_another_text_is_no_cause() -> None:
    """A later release may have others; the letter is read all the same."""
    letter = read_letter(logged(Planted(3, message="Something else."), 0))

    assert (letter.kind, letter.cause, letter.message) == (LetterKind.LETTER, None, "Something else.")


def test_what_a_broker_does_not_know_may_be_missing() -> None:
    """Delivery count and text, one or both."""
    headers = headers_of(Planted(3))
    for names in (headers[:4], headers[:5], (*headers[:4], headers[5])):
        letter = read_letter(LoggedLetter(0, 0, None, None, None, names))
        assert (letter.kind, letter.offset) == (LetterKind.LETTER, 3)


OTHERS: dict[str, Callable[[Headers], Headers]] = {
    "none": lambda _: (),
    "others": lambda _: (("x-death", b"1"),),
    "one more": lambda headers: (*headers, ("x-death", b"1")),
    "one twice": lambda headers: (*headers, headers[-1]),
    "another order": lambda headers: headers[::-1],
    "one missing": lambda headers: headers[1:],
}


@pytest.mark.parametrize("name", OTHERS)
def test_headers_that_no_broker_writes_are_those_of_another_tool(name: str) -> None:
    """It is counted as that, and says nothing of a record."""
    letter = read_letter(LoggedLetter(0, 0, None, b"k", 5, OTHERS[name](headers_of(Planted(3)))))

    assert (letter.kind, letter.offset, letter.group_id) == (LetterKind.OTHER_TOOL, None, None)
    assert letter.reason


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (1, b"-1"),
        (1, b"%d" % 2**31),
        (2, b"7.0"),
        (2, b"9" * 19),
        (2, b"9" * 5000),
        (2, "\N{ARABIC-INDIC DIGIT ONE}".encode()),
        (2, b""),
        (2, None),
        (3, b"\xff"),
        (4, b"%d" % 2**15),
    ],
)
def test_a_value_that_is_none_is_malformed(place: int, value: bytes | None) -> None:
    """The reason names the header."""
    headers: Headers = headers_of(Planted(3))
    headers = (*headers[:place], (headers[place][0], value), *headers[place + 1 :])
    letter = read_letter(LoggedLetter(0, 0, None, None, None, headers))

    assert (letter.kind, letter.offset) == (LetterKind.MALFORMED, None)
    assert (letter.reason or "").startswith(headers[place][0])


def test_the_columns_are_the_fields() -> None:
    """In the same order; a row has their values."""
    letter = read("dlq.copy-0.log")[0]

    assert tuple(column.name for column in LETTER_COLUMNS) == QueuedLetter._fields
    assert letter.row()[3:] == (
        *("letter", None, "g2", "orders", 0, 0, 2, "delivery_count_exceeded"),
        *("Offset delivery count exceeded the threshold.", b"k0", letter.size, True),
    )
