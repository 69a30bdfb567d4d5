"""When the requests of a log are taken to have had their effect."""

from __future__ import annotations

import pytest

from sharestate.log_check.schedule import Step, What, schedule
from tests.support.hand_made_events import HandMadeLife


def steps_of(life: HandMadeLife, *with_records: int) -> list[Step]:
    """Return the steps of a life; fetches with these numbers have acquired records of another share partition."""
    events = [
        event._replace(request={**(event.request or {}), "others": (1,)})
        if event.kind == "fetch" and event.request_no in with_records
        else event
        for event in life.events
    ]
    return schedule(enumerate(events)).steps


def fetch_of(life: HandMadeLife) -> Step:
    """Return the step of the only fetch, which has acquired records."""
    (step,) = (step for step in steps_of(life, 1) if step.what is What.FETCH)
    return step


def test_a_fetch_does_not_wait_for_the_write_of_its_acknowledgements() -> None:
    """
    Its answer does: it was taken at 304.0, waited for 100 ms at the most, and was answered at 925.8.

    So it was on Kafka 4.4.0: ten records were appended at 309.9 that it has acquired, and another fetch had got the
    next ones at 456.5; the answer to the write of its acknowledgement had come at 919.9.
    """
    life = HandMadeLife()
    life.appends(0, 0, 527)
    life.acknowledges(304.0, 621.8, "m1", 1, (527, 527, 1), None)
    life.fetches(304.0, 621.8, "m1", 1, (528, 537, 1))
    life.appends(309.9, 528, 537)
    life.writes(907.5, 255, (502, 20), (527, 527, 2, 1))

    step = fetch_of(life)

    assert 309_900 <= step.earliest_us <= step.at_us <= 404_000
    assert step.latest_us == 404_000 + 25_000  # what waits is answered that soon after it


def test_a_fetch_that_was_not_woken_has_waited_as_long_as_it_would() -> None:
    """It has got records of another share partition 100 ms after it was taken, and its answer came much later."""
    life = HandMadeLife()
    life.appends(0, 0, 3)
    life.acknowledges(304.0, 621.8, "m1", 1, (0, 0, 1), None)
    life.fetches(304.0, 621.8, "m1", 1)
    life.writes(907.5, 255, (0, 1), (0, 0, 2, 1))

    assert fetch_of(life).at_us == 404_000


def test_a_fetch_that_waits_for_enough_bytes_is_done_when_they_are_there() -> None:
    """Its last record was appended long before; more that it has read was aborted, which its answer does not show."""
    life = HandMadeLife()
    life.appends(0, 0, 1163)
    life.acknowledges(198.3, 99.0, "m1", 1, (1103, 1103, 1), None)
    life.fetches(198.3, 99.0, "m1", 1, (1164, 1167, 1))
    life.writes(199.1, 854, (1103, 46), (1103, 1103, 2, 4))
    life.appends(220.0, 1164, 1167)

    assert fetch_of(life).at_us == 297_300


def test_nothing_is_acquired_before_the_last_of_it_is_in_the_log() -> None:
    """A fetch has acquired two batches; the second was appended while it waited."""
    life = HandMadeLife()
    life.appends(0, 0, 3)
    life.appends(50, 4, 7)
    life.fetches(10, 90, "m1", 1, (0, 3, 1), (4, 7, 1))

    assert fetch_of(life).earliest_us == 50_000


def test_an_acknowledgement_has_its_effect_while_it_is_handled() -> None:
    """Its answer waits for its write."""
    life = HandMadeLife()
    life.acknowledges(10, 600, "m1", 1, (0, 0, 1), None)

    (step,) = (step for step in steps_of(life) if step.what is What.ACKNOWLEDGE)

    assert (step.earliest_us, step.at_us, step.latest_us) == (10_000, 10_000, 11_000)


