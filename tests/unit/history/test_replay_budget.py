"""What a replay may cost: few events that concern a great many records are refused, and what brokers do is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pytest

from sharestate import AcknowledgementBatch, AcquiredRecords, StateBatch
from sharestate.errors import HistoryError, MalformedInputError
from sharestate.explain.partition_life import PartitionLife
from sharestate.explain.survey import Survey
from sharestate.history import AppendedBatch, Event, Header, Replay, ReplaySettings, replay_events, replay_files
from sharestate.history.arrow import encode_events
from sharestate.history.arrow_replay import replay_batches
from sharestate.history.events import write_event
from sharestate.history.rows import DEFAULT_OUTPUTS
from sharestate.history.synthetic import SyntheticHistory

TOPIC: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
LACKS: Final = frozenset({"write", "expire", "dead_letter"})
LARGEST: Final = 2**20
"""The largest batch that is split, by default."""

READ: Final = {"state_epoch": 0, "start_offset": 0, "state_batches": ()}
TOO_MANY: Final = "more than 1048576 records in flight that may be split, beside 16384 of each"
TOO_MUCH: Final = "it and the events before it concern too many ranges of records that no event names"


class Group:
    """Makes the events of a share partition of its own."""

    def __init__(self, group_id: str = "g") -> None:
        """Begin before the first event."""
        self.key = (group_id, TOPIC, 0)
        self._seq = -1

    def event(self, kind: str, at_ms: int = 0, **fields: Any) -> Event:  # noqa: ANN401 - those of ``Event.of``
        """Return the next event."""
        self._seq += 1
        return Event.of(self.key, self._seq, kind, at_us=at_ms * 1000, member_id="m", **fields)

    def begins(self, size: int) -> Iterator[Event]:
        """Yield a batch of so many records, all of which a member acquires."""
        request = {"fetch_offset": 0, "read_to": size - 1, "max_records": 2**31 - 1}
        yield self.event("log", request={"batches": (AppendedBatch(0, size - 1),)})
        yield self.event("initialize", response=READ)
        yield self.event("fetch", request=request)

    def releases_one(self) -> Event:
        """Return what splits the batch: one of its records is released."""
        return self.event("acknowledge", request={"batches": (AcknowledgementBatch(5, 5, (2,)),)})

    def splits(self, size: int) -> list[Event]:
        """Return the events with which a batch of so many records is split."""
        return [*self.begins(size), self.releases_one()]


def splits(groups: int, size: int) -> list[list[Event]]:
    """Return the events of groups, each of which splits a batch of so many records."""
    return [Group(f"g{number}").splits(size) for number in range(groups)]


def replayed(events: list[Event], taken: list[Event] | None = None) -> int:
    """Return how many events are replayed; those before one that is refused are added to *taken*."""
    settings, taken = ReplaySettings(lacks=LACKS), [] if taken is None else taken

    def noted() -> Iterator[Event]:
        for event in events:
            yield event
            taken.append(event)

    for _ in replay_events(noted(), settings):
        pass
    return len(taken)


def test_one_share_partition_may_split_the_largest_batch() -> None:
    """The leader may split it, so a replay of what it has done may do so too."""
    assert replayed(Group().splits(LARGEST)) == 4


def test_many_share_partitions_may_not() -> None:
    """Each of a hundred takes 600 bytes of a history, and 8 MB of memory."""
    with pytest.raises(MalformedInputError, match=TOO_MANY):
        replayed(list(chain(*splits(2, LARGEST), Group("last").begins(1))))


def test_share_partitions_may_have_what_brokers_let_them_have() -> None:
    """With 10,000 record locks, the most that brokers take, and a batch of 6,000 more, any number is replayed."""
    assert replayed(list(chain(*splits(200, 16_000)))) == 800


def test_what_is_not_in_flight_any_more_does_not_count() -> None:
    """One share partition after the other may split such a batch if the leader of the one before has stopped."""
    lives = [[*life, Event.of(life[0].key, 4, "stop")] for life in splits(4, LARGEST // 2)]

    assert replayed(list(chain(*lives))) == 20


def test_records_that_are_passed_are_not_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that are accepted one after the other, each of them split, come to more than may be in flight at once."""
    monkeypatch.setattr("sharestate.history.replay_budget._MOST_WORK", 2**40)
    group, size = Group(), 2**17
    events = [group.event("initialize", response=READ)]
    for first in range(0, 10 * size, size):
        last = first + size - 1
        fetch = {"fetch_offset": first, "read_to": last, "max_records": 2**31 - 1}
        first_ones, others = AcknowledgementBatch(first, first, (1,)), AcknowledgementBatch(first + 1, last, (1,))
        events += [
            group.event("log", request={"batches": (AppendedBatch(first, last),)}),
            group.event("fetch", request=fetch),
            group.event("acknowledge", request={"batches": (first_ones,)}),
            group.event("acknowledge", request={"batches": (others,)}),
        ]

    assert replayed(events) == 41


