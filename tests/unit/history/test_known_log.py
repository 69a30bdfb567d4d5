"""What a replay knows of a partition's log, and what it keeps of that to go on later."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate import AbortedTransaction, IsolationLevel, MalformedInputError
from sharestate.history import AppendedBatch
from sharestate.history.known_log import KnownLog, read_known_log
from sharestate.json_lines import read_json, write_json

COMMITTED, UNCOMMITTED = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED


def log_of(*batches: AppendedBatch) -> KnownLog:
    """Return a log of *batches*."""
    log = KnownLog()
    log.append(batches)
    return log


def taken_up_again(log: KnownLog) -> KnownLog:
    """Return what the state of a replay keeps of *log*."""
    return read_known_log(read_json(write_json(log.to_json())), "")


def ranges(
    log: KnownLog,
    offset: int,
    isolation: IsolationLevel = UNCOMMITTED,
    **request: Any,  # noqa: ANN401 - what a request has
) -> list[tuple[int, int]]:
    """Return first and last offsets of the batches that a fetch reads."""
    return [(batch.first_offset, batch.last_offset) for batch in log.read(offset, isolation, request).batches]


# ---- what a fetch reads


def test_a_fetch_begins_with_the_batch_that_holds_its_offset() -> None:
    """A batch is read as a whole, and those after it, of the same segment only."""
    log = log_of(AppendedBatch(0, 4, segment=0), AppendedBatch(5, 9, segment=0), AppendedBatch(10, 14, segment=10))

    assert ranges(log, 4) == [(0, 4), (5, 9)]
    assert ranges(log, 5) == [(5, 9)]
    assert ranges(log, 10) == [(10, 14)]
    assert ranges(log, 15) == []


@pytest.mark.parametrize(
    ("most", "partitions", "count"),
    [(300, 1, 3), (299, 1, 2), (1, 1, 1), (600, 2, 3), (599, 2, 2), (0, 1, 1), (300, 0, 3)],
)
def test_a_fetch_reads_as_much_as_fits_but_one_batch_at_least(most: int, partitions: int, count: int) -> None:
    """Each partition of a fetch has an equal share of its bytes; a batch that just fits is read."""
    log = log_of(*(AppendedBatch(first, first + 4, bytes=100) for first in (0, 5, 10, 15)))

    assert len(ranges(log, 0, max_bytes=most, partitions=partitions)) == count


def test_a_batch_of_unknown_size_takes_no_bytes() -> None:
    """It leaves as many as there were for those behind it."""
    log = log_of(AppendedBatch(0, 4), AppendedBatch(5, 9), AppendedBatch(10, 14, bytes=100))

    assert ranges(log, 0, max_bytes=99) == [(0, 4), (5, 9)]
    assert ranges(log, 0, max_bytes=100) == [(0, 4), (5, 9), (10, 14)]


def test_a_log_goes_up() -> None:
    """A batch that does not is refused by its number, and those before it stay."""
    log = KnownLog()

    with pytest.raises(MalformedInputError) as refused:
        log.append([AppendedBatch(0, 4), AppendedBatch(4, 9)])

    assert refused.value.field == "request.batches[1]"
    assert ranges(log, 0) == [(0, 4)]


def test_a_fetch_does_not_pass_over_what_is_too_much() -> None:
    """A batch after that would fit, but nothing is read beyond the first one that does not."""
    log = log_of(*(AppendedBatch(at, at, bytes=size) for at, size in enumerate((100, 300, 50))))

    assert ranges(log, 0, max_bytes=200) == [(0, 0)]


def test_what_is_committed_ends_where_a_transaction_is_open() -> None:
    """Nothing from its first record on is read, and everything before."""
    log = log_of(AppendedBatch(0, 4), AppendedBatch(5, 5, 9, transactional=True), AppendedBatch(6, 9))

    assert ranges(log, 0, COMMITTED) == [(0, 4)]
    assert ranges(log, 0) == [(0, 4), (5, 5), (6, 9)]


def test_a_fetch_up_to_an_offset_reads_whole_batches() -> None:
    """The batch that ends there is the last one."""
    log = log_of(*(AppendedBatch(first, first + 4) for first in (0, 5, 10)))

    read = log.read_to(6, 14, UNCOMMITTED)

    assert [(batch.first_offset, batch.last_offset) for batch in read.batches] == [(5, 9), (10, 14)]
    assert len(log.read_to(6, 13, UNCOMMITTED).batches) == 1


def test_only_a_fetch_of_what_is_committed_gets_aborted_transactions() -> None:
    """However it is said what it has read; but what it says of itself is not doubted."""
    log = log_of(AppendedBatch(0, 4, 9, transactional=True), AppendedBatch(5, 5, 9, control="abort"))
    own = {"batches": (AppendedBatch(0, 4, 9, transactional=True),)}
    aborted = AbortedTransaction(producer_id=9, first_offset=0)

    for isolation, found in ((COMMITTED, (aborted,)), (UNCOMMITTED, ())):
        assert tuple(log.read(0, isolation, {}).aborted_transactions) == found
        assert tuple(log.read_to(0, 5, isolation).aborted_transactions) == found
        assert tuple(log.given(0, isolation, own).aborted_transactions) == found
        assert tuple(log.given(0, isolation, own | {"aborted": ()}).aborted_transactions) == ()


def test_a_fetch_gets_what_was_aborted_in_any_of_its_batches() -> None:
    """Transactions that begin in a later one, too, and none that begin behind what it has read."""
    log = log_of(
        AppendedBatch(0, 4),
        AppendedBatch(5, 9, 9, transactional=True),
        AppendedBatch(10, 10, 9, control="abort"),
        AppendedBatch(11, 14, 8, transactional=True),
        AppendedBatch(15, 15, 8, control="abort"),
    )

    assert tuple(log.read_to(0, 10, COMMITTED).aborted_transactions) == (AbortedTransaction(9, 5),)
    assert tuple(log.read(0, COMMITTED, {}).aborted_transactions) == (
        AbortedTransaction(9, 5),
        AbortedTransaction(8, 11),
    )


# ---- what is kept


def test_what_is_passed_is_forgotten_in_time() -> None:
    """A log of any length takes no more than what is still to be read, twice, and a few batches."""
    log = KnownLog()
    for first in range(0, 1_000, 5):
        log.append((AppendedBatch(first, first + 4),))
        log.forget_below(first)
        assert len(log._batches) <= 2 + 17  # noqa: SLF001 - nothing public says how many it has

    assert ranges(log, 995) == [(995, 999)]


def test_what_is_passed_at_once_is_forgotten_at_once() -> None:
    """A share partition may begin far up in a log, and its state has no more of the log than what follows."""
    log = log_of(*(AppendedBatch(at, at) for at in range(1_000)))
    log.forget_below(990)

    assert len(log._batches) == 10  # noqa: SLF001 - nothing public says how many it has
    log.forget_below(995)
    assert [batch[0] for batch in read_json(write_json(log.to_json()))["batches"]] == [995, 996, 997, 998, 999]


def test_a_transaction_that_was_open_is_aborted_from_its_first_record_on() -> None:
    """Its first batch was passed and forgotten before the replay was taken up again; the marker comes after that."""
    log = log_of(
        AppendedBatch(3, 3, 9, transactional=True),
        AppendedBatch(4, 4, 9, transactional=True),
        AppendedBatch(5, 7, 9, transactional=True),
        AppendedBatch(8, 9, 6, transactional=True),
    )
    log.forget_below(5)
    again = taken_up_again(taken_up_again(log))
    assert (ranges(again, 5, COMMITTED), ranges(again, 5)) == ([], [(5, 7), (8, 9)])

    again.append((AppendedBatch(10, 10, 9, control="abort"), AppendedBatch(11, 11, 6, control="commit")))

    assert ranges(again, 5, COMMITTED) == [(5, 7), (8, 9), (10, 10), (11, 11)]
    assert tuple(again.read(5, COMMITTED, {}).aborted_transactions) == (AbortedTransaction(9, 3),)


def test_a_transaction_that_has_ended_is_forgotten_with_its_marker() -> None:
    """The next one of its producer begins where it begins."""
    log = log_of(
        AppendedBatch(0, 4, 9, transactional=True),
        AppendedBatch(5, 5, 9, control="commit"),
        AppendedBatch(6, 7, 9, transactional=True),
    )
    log.forget_below(6)
    again = taken_up_again(log)
    again.append((AppendedBatch(8, 8, 9, control="abort"),))

    assert tuple(again.read(6, COMMITTED, {}).aborted_transactions) == (AbortedTransaction(9, 6),)


def test_the_end_of_a_log_is_kept_behind_an_open_transaction() -> None:
    """Its records were passed, by a group that reads what is not committed; the next batch follows on them."""
    log = log_of(AppendedBatch(0, 4), AppendedBatch(5, 6, 9, transactional=True))
    log.forget_below(7)
    again = taken_up_again(log)
    again.append((AppendedBatch(7, 7, 9, control="abort"),))

    assert (again.end_offset, ranges(again, 7, COMMITTED)) == (8, [(7, 7)])
    assert tuple(again.read(7, COMMITTED, {}).aborted_transactions) == (AbortedTransaction(9, 5),)


@pytest.mark.parametrize(("offset", "left"), [(4, [(0, 4), (5, 9)]), (5, [(5, 9)]), (9, [(5, 9)]), (10, [])])
def test_the_end_of_the_log_is_kept(offset: int, left: list[tuple[int, int]]) -> None:
    """Even if all batches are passed: a share partition that begins at the latest offset begins there."""
    log = log_of(AppendedBatch(0, 4), AppendedBatch(5, 9))
    log.start_offset = 2
    log.forget_below(offset)

    again = taken_up_again(log)

    assert (again.begin, again.start_offset, again.end_offset) == (offset, 2, 10)
    assert ranges(again, offset) == ranges(log, offset) == left