def test_a_broker_has_stopped_where_its_numbers_begin_anew() -> None:
    """It numbers its requests for state over all its connections; it has stopped as the longest silence begins."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.fetches(20, 100, "m1", 1)
    life.fetches(140, 100, "m1", 2)
    life.starts_again()
    life.fetches(9_000, 1, "m1", 3)
    life.reads(9_100, 2, None)
    life.reads(9_300, 3, 0)

    (stop,) = (step for step in steps_of(life) if step.what is What.STOP)

    assert (stop.earliest_us, stop.at_us, stop.latest_us) == (240_001,) * 3


@pytest.mark.parametrize("number", [0, 3])
def test_a_broker_has_not_stopped_where_another_one_leads(number: int) -> None:
    """That numbers its own requests; the one before answers fetches until it has heard of it."""
    life = HandMadeLife()
    life.reads(10, 100, 0, leader=1)
    life.fetches(20, 100, "m1", 1)
    life.starts_again()
    life.reads(9_300, number, 0, leader=2)

    assert [step for step in steps_of(life) if step.what is What.STOP] == []


def test_the_first_request_of_a_broker_has_the_number_0() -> None:
    """It has not stopped before that."""
    life = HandMadeLife()
    life.reads(10, 0, 0)
    life.fetches(20, 100, "m1", 1)

    assert [step for step in steps_of(life) if step.what is What.STOP] == []


def test_the_outcome_of_a_write_comes_before_the_answer_to_its_acknowledgement() -> None:
    """On a busy broker it may be long after the answer to the write; nobody waits for the write of an expired lock."""
    life = HandMadeLife()
    life.acknowledges(541.3, 108.6, "m1", 1, (106, 109, 1), None)
    life.writes(610.5, 5, (0, 56), (106, 108, 2, 1), (109, 109, 0, 1))
    life.writes(610.6, 6, (0, 56), (110, 110, 0, 1))

    steps = [step for step in steps_of(life) if step.what is What.OUTCOME]

    assert [step.latest_us for step in steps] == [649_900, 611_600 + 25_000]
    assert [step.at_us for step in steps] == [611_500 + 300, 611_600 + 300]


@pytest.mark.parametrize(("begins_ms", "last_ms"), [(5, 90_001), (10, 90_001), (50_000, 11)])
def test_a_producer_that_goes_on_shows_that_the_broker_does(begins_ms: int, last_ms: int) -> None:
    """What was under way is in the log then; but over a new connection, the broker may be one that has started anew."""
    life = HandMadeLife()
    life.appends(begins_ms, 0, 9)
    life.fetches(10, 1, "m1", 1)
    life.appends(90_000, 10, 19)

    assert schedule(enumerate(life.events)).last_us == [last_ms * 1000]


@pytest.mark.parametrize(("is_stopped", "last_ms"), [(True, 11), (False, 1_501)])
def test_a_broker_that_stops_may_serve_producers_longer_than_members(*, is_stopped: bool, last_ms: int) -> None:
    """What members had asked for last counts as under way when it stopped, whatever was appended after it."""
    life = HandMadeLife()
    life.appends(3, 0, 9)
    life.reads(5, 100, 0)
    life.fetches(10, 1, "m1", 1)
    life.appends(1_500, 10, 19)
    if is_stopped:
        life.starts_again()
    life.reads(8_010, 1 if is_stopped else 101, 0)

    assert schedule(enumerate(life.events)).last_us[1] == last_ms * 1000


def test_before_anything_is_heard_of_a_share_partition_there_is_nothing() -> None:
    """Its log begins with the read of its state."""
    life = HandMadeLife()
    life.reads(5, 100, 0)

    assert schedule(enumerate(life.events)).last_us[0] == 0


def test_writes_of_a_broker_that_leads_again_come_after_those_of_the_one_between() -> None:
    """Its connection to the share coordinator is the same as before; the leader epoch is another one."""
    life = HandMadeLife()
    for at_ms, number, epoch, connection in ((10, 100, 1, "one"), (20, 50, 2, "other"), (30, 101, 3, "one")):
        life.writes(at_ms, number, (0, 0), (number, number, 2, 1))
        event = life.events[-1]
        request = {**(event.request or {}), "leader_epoch": epoch}
        life.events[-1] = event._replace(request=request, connection=connection)

    plan = schedule(enumerate(life.events))

    assert [event.request_no for _, event in plan.writes] == [100, 50, 101]


@pytest.mark.parametrize("is_numbered", [True, False])
def test_writes_of_a_connection_come_in_the_order_of_their_numbers(*, is_numbered: bool) -> None:
    """Whatever order they have in the log; where the connection is not known, those of the broker's requests do."""
    life = HandMadeLife()
    for at_ms, number in ((10, 102), (11, 101)):
        life.writes(at_ms, number, (0, 0), (number, number, 2, 1))
        event = life.events[-1]
        request = {name: value for name, value in (event.request or {}).items() if name != "rpc"}
        if is_numbered:
            life.events[-1] = event._replace(request=request)
        else:
            life.events[-1] = event._replace(request={**request, "rpc": number}, request_no=None)

    plan = schedule(enumerate(life.events))

    assert [(event.request or {})["state_batches"][0].first_offset for _, event in plan.writes] == [101, 102]