def in_parts(size: int, times: int, *, is_named: bool) -> list[Event]:
    """Return a session that acquires so many ranges and ends, again and again; its fetches name them, or not."""
    group = Group()
    rows = tuple(StateBatch(each, each, 0, 1 + each % 2) for each in range(size))
    events = [
        group.event("config", request={"delivery_count_limit": 2**15}),
        group.event("log", request={"batches": (AppendedBatch(0, size - 1),)}),
        group.event("initialize", response=READ | {"state_batches": rows}),
    ]
    request = {"fetch_offset": 0, "read_to": size - 1, "max_records": 2**31 - 1}
    for number in range(times):
        response = None
        if is_named:
            response = {"acquired": tuple(AcquiredRecords(each, each, 2 + each % 2 + number) for each in range(size))}
        events += [group.event("fetch", request=request, response=response), group.event("close")]
    return events


@pytest.mark.parametrize("size", [100, 2_000])
def test_ranges_that_no_event_names_are_counted(size: int) -> None:
    """Two lines of 250 bytes may stand for 4,000 ranges: 16 of each are free, and 131,072 of all."""
    allowed = 2**17 // (size - 16)
    events = in_parts(size, allowed, is_named=False)

    taken: list[Event] = []
    with pytest.raises(MalformedInputError, match=TOO_MUCH):
        replayed(events, taken)
    assert len(taken) > allowed * 9 // 10


def test_who_records_transitions_may_have_fewer_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a row for what it was and has become, beside what others have of it."""
    monkeypatch.setattr("sharestate.history.replay_budget._MOST_WORK", 2**22)
    events = in_parts(100, 2**12 // 84, is_named=False)[: 2**12 // 84 * 9 // 10]
    Replay(events[0][:3], lacks=LACKS).apply_all(events)

    with pytest.raises(MalformedInputError, match=TOO_MUCH):
        Replay(events[0][:3], lacks=LACKS, outputs=frozenset({"transition"})).apply_all(events)


def test_what_goes_to_the_queue_is_a_range_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that is rejected is written, handed over and written again: one more than its acknowledgement names."""
    group = Group()
    reject = {"batches": (AcknowledgementBatch(5, 5, (3,)),)}
    settings = group.event("config", request={"dlq_topic": "dlq"})
    events = [settings, *group.begins(IN_FLIGHT), group.event("acknowledge", request=reject)]
    following = group.event("config", request={})
    cost = ACQUIRED - 2**14 + IN_FLIGHT - 2**14 - 2**11 + (3 - 2) * 2**10

    monkeypatch.setattr("sharestate.history.replay_budget._MOST_WORK", cost)
    Replay(group.key, lacks=LACKS).apply_all([*events, following])

    monkeypatch.setattr("sharestate.history.replay_budget._MOST_WORK", cost - 1)
    with pytest.raises(MalformedInputError, match=TOO_MUCH):
        Replay(group.key, lacks=LACKS).apply_all([*events, following])


