"""Whether other settings than the assumed ones explain what does not fit."""

from __future__ import annotations

from importlib import import_module
from itertools import combinations
from typing import Any

import pytest

from sharestate.history import AppendedBatch, Event, Header, Order
from sharestate.log_check import Verdict
from sharestate.log_check.budget import Budget
from sharestate.log_check.partition_events import Located
from sharestate.log_check.settings_evidence import MOST_TRIED, NEEDED, doubt
from sharestate.log_check.unanswered import unanswered_fetch
from sharestate.log_check.verify import check_partition
from sharestate.values.records import AcquiredRecords
from sharestate.values.requests import StateBatch
from tests.support.hand_made_events import HandMadeLife

KEY = ("g", "dGhlIHRvcGljJ3MgaWQhIQ", 0)

DEFAULTS: dict[str, Any] = {
    "auto_offset_reset": "latest",
    "delivery_count_limit": 5,
    "dlq_topic": "",
    "isolation": "read_uncommitted",
    "max_record_locks": 2000,
    "record_lock_duration_ms": 30_000,
    "renew_acknowledge_enable": True,
}


class Life:
    """The events of a share partition, with a check that is made up."""

    def __init__(self, *assumed: str, **settings: Any) -> None:  # noqa: ANN401 - of a group
        """Begin with the settings, of which some are assumed."""
        self.events: list[Located] = []
        self.tried: list[dict[str, Any]] = []
        self.add("config", request={**DEFAULTS, **settings, "assumed": assumed})

    def add(self, kind: str, **fields: Any) -> Event:  # noqa: ANN401 - of an event
        """Add an event."""
        event = Event.of(KEY, len(self.events), kind, **fields)
        self.events.append((len(self.events) + 2, event))
        return event

    def fetch(self, *acquired: tuple[int, int, int], lock_ms: int = 30_000) -> Event:
        """Add a fetch."""
        rows = tuple(AcquiredRecords(*each) for each in acquired)
        return self.add("fetch", request={}, response={"acquired": rows, "lock_ms": lock_ms})

    def write(self, *batches: tuple[int, int, int, int], start_offset: int = 0) -> Event:
        """Add a write."""
        rows = tuple(StateBatch(*each) for each in batches)
        return self.add("write", request={"start_offset": start_offset, "state_batches": rows}, response={})

    def initialize(self, start_offset: int) -> Event:
        """Add a read of the state."""
        return self.add("initialize", request={}, response={"start_offset": start_offset, "state_batches": ()})

    def fill(self, count: int = 100) -> None:
        """Add acknowledgements, each with fetches that got nothing: those are explained soon."""
        for _ in range(count):
            self.add("acknowledge", request={"batches": ()}, response={})
            self.fetch()
            self.fetch()

    def doubt(self, stop: Event, better: dict[str, Any] | None = None, gain: int = NEEDED) -> str | None:
        """Return the doubt if 7 are explained before *stop*, and *gain* more with settings that are *better*."""

        def explains(events: list[Located]) -> int:
            request = events[0][1].request or {}
            self.tried.append({name: request[name] for name in DEFAULTS if request[name] != DEFAULTS[name]})
            return 7 + gain if better is not None and self.tried[-1] == better else 7

        return doubt(self.events, stop, 7, explains)


ALL = tuple(DEFAULTS)


def test_known_settings_leave_no_doubt() -> None:
    """If nothing is assumed what does not fit contradicts; no other value is tried."""
    life = Life()
    life.initialize(-1)
    stop = life.fetch((0, 4, 1), lock_ms=1500)

    assert life.doubt(stop, {"auto_offset_reset": "earliest"}) is None
    assert life.tried == []


