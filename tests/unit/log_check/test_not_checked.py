"""How many events the check of a broker's log has passed over."""

from __future__ import annotations

import pytest

from sharestate.history import Header, Order
from sharestate.log_check.budget import Budget
from sharestate.log_check.verify import Verdict, check_partition
from tests.support.hand_made_events import HandMadeLife, begun_in_the_middle


def test_events_are_counted_and_not_their_steps() -> None:
    """After a fetch that fits nowhere an acknowledgement and its write are not checked: two events, of three steps."""
    life = HandMadeLife()
    life.appends(0, 0, 9)
    life.reads(10, 100, 0)
    life.fetches(20, 1, "m1", 1, (0, 9, 2))  # it is delivered for the first time
    life.acknowledges(30, 5, "m1", 2, (0, 9, 1), None)
    life.writes(31, 101, (10, 0), (0, 9, 2, 2))
    life.appends(40, 10, 19)  # the log is known all the same

    report = check_partition(life.events[0].key, list(enumerate(life.events)), "history.jsonl", Header()).report

    assert (report.verdict, report.events, report.not_checked) == (Verdict.CONTRADICTION, 7, 2)


def test_what_comes_before_the_state_is_read_is_not_checked() -> None:
    """The log begins in the middle of a life: what is read later is checked, and the verdict says what was not."""
    life = begun_in_the_middle()
    life.fetches(2_010, 1, "m1", 8, (5, 19, 1))

    report = check_partition(life.events[0].key, list(enumerate(life.events)), "history.jsonl", Header()).report

    (finding,) = report.findings
    assert (report.verdict, report.explained.fetches_with_records) == (Verdict.NOT_CHECKED, 1)
    assert finding.reason == (
        "the log begins in the middle of its life: 2 requests come before the state is read, in request.log:5"
    )


@pytest.mark.parametrize(("error", "verdict"), [("invalid_request", Verdict.EXPLAINED), (None, Verdict.CONTRADICTION)])
def test_what_every_broker_refuses_is_checked_before_the_state_is_read(error: str | None, verdict: Verdict) -> None:
    """An acknowledgement names a last offset before the first one."""
    life = HandMadeLife()
    life.appends(0, 0, 9)
    life.acknowledges(10, 1, "m1", 1, (3, 2, 1), error)
    life.reads(100, 100, 0)
    life.fetches(120, 1, "m1", 2, (0, 9, 1))

    report = check_partition(life.events[0].key, list(enumerate(life.events)), "history.jsonl", Header()).report

    assert report.verdict is verdict
    assert report.explained.fetches_with_records == 1


def test_writes_that_were_sent_before_the_state_is_read_are_passed_over() -> None:
    """The next one is compared with what is done after that."""
    life = begun_in_the_middle()
    life.fetches(2_010, 1, "m1", 8, (5, 19, 1))
    life.acknowledges(2_020, 5, "m1", 9, (5, 19, 1), None)
    life.writes(2_021, 102, (5, 15), (5, 19, 2, 1))
    life.fetches(2_050, 100, "m1", 10)

    report = check_partition(life.events[0].key, list(enumerate(life.events)), "history.jsonl", Header()).report

    assert [finding.verdict for finding in report.findings] == [Verdict.NOT_CHECKED]
    assert (report.explained.codes, report.explained.writes, report.moves) == (1, 1, 0)


def test_what_is_not_checked_has_its_place_in_the_order_that_is_found() -> None:
    """A write whose answer comes before the state is read is there once, as all else is."""
    life = HandMadeLife()
    life.appends(0, 0, 19)
    life.acknowledges(10, 5, "m1", 7, (0, 4, 1), None)
    life.writes(11, 100, (5, 0), (0, 4, 2, 1))
    life.reads(2_000, 101, 5)
    life.fetches(2_010, 1, "m1", 8, (5, 19, 1))
    own = [*enumerate(life.events, 2)]

    found = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).events()

    assert sorted(event.kind for event in found) == sorted(["verdict", *(event.kind for event in life.events)])


@pytest.mark.parametrize("is_answered", [True, False])
@pytest.mark.parametrize(("acquired", "count"), [((), 1), (((4, 7, 1),), 0)], ids=["nothing", "records"])
def test_a_fetch_without_a_state_acquires_nothing(
    is_answered: bool,  # noqa: FBT001 - a parameter
    acquired: tuple[tuple[int, int, int], ...],
    count: int,
) -> None:
    """
    Before the state is read the first time it is explained, and after a read that has failed.

    After a read whose answer nobody knows nothing can be said of it.
    """
    life = HandMadeLife()
    life.appends(1, 0, 3)
    life.fetches(5, 2, "m1", 1)
    life.reads(10, 100, 0)
    life.fetches(20, 2, "m1", 2, (0, 3, 1))
    life.appends(30, 4, 7)
    life.reads(100, 101, None)
    if not is_answered:
        life.events[-1] = life.events[-1]._replace(response=None)
    life.fetches(200, 5, "m1", 3, *acquired)

    own = [*enumerate(life.events, 2)]
    report = check_partition(life.events[0].key, own, "history.jsonl", Header()).report

    assert report.explained.fetches_with_records == 1
    assert report.explained.empty_fetches == 1 + (count if is_answered else 0)
    assert report.verdict is (Verdict.CONTRADICTION if is_answered and acquired else Verdict.EXPLAINED)


def test_each_event_is_explained_or_not_checked_wherever_the_budget_ends() -> None:
    """But for the one at which it ends: what comes before that is explained, what comes after it is not checked."""
    life = HandMadeLife()
    life.appends(0, 0, 9)
    life.reads(10, 100, 0)
    for number in range(5):
        life.fetches(20 + 10 * number, 1, "m1", number, *([(0, 9, 1)] if not number else []))
    key, own = life.events[0].key, [*enumerate(life.events)]
    ends = set()

    for most in range(0, 1_500, 7):
        report = check_partition(key, own, "history.jsonl", Header(), Budget(most)).report
        for finding in report.findings:
            if "ends here for good" in finding.reason:
                before, after = life.events[: finding.event.seq], life.events[finding.event.seq + 1 :]
                assert report.not_checked == sum(event.kind in {"initialize", "fetch"} for event in after)
                counts = report.explained
                explained = counts.fetches_with_records + counts.empty_fetches
                assert explained == sum(event.kind == "fetch" for event in before)
                ends.add(finding.event.seq)

    assert len(ends) >= len(life.events) - 1