def test_ranges_that_an_event_names_and_does_not_come_to_are_worth_nothing() -> None:
    """A fetch that reads nothing may be said to have acquired 80,000 ranges in 8 bytes each: that buys no others."""
    events = in_parts(2_000, 2**17 // 1_984, is_named=False)
    fetch, names = {"read_to": -1}, (AcquiredRecords(1, 1, 1),) * 80_000
    told = Group().event("fetch", request=fetch, response={"acquired": names})._replace(seq=3)

    with pytest.raises(MalformedInputError, match=TOO_MUCH):
        replayed([*events[:3], told, *(each._replace(seq=each.seq + 1) for each in events[3:])])


@pytest.mark.parametrize("outputs", [DEFAULT_OUTPUTS, frozenset({"transition"})])
def test_a_session_with_all_that_it_acquired_one_by_one_is_not_too_much(
    outputs: frozenset[str],
) -> None:
    """Of 2,000 records in flight, as many as Kafka has by default, each is acquired and released again and again."""
    events = in_parts(2_000, 30, is_named=True)
    replay = Replay(events[0][:3], lacks=LACKS, outputs=outputs)

    replay.apply_all(events)

    assert replay.seq == 62


def test_records_with_a_type_each_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An acknowledgement whose types differ from record to record is written in as many ranges."""
    monkeypatch.setattr("sharestate.history.replay_budget._MOST_WORK", 0)
    group = Group()
    types = (1, 2) * 1_000

    batches = (AcknowledgementBatch(0, 1_999, types),)
    events = [*group.begins(2_000), group.event("acknowledge", request={"batches": batches}), group.event("close")]
    assert replayed(events) == 5


IN_FLIGHT: Final = 100_000
"""As many records cost more than an event may, which is 2^14; a range that is acquired or written costs 2^10."""

ACQUIRED: Final = 2 * -(2**14) + IN_FLIGHT - 2**14 + 2**10
"""The cost of ``Group.begins`` with so many: a log and an initialization, then a fetch that acquires a range."""


def acquiring(*names: AcquiredRecords) -> list[Event]:
    """Return the events that acquire a range, with what the answer of the fetch is said to name."""
    *events, fetch = Group().begins(IN_FLIGHT)
    return [*events, fetch._replace(response={"acquired": names})]


def acknowledging(*types: int) -> list[Event]:
    """Return the events that acquire a range, and acknowledge its first records with these types, in one batch each."""
    group = Group()
    batches = tuple(AcknowledgementBatch(2 * at, 2 * at, (each,)) for at, each in enumerate(types))
    return [*group.begins(IN_FLIGHT), group.event("acknowledge", request={"batches": batches})]


def by_one(*types: int, batches: int = 1) -> list[Event]:
    """Return the events that acquire a range, and acknowledge records of it with a type each, in so many batches."""
    group, size = Group(), len(types)
    acknowledged = tuple(AcknowledgementBatch(at, at + size - 1, types) for at in range(0, batches * size, size))
    return [*group.begins(IN_FLIGHT), group.event("acknowledge", request={"batches": acknowledged})]


def releasing_parts(size: int) -> list[Event]:
    """Return the events that acquire so many ranges of a record, and release them as one."""
    *events, close = in_parts(size, 1, is_named=False)
    batches = (AcknowledgementBatch(0, size - 1, (2,)),)
    return [*events, close._replace(kind="acknowledge", request={"batches": batches})]


@pytest.mark.parametrize(
    ("events", "cost", "outputs"),
    [
        pytest.param([*Group().begins(IN_FLIGHT)], ACQUIRED, DEFAULT_OUTPUTS, id="an answer that is not known"),
        pytest.param(
            [*Group().begins(IN_FLIGHT)], ACQUIRED + 2**9, frozenset({"transition"}), id="what is recorded costs half"
        ),
        pytest.param(
            acquiring(AcquiredRecords(0, IN_FLIGHT - 1, 1)), ACQUIRED - 2**11, DEFAULT_OUTPUTS, id="an answer names it"
        ),
        pytest.param(
            acquiring(*(AcquiredRecords(at, at, 1) for at in range(3))),
            ACQUIRED - 2**11,
            DEFAULT_OUTPUTS,
            id="more that it names are worth nothing",
        ),
        pytest.param(
            acknowledging(2, 2), ACQUIRED + IN_FLIGHT - 2**14 - 2 * 2**11, DEFAULT_OUTPUTS, id="batches of one type"
        ),
        pytest.param(
            by_one(2, 1, 2, 1), ACQUIRED + IN_FLIGHT - 2**14 - 2**11, DEFAULT_OUTPUTS, id="a batch of four types"
        ),
        pytest.param(
            by_one(2, 1, batches=2),
            ACQUIRED + IN_FLIGHT - 2**14 - 2 * 2**11,
            DEFAULT_OUTPUTS,
            id="two batches of two types",
        ),
        pytest.param(
            releasing_parts(200),
            2 * 200 * 2**10 - 2 * 2**11 + 3 * 200 - 5 * 2**14,
            DEFAULT_OUTPUTS,
            id="one type, and a range that is named, for 200 that are written after as many were acquired",
        ),
    ],
)
def test_a_replay_may_cost_so_much_and_no_more(
    monkeypatch: pytest.MonkeyPatch, events: list[Event], cost: int, outputs: frozenset[str]
) -> None:
    """What is left is enough for the next event as long as it is not less than nothing."""
    following = Event.of(events[0].key, len(events), "unknown", request={"what": "leader", "reason": "none"})
    monkeypatch.setattr("sharestate.history.replay_budget._MOST_WORK", cost)
    Replay(events[0].key, lacks=LACKS, outputs=outputs).apply_all([*events, following])

    monkeypatch.setattr("sharestate.history.replay_budget._MOST_WORK", cost - 1)
    replay = Replay(events[0].key, lacks=LACKS, outputs=outputs)
    with pytest.raises(MalformedInputError, match=TOO_MUCH):
        replay.apply_all([*events, following])
    assert replay.seq == len(events) - 1


def test_so_many_records_may_be_in_flight_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those of a share partition 16,384 are free; those of the others count as long as they are in flight."""
    monkeypatch.setattr("sharestate.history.replay_budget.MOST_RECORDS", 1_000)
    stop = [Event.of(("g0", TOPIC, 0), 3, "stop")]
    first, second = ([*Group(name).begins(16_384 + size)] for name, size in (("g0", 1_000), ("g1", 1_000)))

    assert replayed([*first, *stop, *second, *Group("g2").begins(16_384)]) == 10
    one_more = [*Group("g3").begins(16_385), Event.of(("g3", TOPIC, 0), 3, "stop")]
    assert replayed(one_more) == 4
    with pytest.raises(MalformedInputError, match="more than 1000 records in flight"):
        replayed([*first, *one_more])
    with pytest.raises(MalformedInputError, match="more than 1000 records in flight"):
        replayed([*first, *stop, *second, *one_more])


OF_THE_EVENTS: Final = 4 * 2**14 + 2 * 2**10 - 2 * 10_000 - 2**10
"""What is left of four events that split a batch of 10,000 records, two ranges for the batch of the acknowledgement
included, whose type stands for what it wrote; less the records in flight after two, and a range that was acquired."""

OF_A_LOCK: Final = 4096 + 1024
"""What a lock that expires costs, and what is written of it."""


@pytest.mark.parametrize(
    ("work", "expired"),
    [
        pytest.param(200 * OF_A_LOCK - OF_THE_EVENTS, 201, id="to the last"),
        pytest.param(200 * OF_A_LOCK - OF_THE_EVENTS - 1, 200, id="one less"),
    ],
)
def test_locks_that_are_due_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch, work: int, expired: int) -> None:
    """Each record of a split batch has a lock, and its expiry a write: the event that makes them due is refused."""
    monkeypatch.setattr("sharestate.history.replay_budget._MOST_WORK", work)
    group = Group()
    replay = Replay(group.key, lacks=LACKS)
    replay.apply_all(group.splits(10_000))

    with pytest.raises(MalformedInputError, match=TOO_MUCH):
        replay.apply(group.event("close", at_ms=40_000))

    metrics = dict(row.values for row in replay.finish() if row.kind == "metric")
    assert (replay.seq, metrics["locks_expired"]) == (3, expired)


