"""What a fetch can read of a log of which so much is visible, and what it has read if it shares its bytes."""

from __future__ import annotations

from itertools import islice

import pytest

from sharestate.history import AppendedBatch, Event, Header, Order
from sharestate.log_check import Verdict
from sharestate.log_check.verify import check_partition
from sharestate.log_check.visible_log import MOST_SUM, VisibleLog, sums_of_others
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from tests.support.hand_made_events import HandMadeLife

COMMITTED, UNCOMMITTED = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
KEY = ("orders", "AAAAAAAAAAAAAAAAAAAAAQ", 0)


def log_of(*appends: tuple[AppendedBatch, ...], at_us: int | None = 1_000) -> VisibleLog:
    """Return the log of appends of one batch or more, a millisecond after one another, or at times nobody knows."""
    times = [None if at_us is None else at_us * (1 + number) for number in range(len(appends))]
    return VisibleLog(
        Event.of(KEY, number, "log", at_us=time, request={"batches": batches})
        for number, (batches, time) in enumerate(zip(appends, times, strict=True))
    )


def of_sizes(*sizes: int | None) -> VisibleLog:
    """Return a log with batches of ten records each, of so many bytes."""
    return log_of(
        *((AppendedBatch(10 * place, 10 * place + 9, bytes=size),) for place, size in enumerate(sizes)),
    )


def test_what_is_visible_grows_with_the_events() -> None:
    """The second one has two batches; what is there of it belongs to it, and nothing before anything is."""
    log = log_of(
        (AppendedBatch(0, 3),), (AppendedBatch(4, 7), AppendedBatch(8, 9)), (AppendedBatch(20, 24),)
    )  # 10 to 19 were compacted away
    events = log.events_until(4)

    assert [event.seq for event in events] == [0, 1, 2]
    assert [log.count_after(event) for event in events] == [1, 3, 4]
    assert [len(log.events_until(count)) for count in range(5)] == [0, 1, 2, 2, 3]
    assert [log.end_offset(count) for count in range(5)] == [0, 4, 8, 10, 25]
    assert [log.count_with(offset) for offset in (0, 3, 4, 9, 10, 24, 25)] == [1, 1, 2, 3, 4, 4, 4]
    assert [log.batch_end(offset) for offset in (0, 3, 4, 15, 24, 25)] == [4, 4, 8, 25, 25, 26]


@pytest.mark.parametrize("isolation", IsolationLevel)
def test_nothing_is_read_of_an_empty_log(isolation: IsolationLevel) -> None:
    """As long as no batch is visible, though some come later."""
    log = log_of((AppendedBatch(0, 3),))

    assert not log.is_readable(0, 0, isolation)
    assert log.is_readable(0, 1, isolation)
    assert not log.is_readable(4, 1, isolation)
    assert list(log.readable(0, 0, isolation)) == []
    assert list(log.fitting(log.readable(0, 0, isolation), 1_000, 1)) == [range(0)]


def test_with_read_committed_nothing_is_read_of_an_open_transaction() -> None:
    """It ends where the first of them begins, until all that is before its marker is visible."""
    log = log_of(
        (AppendedBatch(0, 3),),
        (AppendedBatch(4, 7, 1, True),),  # noqa: FBT003 - a row of the format
        (AppendedBatch(8, 9),),
        (AppendedBatch(10, 10, 1, True, "abort"),),  # noqa: FBT003 - a row of the format
    )

    for count, end in ((1, 4), (2, 4), (3, 4), (4, 11)):
        assert log.readable(0, count, COMMITTED) == range(count if count in {1, 4} else 1)
        assert [log.is_readable(offset, count, COMMITTED) for offset in (end - 1, end)] == [True, False]
        assert log.readable(0, count, UNCOMMITTED) == range(count)
    assert [each[1] for each in log.fetched(0, range(4), COMMITTED).aborted_transactions] == [4]
    assert log.fetched(0, range(1), COMMITTED).aborted_transactions == ()
    assert log.fetched(0, range(4), UNCOMMITTED).aborted_transactions == ()