def test_locks_that_last_otherwise_show_that_a_group_has_settings_of_its_own() -> None:
    """Each answer has the lock duration; one that differs alone may be falsified."""
    life = Life("isolation", "record_lock_duration_ms")
    for lock_ms in (1500, 1500):
        life.fetch((0, 4, 1), lock_ms=lock_ms)
    stop = life.fetch((0, 4, 1))

    assert life.doubt(stop) == (
        "the group's settings are not known: isolation read_uncommitted, record_lock_duration_ms 30000 are assumed, but"
        " acquisition locks last 1500 ms"
    )
    other = Life("isolation", "record_lock_duration_ms")
    for lock_ms in (1500, 30_000):
        other.fetch((0, 4, 1), lock_ms=lock_ms)
    assert other.doubt(other.fetch((0, 4, 1))) is None


def test_a_lock_duration_that_is_known_says_nothing_of_other_settings() -> None:
    """If it was altered while the log ran, that the locks last so long is no evidence."""
    life = Life("isolation")
    stop = life.fetch((0, 4, 1), lock_ms=1500)

    assert life.doubt(stop) is None


def test_more_deliveries_than_the_limit_allows() -> None:
    """A record at the limit is delivered once more at the most (4.2 on); both an answer and a write have to have it."""
    life = Life("delivery_count_limit")
    life.fetch((0, 0, 7))
    stop = life.write((0, 0, 0, 7))
    reason = life.doubt(stop)
    assert reason is not None
    assert reason.endswith("delivery_count_limit 5 are assumed, but records were delivered 7 times")

    for acquired, written in ((6, 6), (7, 5), (5, 7)):
        other = Life("delivery_count_limit")
        other.fetch((0, 0, acquired))
        assert other.doubt(other.write((0, 0, 0, written))) is None


def test_records_that_went_to_a_queue() -> None:
    """Only a dead-letter queue has records that are archiving; one such write may be falsified."""
    life = Life("dlq_topic")
    life.write((0, 0, 3, 1))
    stop = life.write((1, 1, 3, 1))
    assert "dlq_topic none are assumed, but records went to a dead-letter queue" in (life.doubt(stop) or "")

    other = Life("dlq_topic")
    assert other.doubt(other.write((0, 0, 3, 1))) is None


def test_another_value_that_explains_more() -> None:
    """The first setting with which the check gets further is named."""
    life = Life("auto_offset_reset", "max_record_locks")
    life.initialize(-1)
    stop = life.fetch((0, 4, 1))
    life.fill()

    assert life.doubt(stop, {"auto_offset_reset": "earliest"}) == (
        "the group's settings are not known: auto_offset_reset latest, max_record_locks 2000 are assumed, but with"
        " auto_offset_reset earliest more is explained"
    )


def test_two_settings_at_once() -> None:
    """Where one alone does not help, two may."""
    life = Life("auto_offset_reset", "delivery_count_limit")
    life.initialize(-1)
    life.fetch((0, 4, 3))
    life.write((0, 4, 0, 3))
    stop = life.fetch()
    life.fill()
    better = {"auto_offset_reset": "earliest", "delivery_count_limit": 3}

    assert (life.doubt(stop, better) or "").endswith(
        "but with auto_offset_reset earliest and delivery_count_limit 3 more is explained"
    )


@pytest.mark.parametrize(("count", "is_read"), [(4 * NEEDED, False), (4 * NEEDED - 1, True)])
def test_no_more_is_read_than_is_needed(count: int, is_read: bool) -> None:  # noqa: FBT001 - by pytest
    """The last of the answers that count ends it: of what comes after it nothing has to be explained."""
    life = Life("auto_offset_reset")
    life.initialize(-1)
    stop = life.fetch((0, 4, 1))
    life.fill(count)
    looked_at: list[Event] = []

    def explains(events: list[Located]) -> int:
        looked_at.extend(event for _, event in events)
        return 7 + NEEDED

    assert doubt(life.events, stop, 7, explains) is not None
    assert (looked_at[-1] == life.events[-1][1]) == is_read


def test_of_two_settings_both_are_tried_together_once() -> None:
    """They are each two of them, and all."""
    life = Life("delivery_count_limit", "max_record_locks")
    life.fetch((0, 99, 3))
    life.write((0, 4, 0, 3))
    stop = life.fetch()
    life.fill()

    assert life.doubt(stop) is None
    assert [tried for tried in life.tried if len(tried) == 2] == [{"delivery_count_limit": 3, "max_record_locks": 100}]