def test_the_state_was_read_before_anything_was_acquired() -> None:
    """The line of the read is later than that of the fetch that has waited for it, by 0.2 ms, as both may be late."""
    life = HandMadeLife()
    life.appends(0, 0, 9)
    life.fetches(100, 6.1, "m1", 1, (0, 9, 1))
    life.reads(104.3, 7, 0)

    steps = [step.what for step in steps_of(life) if step.what in {What.FETCH, What.INITIALIZE}]

    assert steps == [What.INITIALIZE, What.FETCH]


@pytest.mark.parametrize(
    ("read_ms", "earliest_us", "order"),
    [
        (107, 106_099, [What.INITIALIZE, What.FETCH, What.FETCH]),
        (131.1, 106_099, [What.INITIALIZE, What.FETCH, What.FETCH]),
        (131.101, 131_101, [What.FETCH, What.FETCH, What.INITIALIZE]),
    ],
)
def test_the_line_of_the_first_read_may_be_late_as_a_whole(read_ms: float, earliest_us: int, order: list[What]) -> None:
    """
    A broker of 4.4.0 had it arrive 0.9 ms after the fetch was done; if much later, the log begins in the middle.

    It is taken to have been right before the first of the fetches.
    """
    life = HandMadeLife()
    life.appends(0, 0, 9)
    life.fetches(100, 6.1, "m1", 1, (0, 4, 1))
    life.fetches(100, 6.5, "m2", 1, (5, 9, 1))
    life.reads(read_ms, 2, 0)

    steps = [step for step in steps_of(life) if step.what in {What.FETCH, What.INITIALIZE}]

    assert [step.what for step in steps] == order
    assert {step.earliest_us for step in steps if step.what is What.INITIALIZE} == {earliest_us}


@pytest.mark.parametrize(("read_ms", "at_us"), [(104.3, 106_099), (106.1, 106_100)])
def test_what_a_fetch_has_waited_for_is_right_before_it(read_ms: float, at_us: int) -> None:
    """If it was there in time: the read is answered 2 ms after it has arrived, and the fetch at 106.1."""
    life = HandMadeLife()
    life.appends(0, 0, 9)
    life.fetches(100, 6.1, "m1", 1, (0, 4, 1))
    life.fetches(300, 1, "m1", 2, (5, 9, 1))
    life.reads(read_ms, 2, 0)

    (read,) = (step for step in steps_of(life) if step.what is What.INITIALIZE)

    assert (read.earliest_us, read.at_us) == (round(read_ms * 1000), at_us)


def test_a_later_read_that_is_late_as_a_whole_stays() -> None:
    """What was acquired just before it was so before the leader had changed."""
    life = HandMadeLife()
    life.appends(0, 0, 9)
    life.reads(90, 1, 0)
    life.fetches(100, 6.1, "m1", 1, (0, 9, 1))
    life.reads(107, 2, 0)

    steps = [step.what for step in steps_of(life) if step.what in {What.FETCH, What.INITIALIZE}]

    assert steps == [What.INITIALIZE, What.FETCH, What.INITIALIZE]


def test_a_number_that_is_there_again_is_not_that_of_a_broker_that_has_started_anew() -> None:
    """Some clients give all their requests the same one."""
    life = HandMadeLife()
    life.reads(10, 5, 0)
    life.reads(9_300, 5, 0)

    assert [step for step in steps_of(life) if step.what is What.STOP] == []


@pytest.mark.parametrize(("takes_ms", "at_us"), [(124.9, 323_200), (125, 298_300)])
def test_a_fetch_that_is_answered_soon_after_its_wait_may_have_been_woken(takes_ms: float, at_us: int) -> None:
    """It waited until 298.3, has acquired records of this share partition only, and its write was answered long ago."""
    life = HandMadeLife()
    life.appends(0, 0, 9)
    life.acknowledges(198.3, takes_ms, "m1", 1, (0, 3, 1), None)
    life.fetches(198.3, takes_ms, "m1", 1, (4, 9, 1))
    life.writes(199, 101, (0, 4), (0, 3, 2, 1))

    (step,) = (step for step in steps_of(life) if step.what is What.FETCH)

    assert step.at_us == at_us