def test_what_brokers_do_leaves_the_budget_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """A history of many share partitions needs nothing beyond what each event and each share partition has."""
    monkeypatch.setattr("sharestate.history.replay_budget._MOST_WORK", 0)
    monkeypatch.setattr("sharestate.history.replay_budget.MOST_RECORDS", 0)

    assert replayed(list(SyntheticHistory(share_partitions=5, events=2_000))) == 2_000


def test_a_file_that_is_refused_is_named_with_the_event(tmp_path: Path) -> None:
    """The error says the file and the number of the event, whatever replays it."""
    path = tmp_path / "history.jsonl"
    lines = (Header(lacks=LACKS).to_json(), *map(write_event, chain(*splits(3, LARGEST))))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    where = r"history\.jsonl: event 8: " + TOO_MANY

    with pytest.raises(HistoryError, match=where):
        replay_files(path, tmp_path / "rows.jsonl")
    survey = Survey(path)
    with pytest.raises(HistoryError, match=where):
        survey.lives(survey.keys, PartitionLife)
    assert not (tmp_path / "rows.jsonl").exists()


def test_record_batches_are_replayed_one_share_partition_after_the_other() -> None:
    """What one of them has had in flight is gone as the next one begins; the work is that of all."""
    batches = [encode_events(life) for life in splits(6, LARGEST // 2)]

    assert sum(batch.num_rows for batch in replay_batches(batches, ReplaySettings(lacks=LACKS))) > 0


def test_share_partitions_one_after_the_other_may_cost_so_much_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one begins if nothing less than nothing is left, though what was in flight is gone."""
    batches = [encode_events([*Group(name).begins(IN_FLIGHT)]) for name in ("g0", "g1")]
    settings = ReplaySettings(lacks=LACKS)
    monkeypatch.setattr("sharestate.history.replay_budget._MOST_WORK", ACQUIRED)
    assert [*replay_batches(batches, settings)]

    monkeypatch.setattr("sharestate.history.replay_budget._MOST_WORK", ACQUIRED - 1)
    with pytest.raises(MalformedInputError, match=f"event 0: {TOO_MUCH} .g1-"):
        list(replay_batches(batches, settings))


def test_a_replay_that_goes_on_counts_what_is_in_flight() -> None:
    """A state with the largest batch leaves no room for another share partition's."""
    group = Group()
    replay = Replay(group.key, lacks=LACKS, outputs=frozenset({"state"}))
    replay.apply_all(group.splits(LARGEST))
    restored = Replay.restore(replay.state())
    more = AppendedBatch(LARGEST, 2 * LARGEST - 1)
    request = {"fetch_offset": LARGEST, "read_to": 2 * LARGEST - 1, "max_records": 2**31 - 1}
    restored.apply(group.event("config", request={"max_record_locks": 2**31}))
    restored.apply(group.event("log", request={"batches": (more,)}))
    restored.apply(group.event("fetch", request=request))

    with pytest.raises(MalformedInputError, match=TOO_MANY):
        restored.apply(group.event("close"))