def test_each_two_settings_are_tried_together_once() -> None:
    """Then all of them, and no value that is assumed."""
    life = Life("auto_offset_reset", "delivery_count_limit", "max_record_locks")
    life.initialize(-1)
    life.fetch((0, 99, 3))
    life.write((0, 4, 0, 3))
    stop = life.fetch()
    life.fill()
    ones = {"auto_offset_reset": "earliest", "delivery_count_limit": 3, "max_record_locks": 100}

    assert life.doubt(stop) is None
    assert life.tried[:3] == [{name: value} for name, value in ones.items()]
    assert life.tried[3:6] == [dict(each) for each in combinations(ones.items(), 2)]
    assert life.tried[6] == ones
    assert all(len(tried) == 1 for tried in life.tried[7:])


@pytest.mark.parametrize(
    ("left", "gain", "is_doubted"), [(100, 9, False), (100, 10, True), (3, 3, True), (3, 2, False)]
)
def test_a_little_more_is_not_enough(left: int, gain: int, is_doubted: bool) -> None:  # noqa: FBT001 - by pytest
    """A line that was falsified may be explained by a setting, but not what comes after it."""
    life = Life("auto_offset_reset")
    life.initialize(-1)
    stop = life.fetch((0, 4, 1))
    life.fill(left)

    assert (life.doubt(stop, {"auto_offset_reset": "earliest"}, gain) is not None) == is_doubted


def test_what_is_tried_is_bounded_and_only_what_may_matter() -> None:
    """Without a reset, transactions, renewals and a queue only numbers are left; only events near the stop are read."""
    life = Life(*ALL)
    life.add("initialize", request={}, response={"error": "coordinator_load_in_progress"})
    life.initialize(0)
    stop = life.fetch((0, 9_999, 9))
    life.fill(1000)

    assert life.doubt(stop) is None
    assert {name for tried in life.tried for name in tried} == {"delivery_count_limit", "max_record_locks"}
    assert len(life.tried) <= MOST_TRIED


def tried_of(name: str, life: Life) -> set[Any]:
    """Return the values of a setting that are tried where nothing fits at the end."""
    stop = life.fetch()
    life.fill(10)
    assert life.doubt(stop) is None
    return {tried[name] for tried in life.tried if name in tried}


@pytest.mark.parametrize(
    ("in_flight", "assumed", "tried"),
    [
        (99, 2000, set()),
        (100, 2000, {100}),
        (499, 2000, {100, 200}),
        (2000, 2000, {100, 200, 500, 1000, 5000}),
        (150, 100, {200}),
    ],
)
def test_limits_of_records_in_flight_that_are_not_reached_are_one(
    in_flight: int, assumed: int, tried: set[int]
) -> None:
    """Which of them a group has cannot be seen: one of them is tried, unless the assumed one is among them."""
    life = Life("max_record_locks", max_record_locks=assumed)
    life.initialize(1000)
    life.fetch((1000, 1000 + in_flight - 1, 1))

    assert tried_of("max_record_locks", life) == tried


def test_records_before_the_start_of_a_write_are_in_flight_no_more() -> None:
    """So the limit may be below the number of all records; the next leader begins where the state says."""
    life = Life("max_record_locks")
    life.initialize(0)
    life.fetch((0, 59, 1))
    life.write((0, 59, 2, 1), start_offset=60)
    life.fetch((60, 119, 1))
    assert tried_of("max_record_locks", life) == set()

    life.initialize(0)
    life.fetch((0, 119, 1))
    assert tried_of("max_record_locks", life) == {100}