@pytest.mark.parametrize(("takes_ms", "at_us"), [(6.9, 304_000), (7, 311_000)])
def test_a_fetch_has_waited_for_records_where_its_answer_does_not_come_soon_after_its_write(
    takes_ms: float, at_us: int
) -> None:
    """The write of its acknowledgement was answered at 306: five milliseconds after that it was woken."""
    life = HandMadeLife()
    life.appends(0, 0, 9)
    life.acknowledges(304, takes_ms, "m1", 1, (0, 3, 1), None)
    life.fetches(304, takes_ms, "m1", 1, (4, 9, 1))
    life.writes(305, 101, (0, 4), (0, 3, 2, 1))

    (step,) = (step for step in steps_of(life) if step.what is What.FETCH)

    assert step.at_us == at_us


@pytest.mark.parametrize(("done_us", "at_us"), [(322_999, 304_000), (323_000, 323_000)])
def test_a_fetch_that_is_answered_as_soon_as_it_is_handled_was_not_woken(done_us: int, at_us: int) -> None:
    """Its handler was done at 318, long after its write was answered: five milliseconds after that it was woken."""
    life = HandMadeLife()
    life.appends(0, 0, 9)
    life.acknowledges(304, 14, "m1", 1, (0, 3, 1), None)
    life.fetches(304, 14, "m1", 1, (4, 9, 1))
    life.events[-1] = life.events[-1]._replace(handled_us=318_000, done_us=done_us)
    life.writes(305, 101, (0, 4), (0, 3, 2, 1))

    (step,) = (step for step in steps_of(life) if step.what is What.FETCH)

    assert step.at_us == at_us


def test_a_fetch_that_acknowledges_nothing_is_done_when_it_is_answered() -> None:
    """However long it was worked on: nothing else holds up its answer."""
    life = HandMadeLife()
    life.fetches(10, 300, "m1", 1)

    (step,) = (step for step in steps_of(life) if step.what is What.FETCH)

    assert (step.earliest_us, step.at_us, step.latest_us) == (10_000, 310_000, 310_000)


def test_a_fetch_that_says_nothing_of_a_wait_does_not_wait() -> None:
    """Its answer waits for the write of what it acknowledges."""
    life = HandMadeLife()
    life.acknowledges(10, 300, "m1", 1, (0, 3, 1), None)
    life.fetches(10, 300, "m1", 1)
    request = {name: value for name, value in (life.events[-1].request or {}).items() if name != "max_wait_ms"}
    life.events[-1] = life.events[-1]._replace(request=request)

    (step,) = (step for step in steps_of(life) if step.what is What.FETCH)

    assert step.latest_us == 10_000 + 25_000


@pytest.mark.parametrize(("is_acknowledging", "at_us"), [(False, 10_000), (True, 15_000)])
def test_a_session_is_closed_after_what_it_acknowledges_is_written(*, is_acknowledging: bool, at_us: int) -> None:
    """Without acknowledgements it is closed at once."""
    life = HandMadeLife()
    if is_acknowledging:
        life.acknowledges(10, 5, "m1", 1, (0, 3, 1), None)
    life.fetches(10, 5, "m1", 1)
    life.events[-1] = life.events[-1]._replace(kind="close", request={}, response={})

    (step,) = (step for step in steps_of(life) if step.what is What.CLOSE)

    assert step.at_us == at_us


@pytest.mark.parametrize("number", [0, 7])
def test_a_request_comes_after_the_one_before_it_in_its_connection(number: int) -> None:
    """Whatever their times say; a request that acknowledges and fetches does both at one time."""
    life = HandMadeLife()
    life.fetches(10, 50, "m1", number)
    life.acknowledges(20, 5, "m1", number + 1, (0, 3, 1), None)
    life.fetches(20, 5, "m1", number + 1)
    life.fetches(90, 5, "m1", number + 2)

    steps = [step for step in steps_of(life) if step.what in {What.FETCH, What.ACKNOWLEDGE}]

    assert [(step.what, step.at_us, step.latest_us) for step in steps] == [
        (What.FETCH, 60_000, 60_000),
        (What.ACKNOWLEDGE, 60_001, 60_001),
        (What.FETCH, 60_001, 60_001),
        (What.FETCH, 95_000, 95_000),
    ]