def test_a_fetch_reads_from_one_segment_file() -> None:
    """From the batch with its offset on, up to the end of the file or of what is visible."""
    log = log_of(*((AppendedBatch(place, place, segment=place // 2 * 2),) for place in range(5)))

    assert [log.readable(offset, 4, UNCOMMITTED) for offset in range(5)] == [
        *(range(2), range(1, 2), range(2, 4), range(3, 4), range(0)),
    ]
    assert log.readable(2, 3, UNCOMMITTED) == range(2, 3)
    assert log.readable(4, 5, UNCOMMITTED) == range(4, 5)


def test_of_what_it_could_read_no_less_than_one_batch_is_left() -> None:
    """Up to the one with an offset, or the first one if that comes before it."""
    log = of_sizes(1, 1, 1, 1)

    assert [log.up_to(range(1, 4), offset) for offset in (0, 9, 10, 19, 20, 39, 99)] == [
        *(range(1, 2), range(1, 2), range(1, 2), range(1, 2), range(1, 3), range(1, 4), range(1, 4)),
    ]


@pytest.mark.parametrize(
    ("max_bytes", "partitions", "counts"),
    [
        (400, 1, [4]),
        (399, 1, [3]),
        (99, 1, [1]),
        (400, 2, [4, 2]),
        (400, 3, [4, 2, 1]),
        (400, 4, [4, 2, 1]),
        (1_200, 3, [4]),  # a third of it is enough for all
        (1_200, 4, [4, 3]),
        (1_200, 6, [4, 3, 2]),
        (0, 1, [1]),
        (400, 0, [4]),
    ],
)
def test_the_more_partitions_share_the_bytes_the_less_is_read(
    max_bytes: int, partitions: int, counts: list[int]
) -> None:
    """Of batches of 100 bytes: what fits into the share of each, each once, and always the first one."""
    log = of_sizes(77, 100, 100, 100, 100)

    assert list(log.fitting(range(1, 5), max_bytes, partitions)) == [range(1, 1 + count) for count in counts]


@pytest.mark.parametrize("max_bytes", [0, 1, 5, 1_000])
@pytest.mark.parametrize("partitions", [1, 2, 600])
def test_batches_of_unknown_sizes_fit_all(max_bytes: int, partitions: int) -> None:
    """However many partitions share however few bytes, that is one way to read, and the only one."""
    assert list(islice(of_sizes(None, None, None).fitting(range(3), max_bytes, partitions), 3)) == [range(3)]


@pytest.mark.parametrize(("deliveries", "verdict"), [(1, Verdict.EXPLAINED), (2, Verdict.CONTRADICTION)])
def test_a_history_without_sizes_is_checked(deliveries: int, verdict: Verdict) -> None:
    """The fetch reads no bytes, as its request says, but a first batch is always read; here that is all there is."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    for first in (0, 4):
        life.appends(12, first, first + 3)
        life.events[-1] = life.events[-1]._replace(request={"batches": (AppendedBatch(first, first + 3),)})
    life.fetches(20, 2, "m1", 1, (0, 7, deliveries))
    life.events[-1] = life.events[-1]._replace(request={**(life.events[-1].request or {}), "max_bytes": 0})

    own = [*enumerate(life.events, 2)]
    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert report.verdict is verdict


@pytest.mark.parametrize(
    ("earliest_us", "latest_us", "done_us"), [(0, 9_000, 2_000), (0, 1_500, 1_500), (2_500, 9_000, 2_500)]
)
def test_a_fetch_is_done_when_the_last_batch_is_there(earliest_us: int, latest_us: int, done_us: int) -> None:
    """At the earliest, within its own time; what is read of a log without times, or of nothing, says no more."""
    appends = ((AppendedBatch(0, 3),), (AppendedBatch(4, 7),))
    log, timeless = log_of(*appends), log_of(*appends, at_us=None)
    fetched = log.fetched(0, range(2), UNCOMMITTED)

    assert log.fetched_us(fetched, earliest_us, latest_us) == done_us
    assert timeless.fetched_us(fetched, earliest_us, latest_us) == earliest_us
    assert log.fetched_us(FetchedRecords(fetch_offset=8, batches=()), earliest_us, latest_us) == earliest_us


@pytest.mark.parametrize(
    ("others", "wanted", "sums"),
    [
        ((), 5, [0]),
        ((3, 4), 8, [0, 3, 4, 7]),
        ((3, 4), 7, [0, 3, 4, 7]),
        ((3, 4), 5, [0, 3, 4, 5]),
        ((9,), 5, [0, 5]),
        ((2, 2), 5, [0, 2, 4]),
        ((1,), MOST_SUM + 10, [0, 1]),
    ],
)
def test_other_partitions_may_have_taken_any_sum_of_what_they_got(
    others: tuple[int, ...], wanted: int, sums: list[int]
) -> None:
    """The likely one first, and none; as much as was wanted, or more, leaves nothing and counts as one."""
    request = {"others": others}

    assert sums_of_others(request, wanted) == sums
    likely = sums_of_others({**request, "acquired_by_others": sums[-1]}, wanted)
    assert (likely[0], sorted(likely)) == (sums[-1], sums)