@pytest.mark.parametrize(
    ("count", "assumed", "tried"),
    [(1, 5, set()), (2, 5, {2, 3, 4}), (3, 5, {2, 3, 4, 6, 7}), (1, 2, set()), (2, 9, {2, 3, 4})],
)
def test_delivery_limits_are_one_as_long_as_no_record_is_throttled(count: int, assumed: int, tried: set[int]) -> None:
    """From half of the limit on, rounded up, and never before the third delivery (rule 20.3)."""
    life = Life("delivery_count_limit", delivery_count_limit=assumed)
    life.initialize(0)
    life.fetch((0, 4, count))

    assert tried_of("delivery_count_limit", life) == tried


@pytest.mark.parametrize("response", [{"error": "UNKNOWN_SERVER_ERROR"}, None], ids=["failed", "unanswered"])
def test_a_fetch_of_which_nobody_knows_what_it_has_acquired_may_have_reached_any_limit(
    response: dict[str, Any] | None,
) -> None:
    """It may have acquired before it failed (B8), or its answer was lost: all other limits are tried."""
    life = Life("delivery_count_limit", "max_record_locks")
    life.initialize(0)
    life.fetch((0, 4, 1))
    life.add("fetch", request={}, response=response)

    assert tried_of("delivery_count_limit", life) == {2, 3, 4, 6, 7, 8, 9, 10}
    assert tried_of("max_record_locks", life) == {100, 200, 500, 1000, 5000, 10_000}


def test_a_connection_whose_loss_was_noticed_late_counts() -> None:
    """Only events near the stop are looked at, and all lost connections: they may be what a write is due to."""
    life = Life("auto_offset_reset")
    life.initialize(-1)
    stop = life.fetch((0, 4, 1))
    life.fill(1000)
    lost = life.add("disconnect", member_id="m")
    looked_at: list[Event] = []

    def explains(events: list[Located]) -> int:
        looked_at.extend(event for _, event in events)
        return 7 + NEEDED

    assert doubt(life.events, stop, 7, explains) is not None
    assert lost in looked_at
    assert sum(event.kind == "acknowledge" for event in looked_at) == 4 * NEEDED  # others count nothing


def test_where_few_events_come_after_all_of_them_count() -> None:
    """The last one may be what shows that another value explains more."""
    life = Life("auto_offset_reset")
    life.initialize(-1)
    stop = life.fetch((0, 4, 1))
    last = life.write((0, 4, 2, 1))
    looked_at: list[Event] = []

    def explains(events: list[Located]) -> int:
        looked_at.extend(event for _, event in events)
        return 8

    assert doubt(life.events, stop, 7, explains) is not None
    assert looked_at[-1] == last


def test_settings_that_events_are_about_are_tried() -> None:
    """Aborted records, renewals, records for a queue and resets each bring their setting up."""
    life = Life(*ALL)
    life.initialize(-1)
    life.add("log", request={"batches": (AppendedBatch(0, 4, 1, True),)})  # noqa: FBT003 - a row of the format
    life.add("acknowledge", request={"batches": (), "is_renew": True}, response={})
    life.write((0, 0, 3, 1))
    stop = life.fetch((0, 4, 1))
    life.fill()

    assert life.doubt(stop) is None
    singles = [tried for tried in life.tried if len(tried) == 1]
    for each in (
        {"auto_offset_reset": "earliest"},
        {"isolation": "read_committed"},
        {"dlq_topic": "a topic"},
        {"renew_acknowledge_enable": False},
    ):
        assert each in singles


def test_a_reset_by_duration_begins_where_the_first_member_did() -> None:
    """No log says where that is; the first records that a member has got do. All else that the read says stays."""
    life = Life("auto_offset_reset")
    life.fetch((7, 9, 1))  # of another life
    life.initialize(-1)
    life.events[-1] = (4, life.events[-1][1]._replace(request={"leader_epoch": 4}))
    life.fetch()
    stop = life.fetch((40, 44, 1), (45, 49, 1))
    life.fill()
    requests: list[Any] = []

    def explains(events: list[Located]) -> int:
        requests.append(events[2][1].request)
        return 7

    assert doubt(life.events, stop, 7, explains) is None
    assert requests == [{"leader_epoch": 4}, {"leader_epoch": 4, "reset_offset": 40}]