def test_numbers_order_the_requests_of_a_connection_and_not_times() -> None:
    """The line of the first one is late: the second one seems to have been taken before it."""
    life = HandMadeLife()
    life.fetches(12, 5, "m1", 1)
    life.fetches(10, 5, "m1", 2)

    steps = [(step.event.request_no, step.at_us) for step in steps_of(life) if step.what is What.FETCH]

    assert steps == [(1, 17_000), (2, 17_001)]


def latest_outcomes(life: HandMadeLife) -> list[int]:
    """Return when the outcomes of the writes of a life could have taken effect at the latest. [µs]"""
    return [step.latest_us for step in steps_of(life) if step.what is What.OUTCOME]


@pytest.mark.parametrize(("at_ms", "is_its"), [(4, False), (5, True), (55, True), (55.001, False)])
def test_a_write_is_of_the_acknowledgement_in_progress_when_it_arrives(at_ms: float, *, is_its: bool) -> None:
    """Times may be late by 25 ms; nobody waits for its outcome otherwise, which comes as long after its answer."""
    life = HandMadeLife()
    life.writes(30, 101, (0, 4), (0, 3, 2, 1))
    life.acknowledges(at_ms, 0, "m1", 1, (0, 3, 1), None)

    assert latest_outcomes(life) == [max(31_000, round(at_ms * 1000)) if is_its else 56_000]


def test_a_refused_acknowledgement_has_no_write() -> None:
    """Nor is it known whether one has that the broker has not answered."""
    life = HandMadeLife()
    life.acknowledges(10, 40, "m1", 1, (0, 3, 1), "invalid_record_state")
    life.acknowledges(10, 60, "m2", 1, (0, 3, 1), None)
    life.acknowledges(10, 0, "m3", 1, (4, 7, 1), None)
    life.events[-1] = life.events[-1]._replace(response=None)
    life.writes(30, 101, (0, 4), (0, 3, 2, 1))

    assert latest_outcomes(life) == [70_000]


def test_an_acknowledgement_has_one_write() -> None:
    """What is written of the same records later is something else."""
    life = HandMadeLife()
    life.acknowledges(10, 600, "m1", 1, (0, 3, 1), None)
    life.writes(11, 101, (0, 0), (0, 3, 2, 1))
    life.writes(20, 102, (0, 0), (0, 3, 0, 1))

    assert latest_outcomes(life) == [610_000, 21_000 + 25_000]


def test_the_last_of_the_batches_that_were_appended_together_counts() -> None:
    """A fetch has acquired both of them."""
    life = HandMadeLife()
    life.appends(0, 0, 3)
    life.appends(50, 8, 11)
    request = life.events[-1].request or {}
    both = {"batches": (request["batches"][0]._replace(first_offset=4, last_offset=7), *request["batches"])}
    life.events[-1] = life.events[-1]._replace(request=both)
    life.fetches(10, 90, "m1", 1, (0, 3, 1), (4, 11, 1))

    assert fetch_of(life).earliest_us == 50_000


def test_what_is_in_the_log_from_the_beginning_holds_up_nothing() -> None:
    """A history may begin at any time: here at 0."""
    life = HandMadeLife()
    life.appends(0, 0, 3)
    life.appends(50, 4, 7)
    life.fetches(0, 90, "m1", 1, (0, 3, 1))
    life.loses(0, "m2")

    assert fetch_of(life).earliest_us == 0
    assert schedule(enumerate(life.events)).lost == [(0, "m2")]


def test_settings_that_nobody_knows_the_time_of_are_those_at_the_beginning() -> None:
    """Those of a properties file are in force before the log begins."""
    life = HandMadeLife()
    life.fetches(0, 90, "m1", 1)
    life.events[0] = life.events[0]._replace(at_us=None, taken_us=None, handled_us=None, done_us=None)

    step, fetch = steps_of(life)

    assert (step.what, step.earliest_us, step.at_us, step.latest_us) == (What.CONFIG, 0, 0, 0)
    assert (fetch.earliest_us, fetch.at_us) == (0, 90_000)