def test_what_an_unanswered_fetch_has_acquired_is_not_known() -> None:
    """Until the state is read again: then its locks are gone."""
    life = Life()
    life.initialize(0)
    before = life.fetch((0, 4, 1))
    unanswered = life.add("fetch", request={})
    life.events[-1] = (9, unanswered._replace(source_file="request.log", source_line=891))
    stop = life.fetch((9, 9, 1))
    life.initialize(0)
    later = life.fetch((9, 9, 1))

    assert unanswered_fetch(life.events, before) is None
    assert unanswered_fetch(life.events, unanswered) is None
    assert unanswered_fetch(life.events, stop) == (
        "the fetch in request.log:891 was answered with an error, so it is not known what it has acquired"
    )
    assert unanswered_fetch(life.events, later) is None


def test_as_long_as_the_state_is_not_read_what_was_acquired_is_not_known() -> None:
    """A read that fails frees no locks."""
    life = Life()
    life.initialize(0)
    life.add("fetch", request={})
    life.add("initialize", request={}, response={"error": "coordinator_load_in_progress"})
    life.write((0, 4, 2, 1))
    stop = life.fetch((9, 9, 1))

    assert unanswered_fetch(life.events, stop) is not None


def test_trying_other_settings_may_cost_more_the_more_events_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """27 events are enough for that without what any share partition may cost."""
    monkeypatch.setattr(import_module("sharestate.log_check.verify"), "LEAST_WORK", 0)  # the package has a function
    life = HandMadeLife()
    settings = {**(life.events[0].request or {}), "auto_offset_reset": "latest", "assumed": ("auto_offset_reset",)}
    life.events[0] = life.events[0]._replace(request=settings)
    life.appends(1, 0, 0)
    life.reads(10, 100, -1)
    for offset in range(12):
        life.fetches(50 + 50 * offset, 2, "m1", 1 + offset, (offset, offset, 1))
        life.appends(60 + 50 * offset, offset + 1, offset + 1)
    own = [*enumerate(life.events, 2)]

    header = Header(order=Order.ARRIVAL)
    report = check_partition(life.events[0].key, own, "history.jsonl", header, Budget(20_000)).report

    assert report.verdict is Verdict.NOT_CHECKED
    assert report.findings[0].reason == (
        "the group's settings are not known: auto_offset_reset latest are assumed, but with auto_offset_reset earliest"
        " more is explained"
    )


@pytest.mark.parametrize(("work", "verdict"), [(0, Verdict.CONTRADICTION), (500, Verdict.NOT_CHECKED)])
def test_where_trying_other_settings_costs_too_much_nothing_speaks_for_them(
    work: int, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    What does not fit under the assumed ones contradicts then.

    With others all is explained, which counts the answers to acknowledgements, and the writes: ten of a dozen.
    """
    verify = import_module("sharestate.log_check.verify")  # the package has a function
    monkeypatch.setattr(verify, "LEAST_WORK", 0)
    monkeypatch.setattr(verify, "WORK_OF_TRIES", work)
    life = HandMadeLife()
    settings = {**(life.events[0].request or {}), "auto_offset_reset": "latest", "assumed": ("auto_offset_reset",)}
    life.events[0] = life.events[0]._replace(request=settings)
    life.appends(1, 0, 3)
    life.reads(10, 100, -1)
    for offset in range(4):
        life.fetches(100 + 100 * offset, 2, "m1", 1 + 2 * offset, (offset, offset, 1))
        request = {**(life.events[-1].request or {}), "mode": "record_limit", "max_records": 1}
        life.events[-1] = life.events[-1]._replace(request=request)
        life.acknowledges(150 + 100 * offset, 5, "m1", 2 + 2 * offset, (offset, offset, 1), None)
        life.writes(152 + 100 * offset, 101 + offset, (offset, 1), (offset, offset, 2, 1))
    own = [*enumerate(life.events, 2)]

    report = check_partition(life.events[0].key, own, "history.jsonl", Header(order=Order.ARRIVAL)).report

    assert report.verdict is verdict
